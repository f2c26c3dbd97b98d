package loop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/strategy"
)

// A sleeper is a chooser that waits until its context ends.
type sleeper struct{ asked atomic.Int64 }

func (s *sleeper) Select(ctx context.Context, _ strategy.Query) (strategy.Choice, error) {
	s.asked.Add(1)
	<-ctx.Done()
	return strategy.Choice{}, errors.New("code 4: deadline exceeded") // in words of its own
}

// Without a choice in time, the default arm answers, or else the model, and nothing is learned of
// it. All else of the plan is there.
func TestAChooserThatHangs(t *testing.T) {
	own := &mouth{says: "I am the first."}
	for name, c := range map[string]struct {
		cfg  loop.Config
		arm  string
		says string
	}{
		"the default": {loop.Config{Tuning: loop.Tuning{
			Strategy: strategy.Config{Default: "b"}}}, "b", "Look at the logs."},
		"the model":         {loop.Config{}, "", "Look at the logs."},
		"there is no other": {loop.Config{Model: decision.LLMFunc(nil)}, "a", "I am the first."},
		"a notes arm is not": {loop.Config{Arms: []loop.Arm{{ID: "n", ForNotes: true}, {ID: "b"}}}, "",
			"Look at the logs."},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := new(sleeper)
				c.cfg.Choosing.Choose = func(context.Context, *strategy.Learner) (loop.Chooser,
					error) {
					return s, nil
				}
				if c.cfg.Arms == nil {
					c.cfg.Arms = []loop.Arm{{ID: "a"}, {ID: "b", System: "Be brief."}}
				}
				c.cfg.Lessons = loop.Lessons{
					Notes: []loop.Note{{ID: "n", Text: "Room 3 has the disk of db-1."}}}
				c.cfg.Budget.Time = time.Second
				noModel := name == "there is no other"
				if noModel {
					c.cfg.Arms[0].Model = own
				}
				w := newWorld(t, c.cfg)
				if noModel {
					cfg := w.cfg
					cfg.Model = nil
					var err error
					w.Agent, err = loop.New(ctx, cfg)
					require.NoError(t, err)
				}
				rule := approved(t, w.Feedback(), "Name the server.")
				began := time.Now()
				answer := w.answer(loop.Event{ID: "e", Text: full})
				assert.Equal(t, time.Second, time.Since(began), "the budget of time")
				assert.Equal(t, int64(1), s.asked.Load())
				assert.Equal(t, c.says, answer.Text)
				assert.Equal(t, c.arm, answer.Plan.Arm.ID)
				assert.Nil(t, answer.Plan.Choice)
				assert.Contains(t, answer.Plan.LeftOut, loop.LeftOut{What: "arm", Why: "time"})
				assert.Contains(t, answer.Plan.Rules, rule)
				require.NoError(t, w.React(ctx, "e", loop.Reaction{Person: "ann", Value: 1}))
			})
		})
	}
}

// An embedder that hangs takes half of the budget of time, so that the rules are in the prompt all
// the same.
func TestAnEmbedderThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := heed.Embedder(func(ctx context.Context, _ []string) ([][]float32, error) {
			<-ctx.Done()
			return nil, errors.New("code 4: deadline exceeded")
		})
		w := newWorld(t, loop.Config{Arms: twoArms,
			Choosing: loop.Choosing{ByText: true},
			Tuning:   loop.Tuning{Similarity: hang}})
		w.cfg.Budget.Time = 0 // half of the default
		w.Agent = w.again()
		rule := approved(t, w.Feedback(), "Name the server.")
		began := time.Now()
		answer := w.answer(loop.Event{Text: full})
		assert.Equal(t, time.Second/2, time.Since(began))
		assert.Equal(t, []loop.LeftOut{{What: "item", Why: "time"}}, answer.Plan.LeftOut)
		assert.Equal(t, []string{rule}, answer.Plan.Rules)
		assert.NotNil(t, answer.Plan.Choice)
	})
}

// While the service of an embedder fails, the model answers by the rules alone, and the observer is
// notified. As soon as it is back, all is there again.
func TestAnEmbedderWhoseServiceFails(t *testing.T) {
	for _, failure := range []llm.Failure{
		llm.Unreachable, llm.RateLimited, llm.ServerError, llm.TimedOut,
	} {
		var away bool
		var failed []string
		w := newWorld(t, loop.Config{
			Arms: twoArms, Choosing: loop.Choosing{ByText: true},
			Tuning: loop.Tuning{Similarity: heed.Embedder(
				func(_ context.Context, texts []string) ([][]float32, error) {
					if away {
						return nil, fmt.Errorf("embed: %w", failure)
					}
					return slices.Repeat([][]float32{{1, 0}}, len(texts)), nil
				})},
			Lessons: loop.Lessons{
				Heuristics: []learning.Heuristic{trusted(rotating)},
				Notes:      []loop.Note{{ID: "n", Text: "Room 3 has the disk of db-1."}},
			},
			Observer: func(_ context.Context, n heed.Notice) {
				if f, is := n.(heed.Failed); is {
					failed = append(failed, f.What)
					assert.ErrorIs(t, f.Err, failure)
				}
			},
		})
		rule := approved(t, w.Feedback(), "Name the server.")
		assert.Equal(t, decision.Heuristic, w.answer(loop.Event{Text: "one"}).Result.Path)
		away = true
		answer := w.answer(loop.Event{Text: "two"})
		assert.Equal(t, decision.Model, answer.Result.Path)
		assert.Equal(t, []string{rule}, answer.Plan.Rules)
		assert.NotNil(t, answer.Plan.Choice)
		assert.Equal(t, []loop.LeftOut{
			{What: "candidates", Why: "failure"}, {What: "item", Why: "failure"},
			{What: "notes", Why: "failure"},
		}, answer.Plan.LeftOut)
		assert.Equal(t, []string{"prepare candidates", "prepare item", "prepare notes"}, failed)
		away = false
		assert.Equal(t, decision.Heuristic, w.answer(loop.Event{Text: "three"}).Result.Path)
	}
}

// While the service fails that a chooser or a brief of the host's calls, the model answers without
// what they give. An error of any other kind is the caller's.
func TestAFunctionWhoseServiceFails(t *testing.T) {
	for name, c := range map[string]struct {
		config func(err error) loop.Config
		left   string
	}{
		"a chooser": {func(err error) loop.Config {
			return loop.Config{Arms: twoArms, Choosing: loop.Choosing{
				Choose: func(context.Context, *strategy.Learner) (loop.Chooser, error) {
					return refusing{err}, nil
				}}}
		}, "arm"},
		"a brief": {func(err error) loop.Config {
			brief := func(context.Context, loop.Event, []loop.Note) (string, error) { return "", err }
			return loop.Config{Arms: []loop.Arm{{ID: "a", Brief: brief}}}
		}, "notes"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := c.config(fmt.Errorf("call: %w", llm.Unreachable))
			cfg.Lessons.Notes = []loop.Note{{ID: "n", Topic: full, Text: "Room 3 has the disk of db-1."}}
			w := newWorld(t, cfg)
			answer := w.answer(loop.Event{Text: full})
			assert.Equal(t, "Look at the logs.", answer.Text)
			assert.Contains(t, answer.Plan.LeftOut, loop.LeftOut{What: c.left, Why: "failure"})

			other := c.config(errors.New("a fault of the host's"))
			other.Lessons = cfg.Lessons
			_, err := newWorld(t, other).Answer(ctx, loop.Event{Text: full})
			assert.ErrorContains(t, err, "a fault of the host's")
		})
	}
}

// A refusing chooser has an error in place of a choice.
type refusing struct{ err error }

func (r refusing) Select(context.Context, strategy.Query) (strategy.Choice, error) {
	return strategy.Choice{}, r.err
}

// A function of the host's that does not heed its context is given up. While too many calls of it
// have not returned, it is not called.
func TestAFunctionThatNeverReturns(t *testing.T) {
	for name, c := range map[string]struct {
		config func(hang func()) loop.Config
		budget time.Duration
		left   string
	}{
		"a chooser": {func(hang func()) loop.Config {
			choose := chooserFunc(func() { hang() })
			return loop.Config{Choosing: loop.Choosing{Choose: func(context.Context,
				*strategy.Learner) (loop.Chooser, error) {
				return choose, nil
			}}}
		}, time.Second, "arm"},
		"an embedder": {func(hang func()) loop.Config {
			return loop.Config{Tuning: loop.Tuning{
				Similarity: heed.Embedder(func(context.Context, []string) ([][]float32,
					error) {
					hang()
					return nil, nil
				})}}
		}, time.Second / 2, "notes"},
		"a similarity": {func(hang func()) loop.Config {
			return loop.Config{Tuning: loop.Tuning{
				Similarity: similarityFunc(hang)}}
		}, time.Second / 2, "notes"},
		"a brief": {func(hang func()) loop.Config {
			brief := func(context.Context, loop.Event, []loop.Note) (string, error) {
				hang()
				return "",
					nil
			}
			return loop.Config{Arms: []loop.Arm{{ID: "a", Brief: brief}}}
		}, time.Second, "notes"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				over, calls := make(chan struct{}), new(atomic.Int64)
				cfg := c.config(func() { calls.Add(1); <-over })
				if cfg.Arms == nil {
					cfg.Arms = twoArms
				}
				cfg.Budget.Time = time.Second
				cfg.Lessons = loop.Lessons{Notes: []loop.Note{{ID: "n", Topic: full,
					Text: "Room 3 has the disk of db-1."}}}
				w := newWorld(t, cfg)
				w.answer(loop.Event{Text: full, Task: "t"}) // reads the notes
				for calls.Load() < 64 {
					began := time.Now()
					answer := w.answer(loop.Event{Text: full, Task: "t"})
					require.Equal(t, c.budget, time.Since(began))
					require.Contains(t, answer.Plan.LeftOut, loop.LeftOut{What: c.left, Why: "time"})
				}
				began := time.Now()
				answer := w.answer(loop.Event{Text: full, Task: "t"})
				assert.Zero(t, time.Since(began))
				assert.Equal(t, int64(64), calls.Load())
				assert.Equal(t, "Look at the logs.", answer.Text)
				assert.Contains(t, answer.Plan.LeftOut, loop.LeftOut{What: c.left, Why: "time"})
				close(over)
				synctest.Wait()
				_, _ = w.Answer(ctx, loop.Event{Text: full + ".", Task: "t"}) // the function may fail
				assert.Greater(t, calls.Load(), int64(64), "it is called again")
			})
		})
	}
}

type similarityFunc func()

func (f similarityFunc) Similar(_ context.Context, _ string, others []string) ([]float64, error) {
	f()
	return make([]float64, len(others)), nil
}

type chooserFunc func()

func (f chooserFunc) Select(context.Context, strategy.Query) (strategy.Choice, error) {
	f()
	return strategy.Choice{}, errors.New("too late")
}

// A receiver of pieces is told when the time of the answer is over.
func TestAReceiverThatWaits(t *testing.T) {
	for name, cfg := range map[string]loop.Config{
		"of a model":     {},
		"of a heuristic": {Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, cfg)
				began := time.Now()
				_, err := w.Answer(ctx, loop.Event{Text: full,
					OnChunk: func(ctx context.Context, _ string, _ bool) { <-ctx.Done() }})
				require.NoError(t, err)
				assert.Equal(t, 30*time.Second, time.Since(began))
			})
		})
	}
}

// The prompt shows the beginning of a long suggestion or note, and the plan says so.
func TestShortenedSuggestionsAreLeftOut(t *testing.T) {
	long := rotating
	long.Action = strings.Repeat("ü", 1001)
	short := learning.Heuristic{ID: "short", Condition: rotating.Condition,
		Action: strings.Repeat("ü", 1000)}
	note := loop.Note{ID: "n", Topic: full, Text: strings.Repeat("n", 1001)}
	w := newWorld(t, loop.Config{
		Tuning:  loop.Tuning{Decision: decision.Config{Withhold: new(float64)}},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{long, short}, Notes: []loop.Note{note}},
	})
	want := []loop.LeftOut{{What: "note", ID: "n", Why: "characters"},
		{What: "heuristic", ID: "rotate", Why: "characters"}}
	plan, err := w.Prepare(ctx, loop.Event{Text: full})
	require.NoError(t, err)
	assert.Equal(t, want, plan.LeftOut)
	answer, err := w.Answered(ctx, plan, loop.Reply{Text: "Yes."})
	require.NoError(t, err)
	assert.Equal(t, want, answer.Plan.LeftOut, "it is told once")
	for range 2 { // the second is the first, delivered again
		assert.Equal(t, want, w.answer(loop.Event{ID: "e", Text: full}).Plan.LeftOut)
	}

	withheld := newWorld(t, loop.Config{Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{long}}})
	assert.Empty(t, withheld.answer(loop.Event{Text: full}).Plan.LeftOut, "it was not to be shown")
}

// The host is asked once whether a text is an undo.
func TestAnUndoIsAskedForOnce(t *testing.T) {
	asked := 0
	reads, err := learning.NewBayesian(learning.BayesianConfig{
		IsUndo: func(string) bool { asked++; return false }})
	require.NoError(t, err)
	w := newWorld(t, loop.Config{Tuning: loop.Tuning{Learning: learning.Config{Strategy: reads}}})
	for i := range 2 {
		w.answer(loop.Event{Text: full, Session: "s", Stream: "here"})
		assert.Equal(t, i+1, asked)
	}
}

// A thumb can be changed as long as its answer is kept, whatever else the store forgets, and not
// after that.
func TestAThumbIsChangedAsLongAsTheAnswerIsKept(t *testing.T) {
	w := newWorld(t, loop.Config{
		Keep:    24 * time.Hour,
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}},
	})
	clock := w.clock
	w.answer(loop.Event{ID: "e", Text: full})
	require.NoError(t, w.React(ctx, "e", loop.Reaction{Person: "ann", Value: 1}))
	praised := w.confidence("rotate")
	clock.Advance(23 * time.Hour)
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	require.NoError(t, w.React(ctx, "e", loop.Reaction{Person: "ann", Value: -1}))
	blamed := w.confidence("rotate")
	assert.Less(t, blamed, praised)
	clock.Advance(2 * time.Hour)
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	require.ErrorIs(t, w.React(ctx, "e", loop.Reaction{Person: "ann", Value: 1}), loop.ErrNoAnswer)
	assert.InDelta(t, blamed, w.confidence("rotate"), 1e-12)

	require.NoError(t, w.Learning().Pin(ctx, learning.Pin{
		HeuristicID: "rotate", Constraints: learning.Constraints{Lock: "locked"}, Actor: "kim",
	}))
	w.answer(loop.Event{ID: "locked", Text: full})
	require.NoError(t, w.React(ctx, "locked", loop.Reaction{Person: "ann", Value: 1}))
	require.NoError(t, w.Learning().Pin(ctx, learning.Pin{HeuristicID: "rotate", Actor: "kim"}))
	assert.NoError(t, w.React(ctx, "locked", loop.Reaction{Person: "ann", Value: -1}),
		"the first thumb is known, and counts nothing")
}

// A waiting chooser takes a time, and then chooses as the learner does.
type waiting struct {
	learner *strategy.Learner
	time    time.Duration
}

func (w waiting) Select(ctx context.Context, q strategy.Query) (strategy.Choice, error) {
	select {
	case <-time.After(w.time):
		return w.learner.Select(ctx, q)
	case <-ctx.Done():
		return strategy.Choice{}, ctx.Err()
	}
}

// All parts of a plan share the budget of time: what the comparisons took, a chooser does not have.
func TestPartsShareTheBudgetOfTime(t *testing.T) {
	for took, chosen := range map[time.Duration]bool{
		500 * time.Millisecond: true, 700 * time.Millisecond: false,
	} {
		synctest.Test(t, func(t *testing.T) {
			embeds := heed.Embedder(func(_ context.Context, texts []string) ([][]float32, error) {
				time.Sleep(400 * time.Millisecond)
				vectors := make([][]float32, len(texts))
				for i := range vectors {
					vectors[i] = []float32{1}
				}
				return vectors, nil
			})
			w := newWorld(t, loop.Config{
				Arms: twoArms, Tuning: loop.Tuning{Similarity: embeds},
				Budget: loop.Budget{Time: time.Second},
				Choosing: loop.Choosing{ByText: true, Choose: func(
					_ context.Context, l *strategy.Learner,
				) (loop.Chooser, error) {
					return waiting{l, took}, nil
				}},
			})
			began := time.Now()
			answer := w.answer(loop.Event{Text: full})
			assert.Equal(t, chosen, answer.Plan.Choice != nil)
			assert.Equal(t, min(400*time.Millisecond+took, time.Second), time.Since(began))
		})
	}
}
