package honest

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/money"
)

// A market is arms with their rates of success and their mean costs. A cost lies between half and one and a half of the mean.
type market struct {
	rates, costs []float64
}

var markets = []market{
	{[]float64{0.8, 0.85}, []float64{1, 10}},
	{[]float64{0.6, 0.9}, []float64{1, 10}},
	{[]float64{0.7, 0.75, 0.3}, []float64{1, 5, 0.2}},
}

// saved counts how many intervals hold of what a learner's choices saved against always using each arm, and of the reward that they gained. Its
// reward takes the cost off, so that it leaves dear arms. Logs have 1,000 choices.
func saved(ctx context.Context, call *kit.Call, seed uint64) error {
	rounds := call.Pick(200, 1000)
	table := kit.NewTable(call.Out)
	fmt.Fprintln(table, "rates\tcosts\talways\tsaved a choice\tholds\twidth\tgained\tholds\twidth\t")
	for n, m := range markets {
		logs, err := play(ctx, call.Pick(4, 200), func(n uint64) ([]money.Charge, error) {
			return m.log(rounds, rand.New(rand.NewPCG(seed, n)))
		})
		if err != nil {
			return err
		}
		for arm := range m.rates {
			sum, err := m.judge(logs, arm)
			if err != nil {
				return err
			}
			all := float64(len(logs))
			fmt.Fprintf(table, "%v\t%v\t%d\t%.2f\t%.1f %%\t%.2f\t%+.2f\t%.1f %%\t%.2f\t\n", m.rates, m.costs, arm,
				sum.saved/all, 100*sum.savedHeld/all, sum.savedWidth/all, sum.gained/all, 100*sum.gainedHeld/all, sum.gainedWidth/all)
		}
		call.Progress(n+1, len(markets))
	}
	return table.Flush()
}

// log has a learner make choices.
func (m market) log(rounds int, rng *rand.Rand) (log []money.Charge, err error) {
	learner, err := newLearner(len(m.rates), strategy.Alone{}, rng.Uint64())
	if err != nil {
		return nil, err
	}
	ctx, reward := context.Background(), money.Reward{Cost: 0.02}
	for range rounds {
		c, err := learner.Select(ctx, strategy.Query{})
		if err != nil {
			return nil, err
		}
		arm := armOf(&c)
		e := money.Charge{Arm: c.Arm, Propensity: c.Propensity(), Quality: toss(m.rates[arm], rng), Cost: m.costs[arm] * (0.5 + rng.Float64())}
		log = append(log, e)
		o := strategy.Outcome{Choice: c, Value: 2*e.Quality - 1, Confidence: 1, Cost: e.Cost}
		o.Value = reward.Value(o)
		if _, err := learner.Observe(ctx, o); err != nil {
			return nil, err
		}
	}
	return log, nil
}

// savings are sums over logs, of what was saved for each choice.
type savings struct{ saved, savedHeld, savedWidth, gained, gainedHeld, gainedWidth float64 }

// judge asks every log what an arm alone would have changed.
func (m market) judge(logs [][]money.Charge, arm int) (sum savings, err error) {
	for _, log := range logs {
		s, err := money.Compare(log, []strategy.ArmID{armID(arm)}, 0.9)
		if err != nil {
			return sum, err
		}
		n, in := float64(len(log)), s.Arms[0]
		held := func(b money.Bounds, truth float64) float64 {
			if b.Low <= truth && truth <= b.High {
				return 1
			}
			return 0
		}
		sum.saved += in.Saved.Value / n
		sum.savedHeld += held(in.Saved, n*m.costs[arm]-s.Cost)
		sum.savedWidth += (in.Saved.High - in.Saved.Low) / n
		sum.gained += in.Gained.Value
		sum.gainedHeld += held(in.Gained, s.Quality-m.rates[arm])
		sum.gainedWidth += in.Gained.High - in.Gained.Low
	}
	return sum, nil
}
