package strategy_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/fair"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy"
)

// A host answers events and keeps an answer each, as package loop does.
type host struct {
	t     testing.TB
	clock *clock
	*strategy.Learner

	view store.View[answer.Answer]
}

func newHost(t testing.TB, cfg strategy.Config) *host {
	h := &host{t: t, clock: &clock{}}
	cfg.Now, cfg.Answers = h.clock.Now, "host.answer"
	h.Learner, h.view = newLearner(t, cfg), answers.View("host.answer")
	require.NoError(t, h.Config().Store.Declare(ctx, h.view.Kind))
	return h
}

// change changes the answer to an event in one step, and credits its arm.
func (h *host) change(event string, do func(*answer.Answer)) (stands error) {
	var kept *error
	require.NoError(h.t, store.Do(ctx, h.Config().Store, func(tx *store.Tx) error {
		row, err := h.view.In(tx, answers.ID(event))
		require.NoError(h.t, err)
		tx.Want(h.CreditWants(&row.Value))
		do(&row.Value)
		if kept, err = h.CreditIn(tx, &row.Value); err == nil {
			h.view.Put(tx, row.Value, row.Revision)
		}
		return err
	}))
	return *kept
}

// answer answers an event by an arm.
func (h *host) answer(event string, q strategy.Query) strategy.Choice {
	var c strategy.Choice
	q.Key = event
	require.NoError(h.t, store.Do(ctx, h.Config().Store, func(tx *store.Tx) (err error) {
		tx.Want(h.Wants(q))
		if c, err = h.SelectIn(tx, q); err != nil {
			return err
		}
		h.view.Put(tx, answer.Answer{
			ID: event, At: h.clock.Now(), Session: q.Session, Choice: c.Record(),
			Reply: &answer.Reply{
				Path: "llm", Spent: answer.Spent{Cost: 2, Latency: time.Second, Tokens: 7},
			},
		}, 0)
		return nil
	}))
	return c
}

func (h *host) read(event string) answer.Answer {
	row, err := h.view.Get(ctx, h.Config().Store, answers.ID(event))
	require.NoError(h.t, err)
	return row.Value
}

// about changes the answer to "e".
func (h *host) about(do func(*answer.Answer)) error { return h.change("e", do) }

func says(s answer.Statement) func(*answer.Answer) {
	return func(a *answer.Answer) { answers.Say(a, s) }
}

// oracle returns the means of a learner that has observed what counts for the arm, and nothing
// else.
func oracle(t testing.TB, cfg strategy.Config, all ...answer.Answer) []float64 {
	c := &clock{}
	c.Advance(24 * time.Hour)
	cfg.Store, cfg.Now, cfg.Seed = nil, c.Now, rand.NewPCG(1, 2)
	l := newLearner(t, cfg)
	for i := range all {
		for n, p := range answers.ForArm(&all[i]) {
			_, err := l.Observe(ctx, strategy.Outcome{
				Choice: strategy.ChoiceOf(all[i].Choice), ID: fmt.Sprint(i, " ", n), Value: p.Value,
				Confidence: p.Trust, Share: p.Share,
				Channel: p.Channel, Source: p.Source, At: p.At, Cost: 2, Latency: time.Second, Tokens: 7,
			})
			require.NoError(t, err)
		}
	}
	return means(t, l, strategy.Query{Item: "i", Category: "c"})
}

// TestCreditsAreWhatCountsForTheArm after statements of all kinds in a random order: a learner that
// has observed only what counts at the end believes the same, whether it reads the store again or
// not.
func TestCreditsAreWhatCountsForTheArm(t *testing.T) {
	costly := func(o strategy.Outcome) float64 { return max(o.Value-o.Cost/20, -1) }
	for name, cfg := range map[string]strategy.Config{
		"two levels": {}, "alone": {Pooling: strategy.Alone{}},
		"an instrument": {Trust: evidence.Trust{Instruments: []string{"p0"}}},
		"costs":         {Reward: costly},
		"changes":       strategy.Eager(strategy.Config{Pooling: strategy.Alone{}}, 1e-9, 1),
		"unrecorded":    {Unrecorded: true}, "events": {Topic: "t"},
	} {
		for seed := range uint64(8) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 1))
				h := newHost(t, cfg)
				q := strategy.Query{Item: "i", Category: "c", Arms: []strategy.ArmID{"b"}}
				for n := range 3 {
					h.answer(fmt.Sprint(n), q)
				}
				for range 40 {
					h.clock.Advance(time.Minute)
					event, s := fmt.Sprint(rng.IntN(3)), answer.Statement{
						By: fmt.Sprint("p", rng.IntN(3)), At: h.clock.Now(),
					}
					switch rng.IntN(7) {
					case 0, 1:
						s.Value, s.Weight, s.Channel = float64(rng.IntN(5)-2)/2, float64(1+rng.IntN(3)),
							fmt.Sprint("c", rng.IntN(2))
					case 2:
						s.How, s.Value, s.Withdrawn, s.Spent = answers.Outcome, rng.Float64(), rng.IntN(3) == 0,
							&answer.Spent{Cost: 0}
					case 3:
						s.How, s.Value = answers.Undo, -1
					case 4:
						s.How, s.Worth = answers.Expected, float64(1-2*rng.IntN(2))
					case 5:
						s.How = answers.Ignored
					case 6:
						s.How, s.Worth = answers.Silence, 1
					}
					if s.How == answers.Undo && rng.IntN(4) > 0 {
						continue // it sets aside all others
					}
					require.NoError(t, h.change(event, says(s)))
				}
				var all []answer.Answer
				for n := range 3 {
					all = append(all, h.read(fmt.Sprint(n)))
				}
				want := oracle(t, cfg, all...)
				q.Arms = nil
				assert.InDeltaSlice(t, want, means(t, h.Learner, q), 1e-9, "in memory")
				assert.InDeltaSlice(t, want, means(t, newLearner(t, h.Config()), q), 1e-9, "from the store")
				for _, a := range all {
					assert.Len(t, a.Choice.Credits, len(answers.ForArm(&a)))
				}
			})
		}
	}
}

// Evidence that is taken back is gone for all items of the segment at once, and what a vector
// explains follows from the credits of answers as it does from outcomes.
func TestCreditsTeachTheSegment(t *testing.T) {
	h := newHost(t, strategy.Config{Arms: plain("a", "b")})
	x := []float32{3, 4}
	other := strategy.Query{Item: "other"}
	for n := range 6 {
		event := fmt.Sprint(n)
		h.answer(event, strategy.Query{Item: "i", Vector: x, Arms: []strategy.ArmID{"a"}})
		require.NoError(t, h.change(event, says(answer.Statement{By: event, Value: 1, At: start})))
	}
	assert.Greater(t, means(t, h.Learner, other)[0], 0.6)
	assert.Greater(t, linearOf(t, newLearner(t, h.Config()), x)[0], 0.55)
	for n := range 6 {
		event := fmt.Sprint(n)
		require.NoError(t, h.change(event, says(answer.Statement{By: event, At: start.Add(1)})))
	}
	for _, l := range []*strategy.Learner{h.Learner, newLearner(t, h.Config())} {
		assert.InDelta(t, 0.5, means(t, l, other)[0], 1e-9)
		assert.InDelta(t, 0.5, linearOf(t, l, x)[0], 1e-9)
	}
}

// An answer of another learner that has no news for its arm is no failure of this one.
func TestAnAnswerOfAnotherLearnerWithoutNews(t *testing.T) {
	failed := 0
	h := newHost(t, strategy.Config{})
	h.answer("e", strategy.Query{Item: "i"})
	h.Learner = newLearner(t, strategy.Config{
		Store: h.Config().Store, Now: h.Config().Now, Answers: h.Config().Answers, Name: "other",
		Observer: func(_ context.Context, n heed.Notice) {
			if _, is := n.(heed.Failed); is {
				failed++
			}
		},
	})
	require.NoError(t, h.about(func(*answer.Answer) {}))
	assert.Zero(t, failed)
	require.NoError(t, h.about(says(answer.Statement{By: "ann", Value: 1, At: start})))
	assert.Equal(t, 1, failed)
}

// An answer that another program wrote may be of a segment that no learner has. Its credits stand.
func TestACreditOfAnImpossibleSegment(t *testing.T) {
	h := newHost(t, strategy.Config{})
	h.answer("e", strategy.Query{Arms: []strategy.ArmID{"a"}})
	stands := h.about(func(a *answer.Answer) {
		c := *a.Choice
		c.Category, c.Context = strings.Repeat("c", 600), strings.Repeat("x", 600)
		c.Credits, c.Told = []answer.ArmCredit{{Number: 1, Value: 1, Trust: 1, Share: 1}}, 1
		a.Choice = &c
	})
	assertInputError(t, stands, "Category")
	assert.Len(t, h.read("e").Choice.Credits, 1)
}

// TestACreditIsTakenBackWithAnEntry in the audit and an event, as a revision is.
func TestACreditIsTakenBackWithAnEntry(t *testing.T) {
	h := newHost(t, strategy.Config{Topic: "t"})
	q := strategy.Query{Item: "i"}
	c := h.answer("e", q)
	cold := means(t, h.Learner, q)
	require.NoError(t, h.about(says(answer.Statement{By: "ann", Value: 1, At: start})))
	assert.NotEqual(t, cold, means(t, h.Learner, q))
	assert.Empty(t, audited(t, h.Config().Store))
	require.NoError(t, h.about(says(answer.Statement{By: "bob", Value: -1, At: start})))
	require.NoError(t, h.about(says(answer.Statement{By: "ann", At: start.Add(1)})))
	require.NoError(t, h.about(says(answer.Statement{By: "bob", At: start.Add(1)})))
	assert.InDeltaSlice(t, cold, means(t, h.Learner, q), 1e-9)
	var actions []string
	for _, e := range audited(t, h.Config().Store) {
		actions = append(actions, e.Action+" "+e.Actor)
		assert.Equal(t, c.ID.String(), e.Details["choice"])
	}
	assert.Equal(t, []string{"strategy.retract bob", "strategy.revise ann", "strategy.revise bob"},
		actions)
	var types []string
	for _, e := range outbox(t, h.Config().Store) {
		types = append(types, e.ID[:8])
	}
	slices.Sort(types)
	assert.Equal(t, []string{"observed", "observed", "observed", "observed", "retracte", "retracte",
		"retracte", "retracte", "selected"}, types)
	assert.Equal(t, uint64(4), h.read("e").Choice.Told)
	assert.Empty(t, h.read("e").Choice.Credits)
}

// TestTheCostIsOfTheOutcomeThatCounts, and not of one that was withdrawn, or whose source was
// forgotten. What the other statements are worth follows.
func TestTheCostIsOfTheOutcomeThatCounts(t *testing.T) {
	q := strategy.Query{Item: "i", Category: "c"}
	for name, leave := range map[string]func(*answer.Answer){
		"withdrawn": func(a *answer.Answer) {
			answers.Say(a, answer.Statement{
				How: answers.Outcome, By: "ci", Value: 1, At: start.Add(time.Hour), Withdrawn: true,
				Spent: &answer.Spent{Cost: 9},
			})
		},
		"forgotten": func(a *answer.Answer) {
			for i := range a.Statements {
				if s := &a.Statements[i]; s.By == "ci" {
					s.By = ""
				}
			}
		},
	} {
		h := newHost(t, strategy.Config{
			Reward: func(o strategy.Outcome) float64 { return o.Value - o.Cost/10 },
		})
		h.answer("e", q)
		require.NoError(t, h.about(func(a *answer.Answer) {
			reply := *a.Reply
			reply.Spent, a.Reply = answer.Spent{}, &reply
			answers.Say(a, answer.Statement{By: "ann", Value: 1, At: start})
			answers.Say(a, answer.Statement{
				How: answers.Outcome, By: "billing", Value: 1, At: start, Spent: &answer.Spent{Cost: 2},
			})
			answers.Say(a, answer.Statement{
				How: answers.Outcome, By: "ci", Value: 1, At: start.Add(1), Spent: &answer.Spent{Cost: 9},
			})
		}))
		for _, want := range []float64{0.1, 0.8} {
			parts := kept(t, h.Config().Store, q, "arm")
			now := evidence.InstantOf(h.clock.Now())
			mean := fair.Pool(evidence.Trust{}, [][]evidence.Part{parts}, now)[0].Mean()
			assert.InDelta(t, want, 2*mean-1, 1e-9, name)
			require.NoError(t, h.about(leave))
		}
	}
}

// What the store has forgotten goes on counting, and all else of the step is committed.
func TestAForgottenCreditStands(t *testing.T) {
	c := &clock{}
	st,
		err := memstore.New(memstore.Config{Now: c.Now, Retention: store.Retention{HistoryPerCell: 3}})
	require.NoError(t, err)
	h := newHost(t, strategy.Config{Store: st})
	q := strategy.Query{Item: "i", Arms: []strategy.ArmID{"a"}}
	h.answer("e", q)
	h.answer("f", q)
	require.NoError(t, h.about(says(answer.Statement{By: "ann", Value: 1, At: start})))
	for range 4 {
		try(t, h.Learner, q, "a", 1)
	}
	require.NoError(t, h.change("f", says(answer.Statement{By: "ann", Value: 1, At: start})))
	before, credits := means(t, h.Learner, q), h.read("e").Choice.Credits
	for range 2 { // the learner looks first from the second time on
		h.clock.Advance(time.Minute)
		stands := h.about(says(answer.Statement{By: "bob", Value: -1, At: h.clock.Now()}))
		require.ErrorIs(t, stands, evidence.ErrForgotten)
		assert.InDeltaSlice(t, before, means(t, h.Learner, q), 1e-9)
		assert.Equal(t, credits, h.read("e").Choice.Credits)
	}
	assert.Len(t, h.read("e").Statements, 2, "the statement itself is kept")
	require.NoError(t, h.change("f", says(answer.Statement{By: "ann", Value: -1, At: start.Add(1)})),
		"what is there is replaced")
	assert.Less(t, means(t, h.Learner, q)[0], before[0])
}

// One step can change several answers, one of which can't be taken back.
func TestOneOfSeveralCreditsStands(t *testing.T) {
	c := &clock{}
	st,
		err := memstore.New(memstore.Config{Now: c.Now, Retention: store.Retention{HistoryPerCell: 3}})
	require.NoError(t, err)
	h := newHost(t, strategy.Config{Store: st})
	q := strategy.Query{Item: "i", Arms: []strategy.ArmID{"a"}}
	h.answer("e", q)
	h.answer("f", q)
	require.NoError(t, h.about(says(answer.Statement{By: "ann", Value: 1, At: start})))
	for range 3 {
		try(t, h.Learner, q, "a", 1)
	}
	require.NoError(t, h.change("f", says(answer.Statement{By: "ann", Value: 1, At: start})))
	before := means(t, h.Learner, q)
	var stands [2]*error
	require.NoError(t, store.Do(ctx, st, func(tx *store.Tx) error {
		for i, event := range []string{"e", "f"} {
			row, err := h.view.In(tx, answers.ID(event))
			require.NoError(t, err)
			answers.Say(&row.Value, answer.Statement{How: answers.Undo, By: "ann", At: start})
			if stands[i], err = h.CreditIn(tx, &row.Value); err != nil {
				return err
			}
			h.view.Put(tx, row.Value, row.Revision)
		}
		return nil
	}))
	require.ErrorIs(t, *stands[0], evidence.ErrForgotten)
	require.NoError(t, *stands[1])
	assert.Less(t, means(t, h.Learner, q)[0], before[0])
	assert.InDeltaSlice(t, means(t, newLearner(t, h.Config()), q), means(t, h.Learner, q), 1e-3)
}

// A step may credit an answer more than once. What counts at its end is credited.
func TestCreditedTwiceInOneStep(t *testing.T) {
	h := newHost(t, strategy.Config{})
	q := strategy.Query{Item: "i", Category: "c"}
	h.answer("e", q)
	for n := range 3 {
		require.NoError(t, store.Do(ctx, h.Config().Store, func(tx *store.Tx) error {
			for m := range 3 {
				row, err := h.view.In(tx, answers.ID("e"))
				require.NoError(t, err)
				answers.Say(&row.Value,
					answer.Statement{By: fmt.Sprint(n, m), Value: float64(1-m) / 2, At: start})
				_, err = h.CreditIn(tx, &row.Value)
				require.NoError(t, err)
				h.view.Put(tx, row.Value, row.Revision)
			}
			return nil
		}))
		assert.InDeltaSlice(t, oracle(t, strategy.Config{}, h.read("e")), means(t, h.Learner, q), 1e-9)
	}
}

// An arm that is no longer configured, another learner's, and a fallback's answer.
func TestWhatIsNotCredited(t *testing.T) {
	h := newHost(t, strategy.Config{})
	q := strategy.Query{Item: "i", Arms: []strategy.ArmID{"d"}}
	h.answer("e", q)
	require.NoError(t, h.about(says(answer.Statement{By: "ann", Value: 1, At: start})))
	cfg := h.Config()
	for _, arms := range [][]strategy.Arm{plain("a", "b", "c"), plain("a", "b", "c", "d")} {
		h.Learner = newLearner(t, strategy.Config{
			Store: cfg.Store, Now: cfg.Now, Answers: cfg.Answers, Arms: arms, Name: "other",
		})
		require.NoError(t, h.about(says(answer.Statement{By: "bob", Value: 1, At: start})))
		assert.Len(t, h.read("e").Choice.Credits, 1, "another learner leaves it alone")
	}
	h.Learner = newLearner(t, strategy.Config{
		Store: cfg.Store, Now: cfg.Now, Answers: cfg.Answers, Arms: plain("a", "b", "c"),
	})
	require.NoError(t, h.about(says(answer.Statement{By: "bob", Value: -1, At: start.Add(1)})))
	assert.Empty(t, h.read("e").Choice.Credits,
		"what no longer holds is taken back, and nothing new is counted")
	assert.Zero(t, massOf(kept(t, cfg.Store, strategy.Query{}, "arm")))

	for value, want := range map[float64]int{0: 0, -1: 1} { // taken back, and something new
		var failed []error
		h = newHost(t, strategy.Config{})
		h.answer("e", q)
		require.NoError(t, h.about(says(answer.Statement{By: "ann", Value: 1, At: start})))
		cfg = h.Config()
		cfg.Arms, cfg.Default = plain("a", "b", "c"), "a"
		cfg.Observer = func(_ context.Context, n heed.Notice) {
			if f, ok := n.(heed.Failed); ok {
				failed = append(failed, f.Err)
			}
		}
		h.Learner = newLearner(t, cfg)
		require.NoError(t, h.about(says(answer.Statement{By: "ann", Value: value, At: start.Add(1)})))
		assert.Empty(t, h.read("e").Choice.Credits)
		assert.Len(t, failed, want, "only what is dropped is reported")
	}

	h = newHost(t, strategy.Config{})
	h.answer("e", q)
	require.NoError(t, h.about(func(a *answer.Answer) {
		reply := *a.Reply
		reply.Spare, reply.Unusable, a.Reply = true, true, &reply
		answers.Say(a, answer.Statement{By: "ann", Value: 1, At: start})
	}))
	assert.InDelta(t, -1, h.read("e").Choice.Credits[0].Value, 0,
		"the arm's model gave no usable answer, and a fallback was praised")
	h = newHost(t, strategy.Config{})
	h.answer("e", q)
	require.NoError(t, h.about(func(a *answer.Answer) {
		a.Reply, a.Fires = nil, []answer.Fire{{}}
		answers.Say(a, answer.Statement{By: "ann", Value: 1, At: start})
	}))
	assert.Len(t, h.read("e").Choice.Credits, 1, "of an answer without a reply")
	require.NoError(t, store.Do(ctx, h.Config().Store, func(tx *store.Tx) error {
		stands, err := h.CreditIn(tx, &answer.Answer{ID: "none"})
		require.NoError(t, *stands)
		return err
	}), "an answer without a choice has no arm")
	for _, reward := range []func(strategy.Outcome) float64{
		func(strategy.Outcome) float64 { panic("no") },
		func(strategy.Outcome) float64 { return 1.5 },
		func(strategy.Outcome) float64 { return -1.5 },
	} {
		h = newHost(t, strategy.Config{Reward: reward})
		h.answer("e", q)
		require.Error(t, h.about(says(answer.Statement{By: "ann", Value: 1, At: start})))
		_, err := h.Observe(ctx, strategy.Outcome{Choice: choose(t, h.Learner, q), Value: 1,
			Confidence: 1})
		require.Error(t, err)
		assert.Empty(t, kept(t, h.Config().Store, strategy.Query{}, "arm"))
		assert.Len(t, h.read("e").Statements, 1, "a host's fault does not lose the statement")
		assert.Empty(t, h.read("e").Choice.Credits)
	}
}

// TestHistoryOfAnswers of a host that keeps answers of its own.
func TestHistoryOfAnswers(t *testing.T) {
	h := newHost(t, strategy.Config{})
	q := strategy.Query{Session: "s", Item: "i"}
	c := h.answer("e", q)
	found := func(stage strategy.Stage) (all []strategy.ChoiceRecord) {
		for r, err := range h.History(ctx, strategy.ChoiceFilter{Session: "s", Stage: stage}) {
			require.NoError(t, err)
			all = append(all, r)
		}
		return all
	}
	require.Len(t, found(strategy.Pending), 1)
	assert.Empty(t, found(strategy.Observed))
	assert.Equal(t, c.ID, found("")[0].Choice.ID)
	require.NoError(t, h.about(says(answer.Statement{By: "ann", Value: 1, At: start})))
	assert.Equal(t, "e/1", found(strategy.Observed)[0].Result.ID)
	require.NoError(t, h.about(says(answer.Statement{
		By: "bob", Value: -1, At: start.Add(time.Second),
	})))
	all := found(strategy.Observed)
	require.Len(t, all, 1)
	r := all[0]
	assert.Equal(t, &strategy.Result{
		ID: "e/3", Value: -1, Confidence: 0.5, Source: "bob", At: start.Add(time.Second), Cost: 2,
		Latency: time.Second, Tokens: 7,
	}, r.Result)
	assert.Equal(t, []any{0., 1., 2}, []any{r.Mean, r.Mass, r.Reports})
	again, err := h.Find(ctx, "s", "i", h.clock.Now())
	require.NoError(t, err)
	assert.Equal(t, r.Result, again.Result)
	_, err = h.Observe(ctx, strategy.Outcome{
		Choice: again.Choice, ID: "host's", Value: 1, Confidence: 1,
	})
	require.NoError(t, err)
	assert.Len(t, h.read("e").Statements, 2, "the answer's record is the host's")
	h.answer("f", q)
	h.clock.Advance(25 * time.Hour)
	require.NoError(t, h.Sweep(ctx, time.Time{}))
	require.Len(t, found(strategy.Expired), 1)
}

// What is too uncertain to count for the arm is no outcome in the history either.
func TestHistoryLeavesOutWhatDoesNotCount(t *testing.T) {
	for least, want := range map[float64]uint64{0.3: 1, 0.31: 0} {
		h := newHost(t, strategy.Config{MinConfidence: least})
		h.answer("e", strategy.Query{Item: "i"})
		require.NoError(t, h.about(says(answer.Statement{How: answers.Silence, At: start, Worth: 1})))
		all := historyOf(t, h.Learner, strategy.ChoiceFilter{})
		require.Len(t, all, 1)
		assert.EqualValues(t, want, all[0].Reports)
		assert.Equal(t, want == 1, all[0].Result != nil)
		assert.Len(t, kept(t, h.Config().Store, strategy.Query{Item: "i"}, "arm"), int(want))
	}
}

// BenchmarkCreditIn credits an answer on which many people react one after the other. Each reaction
// changes the share of all.
func BenchmarkCreditIn(b *testing.B) {
	for _, people := range []int{1, 10, 100} {
		b.Run(fmt.Sprint("people=", people), func(b *testing.B) {
			h := newHost(b, strategy.Config{})
			q := strategy.Query{Item: "i"}
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				n++
				event := fmt.Sprint(n)
				h.answer(event, q)
				for person := range people {
					_ = h.change(event, says(answer.Statement{By: fmt.Sprint(person), Value: 1, At: start}))
				}
			}
		})
	}
}

// A step with many answers reads no cell after its commit.
func TestManyAnswersAreCreditedInBulk(t *testing.T) {
	for n, asks := range map[int]bool{127: true, 128: false} {
		st := &fragile{Store: newStore(t, (&clock{}).Now)}
		h := newHost(t, strategy.Config{Store: st})
		for i := range n {
			h.answer(fmt.Sprint(i), strategy.Query{Item: "i"})
		}
		parts, observations := 0, 0
		st.before = func(_ context.Context, b store.Batch) error {
			parts, observations = parts+len(b.PartsOf), observations+len(b.Observations)
			return nil
		}
		require.NoError(t, h.praiseAll(0, n, "ann"))
		assert.Equal(t, n, observations)
		assert.Equal(t, asks, parts > 0, "%d answers", n)
		assert.InDeltaSlice(t, means(t, newLearner(t, h.Config()), strategy.Query{Item: "i"}),
			means(t, h.Learner, strategy.Query{Item: "i"}), 1e-9)
	}
}

// praiseAll credits the praise of some answers in one step.
func (h *host) praiseAll(from, to int, person string) error {
	return store.Do(ctx, h.Config().Store, func(tx *store.Tx) error {
		for i := from; i < to; i++ {
			row, err := h.view.In(tx, answers.ID(fmt.Sprint(i)))
			if err != nil {
				return err
			}
			answers.Say(&row.Value, answer.Statement{By: person, Value: 1, At: start})
			if _, err = h.CreditIn(tx, &row.Value); err != nil {
				return err
			}
			h.view.Put(tx, row.Value, row.Revision)
		}
		return nil
	})
}

// A cellReads counts the cells that were read.
type cellReads struct {
	store.Store
	n int
}

func (c *cellReads) Read(
	ctx context.Context, s *store.Snapshot, cells []evidence.Cell, refs []store.Ref,
	queries ...store.Query,
) error {
	c.n += len(cells)
	return c.Store.Read(ctx, s, cells, refs, queries...)
}

// A cell may have thousands of sources, and an import many steps that add to it. A single outcome,
// a reset and time have cells be read again.
func TestStepsInBulkReadACellOnce(t *testing.T) {
	st := &cellReads{Store: newStore(t, (&clock{}).Now)}
	h := newHost(t, strategy.Config{Store: st, Arms: plain("a")})
	for i := range 6 * 128 {
		h.answer(fmt.Sprint(i), strategy.Query{Item: "i"})
	}
	n := 0
	reads := func() int {
		before := st.n
		require.NoError(t, h.praiseAll(n*128, (n+1)*128, fmt.Sprint("person ", n)))
		n++
		return st.n - before
	}
	assert.Equal(t, 1, reads())
	assert.Zero(t, reads())
	credit(t, h.Learner, choose(t, h.Learner, strategy.Query{Item: "i"}), 1)
	assert.Equal(t, 1, reads())
	require.NoError(t, h.Reset(ctx, strategy.Reset{Item: "i", Reason: "r"}))
	assert.Equal(t, 1, reads())
	assert.Zero(t, reads())
	h.clock.Advance(h.Config().Refresh)
	assert.Equal(t, 1, reads())
}

// What the next step in bulk takes over is bounded by the cells and by who was added to them, also
// in an import into an empty store.
func TestWhatAStepInBulkTakesOverIsCounted(t *testing.T) {
	h := newHost(t, strategy.Config{Arms: plain("a")})
	for i := range 128 {
		h.answer(fmt.Sprint(i), strategy.Query{Item: fmt.Sprint("item ", i)})
	}
	for n, person := range []string{"ann", "bob"} {
		require.NoError(t, h.praiseAll(0, 128, person))
		assert.Equal(t, 128*(5+1+n), strategy.BulkParts(h.Learner))
	}
}

// After a commit that may have taken effect, the next step in bulk reads again what it adds to.
func TestAFailedCommitEndsWhatAStepInBulkTakesOver(t *testing.T) {
	st := &fragile{Store: newStore(t, (&clock{}).Now)}
	h := newHost(t, strategy.Config{Arms: plain("a"), Store: st})
	for i := range 128 {
		h.answer(fmt.Sprint(i), strategy.Query{Item: fmt.Sprint("item ", i)})
	}
	require.NoError(t, h.praiseAll(0, 128, "ann"))
	require.Positive(t, strategy.BulkParts(h.Learner))
	o := strategy.Outcome{Choice: choose(t, h.Learner, strategy.Query{}), Value: 1, Confidence: 1}
	st.before = func(context.Context, store.Batch) error { return errStore }
	_, err := h.Observe(ctx, o)
	require.ErrorIs(t, err, errStore)
	assert.Zero(t, strategy.BulkParts(h.Learner))
}

// An answer whose choice can't be in any segment, or is of another learner, needs nothing.
func TestCreditWantsOfOtherChoices(t *testing.T) {
	l := newLearner(t, strategy.Config{Name: "own"})
	for _, c := range []*answer.Choice{nil, {Learner: "other"},
		{Learner: "own", Category: strings.Repeat("x", 2000)}} {
		assert.Equal(t, store.Wants{}, l.CreditWants(&answer.Answer{Choice: c}))
	}
}

// If the history can't be read, crediting returns the error, because the outcome may be there.
func TestAHistoryThatCannotBeReadIsAnError(t *testing.T) {
	c := &clock{}
	kept,
		err := memstore.New(memstore.Config{Now: c.Now, Retention: store.Retention{HistoryPerCell: 3}})
	require.NoError(t, err)
	st := &storetest.Failing{Store: kept}
	h := newHost(t, strategy.Config{Store: st})
	q := strategy.Query{Item: "i", Arms: []strategy.ArmID{"a"}}
	h.answer("e", q)
	require.NoError(t, h.about(says(answer.Statement{By: "ann", Value: 1, At: start})))
	for range 4 {
		try(t, h.Learner, q, "a", 1)
	}
	undo := says(answer.Statement{By: "bob", Value: -1, At: start})
	require.ErrorIs(t, h.about(undo), evidence.ErrForgotten)
	before := h.read("e")
	failed := 0
	storetest.FailEach(func(at int, after bool) bool {
		var stands *error
		st.Fail(at, after)
		err := store.Do(ctx, st, func(tx *store.Tx) (err error) {
			row := before
			stands, err = h.CreditIn(tx, &row)
			return err
		})
		if st.Failed() {
			failed++
			assert.ErrorIs(t, err, storetest.ErrFailed)
		} else {
			assert.ErrorIs(t, *stands, evidence.ErrForgotten)
		}
		return st.Failed()
	})
	assert.Positive(t, failed)
}

// Cells that many answers were added to at once are read again before a single outcome adds to one,
// because there may be more sources by then than a cell keeps apart.
func TestCellsAreReadAfterAStepInBulk(t *testing.T) {
	h := newHost(t, strategy.Config{Arms: plain("a")})
	for i := range 129 {
		h.answer(fmt.Sprint(i), strategy.Query{Item: "i"})
	}
	last := h.read("128")
	require.NoError(t, h.praiseAll(128, 129, "ann"))
	assert.Empty(t, h.CreditWants(&last).Cells)
	require.NoError(t, h.praiseAll(0, 128, "ann"))
	assert.NotEmpty(t, h.CreditWants(&last).Cells)
}
