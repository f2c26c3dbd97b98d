package enginetest_test

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
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

func init() {
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
		record := store.Record{Ref: ref, Revision: s.Records[0].Revision, At: o.At,
			Body: store.Of(n + 1)}
		_, err := st.Commit(ctx, store.Batch{ID: "batch " + o.ID,
			Observations: []evidence.Observation{o}, Records: []store.Record{record}})
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

// TestStoreOfProcesses lets processes add to one arm at once, and each time to one number, by its
// revision.
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
		require.NoError(t, at.store(t, sqlstore.Config{}).Read(ctx, &s, []evidence.Cell{arm},
			[]store.Ref{{Kind: "note", ID: "number"}}))
		require.Len(t, s.Parts, 1)
		assert.Equal(t, mass, s.Parts[0].Tally.Mass)
		assert.EqualValues(t, writers*each(), s.Parts[0].Tally.N())
		n, err := store.Decode[int](s.Records[0].Body)
		require.NoError(t, err)
		assert.Equal(t, writers*each(), n)
	})
}

// TestStoreOpenedAtOnce has nine processes open a new database at the same time, make its tables,
// write to it and close it again. Every second one finds out the dialect by itself, as package loop
// does.
func TestStoreOpenedAtOnce(t *testing.T) {
	skipRaced(t)
	const openers = 9
	onEach(t, func(t *testing.T, at place) {
		var begin []io.Closer
		var ends []func() error
		for i := range openers {
			cmd := child(t, "open a store", append(at.env(), fmt.Sprint("HEED_TEST_NAME=", i),
				fmt.Sprint("HEED_TEST_DIALECT=", int(at.dialect)*(i%2)))...)
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
