package main

import (
	"context"
	"math"
	"runtime"
	"sync"
)

// points is how many points of each learning curve are kept.
const points = 60

// A study is what all policies earned, over some runs. Its JSON has the policies' totals; rewards and regrets are means
// over the runs of the sums over all tasks.
type study struct {
	Tasks    int      `json:"tasks"`
	Items    int      `json:"items"`
	Runs     int      `json:"runs"`
	Price    float64  `json:"price"`
	Policies []result `json:"policies"`

	table *table
	// settled is the arm that heed found to be best for each item, and best the one that is.
	settled, best []int
}

type result struct {
	Name       string  `json:"name"`
	RewardMean float64 `json:"reward_mean"`
	RegretMean float64 `json:"regret_mean"`
	RegretCI95 float64 `json:"regret_ci95"` // half the width of the 95 % confidence interval of the mean

	curve [points + 1]float64 // the mean regret so far, after equal parts of the stream
}

// run plays every policy in every run, on all processors, and reports its progress after each.
func run(ctx context.Context, t *table, price float64, runs int, seed uint64, progress func(done, of int)) (*study, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &study{Tasks: len(t.tasks), Items: len(t.items), Runs: runs, Price: price, table: t, best: t.best(price)}
	all := policies(t)
	curves := make([][][points + 1]float64, len(all)) // of regret, by policy and run
	rewards := make([][]float64, len(all))
	for i := range all {
		curves[i], rewards[i] = make([][points + 1]float64, runs), make([]float64, runs)
	}
	var (
		wait    sync.WaitGroup
		mu      sync.Mutex
		done    int
		failure error
	)
	jobs := make(chan [2]int)
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for job := range jobs {
				i, n := job[0], job[1]
				r := replay{t, price, seed, n}
				err := all[i].play(ctx, r, s.keep(&curves[i][n], &rewards[i][n]))
				mu.Lock()
				if done++; err == nil {
					progress(done, len(all)*runs)
				} else if failure == nil {
					failure = err
					cancel()
				}
				mu.Unlock()
			}
		})
	}
	for n := range runs {
		for i := range all {
			jobs <- [2]int{i, n}
		}
	}
	close(jobs)
	wait.Wait()
	if failure != nil {
		return nil, failure
	}
	for i, policy := range all {
		s.Policies = append(s.Policies, summarize(policy.name, curves[i], rewards[i]))
	}
	var err error
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
	n := float64(len(curves))
	for i := range curves {
		r.RewardMean += rewards[i] / n
		r.RegretMean += curves[i][points] / n
		for j, regret := range curves[i] {
			r.curve[j] += regret / n
		}
	}
	if n > 1 {
		var squares float64
		for i := range curves {
			d := curves[i][points] - r.RegretMean
			squares += d * d
		}
		r.RegretCI95 = 1.96 * math.Sqrt(squares/(n-1)/n)
	}
	return r
}
