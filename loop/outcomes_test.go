package loop_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy"
)

// A credited is an outcome that counts for an arm.
type credited struct {
	Arm strategy.ArmID
	strategy.Result
}

// creditedOf returns the outcomes that count for the arms of the item "i", the last first.
func creditedOf(t require.TestingT, l *strategy.Learner) (all []credited) {
	f := strategy.ChoiceFilter{Evidence: true, Item: "i", Category: "d"}
	for r, err := range l.History(ctx, f) {
		require.NoError(t, err)
		all = append(all, credited{r.Choice.Arm, *r.Result})
	}
	return all
}

// outcomes returns what counts for the arms of the item "i".
func (w *world) outcomes() []credited { return creditedOf(w.t, w.Strategy()) }

// number returns how many outcomes an arm of the item "i" has.
func (w *world) number(arm string) uint64 {
	w.t.Helper()
	d := distribution(w.t, w.Strategy(), "d")
	item, ok := d.Item("i")
	require.True(w.t, ok)
	for _, a := range item.Arms {
		if string(a.Arm) == arm {
			return a.Outcomes
		}
	}
	return 0
}

// An outcome that is corrected is replaced, however many the item has, and however the store is
// configured.
func TestACorrectedOutcomeIsReplaced(t *testing.T) {
	yes, no := true, false
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}})
	var ids []string
	for range 150 {
		id := w.answer(loop.Event{Text: "Why?", Domain: "d", Item: "i"}).ID
		require.NoError(t, w.Outcome(ctx, id, loop.Outcome{Success: &yes}))
		ids = append(ids, id)
	}
	w.clock.Advance(time.Second)
	for _, id := range ids {
		require.NoError(t, w.Outcome(ctx, id, loop.Outcome{Success: &no}))
	}
	assert.Len(t, w.outcomes(), 150)
	assert.EqualValues(t, 150, w.number("only"))
	for _, o := range w.outcomes() {
		assert.EqualValues(t, -1, o.Value)
	}
}

// A corrected outcome starts no test of a change, because the test compares new outcomes with old
// ones, and people who change their minds do not change the arm.
func TestCorrectedOutcomesRestartNothing(t *testing.T) {
	yes, no := true, false
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "a"}, {ID: "b"}}})
	var ids []string
	for range 60 {
		w.clock.Advance(time.Minute)
		ids = append(ids, w.answer(loop.Event{Text: "Why?", Domain: "d", Item: "i"}).ID)
		require.NoError(t, w.Outcome(ctx, ids[len(ids)-1], loop.Outcome{Success: &yes}))
	}
	for _, id := range ids {
		w.clock.Advance(time.Minute)
		require.NoError(t, w.Outcome(ctx, id, loop.Outcome{Success: &no}))
	}
	for entry, err := range store.AuditEntries(ctx, w.store, store.Query{}) {
		require.NoError(t, err)
		assert.NotContains(t, entry.Action, "restart")
	}
	assert.EqualValues(t, 60, w.number("a")+w.number("b"))
}

// Where the store keeps too little history to replace an outcome, the old one stays, and the caller
// and the observer are told.
func TestWithoutHistoryAnOutcomeIsNotCountedTwice(t *testing.T) {
	yes, no := true, false
	clock := &clock{now: start}
	st, err := memstore.New(memstore.Config{Now: clock.Now,
		Retention: store.Retention{HistoryPerCell: 2}})
	require.NoError(t, err)
	var told []heed.Notice
	w := newWorld(t, loop.Config{Store: st, Arms: []loop.Arm{{ID: "only"}},
		Observer: func(_ context.Context, n heed.Notice) {
			if _, ok := n.(heed.Failed); ok {
				told = append(told, n)
			}
		}})
	w.clock = clock
	for range 10 {
		id := w.answer(loop.Event{Text: "Why?", Domain: "d", Item: "i"}).ID
		require.NoError(t, w.Outcome(ctx, id, loop.Outcome{Success: &yes}))
	}
	require.ErrorIs(t, w.Outcome(ctx, "event-1", loop.Outcome{Success: &no}), evidence.ErrForgotten)
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	assert.EqualValues(t, 10, w.number("only"))
	assert.Len(t, told, 1)
}

// The arm's old credit still counts if the store forgot it. The call has its other effects. It
// returns the error, and if it is part of a host's step, the observer receives the error.
func TestAStepReportsWhatStands(t *testing.T) {
	yes, no := true, false
	disliked := loop.Reaction{Person: "ann", Value: -1}
	undo := learning.Message{Session: "event-1", Text: "Undo that."}
	for name, do := range map[string]func(w *world) error{
		"React": func(w *world) error { return w.React(ctx, "event-1", disliked) },
		"Outcome": func(w *world) error {
			return w.Outcome(ctx, "event-1", loop.Outcome{Success: &no})
		},
		"Undo": func(w *world) error { return w.Undo(ctx, "event-1", "ann") },
		"Hear": func(w *world) error { return second(w.Hear(ctx, undo)) },
		"ReactIn": func(w *world) error {
			return store.Do(ctx, w.store, func(tx *store.Tx) error {
				return w.ReactIn(tx, "event-1", disliked)
			})
		},
		"OutcomeIn": func(w *world) error {
			return store.Do(ctx, w.store, func(tx *store.Tx) error {
				return w.OutcomeIn(tx, "event-1", loop.Outcome{Success: &no})
			})
		},
	} {
		for _, kept := range []int{2, 100} {
			clock := &clock{now: start}
			st, err := memstore.New(memstore.Config{Now: clock.Now,
				Retention: store.Retention{HistoryPerCell: kept}})
			require.NoError(t, err)
			var told []error
			w := newWorld(t, loop.Config{
				Store: st, Arms: []loop.Arm{{ID: "only"}},
				Observer: func(_ context.Context, n heed.Notice) {
					if failed, is := n.(heed.Failed); is {
						told = append(told, failed.Err)
					}
				},
			})
			for i := range 10 {
				id := fmt.Sprint("event-", i+1)
				w.answer(loop.Event{ID: id, Text: "Why?", Domain: "d", Item: "i", Session: id})
				require.NoError(t, w.Outcome(ctx, id, loop.Outcome{Success: &yes}))
			}
			err = do(w)
			if kept == 2 {
				require.Len(t, told, 1, name)
				require.ErrorIs(t, told[0], evidence.ErrForgotten, name)
			}
			if kept == 2 && !strings.HasSuffix(name, "In") {
				require.ErrorIs(t, err, evidence.ErrForgotten, name)
				assert.True(t, strings.HasPrefix(err.Error(), "loop: "+strings.ToLower(name)+": "), err)
			} else {
				require.NoError(t, err, name)
			}
			account, err := w.Explain(ctx, "event-1")
			require.NoError(t, err)
			assert.Less(t, account.Worth, 1., "%s is on the record", name)
		}
	}
}

// An answer that is kept longer than the history is corrected on day 40. That replaces what was
// said on the first day, or is an error. Nothing counts twice.
func TestAnAnswerOutlivesTheHistory(t *testing.T) {
	yes, no := true, false
	const day = 24 * time.Hour
	for name, test := range map[string]struct {
		kept  time.Duration
		agent string
		want  error
	}{
		"the history is kept a month": {0, "", evidence.ErrForgotten},
		"and as long as the answer":   {90 * day, "", nil},
		"of an agent with a name":     {90 * day, "triage", nil},
	} {
		t.Run(name, func(t *testing.T) {
			clock := &clock{now: start}
			st, err := memstore.New(memstore.Config{Now: clock.Now,
				Retention: store.Retention{HistoryFor: test.kept}})
			require.NoError(t, err)
			w := newWorld(t, loop.Config{
				Store: st, Keep: 90 * day, Name: test.agent, Arms: []loop.Arm{{ID: "only"}},
				Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}},
			})
			assert.Same(t, st, w.Store())
			w.clock = clock
			ask := func(text string) string {
				return w.answer(loop.Event{Text: text, Domain: "d", Item: "i", Person: "ann"}).ID
			}
			told, thumb, withdrawn, undone := ask("Why?"), ask("Why?"), ask("Why?"), ask("Why?")
			sure := w.answer(loop.Event{Text: full, Person: "ann"})
			require.Equal(t, rotate, sure.Text)
			react := func(id string, value float64) error {
				return w.React(ctx, id, loop.Reaction{Person: "ann", Value: value})
			}
			require.NoError(t, w.Outcome(ctx, told, loop.Outcome{Success: &yes}))
			for _, id := range []string{thumb, withdrawn, undone, sure.ID} {
				require.NoError(t, react(id, 1))
			}
			w.clock.Advance(40 * day)
			require.NoError(t, w.Sweep(ctx, time.Time{}))
			require.ErrorIs(t, w.Outcome(ctx, told, loop.Outcome{Success: &no}), test.want)
			require.ErrorIs(t, react(thumb, -1), test.want)
			require.ErrorIs(t, react(thumb, -0.9), test.want, "again")
			require.ErrorIs(t, react(thumb, -1), test.want)
			require.ErrorIs(t, react(withdrawn, 0), test.want)
			require.ErrorIs(t, w.Undo(ctx, undone, "ann"), test.want)
			require.NoError(t, w.Sweep(ctx, time.Time{}), "it is no fault of the sweep")
			if test.want != nil {
				assert.EqualValues(t, 4, w.number("only"))
				require.ErrorIs(t, react(sure.ID, 0), test.want)
				return
			}
			assert.EqualValues(t, 3, w.number("only"))
			for _, o := range w.outcomes() {
				assert.EqualValues(t, -1, o.Value)
			}
			require.NoError(t, react(sure.ID, 0))
			standing, err := w.Learning().Standing(ctx, "rotate")
			require.NoError(t, err)
			assert.InDelta(t, 0.8, standing.Confidence, 1e-9, "the praise is withdrawn")
		})
	}
}

// Silence that was too unsure to count for an arm needs no replacement.
func TestADroppedOutcomeIsNotReplaced(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}},
		Tuning: loop.Tuning{Strategy: strategy.Config{MinConfidence: 0.5}}})
	id := w.answer(loop.Event{Text: "Why?", Domain: "d", Item: "i"}).ID
	w.clock.Advance(time.Minute)
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	require.Empty(t, w.outcomes())
	require.NoError(t, w.React(ctx, id, loop.Reaction{Person: "ann", Value: 1}))
	assert.EqualValues(t, 1, w.number("only"))
}

// Silence counts a quarter of a thumb for an arm, unless it is said to mean nothing.
func TestWhatSilenceIsWorthToAnArm(t *testing.T) {
	quiet := map[string]float64{learning.ChannelTimeout: 0}
	neutral, err := learning.NewBayesian(learning.BayesianConfig{Weights: quiet})
	require.NoError(t, err)
	failing := learning.Config{Strategy: mute{neutral}}
	for name, test := range map[string]struct {
		cfg  loop.Config
		says bool
		err  error
	}{
		"by default": {loop.Config{}, true, nil},
		"ignored":    {loop.Config{Choosing: loop.Choosing{ArmsIgnoreSilence: true}}, false, nil},
		"neutral": {loop.Config{Tuning: loop.Tuning{
			Learning: learning.Config{Strategy: neutral}}}, false, nil},
		"no strategy": {loop.Config{Tuning: loop.Tuning{Learning: failing}}, false, errMute},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := test.cfg
			cfg.Arms = []loop.Arm{{ID: "only"}}
			w := newWorld(t, cfg)
			answer := w.answer(loop.Event{Text: "Why?", Domain: "d", Item: "i"})
			w.clock.Advance(time.Minute)
			require.ErrorIs(t, w.Sweep(ctx, time.Time{}), test.err)
			all := w.outcomes()
			if !test.says {
				require.Empty(t, all)
			} else {
				require.Len(t, all, 1)
				assert.Equal(t, "silence", all[0].Channel)
				assert.InDelta(t, 0.25, all[0].Value*all[0].Confidence, 0.02)
				assert.LessOrEqual(t, all[0].Confidence, 0.3)
			}
			no := false
			require.NoError(t, w.Outcome(ctx, answer.ID, loop.Outcome{Success: &no}))
			all = w.outcomes()
			require.Len(t, all, 1)
			assert.EqualValues(t, -1, all[0].Value)
		})
	}
}

var errMute = errors.New("mute")

// mute can't say what silence is.
type mute struct{ learning.Strategy }

func (mute) InterpretTimeout(learning.Answer) (learning.Signal, error) {
	return learning.Signal{}, errMute
}

// Reactions and the outcome are worth the same to the arm, in any order. Explain lists also those
// that do not count.
func TestAnOutcomeBesideThumbs(t *testing.T) {
	yes, no := true, false
	thumb := func(person string, value float64) func(w *world, id string) error {
		return func(w *world, id string) error {
			return w.React(ctx, id, loop.Reaction{Person: person, Value: value})
		}
	}
	outcome := func(success *bool) func(w *world, id string) error {
		return func(w *world, id string) error {
			return w.Outcome(ctx, id,
				loop.Outcome{Success: success})
		}
	}
	undo := func(w *world, id string) error { return w.Undo(ctx, id, "ann") }
	ann, bob, kim := thumb("ann", 1), thumb("bob", 1), thumb("kim", -0.5)
	for name, test := range map[string]struct {
		share  []func(w *world, id string) error
		worth  float64
		counts []float64 // of all that is known
	}{
		"thumb up, then it failed": {[]func(*world, string) error{ann, outcome(&no)}, 0,
			[]float64{0.5, 0.5}},
		"it failed, then thumb up": {[]func(*world, string) error{outcome(&no), ann}, 0,
			[]float64{0.5, 0.5}},
		"a corrected outcome": {[]func(*world, string) error{outcome(&no), ann, outcome(&yes)},
			1, []float64{0.5, 0.5}},
		"three people and an outcome": {[]func(*world, string) error{ann, outcome(&no), bob, kim},
			-0.25, []float64{1. / 6, 1. / 6, 1. / 6, 0.5}},
		"withdrawn": {[]func(*world, string) error{ann, outcome(&no),
			thumb("ann", 0)}, -1, []float64{1}},
		"undone": {[]func(*world, string) error{ann, undo, outcome(&yes)}, -1,
			[]float64{1, 0, 0}},
		"thumb alone": {[]func(*world, string) error{ann}, 1, []float64{1}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}})
			id := w.answer(loop.Event{Text: "Why?", Domain: "d", Item: "i", Person: "ann"}).ID
			for _, share := range test.share {
				w.clock.Advance(time.Second)
				require.NoError(t, share(w, id))
			}
			var mass, worth float64
			for _, o := range w.outcomes() {
				mass, worth = mass+o.Confidence, worth+o.Confidence*o.Value
			}
			assert.InDelta(t, 1, mass, 1e-9, "an answer counts as one")
			assert.InDelta(t, test.worth, worth, 1e-9)
			for record, err := range w.Strategy().History(ctx, strategy.ChoiceFilter{}) {
				require.NoError(t, err)
				assert.InDelta(t, test.worth, record.Mean, 1e-9)
				assert.InDelta(t, 1, record.Mass, 1e-9)
				assert.Equal(t, len(w.outcomes()), record.Reports)
			}
			account, err := w.Explain(ctx, id)
			require.NoError(t, err)
			assert.InDelta(t, test.worth, account.Worth, 1e-9)
			var counts []float64
			for _, h := range account.Statements {
				counts = append(counts, h.Confidence)
			}
			assert.InDeltaSlice(t, test.counts, counts, 1e-9)
			text := account.String()
			assert.Contains(t, text, "the latest outcomes for i, of all its answers")
			if name == "undone" {
				assert.Contains(t, text,
					"an outcome was reported 2026-01-05 09:00:03: +1.00, does not count beside the others")
			}
		})
	}
}

// A person can be forgotten when the history no longer has what they said.
func TestAPersonIsForgotten(t *testing.T) {
	clock := &clock{now: start}
	st, err := memstore.New(memstore.Config{Now: clock.Now,
		Retention: store.Retention{HistoryPerCell: 2}})
	require.NoError(t, err)
	w := newWorld(t, loop.Config{Store: st, Arms: []loop.Arm{{ID: "only"}},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}}})
	w.clock = clock
	yes := true
	for i := range 40 {
		for _, text := range []string{"Why?", full} {
			e := loop.Event{Text: text, Domain: "d", Item: "i", Task: fmt.Sprint(text, i), Person: "ann"}
			if text == full {
				e.Domain = ""
			}
			id := w.answer(e).ID
			require.NoError(t, w.React(ctx, id, loop.Reaction{Person: []string{"ann", "bob"}[i%2],
				Value: 1}))
			require.NoError(t, w.Outcome(ctx, id, loop.Outcome{Success: &yes, Source: "ann"}))
		}
	}
	err = store.Run(ctx, st, store.Job{Forget: []string{"ann"}})
	require.NoError(t, err)
}

// Patterns add people up, so forgetting needs the history: a store as it comes has enough of it.
func TestAPersonIsForgottenByPatterns(t *testing.T) {
	w := newWorld(t, loop.Config{})
	p, err := w.Patterns().Define(ctx, patterns.Pattern{ID: "p", Content: "Look at the logs first"})
	require.NoError(t, err)
	for i := range 150 {
		_, err := w.Patterns().Record(ctx, patterns.Outcome{
			ID: fmt.Sprint(i), Task: fmt.Sprint(i), Patterns: []patterns.PatternID{p.ID}, Success: true,
			Source: []string{"ann", "bob"}[i%2],
		})
		require.NoError(t, err)
	}
	err = store.Run(ctx, w.store, store.Job{Forget: []string{"ann"}})
	require.NoError(t, err)
}

// An answer of an arm that was taken out keeps what was said of it. Only the arm is not told, and
// the observer hears of that, once.
func TestAnArmThatIsGone(t *testing.T) {
	var dropped []string
	w := newWorld(t, loop.Config{
		Arms: []loop.Arm{{ID: "brief"}, {ID: "thorough"}, {ID: "third"}},
		Observer: func(_ context.Context, n heed.Notice) {
			if f, ok := n.(heed.Failed); ok {
				dropped = append(dropped, f.Err.Error())
			}
		},
	})
	var thirds []string
	for range 60 {
		w.clock.Advance(time.Minute)
		if a := w.answer(loop.Event{Text: "x", Person: "ann"}); a.Plan.Arm.ID == "third" {
			thirds = append(thirds, a.ID)
		}
	}
	require.Greater(t, len(thirds), 1)
	w.cfg.Arms = twoArms
	agent := w.again()
	require.NoError(t, agent.React(ctx, thirds[0], loop.Reaction{Person: "bob", Value: 1}))
	require.Len(t, dropped, 1)
	assert.Contains(t, dropped[0], "the arm third of "+thirds[0])
	account, err := agent.Explain(ctx, thirds[0])
	require.NoError(t, err)
	assert.Len(t, account.Statements, 1)
	for range 2 { // silence counts for the others
		w.clock.Advance(48 * time.Hour)
		require.NoError(t, agent.Sweep(ctx, time.Time{}))
		assert.Len(t, dropped, len(thirds), "the answers are owed nothing more")
	}
}

// Its evidence counts again if it comes back, and so must not have what nobody says any more.
func TestAWithdrawalReachesAnArmThatIsGone(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}})
	for id, later := range map[string]float64{"withdrawn": 0, "changed": -1} {
		w.answer(loop.Event{ID: id, Text: "x", Domain: "d", Item: "i", Person: "ann"})
		require.NoError(t, w.React(ctx, id, loop.Reaction{Person: "ann", Value: 1}))
		require.EqualValues(t, 1, w.number("only"), id)
		other := w.cfg
		other.Arms = twoArms
		agent, err := loop.New(ctx, other)
		require.NoError(t, err)
		w.clock.Advance(time.Second)
		require.NoError(t, agent.React(ctx, id, loop.Reaction{Person: "ann", Value: later}))
		assert.Empty(t, w.outcomes(), "there is no evidence: %s", id)
	}
	w.clock.Advance(time.Second)
	require.NoError(t, w.React(ctx, "changed", loop.Reaction{Person: "ann", Value: -0.9}))
	assert.EqualValues(t, 1, w.number("only"), "the arm is back")
}

// One that the agent had under another name is told nothing, and holds up no silence.
func TestAnswersOfAnotherLearner(t *testing.T) {
	var dropped []string
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}},
		Observer: func(_ context.Context, n heed.Notice) {
			if f, ok := n.(heed.Failed); ok {
				dropped = append(dropped, f.Err.Error())
			}
		}})
	w.answer(loop.Event{ID: "praised", Text: "x", Person: "ann"})
	require.NoError(t, w.React(ctx, "praised", loop.Reaction{Person: "ann", Value: 1}))
	w.answer(loop.Event{ID: "old", Text: "x", Domain: "d", Item: "i"})
	w.cfg.Tuning.Strategy.Name = "other"
	w.Agent = w.again()
	w.answer(loop.Event{ID: "new", Text: "x", Domain: "d", Item: "i"})
	w.clock.Advance(time.Hour)
	require.NoError(t, w.React(ctx, "praised", loop.Reaction{Person: "ann", Value: -1}))
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	require.Len(t, dropped, 2)
	assert.Contains(t, dropped[0], "the arm only of praised")
	assert.Contains(t, dropped[1], "the arm only of old")
	assert.EqualValues(t, 1, w.number("only"), "the silence about the new answer")
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	assert.Len(t, dropped, 2)
}

// chooses is a chooser that is a function.
type chooses func(context.Context, strategy.Query) (strategy.Choice, error)

func (f chooses) Select(ctx context.Context, q strategy.Query) (strategy.Choice, error) {
	return f(ctx, q)
}

// TestAForeignChoiceIsRefused at once, and not when its outcome comes.
func TestAForeignChoiceIsRefused(t *testing.T) {
	other, err := strategy.New(ctx, strategy.Config{Store: new(memstore.Store), Name: "other",
		Arms: []strategy.Arm{{ID: "brief"}}})
	require.NoError(t, err)
	third, err := strategy.New(ctx, strategy.Config{Store: new(memstore.Store),
		Arms: []strategy.Arm{{ID: "third"}}})
	require.NoError(t, err)
	for name, choose := range map[string]chooses{
		"none": func(context.Context, strategy.Query) (c strategy.Choice, err error) { return c, nil },
		"by hand": func(context.Context, strategy.Query) (strategy.Choice, error) {
			return strategy.Choice{Arm: "brief"}, nil
		},
		"other learner":  other.Select,
		"no arm of mine": third.Select,
	} {
		w := newWorld(t, loop.Config{Arms: twoArms,
			Choosing: loop.Choosing{Choose: func(context.Context, *strategy.Learner) (loop.Chooser,
				error) {
				return choose, nil
			}}})
		_, err := w.Answer(ctx, loop.Event{Text: "x"})
		var fault *heed.ConfigError
		require.ErrorAs(t, err, &fault, name)
		assert.Equal(t, "Choose", fault.Field, name)
	}
}

// An arm does not earn by the answer of a fallback. If the arm's model gave an answer of no use,
// that counts against it, once. If the model was unavailable, nothing counts.
func TestAFallbackEarnsTheArmNothing(t *testing.T) {
	yes := true
	broken := &mouth{err: llm.ServerError}
	for name, test := range map[string]struct {
		arm  decision.LLM
		want float64 // what the arm is told
	}{
		"its model fails":   {broken, 0},
		"its answer is cut": {&mouth{err: llm.Unusable}, -1},
		"its model thinks":  {&mouth{says: "<think>Hm.</think>"}, -1},
		"its model works":   {&mouth{says: "Well."}, 1},
		"there is none":     {nil, 1}, // the fallback is all there is
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, loop.Config{Fallbacks: []decision.LLM{decision.LLMFunc(
				func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
					return decision.LLMResponse{Text: "I am here.", OutputTokens: 7}, nil
				})}, Arms: []loop.Arm{{ID: "only", Model: test.arm}}})
			if test.arm == nil {
				w.cfg.Model = nil
				w.Agent = w.again()
			}
			id := w.answer(loop.Event{Text: "Why?", Domain: "d", Item: "i", Session: "s",
				Person: "ann"}).ID
			if test.want < 0 {
				assert.Len(t, w.outcomes(), 1, "at once")
			}
			require.NoError(t, w.Outcome(ctx, id, loop.Outcome{Success: &yes, Cost: 0.1}))
			require.NoError(t, w.React(ctx, id, loop.Reaction{Person: "ann", Value: 1}))
			w.clock.Advance(time.Hour)
			require.NoError(t, w.Sweep(ctx, time.Time{}))
			for _, o := range w.outcomes() {
				assert.InDelta(t, test.want, o.Value, 1e-9)
				if test.want < 0 {
					assert.Zero(t, o.Tokens, "they are the fallback's")
				}
			}
			assert.Len(t, w.outcomes(), map[float64]int{-1: 1, 0: 0, 1: 2}[test.want])
			account, err := w.Explain(ctx, id)
			require.NoError(t, err)
			assert.Equal(t, test.want < 1, account.Spare)
			assert.Equal(t, test.want < 0, account.Unusable)
			assert.InDelta(t, 1, account.Worth, 1e-9, "the answer was good all the same")
			assert.Equal(t, "outcome, user_explicit", account.Channel, "both have half of it")
			assert.Equal(t, test.want < 0, strings.Contains(account.String(), "no usable answer"))
		})
	}
}

// An answer that took another one back earns nothing, and its account says so.
func TestAnAnswerThatUndidEarnsNothing(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}})
	first := w.answer(loop.Event{Text: "Why?", Session: "s", Person: "ann"}).ID
	w.clock.Advance(time.Second)
	id := w.answer(loop.Event{Text: "undo that", Session: "s", Person: "ann"}).ID
	require.NoError(t, w.React(ctx, id, loop.Reaction{Person: "ann", Value: -1}))
	account, err := w.Explain(ctx, id)
	require.NoError(t, err)
	assert.False(t, account.Known)
	assert.Equal(t, []string{first}, account.Undid)
	assert.Contains(t, account.String(), "it earns no credit: it took back "+first)
	assert.NotContains(t, account.String(), "worth -1")
}

// An outcome that is withdrawn counts no more, for the arm and for trust. An older one does not
// come back.
func TestAnOutcomeIsWithdrawn(t *testing.T) {
	yes := true
	w := newWorld(t, loop.Config{
		Arms: []loop.Arm{{ID: "only"}}, Choosing: loop.Choosing{ArmsIgnoreSilence: true},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}},
	})
	id := w.answer(loop.Event{Text: "Why?", Domain: "d", Item: "i", Person: "ann"}).ID
	sure := w.answer(loop.Event{Text: full, Person: "ann"}).ID
	trust := w.confidence("rotate")
	share := func(id string, o loop.Outcome, known bool) {
		t.Helper()
		o.Source = cmp.Or(o.Source, "desk")
		require.NoError(t, w.Outcome(ctx, id, o))
		account, err := w.Explain(ctx, id)
		require.NoError(t, err)
		assert.Equal(t, known, account.Known)
		w.clock.Advance(time.Second)
	}
	share(id, loop.Outcome{Withdraw: true}, false) // there is none
	share(id, loop.Outcome{Success: &yes, Cost: 2}, true)
	share(sure, loop.Outcome{Success: &yes}, true)
	for _, r := range w.records() {
		cost := 0.
		if s := &r.Statements[0]; s.Spent != nil {
			require.Positive(t, s.Spent.Cost, "an outcome without a cost has none on the record")
			cost = s.Spent.Cost
		}
		assert.Equal(t, map[string]float64{id: 2, sure: 0}[r.ID], cost)
	}
	assert.Greater(t, w.confidence("rotate"), trust)
	share(id, loop.Outcome{Withdraw: true, Source: "other"}, true) // it has told none
	told := w.clock.Now()
	share(id, loop.Outcome{Withdraw: true}, false)
	share(sure, loop.Outcome{Withdraw: true}, false)
	assert.InDelta(t, trust, w.confidence("rotate"), 1e-9)
	assert.Empty(t, w.outcomes())
	share(id, loop.Outcome{Success: &yes, At: told.Add(-time.Second)}, false)
	assert.Empty(t, w.outcomes(), "it is older")
	share(id, loop.Outcome{Success: new(bool)}, true)
	assert.Len(t, w.outcomes(), 1)
	assertField(t, "Withdraw", w.Outcome(ctx, id, loop.Outcome{Withdraw: true, Success: &yes}))
	assertField(t, "Withdraw", w.Outcome(ctx, id, loop.Outcome{Withdraw: true, Cost: 1}))
}

// Find returns the newest answer of a session. An answer that took another one back is none that a
// later outcome means.
func TestTheNewestAnswerOfASession(t *testing.T) {
	w := newWorld(t, loop.Config{Name: "triage", Arms: []loop.Arm{{ID: "only"}}})
	ask := func(session, text string) string {
		w.clock.Advance(time.Second)
		return w.answer(loop.Event{Text: text, Session: session, Person: "ann"}).ID
	}
	ask("ticket 7", "Why?")
	second := ask("ticket 7", "And now?")
	ask("ticket 8", "Why?")
	found, err := w.again().Find(ctx, "ticket 7")
	require.NoError(t, err)
	assert.Equal(t, second, found)
	ask("ticket 7", "undo that")
	found, err = w.Find(ctx, "ticket 7")
	require.NoError(t, err)
	assert.Equal(t, second, found)
	_, err = w.Find(ctx, "ticket 9")
	require.ErrorIs(t, err, loop.ErrNoAnswer)
	_, err = w.Find(ctx, "")
	assertField(t, "session", err)
}

// Ways of working learn whether the task succeeded, and the arm how good the answer was, also
// where one contradicts the other.
func TestSuccessAndRewardAreTwoFacts(t *testing.T) {
	for _, success := range []bool{true, false} {
		w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}})
		w.model.says = "Split by layer: first the interface, then the data."
		id := w.answer(loop.Event{Text: "Rename the column", Task: "t"}).ID
		reward := -1.
		if !success {
			reward = 1
		}
		require.NoError(t, w.Outcome(ctx, id, loop.Outcome{Success: &success, Reward: &reward}))
		account, err := w.Explain(ctx, id)
		require.NoError(t, err)
		assert.InDelta(t, reward, account.Worth, 1e-9)
		assert.Equal(t, reward > 0, w.mean("", "only") > 0.5)
		require.NotEmpty(t, account.Followed)
		s, err := w.Patterns().Standing(ctx, patterns.PatternID(account.Followed[0]))
		require.NoError(t, err)
		assert.Equal(t, success, s.Helpful > s.Harmful)
	}
}

// An outcome that a stream brings is about an answer until its moment, or about the earliest one
// after it if clocks may differ by as much.
func TestAnOutcomeBeforeTheFirstAnswer(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}})
	w.clock.Advance(time.Hour)
	at := w.clock.Now()
	first := w.answer(loop.Event{Text: "Why?", Session: "s"}).ID
	w.clock.Advance(time.Minute)
	w.answer(loop.Event{Text: "Why?", Session: "s"})
	attribute := func(after time.Duration) error {
		_, err := w.Attribute(ctx, "", "s", strategy.Outcome{
			Value: 1, Confidence: 1, At: at.Add(after),
		})
		return err
	}
	require.ErrorIs(t, attribute(-evidence.MaxSkew-time.Second), heed.ErrNotFound)
	require.NoError(t, attribute(-evidence.MaxSkew))
	account, err := w.Explain(ctx, first)
	require.NoError(t, err)
	assert.True(t, account.Known)
}

// An undo is the worst outcome of an answer, and no model is to blame for its own answer to that.
func TestAnUndoIsTheWorstOutcome(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}})
	w.answer(loop.Event{ID: "button", Text: "Why?", Session: "s", Person: "ann"})
	require.NoError(t, w.Undo(ctx, "button", "bob"))
	past := loop.Past{Event: loop.Event{ID: "past", Text: "Why?"}, Text: "So.", Arm: "only"}
	require.NoError(t, second(w.Import(ctx, each([]loop.Past{past}), "", "")))
	require.NoError(t, w.Undo(ctx, "past", "bob"))
	w.answer(loop.Event{ID: "words", Text: "Why?", Session: "t", Person: "cid"})
	w.model.err = llm.Unusable
	undo := w.answer(loop.Event{Text: "Undo that", Session: "t", Person: "cid"})
	require.Equal(t, []string{"words"}, undo.Plan.Undone)
	undone := 0
	for _, r := range w.records() {
		for _, s := range r.Statements {
			undone++
			assert.Equal(t, []any{answers.Undo, -1.}, []any{s.How, s.Worth}, r.ID)
		}
	}
	assert.Equal(t, 3, undone)
	assert.EqualValues(t, 3, distribution(t, w.Strategy(), "").Outcomes)
}

// An answer of a heuristic that can't be recorded is an error, and the model is not asked instead.
func TestAHeuristicsAnswerThatCannotBeRecorded(t *testing.T) {
	w := newWorld(t, loop.Config{
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}},
		Redact: func(text string) string {
			if text == rotate {
				panic("redact")
			}
			return text
		},
	})
	require.ErrorContains(t, second(w.Prepare(ctx, loop.Event{Text: full})), "redact")
	require.ErrorContains(t, second(w.Answer(ctx, loop.Event{Text: full})), "redact")
	assert.Zero(t, w.model.calls())
	assert.Empty(t, w.records())
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

// A call that changes an arm's credit fails if the store can't show whether the credit can be taken
// back, and then changes no record.
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
