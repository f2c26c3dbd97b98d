package loop_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
)

// enforce makes a rule with a check.
func (w *world) enforce(text string, c feedback.Check) {
	w.t.Helper()
	rules := w.Feedback().Rules()
	p, err := rules.Propose(ctx, feedback.Submission{
		Draft: feedback.Draft{Text: text, Agents: []string{"loop"}, Check: c}, Actor: "paul",
		Reason: "seen often",
	})
	require.NoError(w.t, err)
	for _, who := range []string{"cleo", "dan"} {
		_, err = rules.Review(ctx, feedback.Review{
			Proposal: p.ID, Decision: feedback.Approved, Hash: p.Hash(), Actor: who, Reason: "right",
		})
		require.NoError(w.t, err)
	}
}

// broken lists the rules that were broken.
func broken(violations []feedback.Violation) (texts []string) {
	for _, v := range violations {
		texts = append(texts, v.Text)
	}
	return texts
}

// The caller hears of each rule that an answer or a call breaks, whether a heuristic or a model
// answered. Each counts once.
func TestRulesAreEnforced(t *testing.T) {
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{trusted(rotating)}}})
	w.model.says = "Use sudo."
	answer, err := w.Answer(ctx, loop.Event{ID: "before", Text: "What now?"})
	require.NoError(t, err)
	assert.Empty(t, answer.Violations)
	w.enforce("Never use sudo", feedback.Check{Forbid: "sudo"})
	w.enforce("Ask the team first", feedback.Check{Forbid: "(?i)rotate"})
	w.enforce("Delete nothing", feedback.Check{Tool: "*", Forbid: "rm -r"})
	for range 2 { // the second time it is the answer that it has
		answer, err = w.Answer(ctx, loop.Event{ID: "e", Text: "What now?"})
		require.NoError(t, err)
		assert.Equal(t, "Use sudo.", answer.Text)
		assert.Equal(t, []string{"Never use sudo"}, broken(answer.Violations))
	}
	answer, err = w.Answer(ctx, loop.Event{ID: "h", Text: full})
	require.NoError(t, err)
	assert.Equal(t, "Use sudo.", answer.Text,
		"a heuristic does not answer where it would break a rule")
	require.Len(t, answer.Plan.LeftOut, 1)
	assert.Equal(t, "rotate", answer.Plan.LeftOut[0].ID)
	plan, err := w.Prepare(ctx, loop.Event{ID: "e", Text: "What now?"})
	require.NoError(t, err)
	assert.True(t, plan.Ready)
	assert.Equal(t, []string{"Never use sudo"}, broken(plan.Violations), "an answer of before")
	plan, err = w.Prepare(ctx, loop.Event{ID: "q", Text: full})
	require.NoError(t, err)
	assert.False(t, plan.Ready, "nor does it in Prepare")
	plan, err = w.Prepare(ctx, loop.Event{ID: "p", Text: "What then?"})
	require.NoError(t, err)
	for range 2 { // the second time it is the answer that it has
		answer, err = w.Answered(ctx, plan, loop.Reply{Text: "sudo rotate"})
		require.NoError(t, err)
		assert.ElementsMatch(t, []string{"Never use sudo", "Ask the team first"},
			broken(answer.Violations))
	}

	call := loop.ToolResult{ID: "c", Name: "shell", Before: true, Input: "rm -rf /"}
	for range 2 {
		found, err := w.Tool(ctx, "e", call)
		require.NoError(t, err)
		assert.Equal(t, []string{"Delete nothing"}, broken(found))
	}
	call.Input = "ls"
	assert.Empty(t, w.call(call))
	call.Before, call.Input = false, "rm -rf /"
	assert.Empty(t, w.call(call), "it is too late to ask")
	assertField(t, "Name", second(w.Tool(ctx, "e", loop.ToolResult{Before: true})))

	require.NoError(t, w.Freeze(ctx, true))
	assert.Len(t, w.call(loop.ToolResult{ID: "frozen", Name: "shell", Before: true, Input: "rm -r"}),
		1)
	require.NoError(t, w.Freeze(ctx, false))
	w.clock.Advance(8 * 24 * time.Hour)
	require.NoError(t, w.Feedback().Sweep(ctx, time.Time{}))
	rules, err := w.Feedback().Rules().List(ctx, feedback.RuleQuery{})
	require.NoError(t, err)
	counted := map[string][2]int{}
	for _, r := range rules {
		counted[r.Text] = [2]int{r.Effect.Checks.Hits, r.Effect.Checks.Of}
	}
	assert.Equal(t, map[string][2]int{"Never use sudo": {3, 3}, "Ask the team first": {1, 3},
		"Delete nothing": {1, 1}}, counted)
}

func (w *world) call(r loop.ToolResult) []feedback.Violation {
	w.t.Helper()
	found, err := w.Tool(ctx, "e", r)
	require.NoError(w.t, err)
	return found
}

// An approver found that a heuristic breaks a rule, though no words and no check tell. The model
// answers in its place, and Explain says why.
func TestAnApproverWithholdsAHeuristic(t *testing.T) {
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{trusted(rotating)}}})
	w.model.says = "Ask the owner."
	answer := w.answer(loop.Event{ID: "before", Text: full})
	require.Equal(t, decision.Heuristic, answer.Result.Path)
	rules := w.Feedback().Rules()
	p, err := rules.Propose(ctx, feedback.Submission{
		Draft: feedback.Draft{Text: "The owner of a disk decides", Agents: []string{"loop"}},
		Actor: "paul", Reason: "seen often",
	})
	require.NoError(t, err)
	for who, withheld := range map[string][]string{"cleo": {"rotate"}, "dan": nil} {
		p, err = rules.Review(ctx, feedback.Review{Proposal: p.ID, Decision: feedback.Approved,
			Hash: p.Hash(), Actor: who, Reason: "right", Withhold: withheld})
		require.NoError(t, err)
	}
	answer = w.answer(loop.Event{ID: "e", Text: full})
	assert.Equal(t, decision.Model, answer.Result.Path)
	why := p.ID + ": a person who approved the rule found that the heuristic breaks it"
	assert.Equal(t, []loop.LeftOut{{What: "heuristic", ID: "rotate", Why: "rule " + why}},
		answer.Plan.LeftOut)
	_, asked := w.model.last()
	assert.NotContains(t, asked, rotating.Action)
	account, err := w.Explain(ctx, "e")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"rotate": why}, account.Overruled)
	assert.Contains(t, account.String(),
		"the heuristic rotate was withheld because of the rule "+p.ID)

	_, err = rules.Move(ctx, feedback.Act{ID: p.ID, Actor: "dan", Reason: "r"},
		feedback.StateRetired)
	require.NoError(t, err)
	assert.Equal(t, decision.Heuristic, w.answer(loop.Event{ID: "after", Text: full}).Result.Path)
}

// An arm's text stands above the rules, because these refine what is above them. If both do not
// fit, it is the arm's text that is left out.
func TestRulesStandBelowTheArmsText(t *testing.T) {
	for system, want := range map[string]string{"": "", "You are Bob.": "You are Bob.\n\n"} {
		w := newWorld(t, loop.Config{System: system, Arms: []loop.Arm{{ID: "a", System: "Be brief."}}})
		w.enforce("Never use sudo", feedback.Check{Forbid: "sudo"})
		plan, err := w.Prepare(ctx, loop.Event{Text: "What now?"})
		require.NoError(t, err)
		assert.Regexp(t, `(?s)^Be brief\.\n\n.*Never use sudo`, plan.System)
		w.answer(loop.Event{Text: "What now?"})
		asked, _ := w.model.last()
		assert.Regexp(t, "(?s)^"+want+`Be brief\.\n\n.*Never use sudo`, asked)
	}
}

// Each heuristic that a rule is against is overruled, and Explain has all of them.
func TestRulesOverruleSeveralHeuristics(t *testing.T) {
	other := trusted(rotating)
	other.ID = "other"
	w := newWorld(t, loop.Config{
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating), other}},
	})
	w.enforce("Ask the team first", feedback.Check{Forbid: "(?i)rotate"})
	answer := w.answer(loop.Event{ID: "e", Text: full})
	assert.Equal(t, decision.Model, answer.Result.Path)
	account, err := w.Explain(ctx, "e")
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"rotate", "other"}, slices.Collect(maps.Keys(account.Overruled)))
}
