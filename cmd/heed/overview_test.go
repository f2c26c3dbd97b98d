package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy/attribution"
	"github.com/heedhq/heed/stream"
)

func TestWithoutAStoreItSaysHowToGetOne(t *testing.T) {
	t.Parallel()
	r := call{}.run(t)
	assert.Zero(t, r.code)
	assert.Equal(t, 3, strings.Count(r.out, "\n"))
	assert.Contains(t, r.out, "serve --run")
	assert.Contains(t, r.out, "HEED_DB")
	assert.Equal(t, misuse, call{args: []string{"--json"}}.run(t).code,
		"a program gets no document of nothing")
}

// The overview has what leads, and what waits for a person.
func TestTheOverviewHasWhatMatters(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	statement(t, db, stillOpen)
	sum := read[summary](t, at(db)...)
	assert.Equal(t, 2, sum.Pending)
	assert.Equal(t, []string{"7d0c2b13-rule", "7d0c2b11-rule"},
		texts(sum.Waiting, func(r view.Rule) string { return r.ID }))
	assert.Equal(t, []string{"models", "strategy"},
		texts(sum.Learners, func(s view.Status) string { return s.Learner }))
	out := call{args: at(db), env: []string{"HEED_DB=" + db}}.run(t).out
	assert.NotContains(t, out, "--db")
	assert.NotContains(t, out, "in all", "all are shown")
}

func TestTheOverviewTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	w := host(t, db)
	require.NoError(t, w.store.Declare(ctx, stream.Outbox))
	_, err := w.store.Commit(ctx, store.Batch{Records: []store.Record{stream.Event{ID: "e",
		Topic: attribution.DeadTopic, At: start}.Waiting()}})
	require.NoError(t, err)
	out := call{args: []string{"--db", db, "--now", "2026-02-01"}}.run(t).out
	for _, part := range []string{
		"1 dead letter waits in the outbox", "1 event waits in the outbox",
		"no process has written here for 23 days: ",
	} {
		assert.Contains(t, out, part)
	}
}

// An overview names ten agents that do not learn, however many there are. The doctor names all.
func TestTheOverviewNamesTenFrozenAgents(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	w := host(t, db)
	for i := range 12 {
		name := fmt.Sprint("agent", i)
		require.NoError(t, w.store.Declare(ctx, answers.Freezes(name).Kind, store.Audit))
		_, err := answers.Freeze(ctx, w.store, name, answers.Frozen{Frozen: true, At: end},
			store.AuditEntry{Actor: "kim", Action: name + ".freeze", Reason: "x"})
		require.NoError(t, err)
	}
	const frozen, more = "has not learned since", "more agents do not learn: heed doctor lists them"
	out := call{args: at(db)}.run(t).out
	assert.Equal(t, 10, strings.Count(out, frozen), out)
	assert.Contains(t, out, more)
	assert.Contains(t, out, "Last written 2026-01-09 08:00:00.", "by a person, as the audit has it")
	out = call{args: at(db, "doctor")}.run(t).out
	assert.Equal(t, 12, strings.Count(out, frozen), out)
	assert.NotContains(t, out, more)
}
