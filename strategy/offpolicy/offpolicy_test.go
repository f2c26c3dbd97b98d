package offpolicy_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/offpolicy"
)

type estimator = func([]offpolicy.Logged, float64) (offpolicy.Estimate, error)

var estimators = map[string]estimator{
	"inverse propensity": offpolicy.InversePropensity,
	"self-normalised":    offpolicy.SelfNormalized,
	"doubly robust":      offpolicy.DoublyRobust,
}

// simulate logs choices of Thompson sampling with fixed beliefs, for a target policy that prefers another arm, with a
// model that is wrong by a little.
func simulate(rng *rand.Rand, n int) (log []offpolicy.Logged, truth float64) {
	beliefs := []evidence.Beta{{Alpha: 4, Beta: 3}, {Alpha: 5, Beta: 6}, {Alpha: 2, Beta: 3}}
	rates := []float64{0.55, 0.7, 0.3}
	target := []float64{0.15, 0.8, 0.05}
	predicted := []float64{0.5, 0.6, 0.4}
	propensities := evidence.ProbBest(beliefs)
	var baseline float64
	for arm := range rates {
		truth += target[arm] * rates[arm]
		baseline += target[arm] * predicted[arm]
	}
	for range n {
		best, most := 0, -1.
		for arm, belief := range beliefs {
			if x := draw(belief, rng); x > most {
				best, most = arm, x
			}
		}
		l := offpolicy.Logged{Propensity: propensities[best], Target: target[best], Predicted: predicted[best], Baseline: baseline}
		if rng.Float64() < rates[best] {
			l.Reward = 1
		}
		log = append(log, l)
	}
	return log, truth
}

// TestIntervalsCover asks each estimator 1,500 times: the truth lies in its 90 % interval nine times of ten, give
// or take three standard errors and what the normal approximation costs.
func TestIntervalsCover(t *testing.T) {
	const times, n = 1500, 400
	for name, estimate := range estimators {
		rng := rand.New(rand.NewPCG(1, 2))
		var covered, bias, width float64
		for range times {
			log, truth := simulate(rng, n)
			e, err := estimate(log, 0.9)
			require.NoError(t, err)
			if e.Low <= truth && truth <= e.High {
				covered++
			}
			bias += (e.Value - truth) / times
			width += (e.High - e.Low) / times
			assert.True(t, e.Effective > 50 && e.Effective < n)
		}
		assert.InDelta(t, 0.9, covered/times, 0.03, name)
		assert.InDelta(t, 0, bias, 0.005, name)
		t.Logf("%s: covers %.3f, mean width %.3f, bias %.4f", name, covered/times, width, bias)
	}
}

// TestOfALearnersLog asks what each arm alone would have earned, of the logs of learners that learn meanwhile. Where
// the log is worth thirty choices to an arm, its interval holds the truth nine times of ten; where it is worth a few, as of
// an arm that was given up, it does not. The bound is three standard errors.
func TestOfALearnersLog(t *testing.T) {
	t.Parallel()
	const times, rounds, enough = 120, 100, 30
	arms := []strategy.Arm{{ID: "a"}, {ID: "b"}}
	for _, rates := range [][]float64{{0.5, 0.5}, {0.7, 0.2}} {
		covered, asked := make(map[string]float64), 0.
		hidden, given := 0., 0. // of the interval that has no bias, where too little is known
		for run := range uint64(times) {
			l := newLearner(t, strategy.Config{Arms: arms, Pooling: strategy.Alone{}, Seed: rand.NewPCG(run, 5)})
			rng := rand.New(rand.NewPCG(run, 6))
			logs := make([][]offpolicy.Logged, len(arms))
			for range rounds {
				c := choose(t, l, strategy.Query{Item: "i"})
				entry := offpolicy.Logged{Propensity: c.Propensity(), Predicted: 0.5, Baseline: 0.5}
				if rng.Float64() < rates[slices.IndexFunc(arms, func(a strategy.Arm) bool { return a.ID == c.Arm })] {
					entry.Reward = 1
				}
				for i, arm := range arms {
					entry.Target = 0
					if arm.ID == c.Arm {
						entry.Target = 1
					}
					logs[i] = append(logs[i], entry)
				}
				credit(t, l, c, 2*entry.Reward-1)
			}
			for i, log := range logs {
				for name, estimate := range estimators {
					e, err := estimate(log, 0.9)
					require.NoError(t, err)
					holds := 0.
					if e.Low <= rates[i] && rates[i] <= e.High {
						holds = 1
					}
					if e.Effective >= enough {
						covered[name] += holds
						asked += 1 / float64(len(estimators))
					} else if name == "inverse propensity" {
						given++
						hidden += 1 - holds
					}
				}
			}
		}
		for name, n := range covered {
			assert.InDelta(t, 0.9, n/asked, 0.08, "%s, %v: of %v", name, rates, asked)
		}
		if rates[0] != rates[1] {
			assert.Greater(t, hidden/given, 0.5, "of an arm that was given up")
		}
		t.Logf("%v: %v of %.0f, and with too few, %.2f of %.0f are missed", rates, covered, asked, hidden/given, given)
	}
}

// TestOfTheSamePolicy: a policy that is the logging policy earns what was earned.
func TestOfTheSamePolicy(t *testing.T) {
	log := []offpolicy.Logged{{Propensity: 0.5, Target: 0.5, Reward: 1}, {Propensity: 0.2, Target: 0.2}, {Propensity: 1, Target: 1, Reward: 0.5}}
	for _, name := range []string{"inverse propensity", "self-normalised"} {
		e, err := estimators[name](log, 0.95)
		require.NoError(t, err)
		assert.InDelta(t, 0.5, e.Value, 1e-12, name)
		assert.InDelta(t, 3, e.Effective, 1e-12, name)
		// 1.96 · 0.5 / √3
		assert.InDelta(t, 0.5-0.5658, e.Low, 1e-4, name)
	}
}

// TestWithAPerfectModel: where the model knows all, the doubly robust estimate is sure.
func TestWithAPerfectModel(t *testing.T) {
	log := []offpolicy.Logged{{Propensity: 0.1, Target: 0.9, Reward: 0.7, Predicted: 0.7, Baseline: 0.6}, {Propensity: 0.9, Target: 0.1, Reward: 0.2, Predicted: 0.2, Baseline: 0.6}}
	e, err := offpolicy.DoublyRobust(log, 0.9)
	require.NoError(t, err)
	assert.Equal(t, 0.6, e.Value)
	assert.Equal(t, e.Low, e.High)
}

func TestOfWhatWasNeverChosen(t *testing.T) {
	log := []offpolicy.Logged{{Propensity: 0.5, Reward: 1}, {Propensity: 0.5, Reward: 1}}
	for name, estimate := range estimators {
		e, err := estimate(log, 0.9)
		require.NoError(t, err)
		assert.Zero(t, e.Value, name)
		assert.Zero(t, e.Effective, name)
	}
}

// TestIsFinite: whatever the log, an estimate is a number, or an error.
func TestIsFinite(t *testing.T) {
	finite := func(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
	share := rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 5e-324, 1e-308, 1e-200, 1e-100, 1e-99, 1}))
	rapid.Check(t, func(t *rapid.T) {
		log := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) offpolicy.Logged {
			return offpolicy.Logged{
				Propensity: share.Draw(t, "propensity"), Target: share.Draw(t, "target"), Reward: share.Draw(t, "reward"),
				Predicted: share.Draw(t, "predicted"), Baseline: share.Draw(t, "baseline"),
			}
		}), 2, 6).Draw(t, "log")
		for name, estimate := range estimators {
			if e, err := estimate(log, 0.9); err == nil {
				assert.True(t, finite(e.Value) && finite(e.Low) && finite(e.High) && finite(e.Effective), "%s: %+v", name, e)
				assert.True(t, e.Low <= e.Value && e.Value <= e.High && e.Effective >= 0, "%s: %+v", name, e)
			}
		}
	})
}

func TestFaults(t *testing.T) {
	good := offpolicy.Logged{Propensity: 0.5, Target: 0.5, Reward: 1}
	for field, spoil := range map[string]func(*offpolicy.Logged){
		"log[1].Propensity": func(l *offpolicy.Logged) { l.Propensity = 0 },
		"log[1].Target":     func(l *offpolicy.Logged) { l.Target = math.NaN() },
		"log[1].Reward":     func(l *offpolicy.Logged) { l.Reward = math.Inf(1) },
	} {
		bad := good
		spoil(&bad)
		for name, estimate := range estimators {
			_, err := estimate([]offpolicy.Logged{good, bad}, 0.9)
			var fault *heed.InputError
			require.ErrorAs(t, err, &fault, name)
			assert.Equal(t, field, fault.Field)
		}
	}
	for name, estimate := range estimators {
		for _, unknown := range []float64{1e-200, math.NaN()} {
			_, err := estimate([]offpolicy.Logged{good, {Propensity: unknown, Target: 1}}, 0.9)
			assert.ErrorContains(t, err, "log[1].Propensity", name)
		}
	}
	for _, l := range []offpolicy.Logged{{Propensity: 1, Predicted: 2}, {Propensity: 1, Baseline: -1}} {
		_, err := offpolicy.DoublyRobust([]offpolicy.Logged{good, l}, 0.9)
		assert.Error(t, err)
	}
	for name, estimate := range estimators {
		_, err := estimate([]offpolicy.Logged{good}, 0.9)
		assert.ErrorContains(t, err, "at least two", name)
		_, err = estimate([]offpolicy.Logged{good, good}, 1)
		assert.ErrorContains(t, err, "level", name)
	}
}

var ctx = context.Background()

// newLearner returns a learner of four arms that stand still in time, if the configuration does not say otherwise.
func newLearner(t testing.TB, cfg strategy.Config) *strategy.Learner {
	cfg.Now = func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
	st, err := memstore.New(memstore.Config{Now: cfg.Now})
	require.NoError(t, err)
	cfg.Store = st
	if cfg.Seed == nil {
		cfg.Seed = rand.NewPCG(1, 2)
	}
	l, err := strategy.New(ctx, cfg)
	require.NoError(t, err)
	return l
}

func choose(t testing.TB, l *strategy.Learner, q strategy.Query) strategy.Choice {
	c, err := l.Select(ctx, q)
	require.NoError(t, err)
	return c
}

// credit observes an outcome of full confidence.
func credit(t testing.TB, l *strategy.Learner, c strategy.Choice, value float64) {
	_, err := l.Observe(ctx, strategy.Outcome{Choice: c, Value: value, Confidence: 1})
	require.NoError(t, err)
}

// draw draws a rate from a belief.
func draw(b evidence.Beta, rng *rand.Rand) float64 {
	s, r := b.Sampler(), evidence.Rand{State: rng.Uint64()}
	return s.Draw(&r)
}
