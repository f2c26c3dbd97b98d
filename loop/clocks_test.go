package loop_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
)

// wrong returns the agent of a process on the same store, whose clock is ahead.
func (w *world) wrong(ahead time.Duration) *loop.Agent {
	w.t.Helper()
	cfg := w.cfg
	cfg.Testing.Now = func() time.Time { return w.clock.Now().Add(ahead) }
	agent, err := loop.New(ctx, cfg)
	require.NoError(w.t, err)
	return agent
}

// A choice that another process made with a clock that is ahead does not hold for its session, so
// what people make of the next answers counts.
func TestAChoiceOfTheFutureEndsWithItsAnswer(t *testing.T) {
	for _, ahead := range []time.Duration{10 * time.Minute, time.Hour, 30 * 24 * time.Hour} {
		w := newWorld(t, loop.Config{Arms: twoArms})
		wrong := w.wrong(ahead)
		_, err := wrong.Answer(ctx, loop.Event{ID: "w", Text: "x", Session: "s"})
		require.NoError(t, err)
		for i := range 20 {
			w.clock.Advance(time.Minute)
			id := fmt.Sprint("e", i)
			w.answer(loop.Event{ID: id, Text: "x", Session: "s"})
			require.NoError(t, w.React(ctx, id, loop.Reaction{Person: "ann", Value: 1}), ahead)
		}
	}
}

// A process whose clock is ahead does not keep the others from sweeping a tenant.
func TestAClockAheadStopsNoSweepOfTenants(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: twoArms})
	wrong := w.wrong(365 * 24 * time.Hour)
	acme, err := w.Tenant(ctx, "acme")
	require.NoError(t, err)
	answer := func(id string) {
		_, err := acme.Answer(ctx, loop.Event{ID: id, Text: "x", Person: "ann"})
		require.NoError(t, err)
	}
	answer("one")
	w.clock.Advance(time.Minute)
	_ = wrong.Sweep(ctx, time.Time{}) // the store refuses what it would write
	w.clock.Advance(time.Minute)
	answer("two")
	for range 3 * 24 {
		w.clock.Advance(time.Hour)
		require.NoError(t, w.Sweep(ctx, time.Time{}))
	}
	for _, id := range []string{"one", "two"} {
		account, err := acme.Explain(ctx, id)
		require.NoError(t, err)
		assert.Equal(t, "silence", account.Channel, id)
	}
}

// Counts of tokens that can't be right do not keep what people say from the arm.
func TestTokensThatOverflow(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: twoArms})
	p, err := w.Prepare(ctx, loop.Event{ID: "e", Text: "x"})
	require.NoError(t, err)
	_, err = w.Answered(ctx, p, loop.Reply{Text: "y", InputTokens: math.MaxInt, OutputTokens: 1})
	require.NoError(t, err)
	require.NoError(t, w.React(ctx, "e", loop.Reaction{Person: "ann", Value: 1}))
	assert.Greater(t, w.mean("", p.Arm.ID), 0.)
}

// A reaction can't pose as what heed itself observes.
func TestChannelsOfHeed(t *testing.T) {
	w := newWorld(t, loop.Config{})
	id := w.answer(loop.Event{Text: "x"}).ID
	for _, channel := range []string{"silence", "outcome", "agreement", "implicit_undo",
		"implicit_timeout"} {
		var input *heed.InputError
		err := w.React(ctx, id, loop.Reaction{Person: "ann", Value: -1, Channel: channel})
		require.ErrorAs(t, err, &input, channel)
		assert.Equal(t, "Channel", input.Field)
	}
	require.NoError(t, w.React(ctx, id, loop.Reaction{Person: "ann", Value: 1, Channel: "copied"}))
}

// A noError is an error whose method fails on nil.
type noError struct{ text string }

func (e *noError) Error() string { return e.text }

// The error of a tool may itself fail.
func TestAToolErrorThatPanics(t *testing.T) {
	w := newWorld(t, loop.Config{})
	id := w.answer(loop.Event{Text: "x"}).ID
	_, err := w.Tool(ctx, id, loop.ToolResult{Name: "git", Err: (*noError)(nil)})
	assert.ErrorAs(t, err, new(*heed.PanicError))
}

// A long name may report an outcome, as it may do all else.
func TestALongNameReportsAnOutcome(t *testing.T) {
	w := newWorld(t, loop.Config{Model: &llmtest.Model{Answers: llmtest.Say("One plan.")}})
	name, yes := fmt.Sprintf("%01024d", 7), true
	id := w.answer(loop.Event{Text: "x", Task: "t"}).ID
	require.NoError(t, w.React(ctx, id, loop.Reaction{Person: name, Value: 1}))
	require.NoError(t, w.Outcome(ctx, id, loop.Outcome{Success: &yes, Source: name}))
}

// After the clock was put back, a statement that is recorded also counts for the arm, whatever was
// stated before. So no error comes after a part of the effect.
func TestAStatementAfterTheClockWasPutBack(t *testing.T) {
	yes := true
	for name, state := range map[string]func(w *world) error{
		"react": func(w *world) error {
			return w.React(ctx, "m", loop.Reaction{Person: "zoe", Value: -1})
		},
		"undo":    func(w *world) error { return w.Undo(ctx, "m", "bob") },
		"outcome": func(w *world) error { return w.Outcome(ctx, "m", loop.Outcome{Success: &yes}) },
	} {
		means := func(back time.Duration, before bool) float64 {
			w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}})
			w.answer(loop.Event{ID: "m", Text: "The mail is late", Person: "bob"})
			if before {
				require.NoError(t, w.React(ctx, "m", loop.Reaction{Person: "ann", Value: 1}))
			}
			w.clock.Advance(time.Second - back)
			require.NoError(t, state(w), "%s, %v", name, back)
			require.NoError(t, state(w), "%s, %v: again", name, back)
			return w.mean("", "only")
		}
		for _, back := range []time.Duration{6 * time.Minute, 9 * time.Minute} {
			for _, before := range []bool{false, true} {
				assert.InDelta(t, means(0, before), means(back, before), 1e-3, "%s, %v", name, back)
			}
		}
	}
}

// What a source states after a process with a clock that is ahead recorded another statement of the
// source is refused and not dropped in silence, until the clocks are right. Others are heard.
func TestAStatementBehindOneOfTheFuture(t *testing.T) {
	yes, no := true, false
	for name, state := range map[string]func(a *loop.Agent, well bool) error{
		"react": func(a *loop.Agent, well bool) error {
			r := loop.Reaction{Person: "ann", Value: 1}
			if !well {
				r.Value = -1
			}
			return a.React(ctx, "m", r)
		},
		"outcome": func(a *loop.Agent, well bool) error {
			o := loop.Outcome{Success: &yes, Source: "ci"}
			if !well {
				o.Success = &no
			}
			return a.Outcome(ctx, "m", o)
		},
	} {
		for _, ahead := range []time.Duration{4 * time.Minute, 10 * time.Minute, 24 * time.Hour} {
			// The store is as lenient as SQLite, where each process has a clock.
			late := func() time.Time { return start.Add(365 * 24 * time.Hour) }
			st, err := memstore.New(memstore.Config{Now: late})
			require.NoError(t, err)
			w := newWorld(t, loop.Config{Arms: twoArms, Store: st})
			wrong := w.wrong(ahead)
			w.answer(loop.Event{ID: "m", Text: "x", Person: "ann"})
			w.clock.Advance(time.Second)
			require.NoError(t, state(wrong, true))
			w.clock.Advance(time.Second)
			err = state(w.Agent, false)
			if ahead > evidence.MaxSkew {
				var input *heed.InputError
				require.ErrorAs(t, err, &input, "%s, %v", name, ahead)
				assert.Contains(t, input.Error(), "ahead of the clock")
				require.NoError(t, state(w.Agent, true), "the same again, because a reply may be lost")
				require.NoError(t, w.React(ctx, "m", loop.Reaction{Person: "bob", Value: -1}))
				w.clock.Advance(ahead)
				err = state(w.Agent, false)
			}
			require.NoError(t, err, "%s, %v", name, ahead)
			account, err := w.Explain(ctx, "m")
			require.NoError(t, err)
			assert.InDelta(t, -1, account.Worth, 1e-9, "%s, %v", name, ahead)
		}
	}
}

// A person whose last statement is from a clock that is ahead can still correct the answer, and an
// import of what the person stated before does not fail.
func TestWhatIsRecordedBehindAStatementOfTheFuture(t *testing.T) {
	late := func() time.Time { return start.Add(365 * 24 * time.Hour) }
	st, err := memstore.New(memstore.Config{Now: late})
	require.NoError(t, err)
	w := newWorld(t, loop.Config{Arms: twoArms, Store: st})
	wrong := w.wrong(24 * time.Hour)
	w.answer(loop.Event{ID: "m", Text: "x", Person: "ann"})
	w.clock.Advance(time.Hour)
	require.NoError(t, wrong.React(ctx, "m", loop.Reaction{Person: "ann", Value: 1}))
	_, err = wrong.Correct(ctx, "m", loop.Correction{Reviewer: "bob", Text: "Name the server."})
	require.NoError(t, err)
	for _, reviewer := range []string{"ann", "bob"} {
		_, err = w.Correct(ctx, "m", loop.Correction{Reviewer: reviewer, Text: "Be brief."})
		require.NoError(t, err, reviewer)
	}
	assert.Len(t, feedbackOf(t, w), 3)
	done, err := w.Import(ctx, each([]loop.Past{{
		Event: loop.Event{ID: "m", Text: "x", At: start}, Text: "So.",
		Reactions: []loop.Reaction{{Person: "ann", Value: -1}, {Person: "eve", Value: -1}},
	}}), "", "")
	require.NoError(t, err)
	assert.Equal(t, 1, done.Reactions, "one is outdated")
}

// A clock that was wrong for a while, even outside the years that a store keeps, leaves no error
// behind once it is right again.
func TestAClockThatWasWrong(t *testing.T) {
	for _, wrong := range []time.Time{{}, time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC)} {
		w := newWorld(t, loop.Config{
			Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}},
		})
		all := func(id string) error {
			w.clock.Advance(time.Minute)
			return errors.Join(
				second(w.Answer(ctx, loop.Event{ID: id, Text: full, Session: "s", Person: "ann"})),
				w.React(ctx, id, loop.Reaction{Person: "ann", Value: 1}),
				second(w.Hear(ctx, learning.Message{Text: "undo that", Session: "s", Person: "ann"})),
				w.Freeze(ctx, true), w.Freeze(ctx, false), w.Sweep(ctx, time.Time{}),
			)
		}
		require.NoError(t, all("before"))
		right := w.clock.Now()
		w.clock.now = wrong
		_ = all("wrong")
		w.clock.now = right
		require.NoError(t, all("after"), wrong)
	}
}
