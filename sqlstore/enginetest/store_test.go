package enginetest_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// open returns the store of a place, for as long as the test runs.
func (p place) store(t testing.TB, cfg sqlstore.Config) *sqlstore.Store {
	handle, err := p.open()
	require.NoError(t, err)
	t.Cleanup(func() { _ = handle.Close() })
	st, err := sqlstore.Open(ctx, handle, p.dialect, cfg)
	require.NoError(t, err)
	return st
}

// TestStore runs the suite of stores on each backend.
func TestStore(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			if b.name != "postgres/pgx" {
				skipRaced(t) // PostgreSQL goes through the same code, with more writers at once
			}
			handles := make(map[store.Store]*sql.DB)
			var dialect sqlstore.Dialect
			storetest.Run(t, storetest.Subject{
				New: func(o storetest.Options) (store.Store, error) {
					var handle *sql.DB
					handle, dialect = b.emptied(t)
					handle.SetConnMaxIdleTime(time.Second) // a server has room for a hundred
					st, err := sqlstore.Open(ctx, handle, dialect, sqlstore.Config{Now: o.Now,
						Retention: store.Retention{Limits: o.Limits}})
					handles[st] = handle
					return st, err
				},
				Reopen: func(before store.Store, o storetest.Options) (store.Store, error) {
					handle := handles[before]
					st, err := sqlstore.Open(ctx, handle, dialect, sqlstore.Config{Now: o.Now,
						Retention: store.Retention{Limits: o.Limits}})
					handles[st] = handle
					return st, err
				},
				Beside: func(before store.Store, o storetest.Options) (store.Store, error) {
					return sqlstore.Open(ctx, handles[before], dialect, sqlstore.Config{
						Now: o.Now, Retention: store.Retention{Limits: o.Limits},
					})
				},
			})
		})
	}
}

// TestLoadedRecordsAreFoundByTheirKeys loads the file of a store with each number of records that
// may be written at once.
func TestLoadedRecordsAreFoundByTheirKeys(t *testing.T) {
	skipRaced(t)
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			for _, n := range []int{1, 2, 501} {
				before := b.place(t).store(t, sqlstore.Config{})
				require.NoError(t, before.Declare(ctx, store.Kind{Name: "note"}))
				var written []store.Record
				for i := range n {
					written = append(written, store.Record{
						Ref: store.Ref{Kind: "note", ID: fmt.Sprint(i)}, At: modelStart,
						Keys: []string{"all", fmt.Sprint("one=", i)}, Body: store.Of(i),
					})
				}
				_, err := before.Commit(ctx, store.Batch{Records: written})
				require.NoError(t, err)
				var file bytes.Buffer
				require.NoError(t, before.Dump(ctx, &file))
				after := b.place(t).store(t, sqlstore.Config{})
				require.NoError(t, after.Load(ctx, &file))
				for key, want := range map[string]int{"all": n, "one=0": 1, fmt.Sprint("one=", n-1): 1} {
					found := 0
					for _, err := range after.Find(ctx, store.Query{Kind: "note", Keys: []string{key}}) {
						require.NoError(t, err)
						found++
					}
					require.Equal(t, want, found, "of %d by %q", n, key)
				}
			}
		})
	}
}

// A database draws the sample of a list, and does not read all of it.
func TestStoreSamples(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			st := b.place(t).store(t, sqlstore.Config{})
			require.NoError(t, st.Declare(ctx, store.Kind{Name: "k"}))
			batch := store.Batch{}
			for i := range 300 {
				batch.Observations = append(batch.Observations, evidence.Observation{ID: fmt.Sprint(i),
					Cell: evidence.Cell{Kind: "k", Item: fmt.Sprint(i)}, Reward: 1, Weight: 1,
					At: time.Now().Add(-time.Minute)})
			}
			_, err := st.Commit(ctx, batch)
			require.NoError(t, err)
			sample, n := store.Sample{Most: 50}, 0
			for _, err := range st.List(ctx, store.CellQuery{Kind: "k", Sample: &sample}) {
				require.NoError(t, err)
				n++
			}
			assert.True(t, n > 0 && n < 150, n)
			assert.Equal(t, n, sample.Given)
		})
	}
}

// A store with the default keeps as much as a kind was declared with, and one with a number of its
// own keeps that.
func TestAKindAsksForHistory(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			for _, test := range []struct{ perCell, declared, want int }{{0, 0, 100}, {0, 150, 150},
				{0, 50, 100}, {10, 150, 10}} {
				st := b.place(t).store(t,
					sqlstore.Config{Retention: store.Retention{HistoryPerCell: test.perCell}})
				require.NoError(t, st.Declare(ctx, store.Kind{Name: "k", History: test.declared}))
				require.NoError(t, st.Declare(ctx, store.Kind{Name: "k"}), "which says nothing of it")
				cell, now := evidence.Cell{Kind: "k", Item: "i"}, time.Now()
				batch := store.Batch{}
				for i := range 200 {
					batch.Observations = append(batch.Observations, evidence.Observation{
						ID: fmt.Sprint(i), Cell: cell, Reward: 1, Weight: 1,
						At: now.Add(time.Duration(i-300) * time.Millisecond),
					})
				}
				_, err := st.Commit(ctx, batch)
				require.NoError(t, err)
				require.NoError(t, st.Sweep(ctx, time.Time{}))
				n := 0
				for _, err := range st.History(ctx, cell) {
					require.NoError(t, err)
					n++
				}
				assert.Equal(t, test.want, n, test)
			}
		})
	}
}
