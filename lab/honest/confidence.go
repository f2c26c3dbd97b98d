package honest

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/strategy"
)

// A reporter says what is heard of a choice: a reward of 0 or 1, and the confidence in it.
type reporter func(arm int, rate float64, rng *rand.Rand) (reward, confidence float64)

// reporters are the worlds of the study.
var reporters = []struct {
	name   string
	report reporter
}{
	{"all 1", surely(1)},
	{"all 0.5", surely(0.5)},
	{"all 0.3", surely(0.3)},
	{"silence of 0.3 for a failure", func(_ int, rate float64, rng *rand.Rand) (float64, float64) {
		good, said := toss(rate, rng), rng.Float64() < 0.5
		if said {
			return good, 1
		}
		return 0, 0.3
	}},
	{"silence of 0.3 for a success", func(_ int, rate float64, rng *rand.Rand) (float64, float64) {
		good, said := toss(rate, rng), rng.Float64() < 0.5
		if said {
			return good, 1
		}
		return 1, 0.3
	}},
	{"half unsure, right in 65 %", func(_ int, rate float64, rng *rand.Rand) (float64, float64) {
		if rng.IntN(2) == 0 {
			return doubtful(rate, 0.3, rng)
		}
		return toss(rate, rng), 1
	}},
	{"nine in ten unsure", func(_ int, rate float64, rng *rand.Rand) (float64, float64) {
		if rng.IntN(10) > 0 {
			return doubtful(rate, 0.3, rng)
		}
		return toss(rate, rng), 1
	}},
	{"two arms unsure", func(arm int, rate float64, rng *rand.Rand) (float64, float64) {
		if arm < 2 {
			return doubtful(rate, 0.3, rng)
		}
		return toss(rate, rng), 1
	}},
	{"of every confidence", func(_ int, rate float64, rng *rand.Rand) (float64, float64) {
		return doubtful(rate, 0.3+0.7*rng.Float64(), rng)
	}},
}

func surely(confidence float64) reporter {
	return func(_ int, rate float64, rng *rand.Rand) (float64, float64) { return toss(rate, rng), confidence }
}

// doubtful is an outcome that is true with the probability of its confidence, and a toss of a coin otherwise.
func doubtful(rate, confidence float64, rng *rand.Rand) (float64, float64) {
	if rng.Float64() < confidence {
		return toss(rate, rng), confidence
	}
	return toss(0.5, rng), confidence
}

// counting is a pooling whose outcomes are counted in another way.
type counting struct {
	strategy.Pooling
	as func(evidence.Sums) evidence.Sums
}

// byWeight counts each outcome by its weight. It does so by giving Σw² the value of Σw.
func byWeight(s evidence.Sums) evidence.Sums {
	s.Squares = s.Mass
	return s
}

// byEffective has the outcomes of an item's arm count by their effective number (Kish), each of them for one.
func byEffective(s evidence.Sums) evidence.Sums {
	if s.Mass <= 0 {
		return s
	}
	n := s.Effective(0.3)
	each := n / s.Mass
	return evidence.Sums{Mass: n, Squares: n, Reward: s.Reward * each, RewardSquares: s.RewardSquares * each}
}

func (c counting) item(item strategy.Item) strategy.Item {
	arms := make([]evidence.Sums, len(item.Arms))
	for i, arm := range item.Arms {
		arms[i] = c.as(arm)
	}
	return strategy.Item{Arms: arms}
}

// Model implements [strategy.Pooling].
func (c counting) Model(segment strategy.Segment, items []strategy.Item) strategy.Model {
	counted := make([]strategy.Item, len(items))
	for i, item := range items {
		counted[i] = c.item(item)
	}
	return countingModel{c.Pooling.Model(segment, counted), c}
}

type countingModel struct {
	strategy.Model
	counting counting
}

// Update implements [strategy.Model].
func (m countingModel) Update(arm int, before, after evidence.Sums) bool {
	return m.Model.Update(arm, m.counting.as(before), m.counting.as(after))
}

// Believe implements [strategy.Model].
func (m countingModel) Believe(item strategy.Item, beliefs []strategy.Belief) {
	m.Model.Believe(m.counting.item(item), beliefs)
}

// confidence compares three ways to count outcomes by their confidence, in worlds with equal and unequal ones.
func confidence(ctx context.Context, s setting, out io.Writer) error {
	table := newTable(out)
	fmt.Fprintln(table, "pooling\toutcomes\tby the segment's scale\tby weight\tover scale\tby effective number\tover scale\t")
	poolings := []struct {
		pooling strategy.Pooling
		items   int
		rounds  int
	}{{strategy.TwoLevel{}, 20, 50}, {strategy.Alone{}, 4, 250}}
	for n, p := range poolings {
		rules := []strategy.Pooling{p.pooling, counting{p.pooling, byWeight}, counting{p.pooling, byEffective}}
		for i, world := range reporters {
			each := make([][3]float64, s.runs(60, 2))
			err := kit.Parallel(ctx, len(each), func(int, int) {}, func(run int) (err error) {
				for j, rule := range rules {
					each[run][j], err = regretOf(rule, p.items, p.rounds, world.report, s.seed, uint64(run))
					if err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			var means [3]float64
			more := [3][]float64{}
			for _, e := range each {
				for j := range e {
					means[j] += e[j] / float64(len(each))
					more[j] = append(more[j], e[j]-e[0])
				}
			}
			fmt.Fprintf(table, "%v\t%s\t%.2f\t", p.pooling, world.name, means[0])
			for j := 1; j < 3; j++ {
				_, ci := kit.Mean(more[j])
				fmt.Fprintf(table, "%.2f\t%.2f ±%.2f\t", means[j], means[j]/means[0], ci/means[0])
			}
			fmt.Fprintln(table)
			s.progress(n*len(reporters)+i+1, len(poolings)*len(reporters))
		}
	}
	return table.Flush()
}

// regretOf plays one segment and returns the regret for each item.
func regretOf(pooling strategy.Pooling, items, rounds int, report reporter, seed, run uint64) (regret float64, err error) {
	rng := rand.New(rand.NewPCG(seed, run))
	levels := make([]float64, 4)
	for arm := range levels {
		levels[arm] = 0.2 + 0.6*rng.Float64()
	}
	rates := around(levels, items, 10, rng)
	learner, err := newLearner(len(levels), pooling, rng.Uint64())
	if err != nil {
		return 0, err
	}
	ctx := context.Background()
	for range rounds {
		for item, rate := range rates {
			c, err := learner.Select(ctx, strategy.Query{Item: fmt.Sprint(item)})
			if err != nil {
				return 0, err
			}
			best, arm := 0., armOf(&c)
			for _, r := range rate {
				best = max(best, r)
			}
			regret += (best - rate[arm]) / float64(items)
			reward, sure := report(arm, rate[arm], rng)
			if _, err := learner.Observe(ctx, strategy.Outcome{Choice: c, Value: 2*reward - 1, Confidence: sure}); err != nil {
				return 0, err
			}
		}
	}
	return regret, nil
}
