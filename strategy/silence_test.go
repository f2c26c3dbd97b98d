package strategy_test

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/injection"
	"github.com/heedhq/heed/stream"
)

// sweep returns how many choices a sweep makes expire.
func sweep(t testing.TB, l *strategy.Learner) int {
	t.Helper()
	before := expired(t, l)
	require.NoError(t, l.Sweep(ctx, time.Time{}))
	return expired(t, l) - before
}

func expired(t testing.TB, l *strategy.Learner) int {
	return len(historyOf(t, l, strategy.ChoiceFilter{Stage: strategy.Expired}))
}

// TestSilenceExpiresAndCountsAsNothing by default; what is pending and what has expired shows.
func TestSilenceExpiresAndCountsAsNothing(t *testing.T) {
	for _, after := range []time.Duration{0, time.Hour} {
		cfg, c := recording(t, strategy.Config{Silence: strategy.Silence{After: after}})
		l := newLearner(t, cfg)
		after = l.Config().Silence.After
		q := strategy.Query{Item: "i", Category: "c"}
		first := choose(t, l, q)
		c.Advance(time.Minute)
		second := choose(t, l, q)
		believed := beliefs(t, l, q)
		assert.Equal(t, map[strategy.Stage]int{strategy.Pending: 2}, stages(t, l))

		c.Advance(after - time.Minute)
		assert.Zero(t, sweep(t, l), "it is to be older")
		c.Advance(time.Microsecond)
		assert.Equal(t, 1, sweep(t, l))
		assert.Zero(t, sweep(t, l), "once")
		assert.Equal(t, strategy.Expired, record(t, l, first.ID).Stage)
		assert.Equal(t, strategy.Pending, record(t, l, second.ID).Stage)
		assert.Equal(t, map[strategy.Stage]int{strategy.Pending: 1, strategy.Expired: 1}, stages(t, l))
		assert.Empty(t, distributionsOf(t, l))
		assert.Empty(t, everything(t, cfg.Store, q))
		assert.Equal(t, believed, beliefs(t, l, q))
		shown, err := outcomes(l, q, 0)
		require.NoError(t, err)
		assert.Empty(t, shown)

		credit(t, l, first, 1)
		assert.Equal(t, strategy.Observed, record(t, l, first.ID).Stage, "late, and all the same")
		assert.Equal(t, 1., massOf(kept(t, cfg.Store, q, "arm")))
		c.Advance(after)
		assert.Equal(t, 1, sweep(t, l))
		assert.Equal(t, map[strategy.Stage]int{strategy.Observed: 1, strategy.Expired: 1}, stages(t, l))
	}
}

// TestSilenceIsWeakEvidence of its confidence, on the arm and on its parameters, and on nothing
// else.
func TestSilenceIsWeakEvidence(t *testing.T) {
	for _, silence := range []strategy.Silence{
		{Confidence: 0.125}, {Confidence: 1}, {Confidence: 0.5, After: time.Hour},
	} {
		for _, pooling := range poolings {
			cfg, c := recording(t, strategy.Config{Silence: silence, Pooling: pooling,
				Arms: injection.Arms()})
			l := newLearner(t, cfg)
			q := strategy.Query{Session: "s", Item: "i", Category: "c"}
			before := means(t, l, q)
			choice := choose(t, l, q)
			c.Advance(25 * time.Hour)
			require.Equal(t, 1, sweep(t, l))
			var at []string
			for _, p := range everything(t, cfg.Store, q) {
				at = append(at, p.Cell.Kind)
				assert.Equal(t, silence.Confidence, p.Tally.Mass)
				assert.Equal(t, 0., p.Tally.Reward)
				assert.Contains(t, choice.Cells(), p.Cell)
			}
			assert.Len(t, at, len(choice.Cells()))
			for i, mean := range means(t, l, q) {
				if cfg.Arms[i].ID == choice.Arm {
					assert.Less(t, mean, before[i])
				} else {
					assert.InDelta(t, before[i], mean, 1e-12)
				}
			}
			outcomes, err := outcomes(l, q, 0)
			require.NoError(t, err)
			require.Len(t, outcomes, 1)
			of := outcomes[0].Choice
			assert.Equal(t, []any{choice.ID, choice.Arm, "s"}, []any{of.ID, of.Arm, of.Session})
			assert.Equal(t, &strategy.Result{
				ID: "heed:silence", Value: -1, Confidence: silence.Confidence,
				Channel: "silence", At: c.Now(),
			}, outcomes[0].Result)
			assert.Equal(t, strategy.Expired, record(t, l, choice.ID).Stage)
			assert.Zero(t, sweep(t, l))
			assert.Equal(t, silence.Confidence, massOf(kept(t, cfg.Store, q, "arm")))
		}
	}
}

// Without silence as evidence it would look as good as on its first day.
func TestAnArmThatNeverAnswersFallsBehind(t *testing.T) {
	share := func(silence strategy.Silence) float64 {
		cfg, c := recording(t, strategy.Config{Arms: plain("answers", "never"), Silence: silence})
		l := newLearner(t, cfg)
		for range 60 {
			choice := choose(t, l, strategy.Query{Item: "i"})
			if choice.Arm == "answers" {
				credit(t, l, choice, 0)
			}
			c.Advance(25 * time.Hour)
			sweep(t, l)
		}
		return shares(t, l, strategy.Query{Item: "i"}, 1000)["never"]
	}
	assert.Greater(t, share(strategy.Silence{}), 0.4)
	assert.Less(t, share(strategy.Silence{Confidence: 0.3}), 0.1)
}

// The store and the learner's memory are as if there had been none.
func TestALateOutcomeTakesSilenceBack(t *testing.T) {
	for _, pooling := range []strategy.Pooling{strategy.TwoLevel{}, strategy.Copy{Sessions: 3},
		strategy.Alone{}} {
		for _, halfLife := range []time.Duration{0, 48 * time.Hour} {
			t.Run(fmt.Sprint(pooling, halfLife), func(t *testing.T) {
				run := func(silence strategy.Silence) (cfg strategy.Config, l *strategy.Learner,
					q strategy.Query) {
					cfg, c := recording(t, strategy.Config{
						Silence: silence, Pooling: pooling, HalfLife: halfLife,
						Exploration: strategy.Exploration{Bonus: 0.1, MinSamples: 3},
						Arms:        injection.Arms(), Refresh: 1000 * time.Hour,
					})
					l = newLearner(t, cfg)
					q = strategy.Query{Item: "i", Category: "c",
						Arms: []strategy.ArmID{injection.MainContext}}
					var made []strategy.Choice
					for n := range 4 {
						q.Session = fmt.Sprint("s", n)
						made = append(made, choose(t, l, q))
					}
					c.Advance(25 * time.Hour)
					if silence.Confidence > 0 {
						require.Equal(t, 4, sweep(t, l))
						require.EqualValues(t, 4, kept(t, cfg.Store, q, "arm")[0].Tally.N())
					}
					for n, choice := range made[:2] {
						c.Advance(time.Hour)
						disposition, err := l.Observe(ctx,
							strategy.Outcome{Choice: choice, Value: 0.5 - float64(n), Confidence: 0.5})
						require.NoError(t, err)
						require.Equal(t, strategy.Applied, disposition)
						require.Equal(t, strategy.Observed, record(t, l, choice.ID).Stage)
					}
					for _, choice := range made[2:] { // their outcomes never come
						if silence.Confidence > 0 {
							_, err := cfg.Store.Commit(ctx, store.Batch{Retract: []string{
								"strategy:" + choice.ID.String() + ":heed:silence",
								"strategy:" + choice.ID.String() + ":heed:silence:1",
								"strategy:" + choice.ID.String() + ":heed:silence:2",
							}})
							require.NoError(t, err)
						}
					}
					return cfg, l, q
				}
				// The source is the same, and so are the choices.
				silent, with, q := run(strategy.Silence{Confidence: 0.125})
				plain, without, _ := run(strategy.Silence{})
				want := everything(t, plain.Store, q)
				got := everything(t, silent.Store, q)
				require.Len(t, got, len(want))
				for i := range got {
					assert.Equal(t, want[i].Cell, got[i].Cell)
					assert.InDelta(t, want[i].Tally.Mass, got[i].Tally.Mass, 1e-12*max(1, want[i].Tally.Mass))
					assert.InDelta(t, want[i].Tally.Reward, got[i].Tally.Reward,
						1e-12*max(1, want[i].Tally.Mass))
					assert.Equal(t, want[i].Tally.N(), got[i].Tally.N())
					assert.Equal(t, want[i].Tally.Last(), got[i].Tally.Last())
				}
				require.NoError(t, with.Refresh(ctx))
				require.NoError(t, without.Refresh(ctx))
				for _, item := range []string{"i", "new"} {
					assert.InDeltaSlice(t, means(t, without, strategy.Query{Item: item, Category: "c"}),
						means(t, with, strategy.Query{Item: item, Category: "c"}), 1e-9)
				}
			})
		}
	}
}

// TestBrokenSilenceIsGoneFromMemory at once: from the beliefs about the segment, the parameters and
// the bonus.
func TestBrokenSilenceIsGoneFromMemory(t *testing.T) {
	cfg, c := recording(t, strategy.Config{
		Arms: []strategy.Arm{{ID: "a", Parameters: []strategy.Parameter{{Name: "n",
			Values: []string{"1", "2"}}}}, {ID: "b"}},
		Silence: strategy.Silence{Confidence: 1}, Pooling: strategy.Copy{},
		Exploration: strategy.Exploration{Bonus: 0.1, MinSamples: 2},
		Refresh:     1000 * time.Hour,
	})
	l := newLearner(t, cfg)
	choice := choose(t, l, strategy.Query{Item: "i", Arms: []strategy.ArmID{"a"}})
	c.Advance(25 * time.Hour)
	require.Equal(t, 1, sweep(t, l))
	assert.Equal(t, evidence.Beta{Alpha: 1, Beta: 2},
		beliefs(t, l, strategy.Query{Item: "new"})[0].Level)
	credit(t, l, choice, 1)
	assert.Equal(t, evidence.Beta{Alpha: 2, Beta: 1},
		beliefs(t, l, strategy.Query{Item: "new"})[0].Level)
	made := choose(t, l, strategy.Query{Item: "new", Arms: []strategy.ArmID{"a"}})
	for _, d := range made.Record().Draws {
		assert.Equal(t, 0.1, d.Bonus, "of one outcome, where two end it")
	}
	twos := 0
	for range 400 {
		if choose(t, l, strategy.Query{Item: "new", Arms: []strategy.ArmID{"a"}}).Parameter(
			"n") == choice.Parameter("n") {
			twos++
		}
	}
	assert.InDelta(t, 400*2./3, twos, 45,
		"P(Beta(2, 1) > Beta(1, 1)) is 2/3, within 4.7 standard errors")
}

// A late outcome takes the silence back although the choice's record is gone.
func TestALateOutcomeWithoutItsRecord(t *testing.T) {
	cfg, c := recording(t, strategy.Config{Silence: strategy.Silence{Confidence: 0.5}})
	l, q := newLearner(t, cfg), strategy.Query{Item: "i"}
	choice := choose(t, l, q)
	c.Advance(25 * time.Hour)
	require.Equal(t, 1, sweep(t, l))
	id := choice.ID.String()
	_, err := cfg.Store.Commit(ctx, store.Batch{Records: []store.Record{
		{Ref: store.Ref{Kind: "strategy.answer", ID: id}, Revision: revisionOf(t, cfg.Store, id)},
	}})
	require.NoError(t, err)
	credit(t, l, choice, 1)
	parts := kept(t, cfg.Store, q, "arm")
	require.Len(t, parts, 1)
	assert.Equal(t, []any{1., 1.}, []any{parts[0].Tally.Mass, parts[0].Tally.Reward})
}

// revisionOf returns the revision of a choice's record.
func revisionOf(t testing.TB, st store.Store, id string) uint64 {
	var s store.Snapshot
	require.NoError(t, st.Read(ctx, &s, nil, []store.Ref{{Kind: "strategy.answer", ID: id}}))
	require.NotZero(t, s.Records[0].Revision)
	return s.Records[0].Revision
}

// TestSilenceThatTheStoreHasForgotten stays, and where the arm's is still known that is taken back.
func TestSilenceThatTheStoreHasForgotten(t *testing.T) {
	c := &clock{}
	st,
		err := memstore.New(memstore.Config{Now: c.Now, Retention: store.Retention{HistoryPerCell: 3}})
	require.NoError(t, err)
	l := newLearner(t, strategy.Config{
		Now: c.Now, Store: st, Silence: strategy.Silence{Confidence: 0.5},
		Arms: []strategy.Arm{{ID: "a", Parameters: []strategy.Parameter{{Name: "n",
			Values: []string{"1"}}}}},
	})
	choice := choose(t, l, strategy.Query{Item: "i"})
	c.Advance(25 * time.Hour)
	require.Equal(t, 1, sweep(t, l))
	c.Advance(time.Hour)
	for n := range 5 { // other items push it out of the parameter's history
		try(t, l, strategy.Query{Item: fmt.Sprint(n)}, "a", 1)
	}
	credit(t, l, choice, 1)
	assert.Equal(t, 6., massOf(kept(t, st, strategy.Query{}, "arm")))
	assert.Equal(t, 6.5, massOf(kept(t, st, strategy.Query{}, "parameter")))
	assert.Equal(t, strategy.Observed, record(t, l, choice.ID).Stage)
}

// One that is observed elsewhere after the sweep has read the choice stays alone, as it
// does where the sweep was quicker.
func TestAnOutcomeThatOvertakesASweep(t *testing.T) {
	for _, sure := range []bool{false, true} {
		st := &fragile{}
		cfg, c := recording(t, strategy.Config{Store: st, Silence: strategy.Silence{Confidence: 0.5},
			Disabled: sure})
		st.Store = newStore(t, c.Now)
		enabled := cfg
		enabled.Disabled = false
		elsewhere := newLearner(t, enabled)
		l := newLearner(t, cfg)
		choice := choose(t, elsewhere, strategy.Query{Item: "i"})
		c.Advance(25 * time.Hour)
		done := false
		st.before = func(context.Context, store.Batch) error {
			st.before, done = nil, true
			credit(t, elsewhere, choice, 1)
			return nil
		}
		assert.Zero(t, sweep(t, l))
		require.True(t, done)
		assert.Equal(t, 1., massOf(kept(t, cfg.Store, strategy.Query{}, "arm")))
		assert.Equal(t, strategy.Observed, record(t, l, choice.ID).Stage)
		assert.Zero(t, sweep(t, l))
	}
}

// TestSweepsAndOutcomesRace in two learners of many goroutines each: every choice then counts for
// its outcome, or else for its silence, and once.
func TestSweepsAndOutcomesRace(t *testing.T) {
	cfg, c := recording(t, strategy.Config{Silence: strategy.Silence{Confidence: 0.25},
		Pooling: strategy.Copy{Sessions: 1000}, Arms: injection.Arms()})
	learners := []*strategy.Learner{newLearner(t, cfg), newLearner(t, cfg)}
	const choices, goroutines = 200, 8
	made := make([]strategy.Choice, choices)
	parameters := 0.
	weight := func(n int) float64 { // every third never has an outcome
		if n%3 == 0 {
			return 0.25
		}
		return 1
	}
	for n := range made {
		made[n] = choose(t, learners[0], strategy.Query{Session: fmt.Sprint(n),
			Item: fmt.Sprint("i", n%5), Category: "c"})
		parameters += float64(len(made[n].Cells())-1) * weight(n)
	}
	c.Advance(25 * time.Hour)
	var wait sync.WaitGroup
	for g := range goroutines {
		wait.Go(func() {
			l := learners[g%2]
			if g < 4 {
				assert.NoError(t, l.Sweep(ctx, time.Time{}))
				return
			}
			for i := range made {
				n := (i*7 + g*50) % choices
				if n%3 == 0 {
					continue
				}
				_, err := l.Observe(ctx, strategy.Outcome{Choice: made[n], Value: 1, Confidence: 1})
				assert.NoError(t, err)
			}
		})
	}
	wait.Wait()
	q := strategy.Query{Category: "c"}
	stages := make(map[strategy.Stage]int)
	for _, r := range historyOf(t, learners[0], strategy.ChoiceFilter{}) {
		stages[r.Stage]++
	}
	assert.Equal(t, map[strategy.Stage]int{strategy.Expired: 67, strategy.Observed: 133}, stages)
	assert.Equal(t, 67*0.25+133, massOf(kept(t, cfg.Store, q, "arm")))
	assert.Equal(t, parameters, massOf(kept(t, cfg.Store, q, "parameter")))
	assert.Equal(t, 133., massOf(kept(t, cfg.Store, q, "sessions")))
}

// TestTwoLearnersExpireAChoiceOnce has two learners sweep one choice, where one may be behind the
// other.
func TestTwoLearnersExpireAChoiceOnce(t *testing.T) {
	cfg, c := recording(t, strategy.Config{Silence: strategy.Silence{Confidence: 0.5},
		Topic: "heed.strategy"})
	for n := range 20 {
		choose(t, newLearner(t, cfg), strategy.Query{Item: fmt.Sprint(n)})
	}
	c.Advance(25 * time.Hour)
	var wait sync.WaitGroup
	for range 4 {
		l := newLearner(t, cfg)
		wait.Go(func() { assert.NoError(t, l.Sweep(ctx, time.Time{})) })
	}
	wait.Wait()
	assert.Equal(t, 20, expired(t, newLearner(t, cfg)))
	assert.Equal(t, 10., massOf(kept(t, cfg.Store, strategy.Query{}, "arm")))
	told := make(map[string]int)
	for e, err := range stream.Waiting(ctx, cfg.Store) {
		require.NoError(t, err)
		told[e.ID[:7]]++
	}
	assert.Equal(t, map[string]int{"selecte": 20, "expired": 20}, told)
}

// TestASweepPassesOverWhatItCannotCount, tells of it, and tries again the next time.
func TestASweepPassesOverWhatItCannotCount(t *testing.T) {
	cfg, c := recording(t, strategy.Config{Silence: strategy.Silence{Confidence: 0.5}})
	l := newLearner(t, cfg)
	made := make(map[string]strategy.Choice)
	for _, category := range []string{"first", "odd", "last"} {
		made[category] = choose(t, l, strategy.Query{Item: "i", Category: category,
			Arms: []strategy.ArmID{"a"}})
		c.Advance(time.Minute)
	}
	odd := made["odd"].Cells()[0]
	_, err := cfg.Store.Commit(ctx, store.Batch{
		Policies:     map[string]evidence.Policy{odd.Kind: {HalfLife: time.Hour}},
		Observations: []evidence.Observation{{ID: "x", Cell: odd, Reward: 1, Weight: 1, At: c.Now()}},
	})
	require.NoError(t, err)
	c.Advance(25 * time.Hour)
	require.ErrorIs(t, l.Sweep(ctx, time.Time{}), heed.ErrConflict)
	assert.Equal(t, 2, expired(t, l))
	assert.Equal(t, strategy.Pending, record(t, l, made["odd"].ID).Stage)
	require.NoError(t, l.Reset(ctx, strategy.Reset{Category: "odd",
		Reason: "it has another half-life"}))
	assert.Equal(t, 1, sweep(t, l))
	assert.Equal(t, strategy.Expired, record(t, l, made["odd"].ID).Stage)
}

// A damaged choice stays, and later ones expire.
func TestASweepPassesOverADamagedChoice(t *testing.T) {
	cfg, c := recording(t, strategy.Config{Silence: strategy.Silence{Confidence: 0.5}})
	l := newLearner(t, cfg)
	choose(t, l, strategy.Query{Item: "i"})
	for r, err := range cfg.Store.Find(ctx, store.Query{Kind: "strategy.answer"}) {
		require.NoError(t, err)
		r.Body = store.Raw([]byte("[7]"))
		_, err = cfg.Store.Commit(ctx, store.Batch{Records: []store.Record{r}})
		require.NoError(t, err)
	}
	c.Advance(time.Minute)
	later := choose(t, l, strategy.Query{Item: "i"})
	c.Advance(25 * time.Hour)
	require.ErrorIs(t, l.Sweep(ctx, time.Time{}), heed.ErrDamaged)
	for r, err := range l.History(ctx, strategy.ChoiceFilter{Since: later.At}) {
		require.NoError(t, err)
		assert.Equal(t, strategy.Expired, r.Stage)
	}
}

// TestSilenceOfAnArmThatThereIsNoMore, or of a learner that is disabled, expires and counts for
// nothing.
func TestSilenceOfAnArmThatThereIsNoMore(t *testing.T) {
	for name, change := range map[string]func(*strategy.Config){
		"the arm is gone": func(cfg *strategy.Config) { cfg.Arms = plain("x") },
		"disabled":        func(cfg *strategy.Config) { cfg.Disabled = true },
	} {
		t.Run(name, func(t *testing.T) {
			cfg, c := recording(t, strategy.Config{Silence: strategy.Silence{Confidence: 0.5}})
			choose(t, newLearner(t, cfg), strategy.Query{Item: "i"})
			c.Advance(25 * time.Hour)
			change(&cfg)
			assert.Equal(t, 1, sweep(t, newLearner(t, cfg)))
			assert.Empty(t, everything(t, cfg.Store, strategy.Query{}))
		})
	}
}

func TestASweepEndsWithItsContext(t *testing.T) {
	cfg, c := recording(t, strategy.Config{})
	l := newLearner(t, cfg)
	choose(t, l, strategy.Query{Item: "i"})
	c.Advance(25 * time.Hour)
	done, cancel := contextDone()
	defer cancel()
	assert.Error(t, l.Sweep(done, time.Time{}))
	assert.Equal(t, 1, sweep(t, l))
}

// TestSilenceEndsTheBonus of an arm that one sample is enough for, though the segment is not read
// again.
func TestSilenceEndsTheBonus(t *testing.T) {
	cfg, c := recording(t, strategy.Config{
		Silence:     strategy.Silence{Confidence: 1},
		Exploration: strategy.Exploration{Bonus: 0.1, MinSamples: 1}, Refresh: 1000 * time.Hour,
	})
	l := newLearner(t, cfg)
	q := strategy.Query{Item: "i", Arms: []strategy.ArmID{"a"}}
	choose(t, l, q)
	c.Advance(25 * time.Hour)
	require.Equal(t, 1, sweep(t, l))
	for _, d := range choose(t, l, q).Record().Draws {
		assert.Zero(t, d.Bonus)
	}
}

// A late outcome takes the place of the silence among an arm's samples, without another reading of
// the segment.
func TestALateOutcomeIsOneSample(t *testing.T) {
	cfg, c := recording(t, strategy.Config{
		Silence: strategy.Silence{After: time.Hour, Confidence: 1}, Arms: plain("a", "b"),
		Exploration: strategy.Exploration{Bonus: 0.1, MinSamples: 2}, Refresh: 1000 * time.Hour,
	})
	st := &listing{Store: cfg.Store}
	cfg.Store = st
	l := newLearner(t, cfg)
	q := strategy.Query{Session: "s", Item: "i", Arms: []strategy.ArmID{"a"}}
	late := choose(t, l, q)
	c.Advance(2 * time.Hour)
	require.Equal(t, 1, sweep(t, l))
	lists := st.lists
	credit(t, l, late, 1)
	assert.Equal(t, []float64{0.1, 0.1}, bonuses(choose(t, l, strategy.Query{Item: "i"})))
	try(t, l, strategy.Query{Item: "i"}, "a", 1)
	assert.Equal(t, []float64{0, 0.1}, bonuses(choose(t, l, strategy.Query{Item: "i"})))
	assert.Equal(t, lists, st.lists)
}

// A listing store counts how often cells are listed.
type listing struct {
	store.Store
	lists int
}

func (s *listing) List(
	ctx context.Context, q store.CellQuery,
) iter.Seq2[evidence.Part, error] {
	s.lists++
	return s.Store.List(ctx, q)
}

// Late outcomes of several choices in one step take back the silence of each choice, once.
func TestLateOutcomesInOneStep(t *testing.T) {
	cfg, c := recording(t, strategy.Config{Silence: strategy.Silence{Confidence: 0.5}})
	l := newLearner(t, cfg)
	var late []strategy.Outcome
	for n := range 6 {
		o := strategy.Outcome{ID: fmt.Sprint(n), Value: 1, Confidence: 1}
		if o.Choice = choose(t, l, strategy.Query{Item: "i"}); n >= 3 {
			o.Choice = late[n-3].Choice
		}
		late = append(late, o)
	}
	c.Advance(25 * time.Hour)
	require.Equal(t, 6, sweep(t, l))
	did, err := l.ObserveAll(ctx, late, "", "")
	require.NoError(t, err)
	assert.NotContains(t, did, strategy.Duplicate)
	parts := kept(t, cfg.Store, strategy.Query{}, "arm")
	assert.InDelta(t, 6+3*0.5, massOf(parts), 1e-12, "three choices stay silent")
}

// A choice whose outcome was taken back had an outcome, so it expires and was not silent.
func TestNoSilenceAfterARetraction(t *testing.T) {
	cfg, c := recording(t, strategy.Config{Silence: strategy.Silence{Confidence: 0.5}})
	l := newLearner(t, cfg)
	choice := choose(t, l, strategy.Query{Item: "i"})
	credit(t, l, choice, 1)
	require.NoError(t, l.Retract(ctx, choice, []string{""}, "ann", "a mistake"))
	require.Equal(t, strategy.Pending, record(t, l, choice.ID).Stage)
	c.Advance(25 * time.Hour)
	assert.Equal(t, 1, sweep(t, l))
	assert.Empty(t, everything(t, cfg.Store, strategy.Query{}))
}
