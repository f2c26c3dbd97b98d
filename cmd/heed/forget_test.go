package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/stream"
)

func TestForget(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	export := func() string { return call{args: []string{"--db", db, "store", "export"}}.run(t).out }
	require.Contains(t, export(), `"ann"`)
	sure := func(more ...string) []string {
		return append([]string{"--db", db, "store", "forget", "ann", "--yes"}, more...)
	}

	for _, args := range [][]string{
		sure("--reason", "Ann asked for it"), sure("--reason", "as (ann) wants it"),
		sure("--reason", "x", "--actor", "ANN"),
	} {
		assertFails(t, call{args: args}.run(t), misuse, "go on naming the person")
	}
	require.Contains(t, export(), `"ann"`, "nothing was changed")

	r := call{args: sure("--json", "--reason", "the law has it, and so does the annex")}.run(t)
	require.Zero(t, r.code, r.err)
	assert.NotContains(t, export(), `"ann"`)
	assert.Equal(t, view.Heuristic{
		ID: "greet-by-name", Domain: "chat", Confidence: 0.3, Needed: 0.7, Limits: []string{},
		Held: view.Held{Floor: 0.05, Ceiling: 0.95, Weight: 1},
	}, without(read[view.HeuristicDetail](t, at(db, "confidence", "greet-by-name")...)),
		"it begins again")
	entries := read[[]store.AuditEntry](t, "--db", db, "store", "audit", "--action", "forget")
	require.Len(t, entries, 1)
	entries[0].ID, entries[0].At = "", start
	assert.Equal(t, store.AuditEntry{
		At: start, Actor: "olive", Action: "forget", Subject: "a person",
		Reason: "the law has it, and so does the annex",
	}, entries[0])
	assertFails(t, call{args: sure("--reason", "again")}.run(t), failed, "there is no person")
}

// without takes out of a confidence what tells nothing here.
func without(c view.HeuristicDetail) view.Heuristic {
	c.Low, c.High, c.Condition, c.Action = 0, 0, "", ""
	return c.Heuristic
}

func TestForgetSaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	inStore(t, db, func(st *sqlstore.Store) {
		require.NoError(t, st.Declare(ctx, stream.Outbox, store.Audit))
		event := stream.Event{ID: "e", Topic: "t", At: start, Payload: []byte(`{"by":["ann"]}`)}
		entry := store.AuditEntry{ID: "a", At: start, Actor: "ann", Action: "x"}
		other := store.AuditEntry{ID: "b", At: start, Actor: "Ann", Action: "y"}
		_, err := st.Commit(ctx, store.Batch{Records: []store.Record{
			event.Waiting(), entry.Record(), other.Record()}})
		require.NoError(t, err)
	})
	copied := db + ".copy"
	all, err := os.ReadFile(db)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(copied, all, 0o600))
	left := read[struct{ Left []string }](t, "--db", copied,
		"store", "forget", "ann", "--yes", "--reason", "x")
	assert.Equal(t, []string{"heed.audit", "stream.outbox"}, left.Left)
	r := call{args: []string{"--db", db, "store", "forget", "ann", "--yes", "--reason", "x"}}.run(t)
	require.Zero(t, r.code, r.err)
	assert.Regexp(t, `^Forgot ann, whom \d+ rows named\. Their name, in this or another case, `+
		`is still in 2 rows \(heed.audit, stream.outbox\)\.\n$`, r.out, "one is a host's own")
	audit := read[[]store.AuditEntry](t, at(db, "store", "audit", "--action", "x")...)
	require.Len(t, audit, 1)
	assert.Regexp(t, "^forgotten-", audit[0].Actor)
	left = read[struct{ Left []string }](t, "--db", db,
		"store", "forget", "Ann", "--yes", "--reason", "x")
	assert.Equal(t, []string{"stream.outbox"}, left.Left, "which names ann")
}

func TestForgetWhatTheHistoryHasLost(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	statement(t, db,
		`UPDATE heed_tally SET lost_source = 1 WHERE cell IN (SELECT cell FROM heed_cell WHERE kind = 'patterns.pattern')`)
	r := call{args: []string{"--db", db, "store", "forget", "ann", "--yes", "--reason", "x"}}.run(t)
	assertFails(t, r, failed, "ann is not forgotten",
		"some sums do not name their sources: reset those", "patterns.pattern")
	assert.Equal(t, "[]\n", call{args: []string{"--json", "--db", db, "store", "audit", "--action",
		"forget"}}.run(t).out)
}

// A record that names the person and can't be decoded keeps all from being forgotten, and is named.
func TestForgetUndecodable(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	statement(t, db, `UPDATE heed_record SET body = body || '}' WHERE seq = (
		SELECT max(seq) FROM heed_record WHERE kind = 'learning.answer' AND body LIKE '%"ann"%')`)
	r := call{args: []string{"--db", db, "store", "forget", "ann", "--yes", "--reason", "x"}}.run(t)
	assertFails(t, r, failed, "damaged record", `of kind "learning.answer"`, "see heed doctor")
}

func TestForgettingLeavesNothingThatCannotBeRead(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	r := call{args: []string{"--db", db, "store", "forget", "ann", "--yes", "--reason", "x"}}.run(t)
	require.Zero(t, r.code, r.err)
	r = call{args: at(db, "doctor")}.run(t)
	require.Zero(t, r.code, r.err)
	assert.Contains(t, r.out, "Nothing is wrong.")
}
