package loop_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

var tidying = learning.Heuristic{
	ID: "tidy", Condition: "an import is missing in a module of the workspace",
	Action: "Run go mod tidy in the module.", Initial: 0.81,
}

const missing = "An import is missing in a module of the workspace"

// A correction of what a heuristic said is the reviewer's complaint about it, once. Approvals are
// none, nor are corrections of the model.
func TestACorrectionIsAComplaintAboutTheHeuristic(t *testing.T) {
	never := loop.Correction{Reviewer: "kim", Text: "Never run go mod tidy."}
	for name, test := range map[string]struct {
		corrections []loop.Correction
		then        float64 // a reaction of the same person
		failures    uint64  // answers that ended badly
	}{
		"a text":     {[]loop.Correction{never}, 0, 1},
		"told again": {[]loop.Correction{never, never}, 0, 1},
		"a rejection": {[]loop.Correction{{Reviewer: "kim", Decision: feedback.Rejected}}, 0,
			1},
		"two reviewers": {[]loop.Correction{never,
			{Reviewer: "lee", Text: "Do not tidy modules by hand."}}, 0, 1},
		"an approval": {[]loop.Correction{{Reviewer: "kim"}}, 0, 0},
		"an approval with text": {[]loop.Correction{{Reviewer: "kim", Decision: feedback.Approved,
			Text: "Keep naming the module."}}, 0, 0},
		"praised afterwards": {[]loop.Correction{never}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, loop.Config{Lessons: loop.Lessons{
				Heuristics: []learning.Heuristic{tidying}}})
			answer := w.answer(loop.Event{Text: missing})
			require.Equal(t, decision.Heuristic, answer.Result.Path)
			before := w.confidence("tidy")
			for _, c := range test.corrections {
				w.clock.Advance(1e9)
				require.NoError(t, second(w.Correct(ctx, answer.ID, c)))
			}
			if test.then != 0 {
				w.clock.Advance(1e9)
				require.NoError(t, w.React(ctx, answer.ID, loop.Reaction{Person: "kim", Value: test.then}))
				require.NoError(t, second(w.Correct(ctx, answer.ID, never)),
					"told again, it does not replace what came later")
			}
			standing, err := w.Learning().Standing(ctx, "tidy")
			require.NoError(t, err)
			assert.Equal(t, test.failures, standing.Failures)
			if test.failures > 0 {
				assert.Less(t, standing.Confidence, before)
			} else {
				assert.GreaterOrEqual(t, standing.Confidence, before)
			}
		})
	}
}

func TestACorrectionOfTheModelIsNoComplaintAboutAHeuristic(t *testing.T) {
	young := tidying
	young.Initial = 0.3
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{Heuristics: []learning.Heuristic{young}}})
	answer := w.answer(loop.Event{Text: missing})
	require.Equal(t, decision.Model, answer.Result.Path)
	before := w.confidence("tidy")
	require.NoError(t, second(w.Correct(ctx, answer.ID,
		loop.Correction{Reviewer: "kim", Text: "Never run go mod tidy."})))
	assert.InDelta(t, before, w.confidence("tidy"), 1e-9)
}

// A rule that people approved goes before a heuristic that says the opposite, however far that is
// trusted, until the rule is revoked.
func TestARuleGoesBeforeAHeuristicThatItContradicts(t *testing.T) {
	other := learning.Heuristic{ID: "vet", Condition: rotating.Condition, Action: rotate,
		Initial: 0.81}
	for _, control := range []float64{0, 1} {
		w := newWorld(t, loop.Config{Control: control,
			Lessons: loop.Lessons{Heuristics: []learning.Heuristic{tidying, other}}})
		rule := approved(t, w.Feedback(), "Never run go mod tidy.")
		if control > 0 {
			plan, err := w.Prepare(ctx, loop.Event{Text: missing})
			require.NoError(t, err)
			assert.Empty(t, plan.Would)
			continue
		}
		answer := w.answer(loop.Event{ID: "e", Text: missing})
		assert.Equal(t, decision.Model, answer.Result.Path)
		assert.Equal(t, "Look at the logs.", answer.Text)
		_, asked := w.model.last()
		assert.NotContains(t, asked, tidying.Action, "the prompt does not suggest it")
		assert.Contains(t, answer.Plan.LeftOut, loop.LeftOut{What: "heuristic", ID: "tidy",
			Why: "rule " + rule + ": the words contradict each other"})
		account, err := w.Explain(ctx, "e")
		require.NoError(t, err)
		assert.Equal(t, map[string]string{"tidy": rule + ": the words contradict each other"},
			account.Overruled)
		assert.Contains(t, account.String(),
			"the heuristic tidy was withheld because of the rule "+rule+": the words contradict")

		assert.Equal(t, decision.Heuristic, w.answer(loop.Event{Text: full}).Result.Path,
			"the rule says nothing of this one")
		_, err = w.Feedback().Rules().Move(ctx, feedback.Act{ID: rule, Actor: "dan", Reason: "r"},
			feedback.StateRevoked)
		require.NoError(t, err)
		assert.Equal(t, decision.Heuristic, w.answer(loop.Event{Text: missing}).Result.Path,
			"the rule is gone")
	}
}

// A confidence that does not reach the bar is never shown as if it did.
func TestAConfidenceIsShownRoundedDown(t *testing.T) {
	assert.Empty(t, loop.Account{}.String())
	a := loop.Account{ID: "e", Heuristic: "tidy", Needed: 0.7, Believed: 0.7,
		Trust: &learning.Explanation{Standing: learning.Standing{Confidence: 0.6999}}}
	assert.Contains(t, a.String(), "a confidence of 0.70 where 0.70 was needed")
	assert.Contains(t, a.String(), "its confidence is 0.69 now")
}

// What a reviewer "Ann" has corrected names her as "Ann" on the answer, as a thumb does, and as
// "ann" in the correction. Whoever forgets "ann" alone may mean somebody else: the complaint stays.
func TestAReviewerHasTwoSpellings(t *testing.T) {
	const exact, folded = "Zaphod-77", "zaphod-77"
	for _, test := range []struct {
		forget    []string
		complaint bool // remains
		corrected bool // the correction has its reviewer
	}{
		{nil, true, true},
		{[]string{exact}, false, true},
		{[]string{folded}, true, false},
		{[]string{exact, folded}, false, false},
	} {
		w := newWorld(t, loop.Config{Lessons: loop.Lessons{Heuristics: []learning.Heuristic{tidying}}})
		before := w.confidence("tidy")
		id := w.answer(loop.Event{Text: missing}).ID
		require.NoError(t, second(w.Correct(ctx, id, loop.Correction{
			Reviewer: exact, Text: "Never run go mod tidy.",
		})))
		err := store.Run(ctx, w.store, store.Job{Forget: test.forget})
		require.NoError(t, err)
		account, err := w.Explain(ctx, id)
		require.NoError(t, err)
		if assert.Len(t, account.Statements, map[bool]int{true: 1}[test.complaint]) && test.complaint {
			assert.Equal(t, exact, account.Statements[0].Source)
		}
		assert.Equal(t, test.complaint, w.confidence("tidy") < before)
		written, _, err := w.Feedback().List(ctx, feedback.Listing{})
		require.NoError(t, err)
		require.Len(t, written, 1)
		assert.Equal(t, test.corrected, written[0].Reviewer == folded)

		var dump bytes.Buffer
		require.NoError(t, w.store.(*memstore.Store).Dump(ctx, &dump))
		gone := len(test.forget) == 2
		assert.Equal(t, gone, !bytes.Contains(bytes.ToLower(dump.Bytes()), []byte(folded)))
	}
}

// A correction names the rules that the prompt had, and a fault the field that is at fault.
func TestWhatACorrectionNames(t *testing.T) {
	w := newWorld(t, loop.Config{})
	rule := approved(t, w.Feedback(), "Name the ticket.")
	w.answer(loop.Event{ID: "e", Text: "Why?"})
	f, err := w.Correct(ctx, "e", loop.Correction{Reviewer: "kim", Text: "Be brief."})
	require.NoError(t, err)
	assert.Equal(t, []string{rule}, f.Rules)
	for field, c := range map[string]loop.Correction{
		"Text":     {Reviewer: "kim", Text: "a\x00"},
		"Reviewer": {Reviewer: "a\x00", Text: "Be brief."},
		"Comment":  {Reviewer: "kim", Text: "Be brief.", Comment: "a\x00"},
	} {
		assertField(t, field, second(w.Correct(ctx, "e", c)))
	}
}

// A correction without a time comes when it arrives, and one with a time keeps that.
func TestWhenACorrectionComes(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}})
	for after, at := range map[time.Duration]time.Time{
		time.Hour: {}, 10 * time.Minute: start.Add(10 * time.Minute),
	} {
		w.clock.now = start
		id := w.answer(loop.Event{Text: "Why?"}).ID
		w.clock.Advance(time.Hour)
		_, err := w.Correct(ctx, id, loop.Correction{Reviewer: "ann", Text: "Be brief.", At: at})
		require.NoError(t, err)
		account, err := w.Explain(ctx, id)
		require.NoError(t, err)
		require.Len(t, account.Statements, 1)
		assert.Equal(t, start.Add(after), account.Statements[0].At)
	}
}

// A correction knows which rules the prompt had, and a fault of it names its field.
func TestACorrectionOfAnAnswerByARule(t *testing.T) {
	w := newWorld(t, loop.Config{})
	rule := approved(t, w.Feedback(), "Name the server.")
	id := w.answer(loop.Event{Text: "Why?"}).ID
	made, err := w.Correct(ctx, id, loop.Correction{Reviewer: "ann", Text: "Be brief."})
	require.NoError(t, err)
	assert.Equal(t, []string{rule}, made.Rules)
	for field, c := range map[string]loop.Correction{
		"Text":     {Reviewer: "ann", Text: "\xff"},
		"Comment":  {Reviewer: "ann", Text: "Be brief.", Comment: "\xff"},
		"Reviewer": {Reviewer: "\xff", Text: "Be brief."},
	} {
		_, err = w.Correct(ctx, id, c)
		assertField(t, field, err)
	}
	assert.Len(t, feedbackOf(t, w), 1)
}

func feedbackOf(t *testing.T, w *world) (all []string) {
	for r, err := range w.store.Find(ctx, store.Query{Kind: "feedback.record"}) {
		require.NoError(t, err)
		all = append(all, r.ID)
	}
	return all
}
