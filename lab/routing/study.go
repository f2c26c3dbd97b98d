package routing

import (
	"context"

	"github.com/heedhq/heed/lab/internal/kit"
)

// points is how many points of each learning curve are kept.
const points = 60

// A study is what all policies earned, over some runs. Its JSON has the policies' totals; rewards and regrets are means
// over the runs of the sums over all tasks.
type study struct {
	Tasks    int
	Items    int
	Runs     int
	Price    float64
	Policies []result
	Curve    []point // see [table.drawCurve]

	table *table
	// settled is the arm that heed found to be best for each item, and best the one that is.
	settled, best []int
}

type result struct {
	Name       string
	RewardMean float64
	RegretMean float64
	RegretCI95 float64 // half the width of the 95 % confidence interval of the mean

	curve [points + 1]float64 // the mean regret so far, after equal parts of the stream
}

// run plays every policy in every run, on all processors, and reports its progress after each.
func run(ctx context.Context, t *table, price float64, runs int, seed uint64, progress func(done, of int)) (*study, error) {
	s := &study{Tasks: len(t.tasks), Items: len(t.items), Runs: runs, Price: price, table: t, best: t.best(price)}
	all := policies(t)
	curves := make([][][points + 1]float64, len(all)) // of regret, by policy and run
	rewards := make([][]float64, len(all))
	for i := range all {
		curves[i], rewards[i] = make([][points + 1]float64, runs), make([]float64, runs)
	}
	err := kit.Parallel(ctx, len(all)*runs, progress, func(job int) error {
		i, n := job%len(all), job/len(all)
		return all[i].play(ctx, replay{t, price, seed, n}, s.keep(&curves[i][n], &rewards[i][n]))
	})
	if err != nil {
		return nil, err
	}
	for i, policy := range all {
		s.Policies = append(s.Policies, summarize(policy.name, curves[i], rewards[i]))
	}
	s.settled, err = replay{t, price, seed, 0}.settled(ctx)
	return s, err
}

// keep returns a function that takes the choices of one run, and adds up what they earned and what the best arm of each
// item would have earned on top.
func (s *study) keep(curve *[points + 1]float64, reward *float64) func(task, arm int) float64 {
	played, regret, next := 0, 0., 1
	return func(task, arm int) float64 {
		earned := s.table.reward(task, arm, s.Price)
		*reward += earned
		regret += s.table.reward(task, s.best[s.table.tasks[task].item], s.Price) - earned
		played++
		for ; next <= points && next*s.Tasks <= played*points; next++ {
			curve[next] = regret
		}
		return earned
	}
}

func summarize(name string, curves [][points + 1]float64, rewards []float64) result {
	r := result{Name: name}
	regrets := make([]float64, len(curves))
	for i := range curves {
		regrets[i] = curves[i][points]
		for j, regret := range curves[i] {
			r.curve[j] += regret / float64(len(curves))
		}
	}
	r.RewardMean, _ = kit.Mean(rewards)
	r.RegretMean, r.RegretCI95 = kit.Mean(regrets)
	return r
}
