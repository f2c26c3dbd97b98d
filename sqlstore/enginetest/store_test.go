package enginetest_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/storemodel"
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
			handles := make(map[store.Store]*sql.DB)
			var dialect sqlstore.Dialect
			storetest.Run(t, storetest.Subject{
				New: func(o storetest.Options) (store.Store, error) {
					var handle *sql.DB
					handle, dialect = b.emptied(t)
					st, err := sqlstore.Open(ctx, handle, dialect, sqlstore.Config{Now: o.Now, Limits: o.Limits})
					handles[st] = handle
					return st, err
				},
				Reopen: func(before store.Store, o storetest.Options) (store.Store, error) {
					handle := handles[before]
					st, err := sqlstore.Open(ctx, handle, dialect, sqlstore.Config{Now: o.Now, Limits: o.Limits})
					handles[st] = handle
					return st, err
				},
			})
		})
	}
}

// TestLoadedRecordsAreFoundByTheirKeys loads the file of a store with each number of records that may be written at once.
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
						Ref: store.Ref{Kind: "note", ID: fmt.Sprint(i)}, At: storemodel.Start, Keys: []string{"all", fmt.Sprint("one=", i)}, Body: store.Of(i),
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
