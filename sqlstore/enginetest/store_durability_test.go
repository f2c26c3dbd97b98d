package enginetest_test

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// requireNoted checks that a store has each outcome that was acknowledged, that its record stands beside it, and returns how many
// acknowledged ones were lost.
func requireNoted(t testing.TB, st *sqlstore.Store, acknowledged []string) (lost int) {
	require.NoError(t, st.Declare(ctx, store.Kind{Name: "note"}))
	there := make(map[string]bool)
	history, err := gather(st.History(ctx, arm))
	require.NoError(t, err)
	for _, o := range history {
		require.False(t, there[o.ID], "%s is there twice", o.ID)
		there[o.ID] = true
	}
	require.EqualValues(t, len(there), notedIn(t, st))
	for r, err := range st.Find(ctx, store.Query{Kind: "note"}) {
		require.NoError(t, err)
		require.True(t, there[r.ID], "%s has a record, and no outcome", r.ID)
	}
	for _, id := range acknowledged {
		if !there[id] {
			lost++
		}
	}
	if lost == 0 && len(acknowledged) > 0 {
		receipts, err := st.Commit(ctx, noted(acknowledged[len(acknowledged)-1]))
		require.NoError(t, err)
		require.Len(t, receipts[0].Duplicates, 1, "what was counted does not count again")
	}
	return lost
}

// TestStorePowerCut cuts the power in the middle of writing, over and over. With SQLite nothing acknowledged is lost and nothing
// is corrupt. The same test has to see that SQLiteRelaxed loses, or it would show nothing.
func TestStorePowerCut(t *testing.T) {
	skipRaced(t)
	base := newDisk(t, 4096)
	for _, dialect := range []sqlstore.Dialect{sqlstore.SQLite, sqlstore.SQLiteRelaxed} {
		t.Run(dialect.String(), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(dialect)))
			acked, lost := 0, 0
			for range rounds(40, 500) {
				d := base.snapshot(rng)
				d.cut = 60 + rng.IntN(500)
				acknowledged := noteUntilCut(t, d, dialect)
				acked += len(acknowledged)
				handle, done := d.torn().on(t)
				st, err := sqlstore.Open(ctx, handle, dialect)
				require.NoError(t, err)
				var sound string
				require.NoError(t, handle.QueryRow("PRAGMA integrity_check").Scan(&sound))
				require.Equal(t, "ok", sound)
				lost += requireNoted(t, st, acknowledged)
				done()
			}
			t.Logf("of %d acknowledged outcomes %d were lost", acked, lost)
			require.Greater(t, acked, 100)
			if dialect == sqlstore.SQLite {
				assert.Zero(t, lost)
			} else {
				assert.Positive(t, lost, "this test does not see what is lost")
			}
		})
	}
}

func noteUntilCut(t testing.TB, d *disk, dialect sqlstore.Dialect) (acknowledged []string) {
	handle, done := d.on(t)
	defer done()
	st, err := sqlstore.Open(ctx, handle, dialect)
	if err == nil {
		err = st.Declare(ctx, store.Kind{Name: "note"})
	}
	for i := 0; err == nil; i++ {
		id := fmt.Sprint(i)
		if _, err = st.Commit(ctx, noted(id)); err == nil {
			acknowledged = append(acknowledged, id)
		}
	}
	return acknowledged
}

func init() {
	processes["note"] = func() int {
		return inStoreProcess(func(st *sqlstore.Store) error {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%s-%d", os.Getenv("HEED_TEST_NAME"), i)
				if _, err := st.Commit(ctx, noted(id)); err != nil {
					return err
				}
				fmt.Println(id)
			}
		})
	}
	processes["sum"] = func() int {
		return inStoreProcess(func(st *sqlstore.Store) error {
			for i := range each() {
				o := observe(fmt.Sprintf("%s-%d", os.Getenv("HEED_TEST_NAME"), i), time.Now())
				o.Weight = float64(1+i%64) / 64
				if err := increment(st, o); err != nil {
					return err
				}
			}
			return nil
		})
	}
	processes["open a store"] = func() int {
		_, _ = io.ReadAll(os.Stdin) // until all are there
		return inStoreProcess(commits(noted(os.Getenv("HEED_TEST_NAME"))))
	}
}

// increment adds an observation and one to the number in a record, together.
func increment(st *sqlstore.Store, o evidence.Observation) error {
	ref := store.Ref{Kind: "note", ID: "number"}
	for {
		var s store.Snapshot
		if err := st.Read(ctx, &s, nil, []store.Ref{ref}); err != nil {
			return err
		}
		n := 0
		if r := s.Records[0]; r.Revision > 0 {
			var err error
			if n, err = store.Decode[int](r.Body); err != nil {
				return err
			}
		}
		record := store.Record{Ref: ref, Revision: s.Records[0].Revision, At: o.At, Body: store.Of(n + 1)}
		_, err := st.Commit(ctx, store.Batch{ID: "batch " + o.ID, Observations: []evidence.Observation{o}, Records: []store.Record{record}})
		if !errors.Is(err, heed.ErrConflict) {
			return err
		}
	}
}

// inStoreProcess runs a function in a process that a test has started.
func inStoreProcess(do call) int {
	err := func() error {
		n, err := strconv.Atoi(os.Getenv("HEED_TEST_DIALECT"))
		if err != nil {
			return err
		}
		handle, err := sql.Open(os.Getenv("HEED_TEST_DRIVER"), os.Getenv("HEED_TEST_DSN"))
		if err != nil {
			return err
		}
		defer func() { _ = handle.Close() }()
		st, err := sqlstore.Open(ctx, handle, sqlstore.Dialect(n))
		if err == nil {
			err = st.Declare(ctx, store.Kind{Name: "note"})
		}
		if err != nil {
			return err
		}
		return do(st)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestStoreKilled kills a writing process, over and over.
func TestStoreKilled(t *testing.T) {
	skipRaced(t)
	onEach(t, func(t *testing.T, at place) {
		st := at.store(t, sqlstore.Config{})
		rng := rand.New(rand.NewPCG(3, 4))
		var acknowledged []string
		for round := range rounds(4, 200) {
			cmd := child(t, "note", append(at.env(), fmt.Sprint("HEED_TEST_NAME=", round))...)
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			lines := bufio.NewScanner(out)
			for lines.Scan() {
				if len(acknowledged) == 0 || !strings.HasPrefix(acknowledged[len(acknowledged)-1], fmt.Sprint(round, "-")) {
					time.AfterFunc(time.Duration(rng.IntN(40))*time.Millisecond, func() { _ = cmd.Process.Kill() })
				}
				acknowledged = append(acknowledged, lines.Text())
			}
			require.Error(t, cmd.Wait())
			if round%20 == 3 {
				require.Zero(t, requireNoted(t, st, acknowledged))
			}
		}
		require.Zero(t, requireNoted(t, st, acknowledged))
		t.Logf("%d outcomes were acknowledged", len(acknowledged))
		require.Greater(t, len(acknowledged), rounds(4, 200))
	})
}

// TestStoreInStoppedPostgres stops a server under load as if it had crashed, over and over.
func TestStoreInStoppedPostgres(t *testing.T) {
	skipRaced(t)
	s, err := newServer("")
	skipWithout(t, err)
	defer func() { assert.NoError(t, errors.Join(s.stop("immediate"), os.RemoveAll(s.dir))) }()
	handle, err := sql.Open("pgx", s.dsn())
	require.NoError(t, err)
	defer func() { _ = handle.Close() }()
	st := open(t, handle, sqlstore.Postgres)
	var acknowledged []string
	for cycle := range rounds(2, 10) {
		var wait sync.WaitGroup
		var mu sync.Mutex
		for worker := range 4 {
			wait.Go(func() {
				for i := 0; ; i++ {
					id := fmt.Sprintf("%d-%d-%d", cycle, worker, i)
					if _, err := st.Commit(ctx, noted(id)); err != nil {
						return
					}
					mu.Lock()
					acknowledged = append(acknowledged, id)
					mu.Unlock()
				}
			})
		}
		require.Eventually(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(acknowledged) >= 50*(cycle+1)
		}, time.Minute, 10*time.Millisecond)
		require.NoError(t, s.stop("immediate"))
		wait.Wait()
		require.NoError(t, s.start())
		require.Eventually(t, func() bool { return handle.Ping() == nil }, 30*time.Second, 10*time.Millisecond)
		require.Zero(t, requireNoted(t, st, acknowledged))
	}
	t.Logf("%d outcomes were acknowledged", len(acknowledged))
}

// TestStoreOfProcesses lets processes add to one arm at once, and each time to one number, by its revision.
func TestStoreOfProcesses(t *testing.T) {
	skipRaced(t)
	onEach(t, func(t *testing.T, at place) {
		const writers = 4
		var wait sync.WaitGroup
		for i := range writers {
			cmd := child(t, "sum", append(at.env(), fmt.Sprint("HEED_TEST_NAME=", i))...)
			wait.Go(func() { assert.NoError(t, cmd.Run()) })
		}
		wait.Wait()
		var mass float64
		for i := range each() {
			mass += writers * float64(1+i%64) / 64
		}
		var s store.Snapshot
		require.NoError(t, at.store(t, sqlstore.Config{}).Read(ctx, &s, []evidence.Cell{arm}, []store.Ref{{Kind: "note", ID: "number"}}))
		require.Len(t, s.Parts, 1)
		assert.Equal(t, mass, s.Parts[0].Tally.Mass)
		assert.EqualValues(t, writers*each(), s.Parts[0].Tally.N())
		n, err := store.Decode[int](s.Records[0].Body)
		require.NoError(t, err)
		assert.Equal(t, writers*each(), n)
	})
}

// TestStoreOpenedAtOnce has nine processes open a new database at the same time, make its tables, write to it and close it again.
func TestStoreOpenedAtOnce(t *testing.T) {
	skipRaced(t)
	const openers = 9
	onEach(t, func(t *testing.T, at place) {
		var begin []io.Closer
		var ends []func() error
		for i := range openers {
			cmd := child(t, "open a store", append(at.env(), fmt.Sprint("HEED_TEST_NAME=", i))...)
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
		assert.EqualValues(t, openers, notedIn(t, at.store(t, sqlstore.Config{})))
	})
}
