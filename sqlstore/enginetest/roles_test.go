package enginetest_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// with returns a place whose sessions have a parameter of PostgreSQL.
func (p place) with(name, value string) place {
	if !strings.Contains(p.dsn, "://") {
		p.dsn += fmt.Sprintf(" %s='%s'", name, value)
		return p
	}
	p.dsn += "&" + url.Values{name: {value}}.Encode() // the schema is a parameter, too
	return p
}

// TestIsolationByDefault has forty programs open an empty database at once where transactions are
// repeatable read or serializable unless they say otherwise. Then they write to one cell.
func TestIsolationByDefault(t *testing.T) {
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			at := postgresSchema(t).with("default_transaction_isolation", level)
			const programs = 40
			handles := make([]*sql.DB, programs)
			begin := make(chan struct{})
			var wait sync.WaitGroup
			for i := range handles {
				handle, err := at.open()
				require.NoError(t, err)
				t.Cleanup(func() { _ = handle.Close() })
				handle.SetMaxOpenConns(2) // of 200 that the server allows
				require.NoError(t, handle.PingContext(ctx))
				handles[i] = handle
				wait.Go(func() {
					<-begin
					st, err := sqlstore.Open(ctx, handle, sqlstore.Postgres)
					if assert.NoError(t, err) {
						assert.NoError(t, commits(onlyObserve(fmt.Sprint(i)))(st))
						assert.NoError(t, st.Read(ctx, &store.Snapshot{}, []evidence.Cell{arm}, nil))
					}
				})
			}
			close(begin)
			wait.Wait()
			var s store.Snapshot
			st := open(t, handles[0], sqlstore.Postgres)
			require.NoError(t, st.Read(ctx, &s, []evidence.Cell{arm}, nil))
			require.Len(t, s.Parts, 1)
			assert.EqualValues(t, programs, s.Parts[0].Tally.N())
		})
	}
}

var listedRights = regexp.MustCompile("(?s)<!-- rights -->\n```sql\n(.*?)```")

// rights returns the statements of docs/stores.md that grant a role what it needs.
func rights(t *testing.T, schema, role string) (all []string) {
	page, err := os.ReadFile("../../docs/stores.md")
	require.NoError(t, err)
	found := listedRights.FindSubmatch(page)
	require.NotNil(t, found)
	for statement := range strings.SplitSeq(strings.TrimSpace(string(found[1])), ";\n") {
		statement = strings.TrimSuffix(statement, ";")
		statement = strings.ReplaceAll(statement, "heed.heed_", schema+".heed_")
		statement = strings.ReplaceAll(statement, "SCHEMA heed ", "SCHEMA "+schema+" ")
		all = append(all, strings.ReplaceAll(statement, " app", " "+role))
	}
	return all
}

// TestRights has a role without CREATE do all that a store does, with the rights that
// docs/stores.md lists and no others. Without any one of them, something fails.
func TestRights(t *testing.T) {
	at := postgresSchema(t)
	owner := at.handle(t)
	exec := func(statement string) {
		_, err := owner.ExecContext(ctx, statement)
		require.NoError(t, err, statement)
	}
	var schema string
	require.NoError(t, owner.QueryRowContext(ctx, "SELECT current_schema()").Scan(&schema))
	role := schema + "_app"
	exec("CREATE ROLE " + role + " LOGIN")
	t.Cleanup(func() { exec("DROP OWNED BY " + role); exec("DROP ROLE " + role) })
	as := at.with("role", role)
	handle, err := as.open()
	require.NoError(t, err)
	t.Cleanup(func() { _ = handle.Close() })

	listed := rights(t, schema, role)
	require.GreaterOrEqual(t, len(listed), 5)
	for _, statement := range listed {
		exec(statement)
	}
	require.NoError(t, all(t, handle, schema))
	for _, one := range singly(listed) {
		taken := strings.Replace(strings.Replace(one, "GRANT", "REVOKE", 1), " TO ", " FROM ", 1)
		exec(taken)
		wipe(t, owner)
		if err := all(t, handle, schema); strings.Contains(one, "heed_record_seq_seq") {
			assert.NoError(t, err, "commits in several statements")
			_, err = handle.ExecContext(ctx, "SELECT nextval('heed_record_seq_seq')")
			assert.ErrorContains(t, err, "42501")
		} else {
			assert.Error(t, err, "works without %s", one)
		}
		exec(one)
	}
	wipe(t, owner)
	require.NoError(t, all(t, handle, schema), "with all of them again")

	exec("CREATE SCHEMA " + schema + "_empty AUTHORIZATION CURRENT_USER")
	defer exec("DROP SCHEMA " + schema + "_empty")
	exec("GRANT USAGE ON SCHEMA " + schema + "_empty TO " + role)
	_, err = sqlstore.Open(ctx, handle, sqlstore.Postgres, sqlstore.Config{Schema: schema + "_empty"})
	var fault *heed.ConfigError
	require.ErrorAs(t, err, &fault)
	assert.Contains(t, fault.Reason, "sqlstore.Schema")
}

// singly returns grants of one right on one thing each.
func singly(grants []string) (single []string) {
	form := regexp.MustCompile(`(?s)^GRANT (.*?) ON (SCHEMA |SEQUENCE |FUNCTION |)(.*) TO (\w+)$`)
	for _, grant := range grants {
		parts := form.FindStringSubmatch(grant)
		things := strings.Fields(strings.ReplaceAll(parts[3], ",", " "))
		if parts[2] == "FUNCTION " {
			things = strings.Split(parts[3], ", ")
		}
		for right := range strings.SplitSeq(parts[1], ", ") {
			for _, thing := range things {
				single = append(single,
					fmt.Sprintf("GRANT %s ON %s%s TO %s", right, parts[2], thing, parts[4]))
			}
		}
	}
	slices.Sort(single)
	return single
}

var runs int

// all does what programs do with a store, and returns the first error.
func all(t *testing.T, handle *sql.DB, schema string) error {
	runs++
	var empty bytes.Buffer
	memory, err := memstore.New(memstore.Config{})
	require.NoError(t, err)
	require.NoError(t, memory.Dump(ctx, &empty))
	st, err := sqlstore.Open(ctx, handle, sqlstore.Postgres, sqlstore.Config{Schema: schema,
		NoCache: true, Retention: store.Retention{HistoryPerCell: 1}})
	if err != nil {
		return err
	}
	statements, err := sqlstore.Statements(sqlstore.Postgres)
	require.NoError(t, err)
	for _, text := range statements { // whose rights the server checks when it plans them
		if err := mayRun(handle, text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	if err := st.Load(ctx, &empty); err != nil {
		return err
	}
	return work(st)
}

// mayRun returns the server's error that a role may not run a statement.
func mayRun(handle *sql.DB, text string) error {
	explained := []string{"SELECT", "INSERT", "UPDATE", "DELETE", "WITH"}
	if !slices.Contains(explained, strings.Fields(text)[0]) {
		return nil
	}
	text = regexp.MustCompile(`\$\d+`).ReplaceAllString(text, "NULL")
	_, err := handle.ExecContext(ctx, "EXPLAIN "+text)
	if err != nil && strings.Contains(err.Error(), "42501") {
		return err
	}
	return nil
}

// work commits, reads, lists, forgets, sweeps and dumps.
func work(st *sqlstore.Store) error {
	now := time.Now()
	kind := store.Kind{Name: "note", Versioned: true}
	record := store.Record{Ref: store.Ref{Kind: "note", ID: fmt.Sprint(runs)}, At: now,
		Keys: []string{"k"}, Body: store.Of(1)}
	batch := onlyObserve(fmt.Sprint("rights ", runs))
	batch.Records = []store.Record{record}
	steps := []func() error{
		func() error { return st.Declare(ctx, kind) },
		func() error { return commits(batch)(st) },
		func() error {
			var s store.Snapshot
			err := st.Read(ctx, &s, []evidence.Cell{arm}, []store.Ref{record.Ref})
			if err == nil {
				record.Revision, record.Keys = s.Records[0].Revision, []string{"another"}
				err = commits(store.Batch{Records: []store.Record{record}})(st)
			}
			return err
		},
		func() error { return store.Run(ctx, st, store.Job{Forget: []string{"ann"}}) },
		func() error { return st.Sweep(ctx, now) },
		func() error { return st.Dump(ctx, &bytes.Buffer{}) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
