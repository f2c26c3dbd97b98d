package enginetest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// Stores of one pool are apart by their schemas, whatever somebody else has the sessions search.
func TestSchemaPerStore(t *testing.T) {
	at := postgresSchema(t)
	handle := at.handle(t) // which has tables in its search_path
	others := open(t, handle, sqlstore.Postgres)
	require.NoError(t, commits(noted("of another"))(others))
	handle.SetMaxOpenConns(1)
	var stores []*sqlstore.Store
	for range 2 {
		st, err := sqlstore.Open(ctx, handle, sqlstore.Postgres,
			sqlstore.Config{Schema: emptySchema(t), NoCache: true})
		require.NoError(t, err)
		stores = append(stores, st)
	}
	for i, path := range []string{"public", "nowhere", "pg_catalog"} {
		_, err := handle.ExecContext(ctx, "SET search_path = "+path)
		require.NoError(t, err)
		for k, st := range stores {
			for n := range k + 1 {
				require.NoError(t, commits(onlyObserve(fmt.Sprint(path, n)))(st))
			}
			var s store.Snapshot
			require.NoError(t, st.Read(ctx, &s, []evidence.Cell{arm}, nil))
			require.Len(t, s.Parts, 1)
			assert.EqualValues(t, (i+1)*(k+1), s.Parts[0].Tally.N())
		}
	}
	handle.SetMaxIdleConns(0) // the sessions that come search as before
	assert.EqualValues(t, 1, notedIn(t, others))
	assert.NoError(t, work(stores[0]))
}

// A store in a schema is checked, and opened again without making it.
func TestSchemaIsChecked(t *testing.T) {
	handle := postgresSchema(t).handle(t)
	cfg := sqlstore.Config{Schema: emptySchema(t), Existing: true}
	_, err := sqlstore.Open(ctx, handle, sqlstore.Postgres, cfg)
	require.ErrorIs(t, err, heed.ErrNotFound)
	_, _, err = sqlstore.Check(ctx, handle, sqlstore.Postgres, true, cfg)
	require.ErrorIs(t, err, heed.ErrNotFound)
	cfg.Existing = false
	_, err = sqlstore.Open(ctx, handle, sqlstore.Postgres, cfg)
	require.NoError(t, err)
	_, err = handle.ExecContext(ctx, `DROP TABLE "`+cfg.Schema+`".heed_lost`)
	require.NoError(t, err)
	faults, _, err := sqlstore.Check(ctx, handle, sqlstore.Postgres, false, cfg)
	require.NoError(t, err)
	assert.Len(t, faults, 1)
	for _, name := range []string{`a"b`, "a.b", "a'b", "é", strings.Repeat("a", 64)} {
		_, err := sqlstore.Open(ctx, handle, sqlstore.Postgres, sqlstore.Config{Schema: name})
		var fault *heed.ConfigError
		require.ErrorAs(t, err, &fault, name)
		assert.Equal(t, "Schema", fault.Field)
	}
	lite := sqliteFile(t, lites[0])
	file, err := lite.open()
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	for _, dialect := range []sqlstore.Dialect{0, sqlstore.SQLite} {
		_, err = sqlstore.Open(ctx, file, dialect, sqlstore.Config{Schema: "s"})
		require.ErrorAs(t, err, new(*heed.ConfigError))
	}
}
