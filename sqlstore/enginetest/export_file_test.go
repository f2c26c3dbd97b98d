package enginetest_test

import (
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	format "github.com/heedhq/heed/internal/export"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/strategy"
)

// exported is an export with rows of every table and documents of every sort, for the tests of memstore.
const exported = "../../memstore/testdata/export.jsonl"

// TestExportFile: the file is what is exported today, and in memory it is what it was in the database. HEED_UPDATE=1 writes it
// anew.
func TestExportFile(t *testing.T) {
	c := &clock{now: time.Date(2026, 5, 4, 3, 0, 0, 0, time.UTC)}
	db := sqliteFile(t, "sqlite").db(t)
	store := newEvidence(t, db, sqlstore.EvidenceConfig{Now: c.time, HistoryPerCell: 2, NoCache: true})
	all := everythingIn(t, db, c.time)
	learn(t, store, all.choices, c)
	fillEvidence(t, db, store, c)
	fillDocuments(t, all, c)
	fillStream(t, all.stream)

	// When an event is due is by the database's own clock.
	text := regexp.MustCompile(`"due":\d+`).ReplaceAllString(export(t, db), `"due":0`)
	if os.Getenv("HEED_UPDATE") != "" {
		require.NoError(t, os.MkdirAll("../../memstore/testdata", 0o755))
		require.NoError(t, os.WriteFile(exported, []byte(text), 0o644))
	}
	want, err := os.ReadFile(exported)
	require.NoError(t, err, "HEED_UPDATE=1 go test writes it")
	assert.Equal(t, string(want), text)
	for _, table := range format.Tables {
		assert.Contains(t, text, `"table":"`+table.Name+`"`)
	}
	for _, sort := range []string{
		format.Heuristic, format.Trace, format.Verdict, format.Pattern, format.Transition, format.Entry, format.Error,
		format.FeedbackRevision, format.Feedback, format.Proposal, format.Rule, format.FeedbackAudit,
	} {
		assert.Contains(t, text, `"sort":"`+sort+`"`)
	}

	copied, into := everythingInMemory(t, c.time)
	into.Evidence, err = memstore.NewEvidence(memstore.EvidenceConfig{Now: c.time, HistoryPerCell: 2})
	require.NoError(t, err)
	require.NoError(t, memstore.Import(ctx, strings.NewReader(string(want)), &into))
	assert.Equal(t, seen(t, all), seen(t, copied))
	for _, kind := range []string{"models.arm", "models.sessions", "origin", "plain"} {
		for scope, err := range store.Scopes(ctx, kind) {
			require.NoError(t, err)
			parts := list(store.List(ctx, kind, scope))
			assert.NotEmpty(t, parts)
			assert.Equal(t, parts, list(into.Evidence.List(ctx, kind, scope)))
			for _, part := range parts {
				cell := part.(evidence.Part).Cell
				assert.Equal(t, list(store.History(ctx, cell)), list(into.Evidence.History(ctx, cell)))
			}
		}
	}
	assert.Equal(t, list(store.Audit(ctx)), list(into.Evidence.Audit(ctx)))
	assert.Equal(t, list(store.Outbox(ctx)), list(into.Evidence.Outbox(ctx)))
}

// learn lets a learner observe what came of a few choices: its evidence and the events that tell of it are in the store then.
func learn(t *testing.T, store evidence.Store, choices strategy.Choices, c *clock) {
	learner, err := strategy.New(strategy.Config{
		Store: store, Choices: choices, Name: "models", Topic: strategy.DefaultTopic, Now: c.time,
		Arms: []strategy.Arm{{ID: "small-model"}, {ID: "large-model"}},
	})
	require.NoError(t, err)
	for i, made := range []struct {
		arm   strategy.ArmID
		value float64
	}{{"small-model", -1}, {"large-model", 1}, {"large-model", 1}, {"large-model", 0.5}, {"small-model", 0}, {"small-model", 0}, {"large-model", 0}} {
		var choice strategy.Choice
		text, err := json.Marshal(map[string]any{
			"id": choiceOf(i).ID, "arm": made.arm, "session": string(rune('a' + i)), "item": "contracts", "category": "law", "at": c.time(),
			"learner": "models",
		})
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &choice))
		require.NoError(t, choices.Add(ctx, choice))
		if i < 5 {
			_, err := learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: made.value, Confidence: 1, Source: "ann"})
			require.NoError(t, err)
		}
		c.advance(time.Minute)
	}
	_, err = choices.Expire(ctx, choiceOf(5).ID)
	require.NoError(t, err)
	require.NoError(t, choices.EndSession(ctx, "models", "a"))
}

// fillEvidence makes cells of which history was forgotten, that keep origins apart, and that were restarted; and ids that were
// retracted, and that came while no history was kept.
func fillEvidence(t *testing.T, db *sqlstore.DB, store *sqlstore.Evidence, c *clock) {
	hour := c.time().Truncate(time.Hour) // of which a fading tally has exact sums
	observe := func(kind, id, source string, reward float64) evidence.Batch {
		return evidence.Batch{
			ID: "batch " + id, Policies: kinds,
			Observations: []evidence.Observation{{
				ID: id, Cell: evidence.Cell{Kind: kind, Scope: "s", Item: "i", Name: "é"}, Channel: "spoken", Source: source, Session: "monday",
				Reward: reward, Weight: 2, At: hour,
			}},
		}
	}
	restart := observe("plain", "4", "", 1)
	restart.Restart = []evidence.Restart{{Cell: evidence.Cell{Kind: "plain", Name: "other"}, At: hour}}
	taken := observe("origin", "5", "bob", 0.25)
	taken.Audit = []evidence.AuditEntry{{ID: "a", At: hour, Actor: "bob", Action: "looked", Details: map[string]string{"at": "it"}}}
	batches := []evidence.Batch{
		observe("plain", "1", "ann", 0), observe("plain", "2", "", 0.5), observe("plain", "3", "", 1), restart, taken,
		observe("origin", "6", "ann", 1), {Retract: []string{"5"}},
	}
	for _, b := range batches {
		_, err := store.Commit(ctx, b)
		require.NoError(t, err)
		c.advance(time.Second)
	}
	oblivious := newEvidence(t, db, sqlstore.EvidenceConfig{Now: c.time, NoHistory: true})
	_, err := oblivious.Commit(ctx, observe("plain", "7", "ann", 0))
	require.NoError(t, err)
	require.NoError(t, store.Sweep(ctx))
}

func fillDocuments(t *testing.T, all everything, c *clock) {
	now := c.time()
	_, err := all.heuristics.Put(ctx, learning.Heuristic{ID: "h", Domain: "d", Condition: "it rains", Initial: 0.25, CreatedAt: now})
	verdict := decision.Verdict{Person: "ann", Source: "dev", Value: 1, At: now}
	changed := verdict
	changed.Value, changed.At = -1, now.Add(time.Minute)
	err = errors.Join(err, all.traces.Put(ctx, decision.Trace{ResponseID: "r", Path: decision.Model, Text: "t", Response: "u", At: now}))
	for _, v := range []decision.Verdict{verdict, changed} {
		_, _, failure := all.traces.React(ctx, "r", v)
		err = errors.Join(err, failure)
	}
	err = errors.Join(err, all.patterns.Commit(ctx, patterns.Changes{
		Patterns:    []patterns.Pattern{{ID: "0", Kind: patterns.Positive, Content: "c", State: patterns.Established, CreatedAt: now}},
		Transitions: []patterns.Transition{{ID: "t", Pattern: "0", From: patterns.Candidate, To: patterns.Established, At: now, Cause: "c"}},
		Entries:     []patterns.Entry{{Outcome: patterns.Outcome{ID: "o", Task: "task", Success: true, Patterns: []patterns.PatternID{"0"}, At: now}}},
	}))
	for _, id := range []string{"1", "2"} {
		e := patterns.ErrorEntry{ID: id, Task: "t1", Type: patterns.Timeout, Message: "m", At: now}
		err = errors.Join(err, all.errors.Add(ctx, e))
	}
	err = errors.Join(err, all.errors.Resolve(ctx, "1"), all.feedback.Apply(ctx, feedback.Change{
		Expect: map[string]uint64{"gate": 0},
		Records: []feedback.Record{{
			Feedback: feedback.Feedback{ID: "f", Gate: "g", Agent: "writer", Decision: feedback.Rejected, Reviewer: "ann", At: now}, Recorded: now,
		}},
		Proposals: []feedback.Proposal{{ID: "p", Draft: feedback.Draft{Text: "be brief"}, Status: feedback.StatusApproved, Created: now}},
		Rules:     []feedback.Rule{{ID: "p", Draft: feedback.Draft{Text: "be brief"}, Status: feedback.RuleActive, Activated: now}},
		Audit:     []evidence.AuditEntry{{ID: "e", At: now, Actor: "ann", Action: "approved"}},
	}))
	require.NoError(t, err)
}

// fillStream leaves one event in hand, and one that waits.
func fillStream(t *testing.T, stream strategy.Sink) {
	for _, id := range []string{"1", "2"} {
		at := time.Date(2026, 5, 4, 3, 0, 0, 0, time.UTC)
		require.NoError(t, stream.Publish(ctx, evidence.Event{ID: id, Topic: "t", At: at, Payload: []byte{0, 255}}))
	}
	_, err := stream.(strategy.Source).Receive(ctx)
	require.NoError(t, err)
}
