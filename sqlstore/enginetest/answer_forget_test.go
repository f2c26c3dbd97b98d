package enginetest_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	record "github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// A role is what a person had to do with an answer.
type role struct {
	name, goes, stays string // the row of the table

	asks  bool
	state func(a *loop.Agent, id string) error
	how   record.How // of the statement
}

// The names are long enough that no other bytes of a database look like them.
const (
	forgotten = "Zaphod-77"
	other     = "Trillian-42"
)

// nameless is what stays of a statement.
const nameless = "a statement without a name, which does not count"

var roles = []role{
	{
		name: "asked", asks: true, goes: "the name on the answer and its trace",
		stays: "the answer, and every statement about it",
	},
	{
		name: "judged the answer", goes: "the name, and all that the judgement counted",
		stays: nameless, how: answers.Judged,
		state: func(a *loop.Agent, id string) error {
			return a.React(ctx, id, loop.Reaction{Person: forgotten, Value: 1})
		},
	},
	{
		name: "undid the answer", goes: "the name, and all that the undo counted",
		stays: nameless, how: answers.Undo,
		state: func(a *loop.Agent, id string) error { return a.Undo(ctx, id, forgotten) },
	},
	{
		name: "reported the outcome", goes: "the name, and all that the outcome counted",
		stays: nameless, how: answers.Outcome,
		state: func(a *loop.Agent, id string) error {
			worked := false
			return a.Outcome(ctx, id, loop.Outcome{
				Success: &worked, Source: forgotten,
			})
		},
	},
	{
		name: "corrected the answer", goes: "the name, and all that the complaint counted",
		stays: nameless + "; the correction, under a pseudonym", how: answers.Judged,
		state: func(a *loop.Agent, id string) error {
			_, err := a.Correct(ctx, id, loop.Correction{
				Reviewer: forgotten, Text: "This is wrong.",
			})
			return err
		},
	},
}

// A kept is a store whose bytes can be searched.
type kept struct {
	name string
	open func(t *testing.T) (st dumper, traces func(text string) int)
}

var keptIn = []kept{
	{name: "memory", open: func(t *testing.T) (dumper, func(string) int) {
		st := new(memstore.Store)
		return st, func(text string) int { return inLines(lines(t, st), text) }
	}},
	{name: "sqlite", open: func(t *testing.T) (dumper, func(string) int) {
		at := sqliteFile(t, lites[0])
		return at.store(t, sqlstore.Config{}), func(text string) int { return at.traces(t, text) }
	}},
	{name: "postgres", open: func(t *testing.T) (dumper, func(string) int) {
		at := postgresSchema(t)
		handle := at.handle(t)
		find := func(text string) int { return inTables(t, handle, text) }
		return at.store(t, sqlstore.Config{}), find
	}},
}

func inLines(all []string, text string) (n int) {
	for _, form := range forms(text) {
		n += strings.Count(strings.ToLower(strings.Join(all, "\n")), strings.ToLower(form))
	}
	return n
}

// inTables returns how often a text is in the rows of all tables, and of all sequences.
func inTables(t *testing.T, handle *sql.DB, text string) int {
	var all []string
	for _, table := range append(slices.Clone(tables), "heed_store") {
		rows, err := handle.Query("SELECT row_to_json(x)::text || x::text FROM " + table + " x")
		require.NoError(t, err)
		for rows.Next() {
			var row string
			require.NoError(t, rows.Scan(&row))
			all = append(all, row)
		}
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
	}
	return inLines(all, text)
}

// openTrusting opens an agent with one arm and a heuristic that is trusted.
func openTrusting(t *testing.T, st store.Store) *loop.Agent {
	says := func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
		return decision.LLMResponse{Text: "Look at the logs."}, nil
	}
	a, err := loop.New(ctx, loop.Config{
		Store: st, Model: decision.LLMFunc(says), Arms: []loop.Arm{{ID: "only"}},
		Choosing: loop.Choosing{ArmsIgnoreSilence: true},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{{
			ID: "h", Condition: "the disk is full", Action: "Rotate the logs.", Initial: 0.9,
		}}},
	})
	require.NoError(t, err)
	return a
}

// sources returns the evidence on the arm by its source.
func sources(t *testing.T, a *loop.Agent) map[string]float64 {
	by := make(map[string]float64)
	for _, r := range evidenceOf(t, a.Strategy(), strategy.Query{Item: "i", Category: "d"}) {
		by[r.Result.Source] += r.Result.Confidence
	}
	return by
}

// A forgotten person is in no byte of a store, whatever the person had to do with an answer. The
// answer stays, and so does what others stated. The test prints the table below.
func TestForgetByRole(t *testing.T) {
	skipRaced(t)
	for _, in := range keptIn {
		t.Run(in.name, func(t *testing.T) {
			rows := []string{
				"| the person | what goes | what stays | worth | worth afterwards |",
				"|---|---|---|---|---|",
			}
			for _, r := range roles {
				t.Run(r.name, func(t *testing.T) { rows = append(rows, forgetsRole(t, in, r)) })
			}
			t.Log("\n" + strings.Join(rows, "\n"))
			assert.Equal(t, goneByRole, "\n"+strings.Join(rows, "\n")+"\n")
		})
	}
}

// goneByRole is what becomes of an answer that somebody else praised, by what the forgotten person
// had to do with it.
const goneByRole = `
| the person | what goes | what stays | worth | worth afterwards |
|---|---|---|---|---|
| asked | the name on the answer and its trace | the answer, and every statement about it | +1.00 | +1.00 |
| judged the answer | the name, and all that the judgement counted | a statement without a name, which does not count | +1.00 | +1.00 |
| undid the answer | the name, and all that the undo counted | a statement without a name, which does not count | +0.00 | +1.00 |
| reported the outcome | the name, and all that the outcome counted | a statement without a name, which does not count | +0.00 | +1.00 |
| corrected the answer | the name, and all that the complaint counted | a statement without a name, which does not count; the correction, under a pseudonym | +0.00 | +1.00 |
`

// trusting is an agent with two answers: "model", by an arm, and "heuristic". Somebody else has
// praised both.
func trusting(t *testing.T, st store.Store, asker string) *loop.Agent {
	a := openTrusting(t, st)
	for _, e := range []loop.Event{
		{ID: "model", Text: "Why?", Domain: "d"}, {ID: "heuristic", Text: "The disk is full"},
	} {
		e.Person, e.Session, e.Item = asker, e.ID, "i"
		given, err := a.Answer(ctx, e)
		require.NoError(t, err)
		require.Equal(t, e.ID == "heuristic", given.Result.Path == decision.Heuristic)
		require.NoError(t, a.React(ctx, e.ID, loop.Reaction{Person: other, Value: 1}))
	}
	return a
}

// confidence returns the confidence of the heuristic.
func confidence(t *testing.T, a *loop.Agent) float64 {
	s, err := a.Learning().Standing(ctx, "h")
	require.NoError(t, err)
	return s.Confidence
}

// forgetsRole forgets a person in a role, and returns the row of the table.
func forgetsRole(t *testing.T, in kept, r role) string {
	st, traces := in.open(t)
	asker := other
	if r.asks {
		asker = forgotten
	}
	a := trusting(t, st, asker)
	want := confidence(t, a)
	for _, id := range []string{"model", "heuristic"} {
		if r.state != nil {
			require.NoError(t, r.state(a, id))
		}
	}
	before, err := a.Explain(ctx, "model")
	require.NoError(t, err)
	arm := sources(t, a)
	delete(arm, forgotten)
	require.Positive(t, traces(forgotten), "this test does not see names")

	// Package feedback keeps reviewers in a canonical form.
	names := []string{forgotten, strings.ToLower(forgotten)}
	require.NoError(t, store.Run(ctx, a.Store(), store.Job{Forget: names}))
	assert.Zero(t, traces(forgotten))
	assert.Positive(t, traces(other))

	a = openTrusting(t, st) // as another process does, so that nothing comes from memory
	assert.Equal(t, arm, sources(t, a), "others' evidence stays as it was")
	assert.InDelta(t, want, confidence(t, a), 1e-9, "as if the person had stated nothing")
	for _, id := range []string{"model", "heuristic"} {
		remains(t, a, r, id)
	}
	after, err := a.Explain(ctx, "model")
	require.NoError(t, err)
	for _, id := range []string{"model", "heuristic"} { // what comes next counts
		require.NoError(t, a.React(ctx, id, loop.Reaction{Person: other, Value: -1}))
	}
	assert.Equal(t, map[string]float64{other: 1}, sources(t, a))
	assert.Less(t, confidence(t, a), want)
	assert.Zero(t, traces(forgotten))
	return fmt.Sprintf("| %s | %s | %s | %+.2f | %+.2f |", r.name, r.goes, r.stays, before.Worth,
		after.Worth)
}

// remains checks that an answer is there with what the other one stated, and that of the forgotten
// person there is a statement without a name at most.
func remains(t *testing.T, a *loop.Agent, r role, id string) {
	view := answers.View("loop.answer")
	row, err := view.Get(ctx, a.Store(), answers.ID(id))
	require.NoError(t, err)
	assert.NotEmpty(t, row.Value.Reply.Text)
	for _, name := range answers.People(&row.Value) {
		assert.Equal(t, other, name)
	}
	assert.Equal(t, r.asks, row.Value.Person == "")
	var hows []record.How
	for i := range row.Value.Statements {
		if s := &row.Value.Statements[i]; s.Forgotten() {
			hows = append(hows, s.How)
		} else {
			assert.Equal(t, other, s.By)
		}
	}
	if r.state != nil {
		assert.Equal(t, []record.How{r.how}, hows)
	} else {
		assert.Empty(t, hows)
	}
	account, err := a.Explain(ctx, id)
	require.NoError(t, err)
	require.Len(t, account.Statements, 1, "the forgotten statement is not listed")
	assert.Equal(t, other, account.Statements[0].Source)
	assert.EqualValues(t, 1, account.Worth)
	if r.name == "corrected the answer" {
		written, _, err := a.Feedback().List(ctx, feedback.Listing{})
		require.NoError(t, err)
		assert.Len(t, written, 2)
		for i := range written {
			assert.Regexp(t, "^forgotten-[a-z0-9]+$", written[i].Reviewer)
			assert.Equal(t, "This is wrong.", written[i].Summary)
		}
	}
}
