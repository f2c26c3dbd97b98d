package enginetest_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/sqlstore"
)

func init() {
	processes["open"] = func() int {
		_, _ = io.ReadAll(os.Stdin) // until all are there
		return inProcess(func(store *sqlstore.Evidence) error {
			_, err := store.Commit(ctx, outcome(os.Getenv("HEED_TEST_NAME")))
			return err
		})
	}
}

// TestOpenedAtOnce has nine processes open a new database at the same time, make its tables, write to it and close it again.
func TestOpenedAtOnce(t *testing.T) {
	skipRaced(t)
	const openers = 9
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			for range rounds(2, 100) {
				at := b.place(t)
				var begin []io.Closer
				var ends []func() error
				for i := range openers {
					cmd := child(t, "open", append(at.env(), fmt.Sprint("HEED_TEST_NAME=", i))...)
					in, err := cmd.StdinPipe()
					require.NoError(t, err)
					require.NoError(t, cmd.Start())
					begin, ends = append(begin, in), append(ends, cmd.Wait)
				}
				for _, b := range begin {
					require.NoError(t, b.Close())
				}
				for _, end := range ends {
					assert.NoError(t, end())
				}
				assert.EqualValues(t, openers, count(t, newEvidence(t, at.db(t), sqlstore.EvidenceConfig{})))
			}
		})
	}
}

// TestBusyWriter: somebody who writes nearly all the time does not keep others from writing for long, nor at all from opening
// what needs no change.
func TestBusyWriter(t *testing.T) {
	skipRaced(t)
	for _, driver := range []string{"sqlite", "sqlite3"} {
		t.Run(driver, func(t *testing.T) {
			at := sqliteFile(t, driver)
			store := newEvidence(t, at.db(t), sqlstore.EvidenceConfig{})
			busy, err := at.handle(t).Conn(ctx)
			require.NoError(t, err)
			do := func(statement string) {
				_, err := busy.ExecContext(ctx, statement)
				require.NoError(t, err)
			}
			for i := range 3 {
				do("BEGIN IMMEDIATE")
				done := make(chan error, 1)
				go func() {
					_, err := store.Commit(ctx, outcome(fmt.Sprint(i)))
					done <- err
				}()
				// SQLite itself asks after 328 ms, and then every 100 ms: never while nobody writes.
				time.Sleep(345 * time.Millisecond)
				waiting, gaps := true, 0
				for ; waiting && gaps < 20; gaps++ {
					do("COMMIT")
					select {
					case err := <-done:
						require.NoError(t, err)
						waiting = false
					case <-time.After(50 * time.Millisecond):
					}
					do("BEGIN IMMEDIATE")
					if waiting {
						time.Sleep(50 * time.Millisecond)
					}
				}
				do("COMMIT")
				require.False(t, waiting, "it missed %d opportunities", gaps)
			}

			do("BEGIN IMMEDIATE")
			within, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			handle, err := at.open()
			require.NoError(t, err)
			assert.NoError(t, sqlstore.Migrate(within, handle, at.dialect))
			require.NoError(t, handle.Close())
			do("COMMIT")
			require.NoError(t, busy.Close())
		})
	}
}
