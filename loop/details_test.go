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
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy"
)

// The error of each method shows the method, also if the store is away.
func TestErrorsShowTheirMethod(t *testing.T) {
	w := newWorkshop(t)
	yes := true
	for doing, call := range map[string]func() error{
		"answer":  func() error { return second(w.Answer(ctx, loop.Event{Text: "Why?"})) },
		"prepare": func() error { return second(w.Prepare(ctx, loop.Event{Text: "Why?"})) },
		"answered": func() error {
			return second(w.Answered(ctx, w.plan, loop.Reply{Text: "So."}))
		},
		"hear": func() error {
			return second(w.Hear(ctx, learning.Message{ID: "u", Text: "Undo that", Session: "t"}))
		},
		"react":       func() error { return w.React(ctx, "m", loop.Reaction{Value: 1}) },
		"undo":        func() error { return w.Undo(ctx, "m", "ann") },
		"outcome":     func() error { return w.Outcome(ctx, "m", loop.Outcome{Success: &yes}) },
		"undelivered": func() error { return w.Undelivered(ctx, "m") },
		"attribute": func() error {
			return second(w.Attribute(ctx, "m", "", strategy.Outcome{Value: 1, Confidence: 1}))
		},
		"correct": func() error {
			return second(w.Correct(ctx, "m", loop.Correction{Reviewer: "ann", Text: "Be brief."}))
		},
		"tool": func() error {
			return second(w.Tool(ctx, "m", loop.ToolResult{Name: "sh", Err: errors.New("no")}))
		},
		"keep plan":   func() error { return w.KeepPlan(ctx, "kim", w.plan) },
		"kept plan":   func() error { return second(w.KeptPlan(ctx, "kim", "p")) },
		"end session": func() error { return w.EndSession(ctx, "t") },
		"freeze":      func() error { return w.Freeze(ctx, true) },
		"find":        func() error { return second(w.Find(ctx, "t")) },
		"explain":     func() error { return second(w.Explain(ctx, "m")) },
		"gain":        func() error { return second(w.Gain(ctx)) },
		"sweep":       func() error { return w.Sweep(ctx, time.Time{}) },
		"teach": func() error {
			return second(w.Teach(ctx, loop.Lessons{Notes: []loop.Note{{ID: "x", Text: "t"}}}))
		},
		"tenant": func() error { return second(w.Tenant(ctx, "acme")) },
		"import": func() error {
			row := loop.Past{Event: loop.Event{Text: "t"}, Text: "x"}
			return second(w.Import(ctx, each([]loop.Past{row}), "", ""))
		},
	} {
		w.fails.SetAway(true)
		err := call()
		require.ErrorIs(t, err, storetest.ErrFailed, doing)
		assert.True(t, strings.HasPrefix(err.Error(), "loop: "+doing+": "), err.Error())
	}
}

// A sweep reports whichever call of the store fails, and loses no silence by it.
func TestASweepReportsEachFailure(t *testing.T) {
	storetest.FailEach(func(at int, after bool) bool {
		w := newWorkshop(t)
		w.clock.Advance(time.Hour)
		w.Agent = w.again()
		w.fails.Fail(at, after)
		err := w.Sweep(ctx, time.Time{})
		failed := w.fails.Failed()
		w.fails.Fail(0, false)
		if failed && !after {
			require.ErrorIs(t, err, storetest.ErrFailed, "call %d", at)
		}
		require.NoError(t, w.Sweep(ctx, time.Time{}))
		account, err := w.Explain(ctx, "m")
		require.NoError(t, err)
		assert.True(t, account.Known, "call %d", at)
		return failed
	})
}

// A tenant that answers is swept later, whichever call of the store fails at first.
func TestAnActiveTenantIsNoted(t *testing.T) {
	storetest.FailEach(func(at int, after bool) bool {
		sea := &storetest.Failing{Store: new(memstore.Store)}
		w := newWorld(t, loop.Config{Store: sea})
		sea.Fail(at, after)
		if acme, err := w.Tenant(ctx, "acme"); err == nil {
			_, _ = acme.Answer(ctx, loop.Event{Text: "Why?"})
		}
		failed := sea.Failed()
		sea.Fail(0, false)
		acme, err := w.Tenant(ctx, "acme")
		require.NoError(t, err)
		require.NoError(t, second(acme.Answer(ctx, loop.Event{Text: "Why not?"})))
		rows := 0
		for _, err := range sea.Find(ctx, store.Query{Kind: "loop.tenant"}) {
			require.NoError(t, err)
			rows++
		}
		assert.Equal(t, 1, rows, "call %d", at)
		return failed
	})
}

// A tenant is swept again a minute later, and a day later if it was idle for a day. What fails is
// reported.
func TestWhenATenantIsSweptNext(t *testing.T) {
	disk := &fullDisk{Store: new(memstore.Store)}
	w := newWorld(t, loop.Config{Store: disk})
	acme, err := w.Tenant(ctx, "acme")
	require.NoError(t, err)
	require.NoError(t, second(acme.Answer(ctx, loop.Event{Text: "Why?"})))
	due := func() (at time.Time) {
		for r, err := range disk.Find(ctx, store.Query{Kind: "loop.tenant"}) {
			require.NoError(t, err)
			at = r.At
		}
		return at
	}
	for idle, next := range map[time.Duration]time.Duration{
		24 * time.Hour: time.Minute, 24*time.Hour + time.Second: 24 * time.Hour,
	} {
		w.clock.now = start.Add(idle)
		require.NoError(t, w.Sweep(ctx, time.Time{}))
		assert.Equal(t, next, due().Sub(w.clock.Now()), "idle for %v", idle)
		w.clock.now = start
		w.Agent = w.again()
		acme, err = w.Tenant(ctx, "acme")
		require.NoError(t, err)
		require.NoError(t, second(acme.Answer(ctx, loop.Event{Text: "Why?"})))
	}
	disk.full = true
	require.ErrorIs(t, w.Sweep(ctx, time.Time{}), heed.ErrUnavailable)
}

// A plan keeps its arm as it was if the agent that finds it has no such arm.
func TestAKeptPlanOfAnArmThatIsGone(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "a", System: "Be brief.", InputPrice: 3}}})
	p, err := w.Prepare(ctx, loop.Event{ID: "e", Text: "Why?"})
	require.NoError(t, err)
	require.NoError(t, w.KeepPlan(ctx, "kim", p))
	for _, arms := range [][]loop.Arm{{{ID: "b"}}, {{ID: "a", System: "Be long."}}} {
		w.cfg.Arms = arms
		found, err := w.again().KeptPlan(ctx, "kim", "e")
		require.NoError(t, err)
		want := "Be brief."
		if arms[0].ID == "a" {
			want = "Be long."
		}
		assert.Equal(t, want, found.Arm.System)
	}
	p.Result.Threshold = math.NaN()
	require.ErrorContains(t, w.KeepPlan(ctx, "kim", p), "NaN")
}

// A record that was damaged while the store was away is an error of what is recorded late, and
// stays as it is.
func TestALateAnswerOverADamagedRecord(t *testing.T) {
	w := newWorld(t, loop.Config{Store: &storetest.Failing{Store: new(memstore.Store)}})
	sea := w.store.(*storetest.Failing)
	w.answer(loop.Event{Text: "Why?"})
	sea.SetAway(true)
	given := w.answer(loop.Event{ID: "e", Text: "Why?"})
	require.False(t, given.Degraded.Recorded())
	sea.SetAway(false)
	body := store.Raw([]byte("[7]"))
	_, err := sea.Commit(ctx, store.Batch{Records: []store.Record{{
		Ref: store.Ref{Kind: "loop.answer", ID: answers.ID("e")}, At: start, Body: body,
	}}})
	require.NoError(t, err)
	for range 2 {
		_, err = w.Answered(ctx, given.Plan, loop.Reply{})
		require.ErrorIs(t, err, heed.ErrDamaged)
	}
}

// What another program recorded about arms can be judged by an agent without arms.
func TestAnAgentWithoutArmsHearsOfOthers(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}})
	id := w.answer(loop.Event{Text: "Why?", Domain: "d", Item: "i"}).ID
	w.cfg.Arms = nil
	plain := w.again()
	require.NoError(t, plain.React(ctx, id, loop.Reaction{Person: "ann", Value: 1}))
	account, err := plain.Explain(ctx, id)
	require.NoError(t, err)
	assert.EqualValues(t, 1, account.Worth)
	assert.Empty(t, w.outcomes())
}

// An answer with learning is not of the control group, and the account of a heuristic that was
// deleted since goes without its trust.
func TestWhatAnAccountLeavesOut(t *testing.T) {
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{trusted(rotating)},
	}})
	id := w.answer(loop.Event{Text: full}).ID
	account, err := w.Explain(ctx, id)
	require.NoError(t, err)
	assert.Nil(t, account.Control)
	assert.NotNil(t, account.Trust)
	require.NoError(t, w.Learning().Delete(ctx, "rotate"))
	account, err = w.Explain(ctx, id)
	require.NoError(t, err)
	assert.Nil(t, account.Trust)
	assert.Contains(t, account.String(), "it was deleted since")
}

// An account has the five latest outcomes of its item.
func TestAnAccountHasFiveOutcomes(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}})
	var id string
	for n := range 7 {
		id = w.answer(loop.Event{Text: "Why?", Item: "i"}).ID
		other := w.answer(loop.Event{Text: "Why?", Item: fmt.Sprint("other ", n)}).ID
		account, err := w.Explain(ctx, other)
		require.NoError(t, err)
		assert.Nil(t, account.Item, "the item has no outcome, and others may have some")
		w.clock.Advance(time.Second)
		require.NoError(t, w.React(ctx, id, loop.Reaction{Person: fmt.Sprint(n), Value: 1}))
		account, err = w.Explain(ctx, id)
		require.NoError(t, err)
		assert.Len(t, account.Outcomes, min(n+1, 5))
		require.NotNil(t, account.Item)
		assert.EqualValues(t, n+1, account.Item.Outcomes)
	}
}

// Agents without a seed choose otherwise, and the seed of Tuning.Strategy goes first.
func TestSeedsOfChoices(t *testing.T) {
	chosen := func(cfg loop.Config) (all string) {
		cfg.Store, cfg.Model = new(memstore.Store), &mouth{says: "So."}
		cfg.Arms = []loop.Arm{{ID: "a"}, {ID: "b"}}
		agent, err := loop.New(ctx, cfg)
		require.NoError(t, err)
		for n := range 60 {
			p, err := agent.Prepare(ctx, loop.Event{ID: fmt.Sprint(n), Text: "Why?"})
			require.NoError(t, err)
			all += p.Arm.ID
		}
		return all
	}
	one, other := chosen(loop.Config{}), chosen(loop.Config{})
	assert.NotEqual(t, one, other)
	seeded := func(agent, own uint64) loop.Config {
		cfg := loop.Config{Testing: loop.Testing{Seed: newSource(agent)}}
		if own > 0 {
			cfg.Tuning.Strategy.Seed = newSource(own)
		}
		return cfg
	}
	one, other = chosen(seeded(1, 0)), chosen(seeded(1, 0))
	assert.Equal(t, one, other)
	assert.NotEqual(t, chosen(seeded(1, 0)), chosen(seeded(2, 0)))
	assert.Equal(t, chosen(seeded(1, 3)), chosen(seeded(2, 3)))
}

// The decider compares answers with heuristics by the agent's similarity, or by its own.
func TestTheSimilarityOfAnswers(t *testing.T) {
	mine, own := alikeness{1}, alikeness{0.5}
	for name, test := range map[string]struct {
		tuning loop.Tuning
		want   heed.Similarity
	}{
		"trigrams":    {loop.Tuning{}, heed.Trigrams{}},
		"the agent's": {loop.Tuning{Similarity: mine}, mine},
		"its own": {
			loop.Tuning{Similarity: mine, Decision: decision.Config{Similarity: own}}, own,
		},
	} {
		w := newWorld(t, loop.Config{Tuning: test.tuning})
		assert.Equal(t, test.want, w.Decision().Config().Similarity, name)
	}
}

// Arms that are about notes alone are not chosen without a note, in the control group neither.
func TestTheControlGroupWithoutNotes(t *testing.T) {
	w := newWorld(t, loop.Config{
		Control: 1, Arms: []loop.Arm{{ID: "a", ForNotes: true}, {ID: "b", ForNotes: true}},
		Lessons: loop.Lessons{Notes: []loop.Note{{ID: "n", Topic: full, Text: "See room 3."}}},
	})
	for text, arm := range map[string]string{"What is the weather?": "", full: "a"} {
		p, err := w.Prepare(ctx, loop.Event{Text: text})
		require.NoError(t, err)
		assert.Equal(t, arm, p.Arm.ID, text)
		assert.Nil(t, p.Choice)
	}
}

// Sessions of the control group are drawn into 64 groups.
func TestGroupsOfSessions(t *testing.T) {
	w := newWorld(t, loop.Config{Control: 1})
	groups := make(map[int]bool)
	for n := range 40 {
		id := w.answer(loop.Event{Text: "Why?", Session: fmt.Sprint(n)}).ID
		account, err := w.Explain(ctx, id)
		require.NoError(t, err)
		require.NotNil(t, account.Control)
		groups[account.Control.Group] = true
		assert.Less(t, account.Control.Group, 64)
	}
	assert.Greater(t, len(groups), 20)
}

// Without outcomes of both sides there is no comparison to report.
func TestAComparisonNeedsBothSides(t *testing.T) {
	compared := 0
	w := newWorld(t, loop.Config{Control: 0.5, Observer: func(_ context.Context, n heed.Notice) {
		if _, is := n.(heed.Compared); is {
			compared++
		}
	}})
	both := make(map[bool]bool)
	for n := 0; len(both) < 2; n++ {
		id := w.answer(loop.Event{ID: fmt.Sprint(n), Text: "Why?", Session: fmt.Sprint(n)}).ID
		for _, r := range w.records() {
			if r.ID == id {
				both[r.Reply.Side.Control] = true
			}
		}
		require.NoError(t, w.React(ctx, id, loop.Reaction{Person: "ann", Value: 1}))
		require.NoError(t, w.Sweep(ctx, time.Time{}))
		assert.Equal(t, len(both) == 2, compared > 0)
	}
}

// A success that was taken back leaves the comparison as if it had never been, and is counted by
// the arm that answered.
func TestAComparisonTakesBackWhatChanged(t *testing.T) {
	measured := func(first, last float64) loop.Gain {
		w := newWorld(t, loop.Config{Control: 0.5, Arms: []loop.Arm{{ID: "only"}}})
		for n := range 30 {
			id := fmt.Sprint(n)
			w.answer(loop.Event{ID: id, Text: "Why?", Session: id, Domain: "d"})
			for _, value := range []float64{first, last} {
				r := loop.Reaction{Person: "ann", Value: value * float64(1-n%3)}
				require.NoError(t, w.React(ctx, id, r))
			}
		}
		g, err := w.Gain(ctx)
		require.NoError(t, err)
		return g
	}
	want := measured(0.5, 0.5)
	got := measured(1, 0.5)
	assert.InDelta(t, want.Low, got.Low, 1e-9)
	assert.InDelta(t, want.High, got.High, 1e-9)
	assert.InDelta(t, want.Learned.Success, got.Learned.Success, 1e-9)
	require.Len(t, got.Arms, 1)
	assert.Equal(t, "only", got.Arms[0].Name)
	assert.Equal(t, "d", got.Domains[0].Name)
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

// Praise that is older than what the same person stated since writes no heuristic.
func TestOutdatedPraiseWritesNoHeuristic(t *testing.T) {
	w := newWorld(t, loop.Config{Tuning: loop.Tuning{Extract: []string{"*"}}})
	id := w.answer(loop.Event{Text: "Why?", Person: "ann"}).ID
	w.clock.Advance(time.Minute)
	require.NoError(t, w.React(ctx, id, loop.Reaction{Person: "ann", Value: -1, At: w.clock.Now()}))
	asked := len(w.model.asked)
	require.NoError(t, w.React(ctx, id, loop.Reaction{Person: "ann", Value: 1, At: start}))
	assert.Len(t, w.model.asked, asked)
	_ = w.React(ctx, id, loop.Reaction{Person: "bob", Value: 1})
	assert.Greater(t, len(w.model.asked), asked, "a control")
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

// A pickyFunc is a similarity that fails for some texts.
type pickyFunc func(one string, others []string) error

func (f pickyFunc) Similar(_ context.Context, one string, others []string) ([]float64, error) {
	numbers := make([]float64, len(others))
	for i := range numbers {
		numbers[i] = 0.9
	}
	return numbers, f(one, others)
}

// The heuristics of a domain are not taken for all that fit if the others can't be compared.
func TestASimilarityThatFailsForSome(t *testing.T) {
	of := trusted(rotating)
	of.ID, of.Domain, of.Condition = "of the domain", "ops", "a disk of the domain"
	fails := pickyFunc(func(_ string, others []string) error {
		if slices.Contains(others, rotating.Condition) {
			return &llm.Error{Failure: llm.Unreachable}
		}
		return nil
	})
	w := newWorld(t, loop.Config{
		Tuning:  loop.Tuning{Similarity: fails},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating), of}},
	})
	for range 2 { // with a library, too
		p, err := w.Prepare(ctx, loop.Event{Text: full, Domain: "ops"})
		require.NoError(t, err)
		assert.Contains(t, p.LeftOut, loop.LeftOut{What: "candidates", Why: "failure"})
		assert.False(t, p.Ready)
	}
}

// A note or a heuristic with text that can't be kept is a fault that names it.
func TestLessonsWithTextThatCannotBeKept(t *testing.T) {
	w := newWorld(t, loop.Config{})
	for _, text := range []string{"", "\xff", "a\x00b"} {
		for field, l := range map[string]loop.Lessons{
			"Notes[0].Text": {Notes: []loop.Note{{ID: "n", Text: text}}},
			"Heuristics[0].Action": {
				Heuristics: []learning.Heuristic{{ID: "h", Condition: "c", Action: text}},
			},
			"Heuristics[0].Condition": {
				Heuristics: []learning.Heuristic{{ID: "h", Condition: text, Action: "a"}},
			},
		} {
			_, err := w.Teach(ctx, l)
			assertField(t, field, err)
		}
	}
}

// An id may be as long as the names of an arm's observations leave room for.
func TestTheLongestIDOfAnEvent(t *testing.T) {
	w := newWorld(t, loop.Config{
		Name: strings.Repeat("n", 240), Arms: []loop.Arm{{ID: "only"}},
	})
	most := 1024 - len(w.Strategy().Config().Name) - len("::/") - 36 - 20
	require.NoError(t, second(w.Answer(ctx, loop.Event{ID: strings.Repeat("i", most), Text: "Why?"})))
	_, err := w.Answer(ctx, loop.Event{ID: strings.Repeat("i", most+1), Text: "Why?"})
	assert.ErrorContains(t, err, fmt.Sprintf("ID: is %d bytes long, may be %d", most+1, most))
}

// A caller may change the history of an event after its plan was made.
func TestAPlanHasItsOwnHistory(t *testing.T) {
	w := newWorld(t, loop.Config{})
	history := []loop.Turn{{Role: "user", Text: "Hello"}}
	p, err := w.Prepare(ctx, loop.Event{Text: "Why?", History: history})
	require.NoError(t, err)
	history[0].Text = "changed"
	assert.Equal(t, "Hello", p.Event.History[0].Text)
}

// A budget that the rules use up leaves no room for a single error of the task.
func TestErrorsInABudgetThatIsUsedUp(t *testing.T) {
	for more, listed := range map[int]bool{0: true, 2000: false} {
		w := newWorld(t, loop.Config{})
		approved(t, w.Feedback(), "Name the server.")
		p, err := w.Prepare(ctx, loop.Event{Text: "Why?"})
		require.NoError(t, err)
		w.cfg.Budget = loop.WithRoom(loop.Budget{}, len([]rune(p.System))+more)
		w.Agent = w.again()
		w.answer(loop.Event{ID: "e", Text: "Why?", Task: "t"})
		_, err = w.Tool(ctx, "e", loop.ToolResult{Name: "sh", Err: errors.New("no such file")})
		require.NoError(t, err)
		p, err = w.Prepare(ctx, loop.Event{Text: "Why?", Task: "t"})
		require.NoError(t, err)
		assert.Equal(t, listed, slices.ContainsFunc(p.LeftOut, func(o loop.LeftOut) bool {
			return o.What == "error" && o.Why == "characters"
		}), "%+v", p.LeftOut)
		assert.NotContains(t, p.LeftOut, loop.LeftOut{What: "errors", Why: "characters"})
	}
}

// An audit entry of something else about the same subject does not hide the latest turn.
func TestATurnIsRecordedOnceAmongOtherEntries(t *testing.T) {
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{trusted(rotating)},
	}})
	for n := range 3 {
		a := w.answer(loop.Event{Text: full, Person: "ann"})
		require.NoError(t, w.React(ctx, a.ID, loop.Reaction{Person: "ann", Value: 1}))
		require.NoError(t, w.Sweep(ctx, time.Time{}))
		w.clock.Advance(time.Minute)
		for _, e := range []store.AuditEntry{
			{Action: "other.thing", Subject: "rotate"}, {Action: "loop.stops", Subject: "ROTATE"},
		} {
			e.ID, e.At = fmt.Sprint(e.Action, n), w.clock.Now()
			_, err := w.store.Commit(ctx, store.Batch{Records: []store.Record{e.Record()}})
			require.NoError(t, err)
		}
		turns := 0
		for e, err := range store.AuditEntries(ctx, w.store, store.Query{}) {
			require.NoError(t, err)
			if e.Action == "loop.answers" {
				turns++
			}
		}
		assert.Equal(t, 1, turns)
	}
}

// If each model that arms ask is down, that is one incident, whatever Config.Model would be.
func TestAnIncidentOfTheArmsModels(t *testing.T) {
	observer, notices := outagesOf()
	var p provider
	p.fail(&llm.Error{Failure: llm.ServerError})
	w := newWorld(t, loop.Config{Observer: observer, Arms: []loop.Arm{{ID: "a", Model: &p}}})
	for range 3 {
		w.answer(loop.Event{Text: "Why?"})
	}
	assert.Equal(t, []string{"arm a is out", "models is out"}, notices())
}

// A list is a model of a type that can't be compared.
type list []string

func (l list) Generate(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
	return decision.LLMResponse{Text: l[0]}, nil
}

// Models of a type that can't be compared are different ones.
func TestModelsThatCannotBeCompared(t *testing.T) {
	w := newWorld(t, loop.Config{
		Model: list{"So."}, Fallbacks: []decision.LLM{list{"So."}},
		Arms: []loop.Arm{{ID: "a", Model: list{"So."}}, {ID: "b", Model: list{"So."}}, {ID: "c"}},
	})
	assert.Equal(t, "So.", w.answer(loop.Event{Text: "Why?"}).Text)
}

// A model that the framework asks, and that failed ten times, is asked by one event at a time.
func TestAFrameworksModelIsProbedByOneEvent(t *testing.T) {
	w := newWorld(t, loop.Config{})
	p, err := w.Prepare(ctx, loop.Event{Text: "Why?"})
	require.NoError(t, err)
	for range 10 {
		_, _ = w.Answered(ctx, p, loop.Reply{Err: &llm.Error{Failure: llm.ServerError}})
	}
	_, err = w.Prepare(ctx, loop.Event{Text: "Why?"})
	require.ErrorIs(t, err, loop.ErrNoModel)
	w.clock.Advance(16 * time.Second)
	_, err = w.Prepare(ctx, loop.Event{Text: "Why?"})
	require.NoError(t, err)
	_, err = w.Prepare(ctx, loop.Event{Text: "Why?"})
	require.ErrorIs(t, err, loop.ErrNoModel, "the one before finds out")
}

// How long a provider asks to wait is known although another process needs no news of it.
func TestAWaitThatIsNotShared(t *testing.T) {
	clock := &clock{now: start}
	agent, err := loop.New(ctx, loop.Config{
		Arms:    []loop.Arm{{ID: "x", ModelName: "x"}, {ID: "y", ModelName: "y"}},
		Testing: loop.Testing{Now: clock.Now, Seed: newSource(1)},
	})
	require.NoError(t, err)
	var plans []loop.Plan
	for len(plans) < 4 {
		p, err := agent.Prepare(ctx, loop.Event{Text: "Why?"})
		require.NoError(t, err)
		if p.Arm.ID == "x" {
			plans = append(plans, p)
		}
	}
	for n, p := range plans {
		failure := &llm.Error{Failure: llm.RateLimited}
		if n == 3 {
			failure.RetryAfter = time.Minute
		}
		_, _ = agent.Answered(ctx, p, loop.Reply{Err: failure})
	}
	arms := func() (asked map[string]bool) {
		asked = make(map[string]bool)
		for range 40 {
			p, err := agent.Prepare(ctx, loop.Event{Text: "Why?"})
			require.NoError(t, err)
			asked[p.Arm.ID] = true
		}
		return asked
	}
	clock.Advance(50 * time.Second)
	assert.Equal(t, map[string]bool{"y": true}, arms())
	clock.Advance(11 * time.Second)
	assert.True(t, arms()["x"])
}

// What took an answer back is no evidence about the arm, also if its model gave no usable answer.
func TestAnUndoWhoseModelIsOfNoUse(t *testing.T) {
	for text, failures := range map[string]int{"Undo that.": 0, "Why not?": 1} {
		w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}})
		e := loop.Event{Text: "Why?", Session: "s", Person: "ann", Domain: "d", Item: "i"}
		w.answer(e)
		w.clock.Advance(time.Second)
		e.Text = text
		p, err := w.Prepare(ctx, e)
		require.NoError(t, err)
		before := len(w.outcomes())
		_, err = w.Answered(ctx, p, loop.Reply{Err: &llm.Error{Failure: llm.Unusable}})
		require.NoError(t, err)
		assert.Len(t, w.outcomes(), before+failures, text)
	}
}

// Each turn of a heuristic is compared with the latest one, and not with the first.
func TestAHeuristicAnswersAgain(t *testing.T) {
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{trusted(rotating)},
	}})
	for person := range 5 {
		w.answer(loop.Event{ID: fmt.Sprint(person), Text: full, Person: fmt.Sprint(person)})
	}
	for _, value := range []float64{1, -1, 1, -1} {
		w.clock.Advance(time.Minute)
		for person := range 5 {
			id := fmt.Sprint(person)
			require.NoError(t, w.React(ctx, id, loop.Reaction{Person: id, Value: value}))
		}
		require.NoError(t, w.Sweep(ctx, time.Time{}))
	}
	answers, stops := "loop.answers rotate <", "loop.stops rotate <"
	assert.Equal(t, []string{answers, stops, answers, stops}, w.audit())
}

// A note may be worded otherwise by letters, and must be as similar as a heuristic by meaning.
func TestHowSimilarANoteIs(t *testing.T) {
	for _, test := range []struct {
		tuning loop.Tuning
		fits   bool
	}{
		{loop.Tuning{Similarity: alikeness{0.59}}, false},
		{loop.Tuning{Similarity: alikeness{0.6}}, true},
		{loop.Tuning{Similarity: alikeness{0.3}, Fit: 0.3}, true},
		{loop.Tuning{Similarity: alikeness{0.3}, Fit: 0.31}, false},
		{loop.Tuning{}, true}, {loop.Tuning{Fit: 0.9}, true},
	} {
		w := newWorld(t, loop.Config{Tuning: test.tuning, Lessons: loop.Lessons{
			Notes: []loop.Note{{ID: "n", Topic: "The disk of db-1", Text: "See room 3."}},
		}})
		p, err := w.Prepare(ctx, loop.Event{Text: "The disk of db-2 is so full"})
		require.NoError(t, err)
		assert.Equal(t, test.fits, len(p.Notes) > 0, "%+v", test.tuning)
	}
}

// The choices of a tenant follow from the seed and its name, in whatever order tenants come, and
// from neither without a seed.
func TestSeedsOfTenants(t *testing.T) {
	chosen := func(seeded bool, tenants ...string) (all string) {
		cfg := loop.Config{
			Store: new(memstore.Store), Model: &mouth{says: "So."},
			Arms: []loop.Arm{{ID: "a"}, {ID: "b"}},
		}
		if seeded {
			cfg.Testing.Seed = newSource(7)
		}
		root, err := loop.New(ctx, cfg)
		require.NoError(t, err)
		for _, tenant := range tenants {
			agent, err := root.Tenant(ctx, tenant)
			require.NoError(t, err)
			if tenant != "acme" {
				continue
			}
			for n := range 60 {
				p, err := agent.Prepare(ctx, loop.Event{ID: fmt.Sprint(n), Text: "Why?"})
				require.NoError(t, err)
				all += p.Arm.ID
			}
		}
		return all
	}
	assert.Equal(t, chosen(true, "acme"), chosen(true, "other", "acme"))
	one, another := chosen(false, "acme"), chosen(false, "acme")
	assert.NotEqual(t, one, another)
}

// The means of a single answer are its own.
func TestTheGainOfASingleAnswer(t *testing.T) {
	w := newWorld(t, loop.Config{Control: 1})
	w.answer(loop.Event{Text: "Why?"})
	g, err := w.Gain(ctx)
	require.NoError(t, err)
	require.Len(t, g.Days, 1)
	for _, of := range []loop.Measured{g.Control, g.Days[0].Control} {
		assert.Equal(t, []float64{1, 1}, []float64{of.Answers, of.Calls})
	}
}

func TestBoundsOfAnOutcome(t *testing.T) {
	w := newWorld(t, loop.Config{})
	id := w.answer(loop.Event{Text: "Why?"}).ID
	yes, no := true, false
	reward := func(x float64) loop.Outcome { return loop.Outcome{Reward: &x} }
	for _, test := range []struct {
		field string // of the fault, and empty without one
		o     loop.Outcome
	}{
		{"", reward(-1)}, {"", reward(1)}, {"", loop.Outcome{Success: &no}},
		{"Reward", reward(math.Nextafter(-1, -2))}, {"Reward", reward(math.Nextafter(1, 2))},
		{"Reward", reward(math.NaN())},
		{"", loop.Outcome{Success: &yes, Errors: 0, Retries: 0, Duration: 0}},
		{"Errors", loop.Outcome{Success: &yes, Errors: -1}},
		{"Retries", loop.Outcome{Success: &yes, Retries: -1}},
		{"Duration", loop.Outcome{Success: &yes, Duration: -1}},
		{"", loop.Outcome{Success: &yes, Cost: 1e6}},
		{"Cost", loop.Outcome{Success: &yes, Cost: math.Nextafter(1e6, 2e6)}},
		{"Cost", loop.Outcome{Success: &yes, Cost: -1e-9}},
		{"", loop.Outcome{Success: &yes, Confidence: 1}},
		{"Confidence", loop.Outcome{Success: &yes, Confidence: math.Nextafter(1, 2)}},
		{"Confidence", loop.Outcome{Success: &yes, Confidence: -1e-9}},
		{"Success", loop.Outcome{}}, {"", loop.Outcome{Withdraw: true}},
		{"Withdraw", loop.Outcome{Withdraw: true, Success: &yes}},
		{"Withdraw", loop.Outcome{Withdraw: true, Reward: new(float64)}},
		{"Withdraw", loop.Outcome{Withdraw: true, Cost: 1}},
		{"Source", loop.Outcome{Success: &yes, Source: "\xff"}},
	} {
		err := w.Outcome(ctx, id, test.o)
		if test.field == "" {
			assert.NoError(t, err)
			continue
		}
		assertField(t, test.field, err)
	}
}

func TestBoundsOfAPastAnswer(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}})
	for n, test := range []struct {
		field string // of the fault, and empty without one
		p     loop.Past
	}{
		{"", loop.Past{Arm: "only", Propensity: 1}}, {"", loop.Past{Arm: "only", Propensity: 1e-9}},
		{"Propensity", loop.Past{Arm: "only", Propensity: math.Nextafter(1, 2)}},
		{"Propensity", loop.Past{Arm: "only", Propensity: -1e-9}},
		{"Arm", loop.Past{Arm: "other"}},
		{"", loop.Past{Spent: answer.Spent{Cost: 1e6}}},
		{"Spent.Cost", loop.Past{Spent: answer.Spent{Cost: math.Nextafter(1e6, 2e6)}}},
		{"Spent.Cost", loop.Past{Spent: answer.Spent{Cost: -1e-9}}},
		{"Spent", loop.Past{Spent: answer.Spent{Latency: -1}}},
		{"Spent", loop.Past{Spent: answer.Spent{Tokens: -1}}},
	} {
		test.p.Event, test.p.Text = loop.Event{ID: fmt.Sprint(n), Text: "Why?", At: start}, "So."
		_, err := w.Import(ctx, each([]loop.Past{test.p}), "", "")
		if test.field == "" {
			assert.NoError(t, err)
			continue
		}
		assertField(t, test.field, err)
	}
}

func TestBoundsOfAConfiguration(t *testing.T) {
	type cfg = loop.Config
	price := func(in, out float64) cfg {
		return cfg{Arms: []loop.Arm{{ID: "a", InputPrice: in, OutputPrice: out}}}
	}
	fit := func(fit, answer float64) cfg {
		return cfg{Tuning: loop.Tuning{Fit: fit, AnswerFit: answer}}
	}
	above := func(x float64) float64 { return math.Nextafter(x, math.Inf(1)) }
	for _, test := range []struct {
		field string // of the fault, and empty without one
		cfg   cfg
	}{
		{"", cfg{Name: strings.Repeat("n", 240)}}, {"Name", cfg{Name: strings.Repeat("n", 1025)}},
		{"", cfg{Keep: 1}}, {"Keep", cfg{Keep: -1}},
		{"", cfg{Control: 1}}, {"Control", cfg{Control: above(1)}}, {"Control", cfg{Control: -1e-9}},
		{"", fit(1, 1)}, {"Tuning.Fit", fit(above(1), 0)}, {"Tuning.Fit", fit(-1e-9, 0.5)},
		{"", fit(0.5, 0.5)}, {"", fit(0.5, 1)}, {"Tuning.AnswerFit", fit(0.5, above(1))},
		{"Tuning.AnswerFit", fit(above(0.5), 0.5)},
		{"Budget.Time", cfg{Budget: loop.Budget{Time: -1}}}, {"", cfg{Budget: loop.Budget{Time: 1}}},
		{"Budget.Notes", cfg{Budget: loop.Budget{Notes: -1}}}, {"", cfg{Budget: loop.Budget{Notes: 1}}},
		{"", price(1e6, 1e6)}, {"", price(0, 0)},
		{"Arms[0].InputPrice", price(above(1e6), 0)}, {"Arms[0].OutputPrice", price(0, above(1e6))},
		{"Arms[0].InputPrice", price(-1e-9, 0)}, {"Arms[0].OutputPrice", price(0, -1e-9)},
		{"Fallbacks[0]", cfg{Fallbacks: []decision.LLM{nil}}},
	} {
		test.cfg.Store, test.cfg.Model = new(memstore.Store), &mouth{}
		_, err := loop.New(ctx, test.cfg)
		if test.field == "" {
			assert.NoError(t, err)
			continue
		}
		var fields []string
		for fault := range heed.ConfigErrors(err) {
			fields = append(fields, fault.Field)
		}
		assert.Equal(t, []string{test.field}, fields, "%.200v", err)
	}
}

// How often a call reads does not depend on how many answers it is about, nor on whose they are.
func TestReadsOfCalls(t *testing.T) {
	sea := &storetest.Failing{Store: new(memstore.Store)}
	w := newWorld(t, loop.Config{
		Store: sea, Arms: []loop.Arm{{ID: "only"}},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}},
	})
	reads := func(call func() error) int {
		before := sea.Calls("Read")
		require.NoError(t, call())
		return sea.Calls("Read") - before
	}
	swept := func(n int) int {
		for i := range n {
			w.answer(loop.Event{Text: "Why?", Item: fmt.Sprint("item ", n, i)})
		}
		w.clock.Advance(time.Hour)
		agent := w.again()
		return reads(func() error { return agent.Sweep(ctx, time.Time{}) })
	}
	swept(1) // what a process reads once is read
	idle := swept(0)
	for _, n := range []int{1, 7} {
		assert.Equal(t, 3, swept(n)-idle, "%d answers", n)
	}
	acme, err := w.Tenant(ctx, "acme")
	require.NoError(t, err)
	for _, agent := range []*loop.Agent{w.Agent, acme} {
		require.NoError(t, second(agent.Prepare(ctx, loop.Event{Text: "Why?"})))
		assert.Equal(t, 1, reads(func() error {
			return second(agent.Prepare(ctx, loop.Event{Text: "Why?"}))
		}))
	}
}

// Whoever changes what an arm was credited with returns the error of a store that can't show
// whether the credit can be taken back. Then the call changes no record.
func TestACreditThatMayBeForgotten(t *testing.T) {
	yes := true
	for name, call := range map[string]func(w *world) error{
		"React": func(w *world) error {
			return w.React(ctx, "e", loop.Reaction{Person: "ann", Value: -1})
		},
		"Outcome": func(w *world) error { return w.Outcome(ctx, "e", loop.Outcome{Success: &yes}) },
		"Undo":    func(w *world) error { return w.Undo(ctx, "e", "ann") },
		"Correct": func(w *world) error {
			return second(w.Correct(ctx, "e", loop.Correction{Reviewer: "kim", Text: "Be brief."}))
		},
		"Hear": func(w *world) error {
			return second(w.Hear(ctx, learning.Message{
				ID: "m", Text: "Undo that.", Session: "s", Person: "ann", At: w.clock.Now(),
			}))
		},
		"Prepare": func(w *world) error {
			return second(w.Prepare(ctx, loop.Event{Text: "Undo that.", Session: "s", Person: "ann"}))
		},
		"Import": func(w *world) error {
			return second(w.Import(ctx, each([]loop.Past{{
				Event: loop.Event{ID: "e", Text: "Why?", At: start}, Text: "So.",
				Reactions: []loop.Reaction{{Person: "bob", Value: -1}},
			}}), "", ""))
		},
	} {
		kept, err := memstore.New(memstore.Config{
			Now: (&clock{now: start.Add(time.Minute)}).Now, Retention: store.Retention{HistoryPerCell: 2},
		})
		require.NoError(t, err)
		sea := &storetest.Failing{Store: kept}
		w := newWorld(t, loop.Config{Store: sea, RequireStore: true, Arms: []loop.Arm{{ID: "only"}}})
		e := loop.Event{ID: "e", Text: "Why?", Session: "s", Person: "ann", Domain: "d", Item: "i"}
		w.answer(e)
		require.NoError(t, w.React(ctx, "e", loop.Reaction{Person: "ann", Value: 1}))
		for n := range 4 {
			e.ID, e.Session, e.Person = fmt.Sprint(n), "", "bob"
			w.answer(e)
			require.NoError(t, w.React(ctx, e.ID, loop.Reaction{Person: "ann", Value: 1}))
		}
		w.clock.Advance(time.Second)
		// The store has forgotten the credit, and this process finds out.
		require.ErrorIs(t, w.React(ctx, "e", loop.Reaction{Person: "ann", Value: 0.5}),
			evidence.ErrForgotten, name)
		w.clock.Advance(time.Second)
		before := w.records()
		failed := 0
		storetest.FailEach(func(at int, after bool) bool {
			if after {
				return true
			}
			sea.Fail(at, after)
			err := call(w)
			did, history := sea.Failed(), sea.Calls("History")
			sea.Fail(0, false)
			if did && history > 0 && err != nil {
				failed++
				assert.ErrorIs(t, err, storetest.ErrFailed, name)
				assert.Equal(t, before, w.records(), name)
			}
			return did && failed == 0
		})
		assert.Equal(t, 1, failed, name)
	}
}

// An answer whose caller left while it was recorded was not delivered.
func TestACallerWhoLeavesDuringTheCommit(t *testing.T) {
	for leaves, undelivered := range map[bool]bool{false: false, true: true} {
		st := &leftBehind{Store: new(memstore.Store)}
		w := newWorld(t, loop.Config{Store: st})
		left, leave := context.WithCancel(ctx)
		if leaves {
			st.leave = leave
		}
		given, err := w.Answer(left, loop.Event{ID: "e", Text: "Why?"})
		require.NoError(t, err)
		assert.NotEmpty(t, given.Text)
		account, err := w.Explain(ctx, "e")
		require.NoError(t, err)
		assert.Equal(t, undelivered, account.Undelivered)
		leave()
	}
}

// A leftBehind is a store whose caller leaves after the commit of an answer.
type leftBehind struct {
	store.Store
	leave func()
}

func (s *leftBehind) Commit(
	ctx context.Context, batches ...store.Batch,
) ([]store.Receipt, error) {
	receipts, err := s.Store.Commit(ctx, batches...)
	for _, b := range batches {
		is := func(r store.Record) bool { return r.Kind == "loop.answer" }
		if s.leave != nil && slices.ContainsFunc(b.Records, is) {
			s.leave()
		}
	}
	return receipts, err
}

// A notice about a tenant's answer has the tenant.
func TestNoticesHaveTheirTenant(t *testing.T) {
	tenants := make(map[string]int)
	w := newWorld(t, loop.Config{
		Arms: []loop.Arm{{ID: "only"}}, Observer: func(ctx context.Context, n heed.Notice) {
			if _, is := n.(heed.Selected); is {
				tenants[heed.TenantOf(ctx)]++
			}
		},
	})
	acme, err := w.Tenant(ctx, "acme")
	require.NoError(t, err)
	for _, agent := range []*loop.Agent{w.Agent, acme} {
		require.NoError(t, second(agent.Answer(ctx, loop.Event{Text: "Why?", Session: "s"})))
	}
	assert.Equal(t, map[string]int{"": 1, "acme": 1}, tenants)
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

// An event that is refused has no answer at all.
func TestARefusedEventHasNoAnswer(t *testing.T) {
	w := newWorld(t, loop.Config{})
	for _, e := range []loop.Event{{}, {Text: "Why?", Task: strings.Repeat("t", 513)}} {
		given, err := w.Answer(ctx, e)
		require.Error(t, err)
		assert.Equal(t, loop.Answer{}, given)
	}
	assert.Zero(t, w.model.calls())
}

// A message that took an answer back is not answered by a heuristic, and one that is to be answered
// by the model neither.
func TestWhatNoHeuristicAnswers(t *testing.T) {
	h := trusted(learning.Heuristic{ID: "undo", Condition: "Undo that.", Action: "It is undone."})
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{Heuristics: []learning.Heuristic{h}}})
	e := loop.Event{Text: "Undo that.", Session: "s", Person: "ann"}
	given := w.answer(e)
	assert.Equal(t, h.Action, given.Text, "there is no answer to undo")
	w.answer(loop.Event{Text: "Why?", Session: "s", Person: "ann"})
	w.clock.Advance(time.Second)
	given = w.answer(e)
	assert.NotEmpty(t, given.Plan.Undone)
	assert.Equal(t, w.model.says, given.Text)
	e.AskModel, e.Session, e.Person = true, "", ""
	assert.Equal(t, w.model.says, w.answer(e).Text)
}

// Without a control group no session is drawn into a group.
func TestWithoutControlThereAreNoGroups(t *testing.T) {
	w := newWorld(t, loop.Config{})
	w.sessions(5)
	for _, r := range w.records() {
		assert.Equal(t, answer.Side{}, answer.Side{
			Control: r.Reply.Side.Control, Share: r.Reply.Side.Share, Group: r.Reply.Side.Group,
		})
	}
}

// A receiver that panics at what was held back to the end is the reason why there is no answer.
func TestAReceiverThatPanicsAtTheEnd(t *testing.T) {
	model := &stutterer{pieces: []string{"So be it <thin"}}
	w := newWorld(t, loop.Config{Model: model})
	pieces := 0
	e := loop.Event{Text: "Why?", OnChunk: func(context.Context, string, bool) {
		if pieces++; pieces == 2 {
			panic("no more paper")
		}
	}}
	given, err := w.Answer(ctx, e)
	require.ErrorAs(t, err, new(*heed.PanicError))
	assert.Equal(t, 2, pieces)
	assert.Empty(t, given.Text)
	require.ErrorAs(t, given.Result.Err, new(*heed.PanicError))
}
