//go:build !race

package loop_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy"
)

// importer returns an agent with the arms a and b and the instrument ci.
func importer(t *testing.T) *loop.Agent {
	st, err := memstore.New(memstore.Config{Now: func() time.Time { return start }})
	require.NoError(t, err)
	return agentOf(t, st)
}

// agentOf returns an agent like importer's on a store.
func agentOf(t *testing.T, st store.Store) *loop.Agent {
	a, err := loop.New(ctx, loop.Config{
		Store: st, Arms: []loop.Arm{{ID: "a"}, {ID: "b"}}, Instruments: []string{"ci"},
		Testing: loop.Testing{Now: func() time.Time { return start }},
	})
	require.NoError(t, err)
	return a
}

// past yields rows of the item "i" in the domain "d": a thumb of each of some people, up for the
// arm a and down for b.
func past(n int, person func(i int) string) []loop.Past {
	var rows []loop.Past
	for i := range n {
		p := loop.Past{
			Event: loop.Event{
				ID: fmt.Sprint("e", i), Text: "The disk is full!", Item: "i", Domain: "d",
				Person: person(i), At: start.Add(time.Duration(i-n) * time.Minute),
			},
			Text: "Rotate the logs.", Arm: "a", Spent: answer.Spent{Cost: 2},
			Reactions: []loop.Reaction{{Person: person(i), Value: 1}},
		}
		if i%2 == 1 {
			p.Arm, p.Reactions[0].Value = "b", -1
		}
		rows = append(rows, p)
	}
	return rows
}

func many(i int) string { return fmt.Sprint("p", i%40) }

func numbers(t *testing.T, a *loop.Agent) map[strategy.ArmID]uint64 {
	d := distribution(t, a.Strategy(), "d")
	of := make(map[strategy.ArmID]uint64)
	for _, arm := range d.Arms {
		of[arm.Arm] = arm.Outcomes
	}
	return of
}

// What is imported counts once: whole, in part, in another order, and after an interruption.
func TestAPastIsImportedOnce(t *testing.T) {
	rows := past(4500, many)
	a := importer(t)
	done, err := a.Import(ctx, each(rows), "olive", "log.csv")
	require.NoError(t, err)
	assert.Equal(t, loop.Imported{Rows: 4500, Answers: 4500, Reactions: 4500,
		Arms: map[string]int{"a": 2250, "b": 2250}}, done)
	for e, err := range store.AuditEntries(ctx, a.Store(), store.Query{}) {
		require.NoError(t, err)
		if e.Action == "loop.leads" {
			assert.Equal(t, map[string]string{"arm": "a", "domain": "d"}, e.Details)
			continue
		}
		assert.Equal(t, []string{"olive", "loop.import", "log.csv"},
			[]string{e.Actor, e.Action, e.Subject})
		assert.Equal(t, map[string]string{"answers": "4500", "thumbs": "4500", "of arm a": "2250",
			"of arm b": "2250"}, e.Details)
	}
	gain, err := a.Gain(ctx)
	require.NoError(t, err)
	assert.Empty(t, gain.Days, "they were given without heed, so they belong to neither side")
	whole := numbers(t, a)
	assert.Equal(t, map[strategy.ArmID]uint64{"a": 2250, "b": 2250}, whole)
	for name, again := range map[string][]loop.Past{
		"the same": rows, "a part": rows[37:3801], "with one more": append(rows[1:], rows[0]),
	} {
		done, err := a.Import(ctx, each(again), "", "")
		require.NoError(t, err, name)
		assert.Equal(t, len(again), done.Known, name)
		assert.Equal(t, whole, numbers(t, a), name)
	}

	b := importer(t)
	stopped, stop := context.WithCancel(ctx)
	_, err = b.Import(stopped, func(yield func(loop.Past, error) bool) {
		for i, row := range rows {
			if i == 2700 {
				stop()
			}
			if !yield(row, nil) {
				return
			}
		}
	}, "", "")
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, map[strategy.ArmID]uint64{"a": 1000, "b": 1000}, numbers(t, b))
	done, err = b.Import(ctx, each(rows), "", "")
	require.NoError(t, err)
	assert.Equal(t, 2000, done.Known)
	assert.Equal(t, whole, numbers(t, b))
}

// Import teaches arms what the same answers teach that are reacted to one by one.
func TestAPastTeachesWhatItWouldHaveTaught(t *testing.T) {
	rows := past(300, func(i int) string {
		if i%3 > 0 {
			return "mallory" // who is limited
		}
		return many(i)
	})
	outcome := true
	for i := 0; i < len(rows); i += 5 {
		rows[i].Outcomes = []loop.Outcome{{Success: &outcome, Source: "ci"}}
	}
	imported, lived := importer(t), importer(t)
	_, err := imported.Import(ctx, each(rows), "", "")
	require.NoError(t, err)
	for _, row := range rows {
		alone := row
		alone.Reactions, alone.Outcomes = nil, nil
		_, err := lived.Import(ctx, each([]loop.Past{alone}), "", "")
		require.NoError(t, err)
		for _, r := range row.Reactions {
			r.At = row.Event.At
			require.NoError(t, lived.React(ctx, row.Event.ID, r))
		}
		for _, o := range row.Outcomes {
			o.At = row.Event.At
			require.NoError(t, lived.Outcome(ctx, row.Event.ID, o))
		}
	}
	one, two := distribution(t, imported.Strategy(), "d"), distribution(t, lived.Strategy(), "d")
	for i := range one.Arms {
		assert.InDelta(t, two.Arms[i].Mean, one.Arms[i].Mean, 1e-9)
		assert.Equal(t, two.Arms[i].Outcomes, one.Arms[i].Outcomes)
	}
	assert.Greater(t, one.Arms[0].Mean, one.Arms[1].Mean)
}

// Rows of one event add up, also in one commit, and corrections become a proposal.
func TestAPastOfSeveralRows(t *testing.T) {
	a := importer(t)
	row := past(1, many)[0]
	thumb := loop.Past{Event: loop.Event{ID: "e0", At: row.Event.At},
		Reactions: []loop.Reaction{{Person: "bob", Value: -1}}}
	rows := []loop.Past{row, thumb}
	for i, who := range []string{"kim", "lee", "kim"} {
		rows = append(rows, loop.Past{
			Event: loop.Event{ID: fmt.Sprint("c", i), Text: "hm", At: row.Event.At}, Text: "sure",
			Corrections: []loop.Correction{{Reviewer: who, Text: "Name the server in every answer"}},
		})
	}
	done, err := a.Import(ctx, each(rows), "", "")
	require.NoError(t, err)
	assert.Equal(t, 4, done.Answers)
	assert.Equal(t, 2, done.Reactions)
	assert.Equal(t, 3, done.Corrections)
	assert.Len(t, done.Proposals, 1)
	account, err := a.Explain(ctx, "e0")
	require.NoError(t, err)
	assert.Len(t, account.Statements, 2)
	assert.Equal(t, "Rotate the logs.", account.Text)
}

// A correction that comes again about an answer counts once, whenever its row was written.
func TestAPastRepeatsACorrection(t *testing.T) {
	a := importer(t)
	corrected := func(at time.Time) loop.Past {
		return loop.Past{
			Event: loop.Event{ID: "e", Text: "hm", At: at}, Text: "sure", Arm: "a",
			Corrections: []loop.Correction{{Reviewer: "kim", Text: "Name the server."}},
		}
	}
	done, err := a.Import(ctx, each([]loop.Past{
		corrected(start.Add(-time.Hour)), corrected(start.Add(-time.Minute)),
	}), "", "")
	require.NoError(t, err)
	assert.Equal(t, 1, done.Corrections)
	done, err = a.Import(ctx, each([]loop.Past{corrected(time.Time{})}), "", "")
	require.NoError(t, err)
	assert.Equal(t, 1, done.Known)
	account, err := a.Explain(ctx, "e")
	require.NoError(t, err)
	require.Len(t, account.Statements, 1)
	assert.Equal(t, start.Add(-time.Hour), account.Statements[0].At)
}

// A batchCounter counts the batches that reach a store.
type batchCounter struct {
	store.Store
	batches int
}

func (s *batchCounter) Commit(
	ctx context.Context, batches ...store.Batch,
) ([]store.Receipt, error) {
	s.batches += len(batches)
	return s.Store.Commit(ctx, batches...)
}

// Long texts come in more commits, so that none of them fills the memory.
func TestAPastOfLongTexts(t *testing.T) {
	now := func() time.Time { return start }
	inner, err := memstore.New(memstore.Config{Now: now})
	require.NoError(t, err)
	st := &batchCounter{Store: inner}
	a, err := loop.New(ctx, loop.Config{Store: st, Testing: loop.Testing{Now: now}})
	require.NoError(t, err)
	rows := past(21, many)
	for i := range rows { // four of them are 4 MiB
		rows[i].Arm, rows[i].Text = "", strings.Repeat("x", 1<<20-len(rows[i].Event.Text))
	}
	before := st.batches
	done, err := a.Import(ctx, each(rows), "", "")
	require.NoError(t, err)
	assert.Equal(t, 21, done.Answers)
	assert.Equal(t, 6+1, st.batches-before, "and one for what changed")
}

// A row at fault is named, and nothing of its commit is kept.
func TestARowAtFault(t *testing.T) {
	for field, spoil := range map[string]func(*loop.Past){
		"Arm":          func(p *loop.Past) { p.Arm = "c" },
		"Propensity":   func(p *loop.Past) { p.Propensity = 2 },
		"Spent.Cost":   func(p *loop.Past) { p.Spent.Cost = -1 },
		"Spent":        func(p *loop.Past) { p.Spent.Tokens = -1 },
		"Value":        func(p *loop.Past) { p.Reactions[0].Value = 3 },
		"Person":       func(p *loop.Past) { p.Reactions[0].Person = "ci" },
		"Event.Person": func(p *loop.Past) { p.Event.Person = "ci" },
		"Event.At":     func(p *loop.Past) { p.Event.At = start.Add(time.Hour) },
		"Success":      func(p *loop.Past) { p.Outcomes = []loop.Outcome{{}} },
		"Spent, again": func(p *loop.Past) { p.Spent.Latency = -1 },

		"Propensity, negative": func(p *loop.Past) { p.Propensity = -0.1 },
		"Spent.Cost, too much": func(p *loop.Past) { p.Spent.Cost = 1e6 + 1 },
	} {
		field, _, _ = strings.Cut(field, ",")
		a, rows := importer(t), past(3, many)
		spoil(&rows[1])
		done, err := a.Import(ctx, each(rows), "", "")
		var input *heed.InputError
		require.ErrorAs(t, err, &input, field)
		assert.Equal(t, field, input.Field)
		assert.ErrorContains(t, err, "row 2: ")
		assert.Zero(t, done.Answers)
		_, err = a.Explain(ctx, "e0")
		assert.ErrorIs(t, err, loop.ErrNoAnswer)
	}
}

// One commit has a bounded number of statements: a store refuses a commit that is too large.
func TestAPastOfManyStatements(t *testing.T) {
	st, err := memstore.New(memstore.Config{Now: func() time.Time { return start }})
	require.NoError(t, err)
	rows := past(120, many)
	for i := range rows {
		for n := range 89 {
			rows[i].Reactions = append(rows[i].Reactions,
				loop.Reaction{Person: fmt.Sprint("q", n), Value: 1})
		}
	}
	done, err := agentOf(t, st).Import(ctx, each(rows), "", "")
	require.NoError(t, err)
	assert.Equal(t, 120*90, done.Reactions)
	commits := 0
	for _, err := range st.Find(ctx, store.Query{Kind: "loop.import"}) {
		require.NoError(t, err)
		commits++
	}
	assert.Equal(t, 2, commits)
}

// What was learned before an import failed is in the audit log, with who began it. Nothing is in it
// of rows that were known.
func TestAnImportThatFailsIsInTheLog(t *testing.T) {
	st, err := memstore.New(memstore.Config{Now: func() time.Time { return start }})
	require.NoError(t, err)
	a, broken := agentOf(t, st), errors.New("broken")
	rows := past(4500, many)
	cut := func(yield func(loop.Past, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
		yield(loop.Past{}, broken)
	}
	done, err := a.Import(ctx, cut, "ann", "log.csv")
	require.ErrorIs(t, err, broken)
	assert.Equal(t, 4000, done.Answers)
	entries := func() (all []store.AuditEntry) {
		of := store.Query{Keys: []string{store.PersonKey("ann")}}
		for e, err := range store.AuditEntries(ctx, st, of) {
			require.NoError(t, err)
			all = append(all, e)
		}
		return all
	}
	all := entries()
	require.Len(t, all, 1)
	assert.Equal(t, "loop.import", all[0].Action)
	assert.Equal(t, "log.csv", all[0].Subject)
	assert.Equal(t, "4000", all[0].Details["answers"])

	done, err = a.Import(ctx, each(rows), "ann", "log.csv")
	require.NoError(t, err)
	assert.Equal(t, 500, done.Answers)
	assert.Equal(t, 4000, done.Known)
	_, err = a.Import(ctx, each(rows), "ann", "log.csv")
	require.NoError(t, err)
	require.Len(t, entries(), 2)
}

// An import that would be lost is refused. If the rows end in an error, Import returns it.
func TestAnImportThatFails(t *testing.T) {
	a := importer(t)
	broken := errors.New("broken")
	rows := func(yield func(loop.Past, error) bool) { yield(loop.Past{}, broken) }
	_, err := a.Import(ctx, rows, "", "")
	require.ErrorIs(t, err, broken)
	require.NoError(t, a.Freeze(ctx, true))
	_, err = a.Import(ctx, each(past(2, many)), "", "")
	var config *heed.ConfigError
	require.ErrorAs(t, err, &config)
	require.NoError(t, a.Freeze(ctx, false))
	done, err := a.Import(ctx, each(past(2, many)), "", "")
	require.NoError(t, err)
	assert.Equal(t, 2, done.Answers)
}

// A past answer can be taken back, judged and corrected like one that the agent gave.
func TestAPastAnswerIsTakenBack(t *testing.T) {
	a := importer(t)
	rows := past(2, many)
	_, err := a.Import(ctx, each(rows), "", "")
	require.NoError(t, err)
	before := distribution(t, a.Strategy(), "d").Arms[0].Mean
	for range 2 {
		require.NoError(t, a.Undo(ctx, "e0", rows[0].Event.Person))
		account, err := a.Explain(ctx, "e0")
		require.NoError(t, err)
		assert.InDelta(t, -1, account.Worth, 1e-9)
		assert.Equal(t, "undo", account.Channel)
		i := slices.IndexFunc(account.Statements, func(s loop.Statement) bool {
			return s.Channel == "undo"
		})
		require.GreaterOrEqual(t, i, 0)
		assert.EqualValues(t, -1, account.Statements[i].Value)
		assert.EqualValues(t, "person", account.Statements[i].Kind)
		assert.EqualValues(t, 1, account.Statements[i].Confidence)
		assert.Less(t, distribution(t, a.Strategy(), "d").Arms[0].Mean, before)
	}
}

// The probability with which its arm was chosen stays with a past answer, if it is known.
func TestThePropensityOfAPastAnswer(t *testing.T) {
	a, rows := importer(t), past(3, many)
	rows[0].Propensity, rows[1].Propensity, rows[2].Spent.Cost = 0.25, 1, 1e6
	done, err := a.Import(ctx, each(rows), "", "")
	require.NoError(t, err)
	assert.Equal(t, 3, done.Answers)
	for id, want := range map[string]float64{"e0": 0.25, "e1": 1} {
		account, err := a.Explain(ctx, id)
		require.NoError(t, err)
		assert.InDelta(t, want, account.Choice.Propensity(), 0)
	}
	account, err := a.Explain(ctx, "e2")
	require.NoError(t, err)
	assert.True(t, math.IsNaN(account.Choice.Propensity()), "it is unknown")
}

// A past answer without an arm has no choice, and credits none.
func TestAPastAnswerWithoutAnArm(t *testing.T) {
	a := importer(t)
	rows := past(1, many)
	rows[0].Arm = ""
	done, err := a.Import(ctx, each(rows), "", "")
	require.NoError(t, err)
	assert.Empty(t, done.Arms)
	account, err := a.Explain(ctx, "e0")
	require.NoError(t, err)
	assert.Nil(t, account.Choice)
	assert.InDelta(t, 1, account.Worth, 1e-9)
	assert.Zero(t, distribution(t, a.Strategy(), "d").Outcomes)
}

// A row at fault ends the import, also if it is in an earlier commit than the last one.
func TestARowAtFaultInTheFirstCommit(t *testing.T) {
	a, rows := importer(t), past(2001, many)
	rows[4].Arm = "c"
	done, err := a.Import(ctx, each(rows), "", "")
	require.ErrorContains(t, err, "row 5: ")
	assert.Zero(t, done.Rows)
}

// A file of lessons may have 16 MiB.
func TestALargeFileOfLessons(t *testing.T) {
	file := strings.Repeat(" ", 16<<20-2) + "{}"
	_, err := loop.ReadLessonsFrom(strings.NewReader(file))
	require.NoError(t, err)
}

// What became of a past answer has the time of the answer if it has none.
func TestThePastHasTheTimeOfItsAnswer(t *testing.T) {
	a, rows, yes := importer(t), past(1, many), true
	rows[0].Outcomes = []loop.Outcome{{Success: &yes, Source: "ci"}}
	_, err := a.Import(ctx, each(rows), "", "")
	require.NoError(t, err)
	account, err := a.Explain(ctx, "e0")
	require.NoError(t, err)
	require.Len(t, account.Statements, 2)
	for _, s := range account.Statements {
		assert.Equal(t, rows[0].Event.At, s.At, s.Channel)
	}
}

// All corrections of a past answer are imported, and each once.
func TestAPastOfSeveralCorrections(t *testing.T) {
	a, row := importer(t), past(1, many)[0]
	for _, text := range []string{"Name the server.", "Be brief.", "Name the server."} {
		row.Corrections = append(row.Corrections, loop.Correction{Reviewer: "kim", Text: text})
	}
	for want := range 2 {
		done, err := a.Import(ctx, each([]loop.Past{row}), "", "")
		require.NoError(t, err)
		assert.Equal(t, []int{2 * (1 - want), want}, []int{done.Corrections, done.Known})
	}
}

// The content names an answer that has no id: another content is another answer, and the same one
// is known.
func TestAPastWithoutIDs(t *testing.T) {
	a, rows := importer(t), past(4, many)
	for i := range rows {
		rows[i].Event.ID = ""
	}
	rows[2] = rows[0]
	for n, want := range []loop.Imported{{Rows: 4, Known: 1, Answers: 3, Reactions: 3,
		Arms: map[string]int{"a": 1, "b": 2}}, {Rows: 4, Known: 4, Arms: map[string]int{}}} {
		done, err := a.Import(ctx, each(rows), "", "")
		require.NoError(t, err)
		assert.Equal(t, want, done, n)
	}
}

// Two corrections of a row count, and one that an instrument makes is a fault, wherever it is.
func TestARowWithTwoCorrections(t *testing.T) {
	w := newWorld(t, loop.Config{Instruments: []string{"ci"}})
	row := loop.Past{
		Event: loop.Event{Text: "Why?", At: start}, Text: "So.", Corrections: []loop.Correction{
			{Reviewer: "ann", Text: "Name the server."}, {Reviewer: "ci", Text: "Be brief."},
		},
	}
	_, err := w.Import(ctx, each([]loop.Past{row}), "", "")
	assertField(t, "Reviewer", err)
	row.Corrections[1].Reviewer = "bob"
	done, err := w.Import(ctx, each([]loop.Past{row}), "", "")
	require.NoError(t, err)
	assert.Equal(t, 2, done.Corrections)
}

// A row without an id is named by its content, and what became of it without a time has its time.
func TestARowWithoutAnID(t *testing.T) {
	w := newWorld(t, loop.Config{})
	yes := true
	row := loop.Past{Event: loop.Event{Text: "Why?", Session: "s", At: start.Add(-time.Hour)},
		Text: "So.", Outcomes: []loop.Outcome{{Success: &yes}}}
	done, err := w.Import(ctx, each([]loop.Past{row}), "", "")
	require.NoError(t, err)
	assert.Equal(t, 1, done.Outcomes)
	id, err := w.Find(ctx, "s")
	require.NoError(t, err)
	assert.Regexp(t, "^past-[0-9a-f]{24}$", id)
	account, err := w.Explain(ctx, id)
	require.NoError(t, err)
	require.Len(t, account.Statements, 1)
	assert.Equal(t, start.Add(-time.Hour), account.Statements[0].At)
	other := loop.Past{Event: loop.Event{Text: "Why not?", At: start}, Text: "So."}
	done, err = w.Import(ctx, each([]loop.Past{row, other}), "", "")
	require.NoError(t, err)
	assert.Equal(t, []int{2, 1, 1}, []int{done.Rows, done.Known, done.Answers})
}

// An import of rows that are all known is no entry in the audit log.
func TestAnImportOfKnownRows(t *testing.T) {
	w := newWorld(t, loop.Config{})
	rows := []loop.Past{
		{Event: loop.Event{ID: "a", Text: "Why?", At: start}, Text: "So."},
		{Event: loop.Event{ID: "b", Text: "Why?", At: start}, Text: "So."},
	}
	for n, some := range [][]loop.Past{rows[:1], rows[1:], rows, rows} {
		done, err := w.Import(ctx, each(some), "kim", "file")
		require.NoError(t, err)
		assert.Equal(t, n > 1, done.Known == 2)
		entries := 0
		for e, err := range store.AuditEntries(ctx, w.store, store.Query{}) {
			require.NoError(t, err)
			if e.Action == "loop.import" {
				entries++
			}
		}
		assert.Equal(t, min(n+1, 2), entries)
		w.clock.Advance(time.Minute)
	}
}

// An import whose commits lose their replies counts each row once, in one entry of the audit log.
func TestAnImportHasOneEntry(t *testing.T) {
	rows := make([]loop.Past, 4500) // three commits
	for i := range rows {
		rows[i] = loop.Past{
			Event: loop.Event{ID: fmt.Sprint("past ", i), Text: "t", At: start}, Text: "x",
		}
	}
	storetest.FailEach(func(at int, late bool) bool {
		kept, err := memstore.New(memstore.Config{Now: func() time.Time { return start }})
		require.NoError(t, err)
		st := &storetest.Failing{Store: kept, Replies: true, Blind: true}
		w := newWorld(t, loop.Config{Store: st})
		st.Fail(at, late)
		done, err := w.Import(ctx, func(yield func(loop.Past, error) bool) {
			for _, p := range rows {
				if !yield(p, nil) {
					return
				}
			}
		}, "ann", "file")
		if !st.Failed() {
			return false
		}
		require.NoError(t, err, "commit %d, with its effect: %v", at, late)
		assert.Equal(t, []int{len(rows), len(rows), 0}, []int{done.Rows, done.Answers, done.Known})
		var counts []string
		for e, err := range store.AuditEntries(ctx, kept, store.Query{}) {
			require.NoError(t, err)
			if e.Action == "loop.import" {
				counts = append(counts, e.Details["answers"])
			}
		}
		assert.True(t, slices.Equal([]string{"4500"}, counts), "commit %d, with its effect: %v: %v",
			at, late, counts)
		return true
	})
}
