package honest

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/offpolicy"
)

// offPolicy counts how many intervals of the log of a learner hold: of what each arm alone would have earned, and of all in equal
// shares. Beside it are intervals by the normal approximation, and how many logs these must refuse, as the log is worth fewer than 30
// choices of the other policy's own.
func offPolicy(ctx context.Context, s setting, out io.Writer) error {
	const rounds = 1000
	problems := [][]float64{{0.5, 0.5}, {0.7, 0.2}, {0.6, 0.5}, {0.9, 0.8, 0.5, 0.1}}
	table := newTable(out)
	fmt.Fprintln(table, "rates\tpolicy\tholds\tmean width\tnormal holds\tof those with 30\trefused\tmean width\t")
	for n, rates := range problems {
		logs := make([][]entry, s.runs(200, 4))
		err := kit.Parallel(ctx, len(logs), func(int, int) {}, func(run int) (err error) {
			logs[run], err = learnersLog(rates, rounds, rand.New(rand.NewPCG(s.seed, uint64(run))))
			return err
		})
		if err != nil {
			return err
		}
		for target := range len(rates) + 1 {
			name, policy := "equal shares", slices.Repeat([]float64{1 / float64(len(rates))}, len(rates))
			if target < len(rates) {
				name, policy = fmt.Sprint("arm ", target), make([]float64, len(rates))
				policy[target] = 1
			}
			sum, err := judge(logs, rates, policy)
			if err != nil {
				return err
			}
			all := float64(len(logs))
			fmt.Fprintf(table, "%v\t%s\t%.1f %%\t%.2f\t%.1f %%\t%.1f %%\t%.0f %%\t%.2f\t\n", rates, name, 100*sum.held/all, sum.width/all,
				100*sum.normal/all, 100*sum.enoughHeld/max(sum.enough, 1), 100*(1-sum.enough/all), sum.normalWidth/all)
		}
		s.progress(n+1, len(problems))
	}
	return table.Flush()
}

// An entry is a choice of a learner, and what came of it.
type entry struct {
	arm                int
	propensity, reward float64
}

func learnersLog(rates []float64, rounds int, rng *rand.Rand) (log []entry, err error) {
	learner, err := newLearner(len(rates), strategy.Alone{}, rng.Uint64())
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	for range rounds {
		c, err := learner.Select(ctx, strategy.Query{})
		if err != nil {
			return nil, err
		}
		arm := armOf(&c)
		e := entry{arm, c.Propensity(), toss(rates[arm], rng)}
		log = append(log, e)
		if _, err := learner.Observe(ctx, strategy.Outcome{Choice: c, Value: 2*e.reward - 1, Confidence: 1}); err != nil {
			return nil, err
		}
	}
	return log, nil
}

// verdicts are sums over logs.
type verdicts struct{ held, width, normal, normalWidth, enough, enoughHeld float64 }

// judge asks every log what a policy would have earned.
func judge(logs [][]entry, rates, policy []float64) (sum verdicts, err error) {
	truth := 0.
	for arm, share := range policy {
		truth += share * rates[arm]
	}
	holds := func(low, high float64) float64 {
		if low <= truth && truth <= high {
			return 1
		}
		return 0
	}
	for _, log := range logs {
		logged := make([]offpolicy.Logged, len(log))
		for i, e := range log {
			logged[i] = offpolicy.Logged{Propensity: e.propensity, Target: policy[e.arm], Reward: e.reward}
		}
		e, err := offpolicy.SelfNormalized(logged, 0.9)
		if err != nil {
			return sum, err
		}
		sum.held += holds(e.Low, e.High)
		sum.width += e.High - e.Low
		low, high := normal(logged)
		sum.normal += holds(low, high)
		sum.normalWidth += high - low
		if e.Effective >= 30 {
			sum.enough++
			sum.enoughHeld += holds(low, high)
		}
	}
	return sum, nil
}

// normal is the 90 % interval of the self-normalised estimate by the normal approximation.
func normal(log []offpolicy.Logged) (low, high float64) {
	var weights, rewards, squares float64
	for _, l := range log {
		weights += l.Target / l.Propensity
		rewards += l.Target / l.Propensity * l.Reward
	}
	if weights == 0 {
		return 0, 0
	}
	value := rewards / weights
	for _, l := range log {
		term := l.Target / l.Propensity * (l.Reward - value)
		squares += term * term
	}
	half := 1.645 * math.Sqrt(squares) / weights
	return value - half, value + half
}
