package enginetest_test

import (
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

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
			storetest.Run(t, storetest.Subject{
				New: func(o storetest.Options) (store.Store, error) {
					handle, dialect := b.emptied(t)
					st, err := sqlstore.Open(ctx, handle, dialect, sqlstore.Config{Now: o.Now, Limits: o.Limits})
					handles[st] = handle
					return st, err
				},
				Reopen: func(before store.Store, o storetest.Options) (store.Store, error) {
					handle := handles[before]
					st, err := sqlstore.Open(ctx, handle, before.(*sqlstore.Store).Dialect(), sqlstore.Config{Now: o.Now, Limits: o.Limits})
					handles[st] = handle
					return st, err
				},
			})
		})
	}
}
