package enginetest_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// The function of the tables hashes a key as heed does.
func TestPostgresNamesKeysAlike(t *testing.T) {
	at := postgresSchema(t)
	handle := at.handle(t)
	open(t, handle, at.dialect)
	for _, key := range []string{"a", "person=ann", "ä/名前🙂", strings.Repeat("x", 127),
		strings.Repeat("x", 128), strings.Repeat("ü", 512)} {
		var hash string
		require.NoError(t, handle.QueryRow("SELECT heed_hash($1, $2)", "some.kind", key).Scan(&hash))
		assert.Equal(t, text.HashOf("some.kind", key).String(), hash, key)
	}
}

// statementsOf counts the statements that a function makes a PostgreSQL store run, by how they
// begin.
func statementsOf(driver *hooked, do func()) map[string]int {
	found := make(map[string]int)
	driver.set(func(statement string) error {
		text := strings.Fields(statement)[0]
		if strings.Contains(statement, "heed_commit(") {
			text = "heed_commit"
		}
		if text != "COMMITTED" { // which is no statement
			found[text]++
		}
		return nil
	})
	defer driver.set(nil)
	do()
	return found
}

// TestOneStatementCommits in PostgreSQL: what an outcome with its record takes, whether its cells
// and its ids are new or not. A commit that can't go through is made in steps.
func TestOneStatementCommits(t *testing.T) {
	at := postgresSchema(t)
	driver, handle := hookedAt(t, at)
	t.Cleanup(func() { require.NoError(t, handle.Close()) })
	st := open(t, handle, at.dialect)
	commit := func(want map[string]int, batches ...store.Batch) store.Receipt {
		var receipts []store.Receipt
		found := statementsOf(driver, func() {
			var err error
			receipts, err = st.Commit(ctx, batches...)
			require.NoError(t, err)
		})
		assert.Equal(t, want, found)
		return receipts[0]
	}
	one := map[string]int{"BEGIN": 1, "heed_commit": 1, "COMMIT": 1}
	first := noted("1")
	first.Records[0].Revision, first.PartsOf = 0, store.CellsOf(first.Observations...)
	receipt := commit(one, first)
	require.Len(t, receipt.Parts, 1)
	changed := noted("2")
	changed.ID, changed.PartsOf = "batch", store.CellsOf(changed.Observations...)
	changed.Records[0].Ref, changed.Records[0].Revision,
		changed.Records[0].Keys = first.Records[0].Ref, receipt.Revision, []string{"other"}
	changed.Expect = []store.Precondition{{Ref: store.Ref{Kind: "note", ID: "absent"}}}
	receipt = commit(one, changed)
	assert.EqualValues(t, 2, receipt.Parts[0].Tally.N())
	for key, want := range map[string]int{"k": 0, "other": 1} {
		found, err := gather(st.Find(ctx, store.Query{Kind: "note", Keys: []string{key}}))
		require.NoError(t, err)
		assert.Len(t, found, want, key)
	}
	keyless := noted("keyless") // a record without keys is changed at once, too
	keyless.Records[0].Keys = nil
	receipt = commit(one, store.Batch{Records: keyless.Records})
	keyless.Records[0].Revision = receipt.Revision
	commit(one, store.Batch{Records: keyless.Records})
	again := noted("2") // the second call leaves out what is known
	again.Records[0].ID, again.PartsOf = "3", store.CellsOf(again.Observations...)
	receipt = commit(map[string]int{"BEGIN": 2, "heed_commit": 2, "COMMIT": 1}, again)
	assert.Equal(t, []string{"2"}, receipt.Duplicates)
	assert.EqualValues(t, 2, receipt.Parts[0].Tally.N())
	assert.True(t, commit(map[string]int{"BEGIN": 1, "heed_commit": 1},
		store.Batch{ID: "batch"}).Duplicate)
	assert.Equal(t, []store.Ref{first.Records[0].Ref},
		commit(one, store.Batch{Records: noted("1").Records}).Left)

	first.Observations, first.PartsOf = nil, nil
	found := statementsOf(driver, func() { require.ErrorIs(t, commits(first)(st), heed.ErrConflict) })
	assert.Positive(t, found["SELECT"], "the steps tell that there is such a record")
	_, err := handle.Exec("DROP FUNCTION heed_commit")
	require.NoError(t, err)
	require.NoError(t, commits(noted("4"))(st),
		"a host that has lost the function is served in steps")
}

// A host may make the tables by a tool. Tables of an earlier layout are refused, and stay as they
// are.
func TestOlderTables(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			at := b.place(t)
			handle, err := at.open()
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, handle.Close()) })
			files, err := sqlstore.Schema(at.dialect)
			require.NoError(t, err)
			first, err := fs.ReadFile(files, "0001_store.sql")
			require.NoError(t, err)
			_, err = handle.Exec(string(first))
			require.NoError(t, err)
			st := open(t, handle, at.dialect)
			require.NoError(t, commits(noted("1"))(st))
			var version int
			require.NoError(t, handle.QueryRow("SELECT version FROM heed_store").Scan(&version))
			assert.Equal(t, 7, version)
			_, err = handle.Exec("UPDATE heed_store SET version = 5")
			require.NoError(t, err)
			_, err = sqlstore.Open(ctx, handle, at.dialect)
			var fault *sqlstore.SchemaError
			require.ErrorAs(t, err, &fault)
			assert.Equal(t, &sqlstore.SchemaError{Found: 5, Known: 7}, fault)
			require.ErrorAs(t, commits(noted("2"))(st), &fault, "nothing is written into other tables")
			require.NoError(t, handle.QueryRow("SELECT version FROM heed_store").Scan(&version))
			assert.Equal(t, 5, version, "nothing is brought up to date")
		})
	}
}

// The function finds all by an index, also when its plans were made while the tables were empty.
func TestCommitReadsNoWholeTable(t *testing.T) {
	at := postgresSchema(t)
	handle := at.handle(t)
	handle.SetMaxOpenConns(1)
	st := open(t, handle, at.dialect)
	revisions := []uint64{1 << 40, 1 << 40}
	for i := range 10 {
		b := noted(fmt.Sprint(i))
		b.PartsOf = store.CellsOf(b.Observations...)
		if i > 1 {
			b.Expect = []store.Precondition{{Ref: store.Ref{Kind: "note", ID: fmt.Sprint(i - 1)},
				Revision: revisions[i+1]}}
			changed := noted(fmt.Sprint(i - 2)).Records[0]
			changed.Revision, changed.Keys = revisions[i], []string{"x"}
			b.Records = append(b.Records, changed)
		}
		receipts, err := st.Commit(ctx, b)
		require.NoError(t, err)
		revisions = append(revisions, receipts[0].Revision)
	}
	for _, statement := range fillStore() {
		_, err := handle.Exec(strings.ReplaceAll(statement, "20000", "20"))
		require.NoError(t, err)
	}
	tx, err := handle.BeginTx(ctx, nil)
	require.NoError(t, err)
	defer tx.Rollback()           //nolint:errcheck // nothing is to stay
	_, err = st.CommitTx(ctx, tx) // which has the tables read by nobody else
	require.NoError(t, err)
	before := read(t, tx)
	doc := map[string]any{
		"version": 7, "now": 5, "traced": 1, "ids": []string{"id"},
		"parts": []string{"k7", "new"}, "absent": []string{"absent"},
		"cells": [][]any{{"k7", 0, 0, 5, "kind", "s7", "i7", "n", 7}, {"new", 0, 0, 5, "kind", "s7",
			"new", "n", 9}},
		"tallies":  [][]any{{"k7", "", "ui7", 0, 1, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}},
		"history":  [][]any{{"k7", "id", 5, "", "{}"}},
		"expected": [][]any{{"k8", 1}}, "changed": [][]any{{"k9", 1, 5, `["x"]`, "{}"}},
		"added": [][]any{{"ref", "s7", "ref", 5, `["x"]`, "{}", 0, nil}},
		"keys":  [][]any{{"k9", "h9"}, {"ref", "h9"}}, "versions": [][]any{{"version", "s7", 1}},
	}
	text, err := json.Marshal(doc)
	require.NoError(t, err)
	var outcome string
	require.NoError(t, tx.QueryRow("SELECT one FROM heed_commit($1) WHERE what = 0",
		string(text)).Scan(&outcome))
	require.Equal(t, "done", outcome)
	assert.Equal(t, before, read(t, tx))
}

// read returns how often the transaction has read a whole table of heed's.
func read(t *testing.T, tx *sql.Tx) (n int) {
	require.NoError(t, tx.QueryRow(`SELECT sum(seq_scan) FROM pg_stat_xact_user_tables WHERE relname LIKE 'heed\_%'`).Scan(&n))
	return n
}

// Where the call fails, the commit is made in steps. Where the COMMIT after it fails, it is open
// whether the batches were applied, and the caller gets the error.
func TestACallFails(t *testing.T) {
	at := postgresSchema(t)
	driver, handle := hookedAt(t, at)
	t.Cleanup(func() { require.NoError(t, handle.Close()) })
	st := open(t, handle, at.dialect)
	wrong, calls := errors.New("the connection was cut"), 0
	failing := func(what string) error {
		calls = 0
		driver.set(func(statement string) error {
			if strings.Contains(statement, what) {
				if calls++; calls == 1 {
					return wrong
				}
			}
			return nil
		})
		defer driver.set(nil)
		return commits(noted(what))(st)
	}
	require.NoError(t, failing("heed_commit("))
	assert.EqualValues(t, 1, notedIn(t, st))
	err := failing("COMMIT")
	require.ErrorIs(t, err, wrong)
	require.ErrorIs(t, err, heed.ErrOutcomeUnknown)
	assert.Equal(t, 1, calls)
	assert.EqualValues(t, 1, notedIn(t, st))
}

// The batches are judged by the server's clock, also where the program's idea of it is wrong.
func TestClockOfACall(t *testing.T) {
	at := postgresSchema(t)
	handle := at.handle(t)
	st, err := sqlstore.Open(ctx, handle, at.dialect,
		sqlstore.Config{Now: func() time.Time { return time.Unix(1e9, 0) }})
	require.NoError(t, err)
	o := observe("1", time.Unix(1e9, 0))
	_, err = st.Commit(ctx, store.Batch{Observations: []evidence.Observation{o}})
	require.NoError(t, err)
	var recorded int64
	require.NoError(t, handle.QueryRow("SELECT recorded FROM heed_observation").Scan(&recorded))
	assert.EqualValues(t, 1e15, recorded, "a host's clock wins")
}

// TestAnotherLandmark: sums are scaled where an observation is stated at another landmark than the
// tally. PostgreSQL does it in its one statement, too.
func TestAnotherLandmark(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		handle, steps := at.handle(t), 0
		if at.dialect == sqlstore.Postgres {
			var driver *hooked
			driver, handle = hookedAt(t, at)
			t.Cleanup(func() { require.NoError(t, handle.Close()) })
			driver.set(func(statement string) error {
				if strings.Contains(statement, "INSERT INTO heed_tally") {
					steps++
				}
				return nil
			})
		}
		want, st := &memstore.Store{}, open(t, handle, at.dialect)
		now := time.Now().Truncate(time.Second)
		other := arm
		other.Item = "other" // whose landmark stays
		// in minutes, where a landmark is for 256
		for i, ago := range []time.Duration{1000, 0, 300, 600, 1300, 0} {
			b := store.Batch{
				Observations: []evidence.Observation{observe(fmt.Sprint(i), now.Add(-ago*time.Minute)),
					observe(fmt.Sprint("o", i), now)},
				Policies: map[string]evidence.Policy{"arm": {HalfLife: time.Minute}},
			}
			b.Observations[1].Cell = other
			if i%2 == 0 {
				b.PartsOf = store.CellsOf(b.Observations...)
			}
			expected, err := want.Commit(ctx, b)
			require.NoError(t, err)
			receipts, err := st.Commit(ctx, b)
			require.NoError(t, err)
			assert.ElementsMatch(t, expected[0].Parts, receipts[0].Parts)
		}
		for _, c := range []evidence.Cell{arm, other} {
			var expected, is store.Snapshot
			require.NoError(t, want.Read(ctx, &expected, []evidence.Cell{c}, nil))
			require.NoError(t, st.Read(ctx, &is, []evidence.Cell{c}, nil))
			assert.Equal(t, expected.Parts, is.Parts)
		}
		assert.Zero(t, steps)
		faults, _, err := sqlstore.Check(ctx, handle, at.dialect, true)
		require.NoError(t, err)
		assert.Empty(t, faults)
	})
}
