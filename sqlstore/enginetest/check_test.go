package enginetest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// The deep check ends with its context, and finds nothing in a store that is whole.
func TestCheckEnds(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		handle := at.handle(t)
		require.NoError(t, commits(noted("1"))(open(t, handle, at.dialect)))
		for n := 1; ; n++ {
			faults, _, err := sqlstore.Check(newCounting(n*n), handle, at.dialect, true)
			if err == nil {
				require.Empty(t, faults)
				return
			}
			require.ErrorIs(t, err, context.Canceled)
		}
	})
}

// A deep check of PostgreSQL says what the server can't tell, and what amcheck finds.
func TestCheckOfTheServer(t *testing.T) {
	at := postgresSchema(t)
	handle := at.handle(t)
	require.NoError(t, commits(noted("1"))(open(t, handle, at.dialect)))
	check := func() string {
		faults, warnings, err := sqlstore.Check(ctx, handle, at.dialect, true)
		require.NoError(t, err)
		require.Empty(t, faults)
		return strings.Join(warnings, "\n")
	}
	warnings := check()
	assert.Contains(t, warnings, "the server keeps no checksums of its pages")
	assert.Contains(t, warnings, "the database has no extension amcheck")
	if _, err := handle.Exec("CREATE EXTENSION amcheck"); err != nil {
		t.Skip(err)
	}
	defer func() {
		_, err := handle.Exec("DROP EXTENSION amcheck")
		require.NoError(t, err)
	}()
	assert.NotContains(t, check(), "amcheck")
	handle.SetMaxOpenConns(1)
	role := fmt.Sprint("heed_reader_", os.Getpid())
	as := func(statements ...string) {
		for _, statement := range statements {
			_, err := handle.Exec(strings.ReplaceAll(statement, "ROLE_NAME", role))
			require.NoError(t, err, statement)
		}
	}
	var schema string
	require.NoError(t, handle.QueryRow("SELECT current_schema()").Scan(&schema))
	as("CREATE ROLE ROLE_NAME", "GRANT USAGE ON SCHEMA "+schema+" TO ROLE_NAME",
		"GRANT SELECT ON ALL TABLES IN SCHEMA "+schema+" TO ROLE_NAME", "SET ROLE ROLE_NAME")
	assert.Contains(t, check(), "this role may not run amcheck")
	as("RESET ROLE", "DROP OWNED BY ROLE_NAME", "DROP ROLE ROLE_NAME")
	// An index that lacks rows of the table.
	const ofIndex = "WHERE indexrelid = to_regclass('heed_id_recorded')"
	for _, statement := range []string{
		"INSERT INTO heed_id (id, recorded, traced) VALUES ('x', 1, 1)",
		"UPDATE pg_index SET indisvalid = false, indisready = false " + ofIndex,
		"INSERT INTO heed_id (id, recorded, traced) VALUES ('y', 2, 1)",
		"UPDATE pg_index SET indisvalid = true, indisready = true " + ofIndex,
	} {
		_, err := handle.Exec(statement)
		require.NoError(t, err)
	}
	faults, _, err := sqlstore.Check(ctx, handle, at.dialect, true)
	require.NoError(t, err)
	require.Len(t, faults, 1)
	assert.Contains(t, faults[0], "heed_id_recorded")
}

// Sums that a lost connection keeps from being scaled are scaled by the next commit.
func TestALostConnectionBesideSums(t *testing.T) {
	at := madeFile(t)
	driver, handle := hookedAt(t, at)
	st := open(t, handle, at.dialect)
	policies := map[string]evidence.Policy{arm.Kind: {HalfLife: time.Minute}}
	add := func(id string, at time.Time) error {
		_, err := st.Commit(ctx, store.Batch{Observations: []evidence.Observation{observe(id, at)},
			Policies: policies})
		return err
	}
	require.NoError(t, add("1", time.Now().Add(-1000*time.Minute)))
	lost := errors.New("connection reset by peer")
	driver.set(func(text string) error {
		if strings.Contains(text, "excluded.landmark - t.landmark") {
			return lost
		}
		return nil
	})
	require.ErrorIs(t, add("2", time.Now()), lost)
	driver.set(nil)
	require.NoError(t, add("2", time.Now()))
}
