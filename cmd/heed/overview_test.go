package main

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
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
	out = call{args: at(db, "--agent", "strategy")}.run(t).out
	assert.Contains(t, out, "strategy")
	assert.NotContains(t, out, frozen, "which are other agents")
	out = call{args: at(db, "doctor")}.run(t).out
	assert.Equal(t, 12, strings.Count(out, frozen), out)
	assert.NotContains(t, out, more)
}

// A model that fails is no fault of the store, and the first thing that operators look for.
func TestAModelThatIsUnavailable(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "agent.db")
	clock, fails := end, true
	onFile(t, db, func(handle *sql.DB) {
		agent, err := loop.New(ctx, loop.Config{
			DB: handle, Name: "support", Testing: loop.Testing{Now: func() time.Time { return clock }},
			Model: decision.LLMFunc(func(
				context.Context, decision.LLMRequest,
			) (decision.LLMResponse, error) {
				if fails {
					return decision.LLMResponse{}, &llm.Error{Failure: llm.ServerError}
				}
				return decision.LLMResponse{Text: "Yes."}, nil
			}),
		})
		require.NoError(t, err)
		ask := func(times int) {
			for range times {
				clock = clock.Add(20 * time.Second)
				_, _ = agent.Answer(ctx, loop.Event{ID: clock.String(), Text: "is it up?"})
			}
		}
		says := func(after time.Duration, args ...string) string {
			now := clock.Add(after).Format(time.RFC3339)
			return call{args: append([]string{"--db", db, "--now", now}, args...)}.run(t).out
		}
		const line = "support gets no answer from its model, since "
		ask(4)
		for _, out := range []string{says(0), says(0, "doctor")} {
			assert.Contains(t, out, line)
			assert.Contains(t, out, "since 2026-01-09 08:01:00: the model's server failed")
		}
		assert.NotContains(t, says(0, "--agent", "other"), line)
		assert.NotContains(t, says(6*time.Minute), line, "there was no question since")
		fails = false
		ask(10)
		assert.NotContains(t, says(0), line)
	})
}
