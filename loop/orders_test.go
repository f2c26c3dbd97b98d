package loop_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/store"
)

// Without a time, the last reaction to arrive holds, also after the clock was set back, or if the
// clocks of two replicas differ.
func TestTheLastClickHoldsWhateverTheClock(t *testing.T) {
	for name, back := range map[string]time.Duration{
		"seconds": 2 * time.Second, "minutes": 2 * time.Minute,
	} {
		for _, text := range []string{full, "Why?"} {
			t.Run(name+" "+text, func(t *testing.T) {
				w := newWorld(t, loop.Config{
					Arms:    []loop.Arm{{ID: "only"}},
					Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}},
				})
				id := w.answer(loop.Event{Text: text, Person: "ann", Session: "s"}).ID
				w.clock.Advance(2 * time.Hour)
				for i, value := range []float64{1, -1, 0.5} {
					require.NoError(t, w.React(ctx, id, loop.Reaction{Person: "ann", Value: value}))
					account, err := w.Explain(ctx, id)
					require.NoError(t, err)
					assert.InDelta(t, value, account.Worth, 1e-9, "reaction %d", i)
					w.clock.Advance(-back / 2)
				}
				for i, reward := range []float64{1, -1, 0.5} {
					require.NoError(t, w.Outcome(ctx, id, loop.Outcome{
						Reward: &reward, Source: "ci",
					}))
					account, err := w.Explain(ctx, id)
					require.NoError(t, err)
					assert.InDelta(t, (0.5+reward)/2, account.Worth, 1e-9, "outcome %d", i)
					w.clock.Advance(-back / 4)
				}
				require.NoError(t, w.Undo(ctx, id, "ann"))
				account, err := w.Explain(ctx, id)
				require.NoError(t, err)
				assert.InDelta(t, -1, account.Worth, 1e-9)
			})
		}
	}
}

// Calls in a wrong order, or twice, are an error or change nothing.
func TestWrongOrders(t *testing.T) {
	yes := true
	w := newWorkshop(t)
	react := func(id string) error { return w.React(ctx, id, loop.Reaction{Person: "ann", Value: 1}) }
	before := w.state()
	for name, err := range map[string]error{
		"a reaction before Answered": react("p"),
		"an undo before Answered":    w.Undo(ctx, "p", "ann"),
		"an outcome before Answered": w.Outcome(ctx, "p", loop.Outcome{Success: &yes}),
		"a correction before Answered": second(w.Correct(ctx, "p", loop.Correction{
			Reviewer: "ann", Text: "No.",
		})),
		"a reaction to nothing": react("none"),
	} {
		require.ErrorIs(t, err, loop.ErrNoAnswer, name)
	}
	assert.Equal(t, before, w.state())

	for range 2 {
		_, err := w.Answered(ctx, w.plan, loop.Reply{Text: "Wait."})
		require.NoError(t, err)
	}
	for _, id := range []string{"h", "m", "p"} {
		require.NoError(t, w.Undo(ctx, id, "ann"), id)
		undone := w.state()
		require.NoError(t, w.Undo(ctx, id, "ann"), id)
		require.Equal(t, undone, w.state(), "%s is undone once", id)
		require.NoError(t, react(id), id)
		account, err := w.Explain(ctx, id)
		require.NoError(t, err)
		assert.InDelta(t, -1, account.Worth, 1e-9, "nothing sets an undo of %s aside", id)
	}

	// A message of another session, and of another person, can't take an answer back.
	w = newWorkshop(t)
	before = w.state()
	for _, m := range []learning.Message{
		{ID: "x", Session: "other", Person: "ann", Text: "undo that"},
		{ID: "y", Person: "mallory", Text: "undo that"},
		{ID: "z", Stream: "elsewhere", Text: "undo that"},
	} {
		changes, err := w.Hear(ctx, m)
		require.NoError(t, err)
		assert.Empty(t, changes, "%+v", m)
	}
	assert.Equal(t, before, w.state())
}

// learned returns the sums of all evidence.
func learned(w *workshop) (lines []string) {
	for _, line := range strings.Split(w.state(), "\n") {
		if strings.HasPrefix(line, "{learning.") || strings.HasPrefix(line, "{strategy.") {
			lines = append(lines, line)
		}
	}
	return lines
}

// What a person stated counts no more after the person is forgotten, and what others state then
// does not bring it back.
func TestOthersReactAfterSomebodyIsForgotten(t *testing.T) {
	forget := func(w *workshop, who string) {
		err := store.Run(ctx, w.kept, store.Job{Forget: []string{who}})
		require.NoError(t, err)
	}
	yes := true
	for _, id := range []string{"h", "m"} {
		for name, first := range map[string]func(w *workshop) error{
			"praise": func(w *workshop) error {
				return w.React(ctx, id, loop.Reaction{Person: "mallory", Value: 1})
			},
			"complaint": func(w *workshop) error {
				return w.React(ctx, id, loop.Reaction{Person: "mallory", Value: -1})
			},
			"undo": func(w *workshop) error { return w.Undo(ctx, id, "mallory") },
			"outcome": func(w *workshop) error {
				return w.Outcome(ctx, id, loop.Outcome{Success: &yes, Source: "mallory"})
			},
			"correction": func(w *workshop) error {
				return second(w.Correct(ctx, id, loop.Correction{Reviewer: "mallory", Text: "Be brief."}))
			},
		} {
			t.Run(id+" "+name, func(t *testing.T) {
				w := newWorkshop(t)
				require.NoError(t, first(w))
				forget(w, "mallory")
				require.NoError(t, w.React(ctx, id, loop.Reaction{Person: "bob", Value: 0.5}))
				account, err := w.Explain(ctx, id)
				require.NoError(t, err)
				assert.InDelta(t, 0.5, account.Worth, 1e-9)
				assert.NotContains(t, w.state(), "mallory")

				alone := newWorkshop(t) // mallory never was
				require.NoError(t, alone.React(ctx, id, loop.Reaction{Person: "bob", Value: 0.5}))
				if id+name == "hundo" {
					// That it was undone stays known, without who did: it is no success of the heuristic.
					assert.Equal(t, alone.confidence("rotate"), w.confidence("rotate"))
					return
				}
				assert.Equal(t, learned(alone), learned(w))
			})
		}
	}
}

// A host's step that panics after a reaction was added to it, and was recovered, holds up nothing.
func TestAPanicInTheHostsStep(t *testing.T) {
	w := newWorkshop(t)
	assert.Panics(t, func() {
		_ = store.Do(ctx, w.cfg.Store, func(tx *store.Tx) error {
			tx.Before(func() error { panic("host") })
			return w.ReactIn(tx, "m", loop.Reaction{Person: "ann", Value: 1})
		})
	})
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	w.fails.Fail(2, true) // the commit: so what is in memory is loaded again
	bob := loop.Reaction{Person: "bob", Value: -1, At: w.clock.Now()}
	require.NoError(t, w.React(limited, "m", bob))
	given, err := w.Answer(limited, loop.Event{ID: "after", Text: "The mail is late", Domain: "d"})
	require.NoError(t, err)
	require.NotNil(t, given.Plan.Choice, "%v", given.Plan.LeftOut)
	account, err := w.Explain(limited, "m")
	require.NoError(t, err)
	assert.InDelta(t, -1, account.Worth, 1e-9)
}

// Hostile input is a typed error that names the field, and changes nothing.
func TestHostileStatements(t *testing.T) {
	w := newWorkshop(t)
	long := strings.Repeat("x", 1<<20)
	times := []time.Time{
		start.AddDate(8000, 0, 0), start.AddDate(-100, 0, 0), start.AddDate(-3000, 0, 0),
		start.Add(time.Hour),
	}
	values := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1.0000001, -2}
	texts := []string{long, "\xff", "a\x00b"}
	before := w.state()
	refused := func(err error, what ...any) {
		t.Helper()
		var input *heed.InputError
		assert.ErrorAs(t, err, &input, what...)
	}
	for _, id := range []string{"h", "m"} {
		for _, at := range times {
			reward := 1.
			refused(w.React(ctx, id, loop.Reaction{Person: "ann", Value: 1, At: at}), at)
			refused(w.Outcome(ctx, id, loop.Outcome{Reward: &reward, At: at}), at)
			refused(second(w.Correct(ctx, id, loop.Correction{
				Reviewer: "ann", Text: "Be brief.", At: at,
			})), at)
			m := learning.Message{ID: "x", Text: "undo", Session: "s", At: at}
			refused(second(w.Hear(ctx, m)), at)
			refused(second(w.Answer(ctx, loop.Event{ID: "y", Text: full, At: at})), at)
		}
		for _, x := range values {
			refused(w.React(ctx, id, loop.Reaction{Person: "ann", Value: x}), x)
			refused(w.Outcome(ctx, id, loop.Outcome{Reward: &x}), x)
			if x != 1.0000001 {
				refused(w.React(ctx, id, loop.Reaction{Person: "ann", Value: 1, Weight: x}), x)
			}
			one := 1.
			refused(w.Outcome(ctx, id, loop.Outcome{Reward: &one, Confidence: x}), x)
		}
		for _, text := range texts {
			refused(w.React(ctx, id, loop.Reaction{Person: text, Value: 1}))
			refused(w.React(ctx, id, loop.Reaction{Channel: text, Value: 1}))
			refused(w.Undo(ctx, id, text))
			one := 1.
			refused(w.Outcome(ctx, id, loop.Outcome{Reward: &one, Source: text}))
			refused(second(w.Correct(ctx, id, loop.Correction{Reviewer: text, Text: "Be brief."})))
			refused(second(w.Hear(ctx, learning.Message{ID: "x", Text: "undo", Session: text})))
			refused(second(w.Answer(ctx, loop.Event{ID: text, Text: full})))
			refused(second(w.Answer(ctx, loop.Event{Text: full, Person: text})))
		}
	}
	assert.Equal(t, before, w.state())
	for _, text := range append(texts, "", "none") {
		assert.Error(t, w.React(ctx, text, loop.Reaction{Value: 1}))
		assert.Error(t, w.Undo(ctx, text, "ann"))
	}
	assert.Equal(t, before, w.state())
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
