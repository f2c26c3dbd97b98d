package learning_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// step1 runs a step about one answer, as a caller that keeps the records does.
func (f *fixture) step1(event string, step func(tx *store.Tx, a *answer.Answer) error) error {
	view := f.Steps().Answers()
	return store.Do(ctx, f.store, func(tx *store.Tx) error {
		row, err := view.In(tx, store.IDOf(event))
		if err != nil {
			return err
		}
		if row.Revision == 0 {
			row.Value = answer.Answer{ID: event, At: f.clock.Now()}
		}
		if err := step(tx, &row.Value); err != nil {
			return err
		}
		view.Put(tx, row.Value, row.Revision)
		return nil
	})
}

// evidenceOf is what a heuristic and the agreeing one have learned.
func (f *fixture) evidenceOf(ids ...string) string {
	f.Helper()
	var all string
	for _, id := range ids {
		s := f.standing(id)
		all += fmt.Sprintf("%s: %v, %.9f, %d right, %d wrong\n", id, f.counted(id), s.Confidence,
			s.Successes, s.Failures)
	}
	return all
}

// An act is a statement about an answer, made at a moment of its own.
type act struct {
	name string
	do   func(f *fixture)
}

func judging(name, heuristic, person string, value float64, second int) act {
	return act{name, func(f *fixture) {
		f.say(learning.Judgement{
			HeuristicID: heuristic, EventID: "e", Person: person, Value: value,
			At: start.Add(time.Duration(second) * time.Second),
		})
	}}
}

// TestOrders makes statements in all orders, each once and then all of them again. What is in the
// evidence then does not
// depend on the order.
func TestOrders(t *testing.T) {
	undo := act{"undo", func(f *fixture) {
		_, err := f.Undo(ctx, learning.Undo{EventID: "e", Person: "ann",
			At: start.Add(20 * time.Second)})
		require.NoError(t, err)
	}}
	next := act{"next", func(f *fixture) {
		f.hear(learning.Message{ID: "next", Stream: "s", Person: "ann", Text: "next",
			At: start.Add(10 * time.Second)})
	}}
	silence := act{"silence", func(f *fixture) { f.sweep() }}
	for name, acts := range map[string][]act{
		"praise and complaint of one person": {judging("+", "h", "ann", 1, 1), judging("-", "h",
			"ann", -1, 2), judging("0", "h", "ann", 0, 3)},
		"a withdrawal, then another judgement": {
			judging("+", "h", "ann", 1, 1), judging("0", "h", "ann", 0, 2), judging("-", "h", "ann",
				-1, 3), silence,
		},
		"two people and silence": {judging("+ann", "h", "ann", 1, 1), judging("-bob", "h", "bob",
			-1, 1), judging("0ann", "h", "ann", 0, 2), silence},
		"an ignore and praise":    {next, judging("+", "h", "bob", 1, 11), undo},
		"an undo and a complaint": {undo, judging("-", "h", "bob", -1, 11), silence, next},
		"of the model's answer": {judging("+ann", "", "ann", 1, 1), judging("-bob", "", "bob",
			-1, 2), judging("0bob", "", "bob", 0, 3), silence},
		"an undo of the model's": {judging("+bob", "", "bob", 1, 2), undo, silence},
		"the model's, late praise": {judging("-", "", "ann", -1, 1), judging("+", "", "ann", 1, 2),
			next},
	} {
		t.Run(name, func(t *testing.T) {
			var want, first string
			for order := range permutations(len(acts)) {
				f := newFixture(t, impatient, "h", "yes", "no").strong()
				require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: "e",
					Stream: "s", Person: "ann", Session: "room"}))
				f.answerOfModel("e")
				f.clock.Advance(40 * time.Second)
				names := ""
				for range 2 {
					for _, i := range order {
						names += acts[i].name + " "
						acts[i].do(f)
					}
				}
				if got := f.evidenceOf("h", "yes", "no"); want == "" {
					want, first = sorted(got), names
				} else {
					assert.Equal(t, want, sorted(got), "%s and %s", names, first)
				}
			}
		})
	}
}

// sorted leaves the order of observations out of account.
func sorted(text string) string {
	all := []byte(text)
	slices.Sort(all)
	return string(all)
}

// permutations yields all orders of the numbers below n.
func permutations(n int) func(yield func([]int) bool) {
	return func(yield func([]int) bool) {
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		var from func(i int) bool
		from = func(i int) bool {
			if i == n {
				return yield(order)
			}
			for j := i; j < n; j++ {
				order[i], order[j] = order[j], order[i]
				if !from(i + 1) {
					return false
				}
				order[i], order[j] = order[j], order[i]
			}
			return true
		}
		from(0)
	}
}

// A call is one call of a module about the answer to e: by a method, and as a part of a step.
type call struct {
	method func(f *fixture) error
	part   func(f *fixture, tx *store.Tx, a *answer.Answer) error
}

// judged is a call by which bob judges the heuristic h.
func judged(value float64, second int) call {
	j := learning.Judgement{
		HeuristicID: "h", EventID: "e", Person: "bob", Value: value,
		At: start.Add(time.Duration(second) * time.Second),
	}
	return call{
		func(f *fixture) error { _, err := f.Judge(ctx, j); return err },
		func(f *fixture, tx *store.Tx, a *answer.Answer) error {
			_, err := f.JudgeIn(tx, a, j.Statement())
			return err
		},
	}
}

var (
	calls = []call{
		judged(1, 1), judged(-1, 2),
		{
			func(f *fixture) error { return f.Sweep(ctx, time.Time{}) },
			func(f *fixture, tx *store.Tx, a *answer.Answer) (err error) {
				_, err = f.Steps().TimeoutIn(tx, a, f.clock.Now())
				return err
			},
		},
		judged(0, 3),
		{
			func(f *fixture) error {
				_, err := f.Undo(ctx, learning.Undo{EventID: "e", Person: "ann"})
				return err
			},
			func(f *fixture, tx *store.Tx, a *answer.Answer) (err error) {
				_, err = f.UndoIn(tx, a, learning.Undo{Person: "ann"})
				return err
			},
		},
	}
)

// TestStepsAreTheMethods makes the same calls by methods, by steps of a commit each, and all in one
// commit.
func TestStepsAreTheMethods(t *testing.T) {
	for from := range calls {
		for to := from; to <= len(calls); to++ {
			var all [3]*fixture
			for i := range all {
				all[i] = newFixture(t, learning.Config{}, "h")
				fire := learning.Fire{HeuristicID: "h", EventID: "e", Person: "ann",
					Session: "room"}
				require.NoError(t, all[i].Fire(ctx, fire))
				all[i].clock.Advance(time.Minute)
			}
			methods, apart, together := all[0], all[1], all[2]
			for _, c := range calls[from:to] {
				require.NoError(t, c.method(methods))
				require.NoError(t, apart.step1("e", func(tx *store.Tx, a *answer.Answer) error {
					return c.part(apart, tx, a)
				}))
			}
			require.NoError(t, together.step1("e", func(tx *store.Tx,
				a *answer.Answer) (err error) {
				for _, c := range calls[from:to] {
					err = errors.Join(err, c.part(together, tx, a))
				}
				return err
			}))
			want := methods.evidenceOf("h")
			assert.Equal(t, want, apart.evidenceOf("h"), "calls %d to %d", from, to)
			assert.Equal(t, want, together.evidenceOf("h"), "calls %d to %d in one commit", from,
				to)
		}
	}
}

// A step that knows what it will read takes one read and one commit.
func TestAStepIsOneReadAndOneCommit(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	f.fire("h", "e", "s")
	counting := &storetest.Failing{Store: f.store.Store}
	f.store.Store = counting
	view := f.Steps().Answers()
	require.NoError(t, store.Do(ctx, f.store, func(tx *store.Tx) error {
		tx.Want(f.Steps().Wants("h", ""), store.Wants{Refs: []store.Ref{view.Ref(store.IDOf("e"))}})
		row, err := view.In(tx, store.IDOf("e"))
		if err != nil {
			return err
		}
		if _, err := f.Steps().ConfidencesIn(tx, "h"); err != nil {
			return err
		}
		if _, err := f.JudgeIn(tx, &row.Value, answer.Statement{By: "ann", Of: "h",
			Value: 1}); err != nil {
			return err
		}
		view.Put(tx, row.Value, row.Revision)
		return nil
	}))
	assert.Equal(t, []int{1, 1, 2}, []int{counting.Calls("Read"), counting.Calls("Commit"),
		counting.Calls()})
}

// TestWhatAMessageWants names nothing for a message that can't change an answer.
func TestWhatAMessageWants(t *testing.T) {
	f := newFixture(t, learning.Config{Expectations: []learning.Expectation{{Trigger: "oven",
		Outcome: "Off"}}}, "h")
	// the numbers of queries without a stream, and with one
	for text, want := range map[string][2]int{
		"hello": {0, 1}, "it is off": {1, 2}, "undo that": {3, 4},
		"the oven is off, undo that!": {4, 5},
	} {
		h, err := f.Steps().Hearing(learning.Message{ID: "m", Session: "room", Person: "ann",
			Text: text})
		require.NoError(t, err)
		assert.Len(t, h.Wants().Queries, want[0], text)
		h, err = f.Steps().Hearing(learning.Message{ID: "m", Session: "room", Person: "ann", Text: text,
			Stream: "s"})
		require.NoError(t, err)
		assert.Len(t, h.Wants().Queries, want[1], text)
	}
	h, err := f.Steps().Hearing(learning.Message{Text: "undo that"})
	require.NoError(t, err)
	assert.True(t, h.Command())
	assert.Empty(t, h.Wants().Queries, "from nobody and nowhere")
}

// TestAHearingReturnsItsAnswers lets a step change the answers that a message has changed, and
// finds a change of the step.
func TestAHearingReturnsItsAnswers(t *testing.T) {
	f := newFixture(t, impatient, "h")
	f.fire("h", "e", "s")
	view := f.Steps().Answers()
	h, err := f.Steps().Hearing(learning.Message{Session: "room", Text: "undo that"})
	require.NoError(t, err)
	var changes []*learning.Change
	require.NoError(t, store.Do(ctx, f.store, func(tx *store.Tx) error {
		tx.Want(h.Wants())
		var rows []store.Row[answer.Answer]
		if rows, changes, err = h.In(tx); err != nil {
			return err
		}
		require.Len(t, rows, 1)
		rows[0].Value.Domain = "of the step"
		view.Put(tx, rows[0].Value, rows[0].Revision)
		again, more, err := h.In(tx)
		assert.Empty(t, more, "the step has taken it back")
		assert.Empty(t, again)
		return err
	}))
	require.Len(t, changes, 1)
	assert.Negative(t, changes[0].Delta)
	assert.Equal(t, "of the step", f.answer("e").Domain)
	assert.Equal(t, map[string][]float64{"implicit_undo": {-1}}, f.counted("h"))
}

// Of two modules that keep their answers in one kind, as another package names it, each finds the
// other's.
func TestAnswersOfAnotherPackage(t *testing.T) {
	f := newFixture(t, learning.Config{Answers: "loop.answer"}, "h")
	assert.Equal(t, "loop.answer", f.Steps().Answers().Name)
	other := f.another(learning.Config{Name: "second", Answers: "loop.answer"})
	other.put(learning.Heuristic{ID: "x", Initial: 0.5})
	f.fire("h", "e", "s")
	other.fire("x", "e", "s")
	assert.Len(t, f.answer("e").Fires, 2)
}

// A hundred people fill an answer. One more takes the place of the oldest statement of a person
// with several, and of nobody
// who has one.
func TestAFullAnswer(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	f.fire("h", "e", "s")
	say := func(person, channel string) learning.Change {
		f.clock.Advance(time.Second)
		j := thumb("h", "e", true)
		j.Person, j.Channel = person, channel
		return f.say(j)
	}
	say("busy", "a")
	say("busy", "b")
	for i := range 98 {
		say(fmt.Sprint("person ", i), "")
	}
	assert.Len(t, f.counted("h")["user_explicit"], 100)
	assert.NotContains(t, say("late", "").Limits, learning.LimitFull)
	assert.Len(t, f.counted("h")["user_explicit"], 100,
		"the first one of the busy person made room")
	before := f.confidence("h")
	assert.Equal(t, []string{learning.LimitFull}, say("too late", "").Limits)
	assert.Equal(t, before, f.confidence("h"))
}

// A step has the confidences of the heuristics that are there.
func TestConfidencesOfUnknownHeuristics(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	all, err := f.Steps().ConfidencesIn(store.Reading(ctx, f.store), "h", "unknown")
	require.NoError(t, err)
	assert.Equal(t, map[string]float64{"h": f.confidence("h")}, all)
}

// If a heuristic is locked, the judgement that a new one displaces keeps its effect.
func TestALockKeepsWhatMadeRoom(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	f.fire("h", "e", "s")
	say := func(person, channel string) {
		f.clock.Advance(time.Second)
		j := thumb("h", "e", true)
		j.Person, j.Channel = person, channel
		f.say(j)
	}
	say("busy", "a")
	say("busy", "b")
	for i := range 98 {
		say(fmt.Sprint("person ", i), "")
	}
	before := f.raw("learning.heuristic")
	h := f.standing("h").Heuristic
	h.Constraints.Lock = "locked"
	f.put(h)
	say("late", "")
	assert.Equal(t, before, f.raw("learning.heuristic"))
	h = f.standing("h").Heuristic
	h.Constraints.Lock = ""
	f.put(h)
	f.clock.Advance(time.Second)
	f.say(learning.Judgement{HeuristicID: "h", EventID: "e", Person: "late", Value: -1})
	assert.Len(t, f.raw("learning.heuristic"), len(before)+1, "late has taken nothing from busy")
}

// What makes room on an answer is taken back also if it is about another heuristic, unless that is
// locked.
func TestAnotherHeuristicMakesRoom(t *testing.T) {
	for _, lock := range []string{"", "locked"} {
		f := newFixture(t, learning.Config{}, "h", "other")
		say := func(heuristic, person, channel string) {
			f.clock.Advance(time.Second)
			f.say(learning.Judgement{HeuristicID: heuristic, EventID: "e", Person: person, Value: 1,
				Channel: channel})
		}
		say("other", "busy", "a")
		say("other", "busy", "b")
		for i := range 98 {
			say("other", fmt.Sprint("person ", i), "")
		}
		h := f.standing("other").Heuristic
		h.Constraints.Lock = lock
		f.put(h)
		before := f.raw("learning.heuristic")
		late := f.another(learning.Config{})
		if lock == "" {
			late.store.blindAt = 2
			_, err := late.Judge(ctx, thumb("h", "e", true))
			require.ErrorIs(t, err, errDown)
			late.store.blindAt = 0
		}
		late.say(thumb("h", "e", true))
		assert.Len(t, f.answer("e").Statements, 100)
		kept := 1 // what is new
		if lock == "" {
			kept = 0
		}
		assert.Len(t, f.raw("learning.heuristic"), len(before)+kept, lock)
	}
}

// The same end of an answer is counted once.
func TestAnEndIsCountedOnce(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	f.fire("h", "e", "s")
	for i, value := range []float64{1, 0.5} {
		f.clock.Advance(time.Second)
		f.store.commits = nil
		f.say(learning.Judgement{HeuristicID: "h", EventID: "e", Person: "ann", Value: value})
		var ends int
		for _, b := range f.store.commits {
			for _, o := range b.Observations {
				if o.Cell.Name == "ended" {
					ends++
				}
			}
		}
		assert.Equal(t, 1-i, ends)
	}
}

// A change names what holds an implicit signal back.
func TestTheWeightOfAnUndoIsALimit(t *testing.T) {
	f := newFixture(t, learning.Config{Packs: map[string]learning.Constraints{
		"": {FeedbackWeight: 0.5}}}, "h")
	f.fire("h", "e", "s")
	changes := f.event("x", "undo that")
	require.Len(t, changes, 1)
	assert.Contains(t, changes[0].Limits, "weight")
}

// How an answer ended stays as it is while its heuristic is locked.
func TestALockKeepsHowAnAnswerEnded(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	f.fire("h", "e", "s")
	f.say(thumb("h", "e", true))
	before := f.raw("learning.fire")
	h := f.standing("h").Heuristic
	h.Constraints.Lock = "locked"
	f.put(h)
	f.clock.Advance(time.Second)
	f.say(thumb("h", "e", false))
	assert.Equal(t, before, f.raw("learning.fire"))
}

// A lock keeps what was counted. What replaces a judgement while it holds takes the judgement back
// after the lock.
func TestJudgementsWhileLocked(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	say := func(target answer.Target, value float64) learning.Change {
		f.clock.Advance(time.Second)
		j := thumb("h", "e", true)
		j.Target, j.Value = target, value
		return f.say(j)
	}
	say(answer.TargetRule, 1)
	say(answer.TargetResponse, 1)
	require.NoError(t, f.Pin(ctx, learning.Pin{HeuristicID: "h", Actor: "ops",
		Constraints: learning.Constraints{Lock: "locked"}}))
	say("", -1)
	say("", -1)
	assert.Equal(t, map[string][]float64{"user_explicit": {0.8, 0.8}}, f.counted("h"))
	require.Len(t, f.answer("e").Statements, 1)
	assert.Zero(t, f.answer("e").Statements[0].Worth)
	require.NoError(t, f.Pin(ctx, learning.Pin{HeuristicID: "h", Actor: "ops"}))
	say("", -1)
	assert.Equal(t, map[string][]float64{"user_explicit": {-0.8}}, f.counted("h"))
}

// An outcome replaces its source's outcome, and none of another source. One that is withdrawn
// counts nothing.
func TestOutcomesAreJudged(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	report := func(by string, value float64, withdrawn bool) (change *learning.Change) {
		f.clock.Advance(time.Second)
		require.NoError(t, f.step1("e", func(tx *store.Tx, a *answer.Answer) (err error) {
			s := answer.Statement{How: answers.Outcome, By: by, Channel: "outcome", Of: "h",
				Value: value, Withdrawn: withdrawn}
			change, err = f.JudgeIn(tx, a, s)
			return err
		}))
		return change
	}
	assert.InDelta(t, 1.8/2.8, report("ci", 1, false).New, 1e-12)
	report("qa", -1, false)
	assert.InDelta(t, 1.8/3.6, f.confidence("h"), 1e-12)
	report("ci", 1, true)
	assert.InDelta(t, 1/2.8, f.confidence("h"), 1e-12)
	err := f.step1("e", func(tx *store.Tx, a *answer.Answer) error {
		_, err := f.JudgeIn(tx, a, answer.Statement{How: answers.Silence, Of: "h"})
		return err
	})
	assertInputError(t, err, "How")
}

// TestForgottenPeople tells by role what of an answer goes with a person.
func TestForgottenPeople(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h", "yes", "no")
	f.answerOfModel("e") // which ann has asked
	f.fire("h", "e", "s")
	bob := thumb("h", "e", false)
	bob.Person = "bob"
	f.say(bob)
	f.say(thumb("h", "e", true))
	f.clock.Advance(time.Minute)
	f.sweep()
	forget := func(name string) *answer.Answer {
		err := store.Run(ctx, f.store, store.Job{Forget: []string{name}})
		require.NoError(t, err)
		a := f.answer("e")
		assert.NotContains(t, answers.People(a), name)
		return a
	}
	a := forget("bob")
	known := answers.ReceptionOf(a, "h")
	assert.Equal(t, [2]int{1, 0}, [2]int{known.Praise.N, known.Complaint.N})
	assert.Equal(t, "ann", a.Person)
	assert.Equal(t, map[string][]float64{"user_explicit": {0.8}}, f.counted("h"))
	a = forget("ann")
	known = answers.ReceptionOf(a, "h")
	assert.Zero(t, known.Praise.N)
	assert.Len(t, a.Fires, 2)
	assert.Empty(t, f.counted("h"))
	assert.Empty(t, f.counted("yes"), "ann's question made that evidence")
	f.clock.Advance(time.Hour)
	f.sweep()
	assert.Empty(t, f.counted("h"), "silence is not counted again")
	assert.Empty(t, f.counted("yes"))
}

// uncertain is a store that applies a commit and does not know.
type uncertain struct {
	store.Store
	next bool
}

func (s *uncertain) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	receipts, err := s.Store.Commit(ctx, batches...)
	if s.next && err == nil {
		s.next = false
		return nil, heed.ErrOutcomeUnknown
	}
	return receipts, err
}

// A step whose commit took effect without the store's knowing runs again, and counts nothing twice.
func TestAnUnknownOutcome(t *testing.T) {
	message := learning.Message{ID: "m", Session: "room", Stream: "s", Text: "undo that"}
	anonymous := message
	anonymous.ID = ""
	for name, do := range map[string]func(f *fixture) error{
		"a judgement": func(f *fixture) error {
			_, err := f.Judge(ctx, thumb("h", "2",
				true))
			return err
		},
		"an undo": func(f *fixture) error {
			_, err := f.Undo(ctx,
				learning.Undo{EventID: "2"})
			return err
		},
		"a fire": func(f *fixture) error {
			return f.Fire(ctx, learning.Fire{HeuristicID: "h",
				EventID: "new"})
		},
		"a sweep": func(f *fixture) error {
			f.clock.Advance(time.Minute)
			return f.Sweep(ctx,
				time.Time{})
		},
		"a message": func(f *fixture) error { _, err := f.Hear(ctx, message); return err },
		"a signal": func(f *fixture) error {
			s := learning.Signal{HeuristicID: "h", EventID: "2", Channel: "host", Worth: 1}
			_, err := f.Apply(ctx, s, learning.Origin{ID: "1"})
			return err
		},
		"a message without an id": func(f *fixture) error {
			_, err := f.Hear(ctx,
				anonymous)
			return err
		},
	} {
		all := make([]string, 2)
		for i := range all {
			f := newFixture(t, learning.Config{}, "h")
			st := &uncertain{Store: f.store.Store}
			f.store.Store = st
			for event := range 3 {
				f.clock.Advance(time.Second)
				f.fire("h", fmt.Sprint(event), "s")
			}
			st.next = i > 0
			if err := do(f); err != nil {
				assert.ErrorIs(t, err, heed.ErrOutcomeUnknown, name)
				assert.Equal(t, "a message without an id", name)
			}
			assert.False(t, st.next, name)
			all[i] = f.evidenceOf("h")
		}
		assert.Equal(t, all[0], all[1], name)
	}
}

// Two processes judge, undo and sweep the answers of each other at the same time. Nothing is lost.
func TestTwoProcesses(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	second := f.another(learning.Config{})
	const events, people = 4, 8
	for i := range events {
		f.fire("h", fmt.Sprint(i), "")
	}
	f.clock.Advance(time.Minute)
	var wait sync.WaitGroup
	for i, m := range []*fixture{f, second} {
		for p := range people {
			wait.Go(func() {
				for event := range events {
					j := thumb("h", fmt.Sprint(event), p%2 == 0)
					j.Person = fmt.Sprint("person ", i, p)
					_, err := m.Judge(ctx, j)
					assert.NoError(t, err)
				}
			})
		}
		wait.Go(func() { assert.NoError(t, m.Sweep(ctx, time.Time{})) })
	}
	wait.Wait()
	assert.Len(t, f.counted("h")["user_explicit"], 2*events*people)
	for event := range events {
		a := f.answer(fmt.Sprint(event))
		known := answers.ReceptionOf(a, "h")
		assert.Equal(t, [2]int{people, people}, [2]int{known.Praise.N, known.Complaint.N})
	}
}

// A host keeps a record of its own in the commit of a judgement: both are stored, or none.
func ExampleModule_JudgeIn() {
	ctx := context.Background()
	st := &memstore.Store{}
	module, err := learning.New(ctx, learning.Config{Store: st})
	if err != nil {
		panic(err)
	}
	if _, err := module.Put(ctx, learning.Heuristic{ID: "dim the lights"}); err != nil {
		panic(err)
	}
	if err := module.Fire(ctx, learning.Fire{HeuristicID: "dim the lights",
		EventID: "friday"}); err != nil {
		panic(err)
	}
	type ticket struct{ ID, Text string }
	tickets := store.View[ticket]{
		Kind:  store.Kind{Name: "host.ticket"},
		Place: func(t ticket) (string, time.Time, []string) { return t.ID, time.Now(), nil },
	}
	if err := st.Declare(ctx, tickets.Kind); err != nil {
		panic(err)
	}
	answers := module.Steps().Answers()
	id := store.IDOf("friday")
	var change *learning.Change
	err = store.Do(ctx, st, func(tx *store.Tx) error {
		tx.Want(module.Steps().Wants("dim the lights"),
			store.Wants{Refs: []store.Ref{tickets.Ref("1")}})
		row, err := answers.In(tx, id)
		if err != nil {
			return err
		}
		complaint := answer.Statement{By: "ann", Of: "dim the lights", Value: -1}
		if change, err = module.JudgeIn(tx, &row.Value, complaint); err != nil {
			return err
		}
		answers.Put(tx, row.Value, row.Revision)
		tickets.Put(tx, ticket{ID: "1", Text: "the lights are too dark"}, 0)
		return nil
	})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.2f to %.2f\n", change.Old, change.New)
	// Output: 0.30 to 0.21
}

// What an answer of the model is worth for the heuristics that were compared with it is the same
// whether an observer is told of it or not, though only an observer has their confidence read. A
// later statement in the step about one of them has it read.
func TestComparedWithoutAnObserver(t *testing.T) {
	told := 0
	observer := func(_ context.Context, n heed.Notice) {
		if counted, ok := n.(heed.Counted); ok && counted.Before != counted.After {
			told++
		}
	}
	var want string
	for _, cfg := range []learning.Config{{Observer: observer}, {}} {
		f := newFixture(t, cfg, "h", "g", "locked")
		require.NoError(t, f.Pin(ctx, learning.Pin{
			HeuristicID: "locked", Actor: "ops", Constraints: learning.Constraints{Lock: "locked"},
		}))
		f.say(learning.Judgement{HeuristicID: "h", EventID: "before", Person: "ann", Value: 1})
		require.NoError(t, f.Fire(ctx, learning.Fire{
			EventID: "e", Person: "ann", Compared: []answer.Comparison{
				{HeuristicID: "h", Agrees: true, Similarity: 1}, {HeuristicID: "g"},
				{HeuristicID: "locked", Agrees: true}, {HeuristicID: "gone", Agrees: true},
			},
		}))
		var all string
		for i, value := range []float64{1, -1, 0, 0.5} {
			f.clock.Advance(time.Second)
			changes := make([]*learning.Change, 3)
			require.NoError(t, f.step1("e", func(tx *store.Tx, a *answer.Answer) (err error) {
				for n, of := range []string{"", "h", ""} {
					if n > 0 && i == 0 {
						return nil
					}
					s := answer.Statement{By: "bob", Of: of, Value: value, At: f.clock.Now()}
					if n == 2 {
						s.By = "cid"
					}
					if changes[n], err = f.JudgeIn(tx, a, s); err != nil {
						return err
					}
				}
				return nil
			}))
			for _, c := range changes {
				all += fmt.Sprintf("%+v\n", c)
			}
			all += f.evidenceOf("h", "g", "locked")
		}
		if want == "" {
			want = all
			continue
		}
		assert.Equal(t, want, all)
		assert.Positive(t, told)
	}
}

// The host's first step with an answer may be its fire.
func TestAFireNamesItsAnswer(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	var a answer.Answer
	require.NoError(t, store.Do(ctx, f.store, func(tx *store.Tx) error {
		a = answer.Answer{}
		return f.FireIn(tx, &a, learning.Fire{HeuristicID: "h", EventID: "e",
			At: start.Add(-time.Minute)})
	}))
	assert.Equal(t, "e", a.ID)
	assert.Equal(t, start.Add(-time.Minute), a.At)
	assert.Equal(t, a.At, a.Fires[0].Shown)
	err := f.step1("other", func(tx *store.Tx, a *answer.Answer) error {
		return f.FireIn(tx, a, learning.Fire{HeuristicID: "h", EventID: "e"})
	})
	var fault *heed.InputError
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, "EventID", fault.Field)
}

// A message makes one expectation about an event come true, and passes over the event's other
// answer. Both are on the record.
func TestAMessageMeansAnEventInTwoWays(t *testing.T) {
	f := newFixture(t, learning.Config{
		Expectations: []learning.Expectation{{Trigger: "oven", Outcome: "off"}},
	}, "h")
	f.put(learning.Heuristic{ID: "oven", Condition: "the oven is on"})
	f.fire("oven", "e", "s")
	f.fire("h", "e", "s")
	f.event("s", "it is off")
	means := make(map[string]answer.How)
	for _, s := range f.answer("e").Statements {
		means[s.Of] = s.How
	}
	assert.Equal(t, map[string]answer.How{"oven": answers.Expected, "h": answers.Ignored}, means)
}
