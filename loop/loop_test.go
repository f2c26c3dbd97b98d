package loop_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy"
)

func TestTheModelAnswersWhatNoHeuristicDoes(t *testing.T) {
	w := newWorld(t, loop.Config{System: "You run a data centre."})
	answer := w.answer(loop.Event{Text: full, Session: "s", Person: "ann"})
	assert.Equal(t, "Look at the logs.", answer.Text)
	assert.Equal(t, "event-1", answer.ID)
	assert.Equal(t, decision.Model, answer.Result.Path)
	system, prompt := w.model.last()
	assert.Contains(t, system, "You run a data centre.")
	assert.Contains(t, prompt, full)
}

func TestATrustedHeuristicAnswersWithoutTheModel(t *testing.T) {
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{trusted(rotating)}}})
	var chunks []string
	answer := w.answer(loop.Event{Text: full, OnChunk: func(_ context.Context, text string,
		_ bool) {
		chunks = append(chunks, text)
	}})
	assert.Equal(t, rotate, answer.Text)
	assert.Equal(t, []string{rotate}, chunks)
	assert.Zero(t, w.model.calls())
	plan, err := w.Prepare(ctx, loop.Event{Text: full})
	require.NoError(t, err)
	assert.True(t, plan.Ready)
	assert.Equal(t, rotate, plan.Text)
}

// Once people complain about a heuristic's answers, the model is asked again.
func TestComplaintsEndAHeuristicsAnswers(t *testing.T) {
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{trusted(rotating)}}})
	complaints := 0
	for ; complaints < 9; complaints++ {
		answer := w.answer(loop.Event{Text: full, Person: "ann"})
		if answer.Result.Path == decision.Model {
			break
		}
		require.NoError(t, w.React(ctx, answer.ID, loop.Reaction{Person: "ann", Value: -1}))
		w.clock.Advance(time.Minute)
	}
	assert.Positive(t, complaints, "it answered at first")
	assert.Less(t, complaints, 9, "it still answers")
	assert.Equal(t, 1, w.model.calls())
}

// Each way in which an answer turns out well or badly moves the trust in the heuristic, also when
// it is told in another process.
func TestWhatBecomesOfAnAnswerMovesTheTrust(t *testing.T) {
	yes, no := true, false
	for name, test := range map[string]struct {
		share func(w *world, a *loop.Agent, id string) error
		up    bool
	}{
		"praise": {func(_ *world, a *loop.Agent, id string) error {
			return a.React(ctx, id, loop.Reaction{Person: "ann", Value: 1})
		}, true},
		"complaint": {func(_ *world, a *loop.Agent, id string) error {
			return a.React(ctx, id, loop.Reaction{Person: "ann", Value: -1})
		}, false},
		"undo": {func(_ *world, a *loop.Agent, id string) error { return a.Undo(ctx, id, "ann") },
			false},
		"success": {func(_ *world, a *loop.Agent,
			id string) error {
			return a.Outcome(ctx, id, loop.Outcome{Success: &yes})
		}, true},
		"failure": {func(_ *world, a *loop.Agent,
			id string) error {
			return a.Outcome(ctx, id, loop.Outcome{Success: &no})
		}, false},
		"text": {func(w *world, a *loop.Agent, _ string) error {
			w.clock.Advance(time.Second)
			_, err := a.Hear(ctx, learning.Message{Session: "s", Person: "ann", Text: "Undo that!"})
			return err
		}, false},
		"the next event": {func(w *world, a *loop.Agent, _ string) error {
			w.clock.Advance(time.Second)
			_, err := a.Answer(ctx, loop.Event{Session: "s", Person: "ann", Text: "undo that"})
			return err
		}, false},
		"silence": {func(w *world, a *loop.Agent, _ string) error {
			w.clock.Advance(time.Minute)
			return a.Sweep(ctx, time.Time{})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, loop.Config{Lessons: loop.Lessons{
				Heuristics: []learning.Heuristic{trusted(rotating)}}})
			answer := w.answer(loop.Event{Text: full, Session: "s", Person: "ann"})
			before := w.confidence("rotate")
			require.NoError(t, test.share(w, w.again(), answer.ID))
			if after := w.confidence("rotate"); test.up {
				assert.Greater(t, after, before)
			} else {
				assert.Less(t, after, before)
			}
		})
	}
}

func TestAWithdrawnReactionWithdraws(t *testing.T) {
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{trusted(rotating)}}})
	answer := w.answer(loop.Event{Text: full})
	before := w.confidence("rotate")
	require.NoError(t, w.React(ctx, answer.ID, loop.Reaction{Person: "ann", Value: -1}))
	assert.Less(t, w.confidence("rotate"), before)
	w.clock.Advance(time.Second)
	require.NoError(t, w.React(ctx, answer.ID, loop.Reaction{Person: "ann", Value: 0}))
	assert.InDelta(t, before, w.confidence("rotate"), 1e-9)
}

// Prepare and Answered around a framework's own call do what Answer does.
func TestAFrameworkCallsTheModel(t *testing.T) {
	direct := newWorld(t, loop.Config{Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{rotating}}})
	want := direct.answer(loop.Event{ID: "e", Text: full, Session: "s", Person: "ann"})
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{Heuristics: []learning.Heuristic{rotating}}})
	plan, err := w.Prepare(ctx, loop.Event{ID: "e", Text: full, Session: "s", Person: "ann"})
	require.NoError(t, err)
	assert.False(t, plan.Ready)
	assert.Zero(t, w.model.calls())
	_, prompt := direct.model.last()
	assert.Equal(t, prompt, plan.Prompt)
	got, err := w.Answered(ctx, plan, loop.Reply{Text: "Look at the logs.", Model: "mouth"})
	require.NoError(t, err)
	assert.Equal(t, want.Text, got.Text)
	assert.Equal(t, want.Result.Path, got.Result.Path)
	assert.Zero(t, w.model.calls())

	again, err := w.Answered(ctx, plan, loop.Reply{Text: "Something else."})
	require.NoError(t, err)
	assert.Equal(t, got.Text, again.Text, "an event is answered once")
	require.NoError(t, w.React(ctx, "e", loop.Reaction{Value: 1}))

	failed, err := w.Prepare(ctx, loop.Event{ID: "f", Text: full})
	require.NoError(t, err)
	none, err := w.Answered(ctx, failed, loop.Reply{Err: errors.New("overloaded")})
	require.NoError(t, err)
	assert.Empty(t, none.Text)
	assert.Equal(t, "llm_error", none.Result.Reason)
	assert.ErrorIs(t, w.React(ctx, "f", loop.Reaction{Value: 1}), loop.ErrNoAnswer,
		"there is no answer")
}

func TestAnEventIsAnsweredOnce(t *testing.T) {
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{trusted(rotating)}}})
	first := w.answer(loop.Event{ID: "e", Text: full})
	w.model.says = "Something else."
	second, err := w.again().Answer(ctx, loop.Event{ID: "e", Text: full})
	require.NoError(t, err)
	assert.Equal(t, first.Text, second.Text)
	s, err := w.Learning().Standing(ctx, "rotate")
	require.NoError(t, err)
	assert.EqualValues(t, 1, s.Fires)
}

// An event that is delivered again has the arm that answered, also one that there is no more.
func TestARepeatedAnswerHasItsArm(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "a", System: "Be brief."}}})
	first := w.answer(loop.Event{ID: "e", Text: "Why?"})
	second, err := w.again().Answer(ctx, loop.Event{ID: "e", Text: "Why?"})
	require.NoError(t, err)
	assert.Equal(t, first.Plan.Arm, second.Plan.Arm)
	plan, err := w.Prepare(ctx, loop.Event{ID: "e", Text: "Why?"})
	require.NoError(t, err)
	assert.Equal(t, "Be brief.", plan.Arm.System)
	w.cfg.Arms = []loop.Arm{{ID: "b"}}
	third, err := w.again().Answer(ctx, loop.Event{ID: "e", Text: "Why?"})
	require.NoError(t, err)
	assert.Equal(t, loop.Arm{ID: "a"}, third.Plan.Arm)
}

func TestArmsLearnFromWhatBecomesOfAnswers(t *testing.T) {
	short, long := &mouth{says: "Short."}, &mouth{says: "Long."}
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "short", Model: short},
		{ID: "long", Model: long, System: "Take your time."}}})
	for range 60 {
		answer := w.answer(loop.Event{Text: "Why?", Domain: "tickets"})
		value := -1.
		if answer.Text == "Long." {
			value = 1
			system, _ := long.last()
			require.Contains(t, system, "Take your time.")
		}
		require.NoError(t, w.React(ctx, answer.ID, loop.Reaction{Person: "ann", Value: value}))
		w.clock.Advance(time.Minute)
	}
	assert.Greater(t, w.mean("tickets", "long"), 0.8)
	assert.Less(t, w.mean("tickets", "short"), 0.5)
	assert.Greater(t, long.calls(), 45)
	assert.Zero(t, w.model.calls(), "each arm has its own model")
}

func TestSilenceIsWorthALittleToAnArm(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}})
	w.answer(loop.Event{Text: "Why?", Domain: "d"})
	w.clock.Advance(time.Minute)
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	after := w.mean("d", "only")
	assert.Greater(t, after, 0.5)
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	assert.InDelta(t, after, w.mean("d", "only"), 1e-9, "it counts once")
}

func TestAFallbackAnswersWhereAModelFails(t *testing.T) {
	second := &mouth{says: "I am here."}
	w := newWorld(t, loop.Config{Fallbacks: nil})
	w.model.err = errors.New("overloaded")
	answer := w.answer(loop.Event{Text: "Why?"})
	assert.Equal(t, decision.Fallback, answer.Result.Path)
	assert.Empty(t, answer.Text)

	w = newWorld(t, loop.Config{Fallbacks: []decision.LLM{second}})
	w.model.err = errors.New("overloaded")
	assert.Equal(t, "I am here.", w.answer(loop.Event{Text: "Why?"}).Text)
}

func TestACorrectionBecomesARuleThatThePromptHas(t *testing.T) {
	w := newWorld(t, loop.Config{})
	const text = "Always name the ticket that the answer is about."
	var made feedback.Feedback
	for _, reviewer := range []string{"ann", "bob", "cid"} {
		answer := w.answer(loop.Event{Text: "Why?"})
		var err error
		made, err = w.Correct(ctx, answer.ID, loop.Correction{Reviewer: reviewer, Text: text})
		require.NoError(t, err)
		_, err = w.Correct(ctx, answer.ID, loop.Correction{Reviewer: reviewer, Text: text})
		require.NoError(t, err, "told again, it counts once")
	}
	assert.Equal(t, feedback.GeneralizableHigh, made.Class)
	pending, n, err := w.Feedback().Rules().Proposals(ctx,
		feedback.ProposalQuery{Status: feedback.StatePending}, 0)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	assert.Equal(t, pending[0].ID, made.Proposal)
	told, err := w.Correct(ctx, w.answer(loop.Event{Text: "Why?"}).ID,
		loop.Correction{Reviewer: "dee", Text: text})
	require.NoError(t, err)
	assert.Equal(t, pending[0].ID, told.Proposal, "who comes later supports it")
	plan, err := w.Prepare(ctx, loop.Event{Text: "Why?"})
	require.NoError(t, err)
	assert.NotContains(t, plan.System, text, "nobody has approved it")
	for _, lead := range []string{"dan", "eve"} {
		_, err := w.Feedback().Rules().Review(ctx, feedback.Review{
			Proposal: pending[0].ID, Decision: feedback.Approved, Actor: lead, Reason: "right",
			Hash: pending[0].Hash(),
		})
		require.NoError(t, err)
	}
	answer := w.answer(loop.Event{Text: "Why?"})
	system, _ := w.model.last()
	assert.Contains(t, system, text)
	assert.Equal(t, []string{pending[0].ID}, answer.Plan.Rules)
	account, err := w.Explain(ctx, answer.ID)
	require.NoError(t, err)
	require.Len(t, account.Rules, 1)
	assert.Contains(t, account.String(), text)
}

func TestATaskIsToldWhatWentBadly(t *testing.T) {
	no := false
	w := newWorld(t, loop.Config{})
	w.model.says = "Split by layer: first the interface, then the data."
	for i := range 4 {
		answer := w.answer(loop.Event{Text: "Rename the column", Task: string(rune('a' + i))})
		require.NoError(t, second(w.Tool(ctx, answer.ID,
			loop.ToolResult{ID: "1", Name: "tests", Err: errors.New("3 failed")})))
		require.NoError(t, second(w.Tool(ctx, answer.ID,
			loop.ToolResult{ID: "1", Name: "tests", Err: errors.New("3 failed")})))
		report, err := w.Patterns().Errors(ctx, patterns.HistoryQuery{About: string(rune('a' + i))})
		require.NoError(t, err)
		require.Len(t, report.Errors, 1, "an error counts once")
		require.NoError(t, w.Outcome(ctx, answer.ID,
			loop.Outcome{Success: &no, Errors: 5, Retries: 3, Duration: time.Hour}))
		w.clock.Advance(time.Hour)
	}
	plan, err := w.Prepare(ctx, loop.Event{Text: "Rename the column", Task: "next"})
	require.NoError(t, err)
	assert.Contains(t, plan.System, "AVOID: Split by layer")
	plan, err = w.Prepare(ctx, loop.Event{Text: "Rename the column"})
	require.NoError(t, err)
	assert.NotContains(t, plan.System, "AVOID", "it is no task")
}

// A framework runs its tools before there is an answer.
func TestAToolFailsBeforeTheAnswer(t *testing.T) {
	w := newWorld(t, loop.Config{})
	failure := loop.ToolResult{ID: "1", Name: "tests", Err: errors.New("3 failed"), Task: "rename"}
	plan, err := w.Prepare(ctx, loop.Event{ID: "e", Text: "Rename the column", Task: "rename"})
	require.NoError(t, err)
	require.NoError(t, second(w.Tool(ctx, "e", failure)))
	_, err = w.Answered(ctx, plan, loop.Reply{Text: "Done."})
	require.NoError(t, err)
	failure.Task = ""
	require.NoError(t, second(w.Tool(ctx, "e", failure)))
	require.NoError(t, second(w.Tool(ctx, "no task", failure)))
	for _, about := range []string{"rename", "no task"} {
		report, err := w.Patterns().Errors(ctx, patterns.HistoryQuery{About: about})
		require.NoError(t, err)
		assert.Len(t, report.Errors, 1, about)
	}
	assertField(t, "id", second(w.Tool(ctx, "", failure)))
}

func TestUnknownAnswers(t *testing.T) {
	w := newWorld(t, loop.Config{})
	yes := true
	calls := map[string]func(id string) error{
		"React":   func(id string) error { return w.React(ctx, id, loop.Reaction{Value: 1}) },
		"Undo":    func(id string) error { return w.Undo(ctx, id, "") },
		"Outcome": func(id string) error { return w.Outcome(ctx, id, loop.Outcome{Success: &yes}) },
		"Correct": func(id string) error {
			_, err := w.Correct(ctx, id,
				loop.Correction{Reviewer: "ann"})
			return err
		},
		"Explain": func(id string) error { _, err := w.Explain(ctx, id); return err },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			err := call("nobody knows it")
			assert.ErrorIs(t, err, loop.ErrNoAnswer)
			assert.ErrorIs(t, err, heed.ErrNotFound)
			assertField(t, "id", call(""))
		})
	}
}

func TestBadInputChangesNothing(t *testing.T) {
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{trusted(rotating)}}})
	answer := w.answer(loop.Event{Text: full})
	before := w.confidence("rotate")
	two, yes := 2., true
	for field, err := range map[string]error{
		"Value":    w.React(ctx, answer.ID, loop.Reaction{Value: 2}),
		"Weight":   w.React(ctx, answer.ID, loop.Reaction{Value: 1, Weight: -1}),
		"Target":   w.React(ctx, answer.ID, loop.Reaction{Value: 1, Target: "half"}),
		"At":       w.React(ctx, answer.ID, loop.Reaction{Value: 1, At: start.Add(time.Hour)}),
		"Person":   w.React(ctx, answer.ID, loop.Reaction{Value: 1, Person: "\xff"}),
		"person":   w.Undo(ctx, answer.ID, "\xff"),
		"Success":  w.Outcome(ctx, answer.ID, loop.Outcome{}),
		"Reward":   w.Outcome(ctx, answer.ID, loop.Outcome{Reward: &two}),
		"Errors":   w.Outcome(ctx, answer.ID, loop.Outcome{Success: &yes, Errors: -1}),
		"Retries":  w.Outcome(ctx, answer.ID, loop.Outcome{Success: &yes, Retries: -1}),
		"Duration": w.Outcome(ctx, answer.ID, loop.Outcome{Success: &yes, Duration: -1}),
		"Cost":     w.Outcome(ctx, answer.ID, loop.Outcome{Success: &yes, Cost: -1}),
		"Text": second(w.Correct(ctx, answer.ID,
			loop.Correction{Reviewer: "kim", Text: strings.Repeat("x", 501)})),
		"Session": second(w.Answer(ctx, loop.Event{Text: "Why?", Session: "\xff"})),
		"Domain":  second(w.Prepare(ctx, loop.Event{Domain: "a\x00"})),
		"Plan":    second(w.Answered(ctx, loop.Plan{}, loop.Reply{})),
		"Reply": second(w.Answered(ctx, loop.Plan{Event: loop.Event{ID: "x"}},
			loop.Reply{InputTokens: -1})),
	} {
		t.Run(field, func(t *testing.T) { assertField(t, field, err) })
	}
	assertField(t, "Plan", second(w.Answered(ctx, answer.Plan, loop.Reply{Text: "x"})))
	assert.InDelta(t, before, w.confidence("rotate"), 1e-9)
}

func second[T any](_ T, err error) error { return err }

func TestConfigFaultsAreReportedTogether(t *testing.T) {
	_, err := loop.New(ctx, loop.Config{
		Name: "\xff", Tuning: loop.Tuning{
			Fit: 2, Learning: learning.Config{Initial: 2}, Decision: decision.Config{Threshold: 3},
			Strategy: strategy.Config{Silence: strategy.Silence{After: time.Minute}},
		},
		Control:   2,
		Fallbacks: []decision.LLM{nil},
		Arms:      []loop.Arm{{ID: "a", ModelName: "none"}},
		Budget:    loop.Budget{Time: -1, Notes: -1},
		DB:        new(sql.DB), Store: new(memstore.Store), Keep: -1,
	})
	var fields []string
	for fault := range heed.ConfigErrors(err) {
		fields = append(fields, fault.Field)
	}
	assert.Equal(t, []string{
		"Name", "DB", "Keep", "Tuning.Fit", "Budget.Time", "Budget.Notes",
		"Control", "Arms[0].ModelName", "Fallbacks[0]", "Initial", "Silence", "Threshold",
	}, fields, "its own, and then the parts'")
}

// If one arm has a model, heed asks the models, so the names of the others must be known.
func TestUnknownNamesOfModels(t *testing.T) {
	arms := []loop.Arm{{ID: "a", Model: decision.LLMFunc(nil)}, {ID: "b", ModelName: "none"}}
	_, err := loop.New(ctx, loop.Config{Arms: arms})
	assert.ErrorContains(t, err, "Arms[1].ModelName")
	_, err = loop.New(ctx, loop.Config{Lessons: loop.Lessons{Arms: arms}})
	assert.ErrorContains(t, err, "Lessons.Arms[1].ModelName")
	_, err = loop.New(ctx, loop.Config{Arms: arms[1:]})
	assert.NoError(t, err, "the framework's")
}

func TestAFrozenAgentLearnsNothing(t *testing.T) {
	lessons := loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}}
	w := newWorld(t, loop.Config{Lessons: lessons})
	require.NoError(t, w.Freeze(ctx, true))
	answer := w.answer(loop.Event{Text: full, Session: "s"})
	assert.Equal(t, rotate, answer.Text, "it answers by what is known")
	before := w.confidence("rotate")
	require.NoError(t, w.React(ctx, answer.ID, loop.Reaction{Value: -1}))
	require.NoError(t, w.Undo(ctx, answer.ID, "ann"))
	w.clock.Advance(time.Hour)
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	assert.InDelta(t, before, w.confidence("rotate"), 1e-9)
	assertField(t, "Value", w.React(ctx, "any", loop.Reaction{Value: 2}))
	require.NoError(t, w.Freeze(ctx, false))
	require.NoError(t, w.React(ctx, answer.ID, loop.Reaction{Value: -1}))
	assert.Less(t, w.confidence("rotate"), before)
}

// With all sessions in the control group, an agent learns in the shadow of the model.
func TestShadow(t *testing.T) {
	w := newWorld(t, loop.Config{Control: 1, System: "S", Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{trusted(rotating)},
	}})
	answer := w.answer(loop.Event{Text: full})
	assert.Equal(t, "Look at the logs.", answer.Text)
	assert.Equal(t, "rotate", answer.Plan.Would)
	system, prompt := w.model.last()
	assert.NotContains(t, prompt, rotate)
	assert.Equal(t, "S", system)
	assert.Equal(t, 1, w.model.calls())
}

func TestTwoAgentsOnOneStore(t *testing.T) {
	kept := &memstore.Store{}
	teach := loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}}
	now := time.Now
	one, err := loop.New(ctx, loop.Config{Store: kept, Name: "one", Lessons: teach,
		Testing: loop.Testing{Now: now}})
	require.NoError(t, err)
	other, err := loop.New(ctx, loop.Config{Store: kept, Name: "other", Lessons: teach,
		Testing: loop.Testing{Now: now}})
	require.NoError(t, err)
	answer, err := one.Answer(ctx, loop.Event{ID: "e", Text: full})
	require.NoError(t, err)
	require.NoError(t, one.React(ctx, answer.ID, loop.Reaction{Value: -1}))
	assert.ErrorIs(t, other.React(ctx, answer.ID, loop.Reaction{Value: -1}), loop.ErrNoAnswer)
	mine, err := one.Learning().Standing(ctx, "rotate")
	require.NoError(t, err)
	theirs, err := other.Learning().Standing(ctx, "rotate")
	require.NoError(t, err)
	assert.Less(t, mine.Confidence, theirs.Confidence)
}

func TestTeachingIsIdempotent(t *testing.T) {
	w := newWorld(t, loop.Config{})
	lessons := loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)},
		Notes: []loop.Note{{ID: "n", Topic: "the disk is full", Text: "Disks are in room 3."}}}
	taught, err := w.Teach(ctx, lessons)
	require.NoError(t, err)
	assert.Equal(t, loop.Taught{New: 2}, taught)
	other := w.again()
	_, err = other.Prepare(ctx, loop.Event{Text: full}) // has them in memory
	require.NoError(t, err)
	taught, err = w.Teach(ctx, lessons)
	require.NoError(t, err)
	assert.Equal(t, loop.Taught{}, taught)

	lessons.Heuristics[0].Action, lessons.Notes[0].Text = "Delete the logs.", "Disks are in room 4."
	answer := w.answer(loop.Event{Text: full})
	require.NoError(t, w.React(ctx, answer.ID, loop.Reaction{Value: 1}))
	taught, err = w.Teach(ctx, lessons)
	require.NoError(t, err)
	assert.Equal(t, loop.Taught{Changed: 2, Restarted: []string{"rotate"}}, taught)
	assert.InDelta(t, 0.8, w.confidence("rotate"), 1e-9, "it begins again")
	changed, err := other.Answer(ctx, loop.Event{Text: full})
	require.NoError(t, err)
	assert.Equal(t, "Delete the logs.", changed.Text, "another process sees it at once")

	for field, bad := range map[string]loop.Lessons{
		"Heuristics[0].ID":        {Heuristics: []learning.Heuristic{{Condition: "c", Action: "a"}}},
		"Heuristics[1].ID":        {Heuristics: []learning.Heuristic{rotating, rotating}},
		"Heuristics[0].Action":    {Heuristics: []learning.Heuristic{{ID: "x", Condition: "c"}}},
		"Heuristics[0].Condition": {Heuristics: []learning.Heuristic{{ID: "x", Action: "c"}}},
		"Heuristics[0].Initial": {Heuristics: []learning.Heuristic{{ID: "x", Action: "c",
			Condition: "c", Initial: 2}}},
		"Notes[0].ID":   {Notes: []loop.Note{{Text: "t"}}},
		"Notes[0].Text": {Notes: []loop.Note{{ID: "x"}}},
		"Arms[0].ID":    {Arms: []loop.Arm{{}}},

		"Arms[0].OutputPrice": {Arms: []loop.Arm{{ID: "x", OutputPrice: -1}}},
	} {
		_, err := w.Teach(ctx, bad)
		assertField(t, field, err)
		_, err = loop.New(ctx, loop.Config{Lessons: bad})
		assertField(t, "Lessons."+field, err)
	}
}

// A changed file is what the agent says: the trust in a text is not that in another one, and what
// left the file is silent.
func TestALessonThatChangedEarnsItsTrustAnew(t *testing.T) {
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{rotating},
		Notes:      []loop.Note{{ID: "n", Topic: "the disk is full", Text: "Disks are in room 3."}},
	}})
	require.NoError(t, second(w.Learning().Put(ctx,
		learning.Heuristic{ID: "own", Condition: "the mail is late", Action: "Wait."})))
	other := w.again()
	for i := range 30 {
		require.NoError(t, second(w.Learning().Judge(ctx, learning.Judgement{HeuristicID: "rotate",
			EventID: fmt.Sprint("past ", i), Person: fmt.Sprint("p", i), Value: 1, Weight: 1.25})))
	}
	answer := w.answer(loop.Event{Text: full})
	require.Equal(t, rotate, answer.Text)
	account, err := w.Explain(ctx, answer.ID)
	require.NoError(t, err)
	assert.Contains(t, account.String(), "after 1 answer: 0 ended well")
	trust := w.confidence("rotate")

	lessons := loop.Lessons{Heuristics: []learning.Heuristic{rotating}}
	lessons.Heuristics[0].Domain = "alerts"
	taught, err := w.Teach(ctx, lessons)
	require.NoError(t, err)
	assert.Equal(t, loop.Taught{Changed: 1, Missing: []string{"note n"}}, taught)
	assert.InDelta(t, trust, w.confidence("rotate"), 1e-9, "it says the same")
	assert.NotContains(t, account.String(), "its text has changed")
	w.clock.Advance(time.Second)
	lessons.Heuristics[0].Domain, lessons.Heuristics[0].Action = "", "Run rm -rf on the whole tree."
	taught, err = w.Teach(ctx, lessons)
	require.NoError(t, err)
	assert.Equal(t, loop.Taught{Changed: 1, Restarted: []string{"rotate"},
		Missing: []string{"note n"}}, taught)
	assert.InDelta(t, 0.3, w.confidence("rotate"), 1e-9)
	account, err = w.Explain(ctx, answer.ID)
	require.NoError(t, err)
	assert.Contains(t, account.String(), "its text has changed since")
	w.clock.Advance(time.Second)
	require.NoError(t, w.React(ctx, answer.ID, loop.Reaction{Person: "ann", Value: 1}))
	assert.InDelta(t, 0.3, w.confidence("rotate"), 1e-9, "a thumb for the old text")
	for _, agent := range []*loop.Agent{w.Agent, other} {
		plan, err := agent.Prepare(ctx, loop.Event{Text: full})
		require.NoError(t, err)
		assert.False(t, plan.Ready)
		assert.Len(t, plan.Notes, 1)
	}

	taught, err = w.Teach(ctx, loop.Lessons{Only: true})
	require.NoError(t, err)
	assert.Empty(t, taught.Missing)
	assert.Equal(t, []string{"heuristic rotate", "note n"}, taught.Removed)
	for _, agent := range []*loop.Agent{w.Agent, other} {
		plan, err := agent.Prepare(ctx, loop.Event{Text: full})
		require.NoError(t, err)
		assert.Empty(t, plan.Candidates)
		assert.Empty(t, plan.Notes)
		plan, err = agent.Prepare(ctx, loop.Event{Text: "The mail is late"})
		require.NoError(t, err)
		assert.Len(t, plan.Candidates, 1, "it was no lesson")
	}
	require.NoError(t, w.React(ctx, answer.ID, loop.Reaction{Person: "bob", Value: 1}))
	taught, err = w.Teach(ctx, loop.Lessons{Heuristics: []learning.Heuristic{rotating}, Only: true})
	require.NoError(t, err)
	assert.Equal(t, loop.Taught{New: 1}, taught)
	assert.InDelta(t, trust, w.confidence("rotate"), 1e-9, "it says what it said at first")
}

// Two checkouts of a file are taught in turns: each wording keeps the trust that it has earned.
func TestTwoCheckoutsOfTheLessons(t *testing.T) {
	w := newWorld(t, loop.Config{})
	old, newer := rotating, rotating
	newer.Action = "Move its logs to the archive."
	earned := make(map[string]float64)
	for i, h := range []learning.Heuristic{old, newer, old, newer} {
		taught, err := w.Teach(ctx, loop.Lessons{Heuristics: []learning.Heuristic{h}})
		require.NoError(t, err)
		assert.Equal(t, i == 1, len(taught.Restarted) == 1, "only the new wording begins again")
		before, known := earned[h.Action]
		assert.InDelta(t, cmp.Or(before, 0.3), w.confidence("rotate"), 1e-9)
		if !known {
			require.NoError(t, second(w.Learning().Judge(ctx, learning.Judgement{HeuristicID: "rotate",
				EventID: fmt.Sprint("past ", i), Person: "ann", Value: 1, Weight: float64(i + 1)})))
		}
		earned[h.Action] = w.confidence("rotate")
	}
	assert.NotEqual(t, earned[old.Action], earned[newer.Action])
}

// Processes that start with the same new lessons at the same moment all start.
func TestProcessesTeachTheSameAtOnce(t *testing.T) {
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{Heuristics: []learning.Heuristic{rotating}}})
	other := w.again()
	changed := rotating
	changed.Action = "Move its logs to the archive."
	var all sync.WaitGroup
	for _, agent := range []*loop.Agent{w.Agent, other, w.again(), w.again()} {
		all.Go(func() {
			_, err := agent.Teach(ctx, loop.Lessons{Heuristics: []learning.Heuristic{changed}})
			assert.NoError(t, err)
		})
	}
	all.Wait()
	assert.InDelta(t, 0.3, w.confidence("rotate"), 1e-9)
	require.NoError(t, second(w.Teach(ctx, loop.Lessons{
		Notes: []loop.Note{{ID: "n", Text: "Room 3."}}})))
	for _, agent := range []*loop.Agent{w.Agent, other} {
		all.Go(func() { assert.NoError(t, second(agent.Teach(ctx, loop.Lessons{Only: true}))) })
	}
	all.Wait()
}

func TestNotesAreUsedAsTheArmSays(t *testing.T) {
	var asked []loop.Note
	brief := func(_ context.Context, e loop.Event, notes []loop.Note) (string, error) {
		asked = notes
		return "A colleague says: room 3. It is about " + e.Domain, nil
	}
	note := loop.Note{ID: "n", Category: "places", Topic: "the disk is full",
		Text: "Disks are in room 3."}
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{Notes: []loop.Note{note},
		Arms: []loop.Arm{{ID: "ask", Brief: brief, ForNotes: true}}}})
	answer := w.answer(loop.Event{Text: full, Domain: "alerts"})
	system, _ := w.model.last()
	assert.Contains(t, system, "A colleague says: room 3. It is about alerts")
	assert.Equal(t, []loop.Note{note}, asked)
	require.NotNil(t, answer.Plan.Choice)
	assert.Equal(t, "n", answer.Plan.Choice.Item)
	assert.Equal(t, "places", answer.Plan.Choice.Category)
	assert.Nil(t, w.answer(loop.Event{Text: "Hello!"}).Plan.Choice, "no note fits")

	w = newWorld(t, loop.Config{Lessons: loop.Lessons{Notes: []loop.Note{note}}})
	w.answer(loop.Event{Text: full})
	system, _ = w.model.last()
	assert.Contains(t, system, "Disks are in room 3.")
}

func TestABudgetLeavesOutWhatHasNoRoom(t *testing.T) {
	w := newWorld(t, loop.Config{
		Budget: loop.WithRoom(loop.Budget{}, 20),
		Lessons: loop.Lessons{Notes: []loop.Note{{ID: "n", Topic: "the disk is full",
			Text: "Disks are in room 3."}}},
	})
	plan, err := w.Prepare(ctx, loop.Event{Text: full})
	require.NoError(t, err)
	assert.Empty(t, plan.System)
	assert.Equal(t, []loop.LeftOut{{What: "notes", Why: "characters"}}, plan.LeftOut)
	assert.Empty(t, plan.Notes)
}

func TestTheConversationIsInThePrompt(t *testing.T) {
	w := newWorld(t, loop.Config{})
	w.answer(loop.Event{Text: "And now?", History: []loop.Turn{{Role: "user", Text: "It is down."},
		{Role: "assistant", Text: "Restart it."}}})
	_, prompt := w.model.last()
	assert.Contains(t, prompt, "user: It is down.\nassistant: Restart it.\n")
}

// An arm knows of each answer what holds at the end, and nothing of what was replaced.
func TestWhatIsSaidReplacesWhatWasSeen(t *testing.T) {
	reward := func(x float64) *float64 { return &x }
	mean := func(share ...func(w *world, id string) error) float64 {
		w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}})
		answer := w.answer(loop.Event{Text: "Why?", Domain: "d", Person: "ann"})
		for _, share := range share {
			w.clock.Advance(time.Minute)
			require.NoError(t, share(w, answer.ID))
		}
		if d := distribution(t, w.Strategy(), "d"); d.Outcomes > 0 {
			return d.Arms[0].Mean
		}
		return 0.5
	}
	react := func(value float64) func(w *world, id string) error {
		return func(w *world, id string) error {
			return w.React(ctx, id,
				loop.Reaction{Person: "ann", Value: value})
		}
	}
	silence := func(w *world, _ string) error { return w.Sweep(ctx, time.Time{}) }
	undo := func(w *world, id string) error { return w.Undo(ctx, id, "ann") }
	outcome := func(w *world, id string) error {
		return w.Outcome(ctx, id,
			loop.Outcome{Reward: reward(-0.5)})
	}

	assert.InDelta(t, 0.5, mean(react(1), react(0)), 1e-9, "withdrawn")
	assert.InDelta(t, mean(react(-1)), mean(silence, react(-1)), 1e-9)
	assert.InDelta(t, mean(react(-1)), mean(react(1), react(-1)), 1e-9)
	assert.InDelta(t, mean(outcome), mean(silence, outcome), 1e-9)
	assert.InDelta(t, mean(react(0.25)), mean(outcome, react(1)), 1e-9, "both count")
	assert.InDelta(t, mean(undo), mean(react(1), undo), 1e-9)
	assert.InDelta(t, mean(react(1)), mean(react(1), silence), 1e-9)
	assert.Less(t, mean(undo), mean(outcome))
	assert.Less(t, mean(silence), mean(react(1)))
}

const written = `{"condition": "the mail queue of a server is stuck and nobody knows why it is", "action": {"type": "suggest", "message": "Look at the logs of the mail server first, and then restart the queue by hand, one after the other."}}`

// adviser answers with an advice, and writes the heuristic that praise makes of the advice.
var adviser = decision.LLMFunc(func(
	_ context.Context, r decision.LLMRequest,
) (decision.LLMResponse, error) {
	if r.JSON {
		return decision.LLMResponse{Text: written}, nil
	}
	return decision.LLMResponse{
		Text: "Look at the logs of the mail server first, and then restart the queue by hand, one " +
			"after the other."}, nil
})

// Praise of the model's answer makes a heuristic of it; or goes to the one that says the same,
// unless the prompt had shown that.
func TestPraiseTeaches(t *testing.T) {
	never, always := 1., 0.
	event := loop.Event{Text: "The mail queue of the server is stuck again.", Domain: "mail",
		Person: "ann"}
	w := newWorld(t, loop.Config{Model: adviser, Tuning: loop.Tuning{Extract: []string{"mail"},
		Decision: decision.Config{Withhold: &never}}})
	count := func(w *world) (ids []string) {
		for h, err := range w.Learning().Heuristics(ctx) {
			require.NoError(t, err)
			ids = append(ids, h.ID)
		}
		return ids
	}
	other := event
	other.Domain = "news"
	require.NoError(t, w.React(ctx, w.answer(other).ID, loop.Reaction{Person: "ann", Value: 1}))
	require.Empty(t, count(w), "it is another domain")
	first := w.answer(event)
	for range 2 {
		require.NoError(t, w.React(ctx, first.ID, loop.Reaction{Person: "ann", Value: 1, At: start}))
		require.Len(t, count(w), 1)
	}
	learned := count(w)[0]
	before := w.confidence(learned)
	late := w.answer(loop.Event{Text: "The printer on the third floor is out of paper.",
		Domain: "mail", Person: "ann"}).ID
	require.NoError(t, w.React(ctx, late, loop.Reaction{Person: "ann", Value: -1,
		At: start.Add(time.Second)}))
	require.NoError(t, w.React(ctx, late, loop.Reaction{Person: "ann", Value: 1, At: start}))
	require.Len(t, count(w), 1, "praise that comes after a later complaint teaches nothing")
	require.InDelta(t, before, w.confidence(learned), 1e-9)
	second := w.answer(event)
	require.NoError(t, w.React(ctx, second.ID, loop.Reaction{Person: "ann", Value: 1}))
	require.Len(t, count(w), 1, "nothing is learned twice")
	assert.Greater(t, w.confidence(learned), before+0.1)
	w.clock.Advance(time.Second)
	require.NoError(t, w.React(ctx, second.ID, loop.Reaction{Person: "ann", Value: 0}))
	assert.InDelta(t, before, w.confidence(learned), 1e-9,
		"praise that is withdrawn is withdrawn there too")

	w = newWorld(t, loop.Config{Model: adviser, Tuning: loop.Tuning{Extract: []string{"*"},
		Decision: decision.Config{Withhold: &always}}})
	require.NoError(t, w.React(ctx, w.answer(event).ID, loop.Reaction{Person: "ann", Value: 1}))
	learned, before = count(w)[0], w.confidence(count(w)[0])
	second = w.answer(event)
	require.Equal(t, []string{learned}, second.Result.ShownIDs)
	require.NoError(t, w.React(ctx, second.ID, loop.Reaction{Person: "ann", Value: 1}))
	assert.InDelta(t, before, w.confidence(learned), 1e-9,
		"a text that heed put into the prompt is no evidence")
}

// Praise of one answer by several people is written as one heuristic, by one call of the model. An
// answer to a message that took another answer back is no advice.
func TestPraiseTeachesOnce(t *testing.T) {
	never, asked := 1., 0
	w := newWorld(t, loop.Config{Tuning: loop.Tuning{Extract: []string{"*"},
		Decision: decision.Config{Withhold: &never}},
		Model: decision.LLMFunc(func(ctx context.Context, r decision.LLMRequest) (
			decision.LLMResponse, error) {
			if r.JSON {
				asked++
			}
			return adviser.Generate(ctx, r)
		}),
	})
	event := loop.Event{Text: "The mail queue of the server is stuck again.", Person: "ann",
		Session: "s"}
	first := w.answer(event)
	for _, person := range []string{"ann", "bob", "cid"} {
		require.NoError(t, w.React(ctx, first.ID, loop.Reaction{Person: person, Value: 1}))
	}
	assert.Equal(t, 1, asked)
	w.clock.Advance(time.Second)
	event.Text = "Undo that"
	undo := w.answer(event)
	require.Equal(t, []string{first.ID}, undo.Plan.Undone)
	require.NoError(t, w.React(ctx, undo.ID, loop.Reaction{Person: "ann", Value: 1}))
	assert.Equal(t, 1, asked)
}

// Praise still counts for an answer if its heuristic was deleted.
func TestPraiseOfADeletedHeuristic(t *testing.T) {
	never := 1.
	w := newWorld(t, loop.Config{Model: adviser, Tuning: loop.Tuning{Extract: []string{"*"},
		Decision: decision.Config{Withhold: &never}}})
	event := loop.Event{Text: "The mail queue of the server is stuck again.", Person: "ann"}
	var last string
	for range 2 {
		last = w.answer(event).ID
		require.NoError(t, w.React(ctx, last, loop.Reaction{Person: "ann", Value: 1}))
	}
	for h, err := range w.Learning().Heuristics(ctx) {
		require.NoError(t, err)
		require.NoError(t, w.Learning().Delete(ctx, h.ID))
	}
	w.clock.Advance(time.Second)
	require.NoError(t, w.React(ctx, last, loop.Reaction{Person: "ann", Value: -1}))
	account, err := w.Explain(ctx, last)
	require.NoError(t, err)
	assert.Negative(t, account.Worth)
}

// TestPraiseThatAgreesIsCommittedAtOnce for the answer and for the heuristic with the same advice,
// whichever call of the store fails.
func TestPraiseThatAgreesIsCommittedAtOnce(t *testing.T) {
	st := &storetest.Failing{Store: new(memstore.Store)}
	never := 1.
	w := newWorld(t, loop.Config{
		Model: adviser, Store: st, RequireStore: true, Tuning: loop.Tuning{
			Extract: []string{"*"}, Decision: decision.Config{Withhold: &never},
		},
	})
	event := loop.Event{Text: "The mail queue of the server is stuck again.", Person: "ann"}
	var learned string
	for range 2 {
		require.NoError(t, w.React(ctx, w.answer(event).ID, loop.Reaction{Person: "ann", Value: 1}))
	}
	for h, err := range w.Learning().Heuristics(ctx) {
		require.NoError(t, err)
		learned = h.ID
	}
	id := w.answer(event).ID
	require.NoError(t, w.React(ctx, id, loop.Reaction{Person: "ann", Value: 1}))
	praised := w.confidence(learned)
	for at := 1; ; at++ {
		w.clock.Advance(time.Minute)
		agent := w.again()
		st.Fail(at, false)
		err := agent.React(ctx, id, loop.Reaction{Person: "ann", Value: -1})
		failed := st.Failed()
		st.Fail(0, false)
		if !failed {
			require.NoError(t, err)
			assert.Less(t, w.confidence(learned), praised, "the praise is withdrawn")
			break
		}
		require.ErrorIs(t, err, storetest.ErrFailed, "call %d", at)
		require.InDelta(t, praised, w.confidence(learned), 1e-9, "call %d", at)
	}
	damage(t, st, "learning.heuristic", learned)
	w.clock.Advance(time.Minute)
	require.ErrorIs(t, w.again().React(ctx, id, loop.Reaction{Person: "ann", Value: 1}),
		heed.ErrDamaged, "praise that can't be given counts for neither")
}

// A heuristic that the model was told in any other way gains nothing either, neither by agreement
// nor by praise.
func TestEchoesTeachNothing(t *testing.T) {
	const said = "First look at the logs of the mail server, then restart the queue by hand."
	writer := decision.LLMFunc(func(_ context.Context, r decision.LLMRequest) (decision.LLMResponse,
		error) {
		if r.JSON {
			return decision.LLMResponse{Text: fmt.Sprintf(
				`{"condition": "The mail queue of the server is stuck once again today.", "action": {"type": "suggest", "message": %q}}`, said)}, nil
		}
		return decision.LLMResponse{Text: said}, nil
	})
	known := learning.Heuristic{ID: "known", Domain: "mail",
		Condition: "The mail queue of the server is stuck once again today.", Action: said}
	event := loop.Event{Text: known.Condition, Domain: "mail", Person: "ann"}
	for name, change := range map[string]func(*loop.Config, *loop.Event){
		"nothing": func(*loop.Config, *loop.Event) {},
		"an arm": func(c *loop.Config, _ *loop.Event) {
			c.Arms = []loop.Arm{{ID: "only",
				System: "Be brief. " + said}}
		},
		"an arm in other words": func(c *loop.Config, _ *loop.Event) {
			c.Arms = []loop.Arm{{ID: "only",
				System: "Be brief. Look at the logs of the mail server first, then restart the queue " +
					"by hand."}}
		},
		"the event": func(_ *loop.Config, e *loop.Event) { e.Text += " " + said },
		"the conversation": func(_ *loop.Config, e *loop.Event) {
			e.History = []loop.Turn{{Role: "user", Text: "Last time I was told: " + said}}
		},
		"the same in more words": func(_ *loop.Config, e *loop.Event) {
			e.History = []loop.Turn{{Role: "user",
				Text: "Yes. First look at all the logs of the mail server, then restart the queue " +
					"by hand!"}}
		},
	} {
		cfg, e := loop.Config{Model: writer, Tuning: loop.Tuning{Extract: []string{"mail"}},
			Lessons: loop.Lessons{Heuristics: []learning.Heuristic{known}}}, event
		change(&cfg, &e)
		w := newWorld(t, cfg)
		before := w.confidence("known")
		require.NoError(t, w.React(ctx, w.answer(e).ID, loop.Reaction{Person: "ann", Value: 1}))
		if name == "nothing" {
			assert.Greater(t, w.confidence("known"), before+0.1,
				"agreement, and praise that the extraction gives to it")
		} else {
			assert.Equal(t, before, w.confidence("known"), name)
		}
	}
}

// A heuristic that the prompt withheld earns trust by what becomes of the model's answer.
func TestAgreementEarnsTrust(t *testing.T) {
	always := 1.
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{Heuristics: []learning.Heuristic{rotating}},
		Tuning: loop.Tuning{Decision: decision.Config{Withhold: &always}}})
	w.model.says = rotate
	answer := w.answer(loop.Event{Text: full, Person: "ann"})
	require.Len(t, answer.Result.Compared, 1)
	before := w.confidence("rotate")
	require.NoError(t, w.React(ctx, answer.ID, loop.Reaction{Person: "ann", Value: 1}))
	assert.Greater(t, w.confidence("rotate"), before)
	account, err := w.Explain(ctx, answer.ID)
	require.NoError(t, err)
	assert.Contains(t, account.String(),
		"the prompt withheld the heuristic rotate, which says the same")
}

// A signal in a message reaches the arm, though the process ended before it could tell the arm.
func TestACrashBetweenHearingAndTheArm(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}})
	answer := w.answer(loop.Event{Text: "Why?", Domain: "d", Session: "s", Person: "ann"})
	w.clock.Advance(time.Second)
	// and here it ended
	changes, err := w.Learning().Hear(ctx, learning.Message{Session: "s", Person: "ann",
		Text: "undo that"})
	require.NoError(t, err)
	require.Len(t, changes, 1)
	w.clock.Advance(time.Minute)
	require.NoError(t, w.again().Sweep(ctx, time.Time{}))
	assert.Less(t, w.mean("d", "only"), 0.5)
	account, err := w.Explain(ctx, answer.ID)
	require.NoError(t, err)
	assert.Equal(t, "undo", account.Channel)
}

// TestAnUndoAfterSilence takes the place of the silence that was counted, for the heuristic and for
// the arm.
func TestAnUndoAfterSilence(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "brief"}, {ID: "long"}}})
	answer := w.answer(loop.Event{Session: "s", Person: "ann", Text: "one"})
	w.clock.Advance(time.Minute)
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	account, err := w.Explain(ctx, answer.ID)
	require.NoError(t, err)
	require.Equal(t, "silence", account.Channel)
	w.clock.Advance(5 * time.Minute)
	changes, err := w.Hear(ctx, learning.Message{Session: "s", Person: "ann", Text: "undo that"})
	require.NoError(t, err)
	assert.Len(t, changes, 1)
	account, err = w.Explain(ctx, answer.ID)
	require.NoError(t, err)
	assert.Equal(t, "undo", account.Channel)
}

// TestTheAnswerToAnUndo is the model's, and earns nothing: the next undo means the answer before.
func TestTheAnswerToAnUndo(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "brief"}, {ID: "long"}}})
	var ids []string
	for _, text := range []string{"one", "two"} {
		ids = append(ids, w.answer(loop.Event{Session: "s", Person: "ann", Text: text}).ID)
		w.clock.Advance(time.Second)
	}
	for _, want := range []string{ids[1], ids[0]} {
		answer := w.answer(loop.Event{Session: "s", Person: "ann", Text: "undo that"})
		assert.NotEmpty(t, answer.Text)
		assert.Equal(t, []string{want}, answer.Plan.Undone)
		w.clock.Advance(time.Minute)
		require.NoError(t, w.Sweep(ctx, time.Time{}))
		account, err := w.Explain(ctx, answer.ID)
		require.NoError(t, err)
		assert.False(t, account.Known, "silence counts for it nowhere")
	}
}
