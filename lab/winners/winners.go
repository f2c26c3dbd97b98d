// Package winners measures races for the best arm: how many outcomes it takes to find it if all
// arms are tried equally often, and by package best's allocation, and how often the winner was not
// the best.
//
//	go run ./lab winners [-long] [-seed S]
//
// Of two arms, equal shares are nearly the best allocation, so nothing can be gained there. Of one
// arm that is better than nine equal ones, the best allocation needs about 0.8 of their outcomes.
//
// The long form takes minutes.
package winners

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/heedhq/heed/internal/winner"
	"github.com/heedhq/heed/lab/internal/kit"
)

// worlds are the success rates of their arms.
var worlds = [][]float64{
	{0.5, 0.6},
	{0.8, 0.75, 0.7, 0.5},
	{0.6, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5},
	{0.9, 0.8, 0.5, 0.1},
	{0.65, 0.6, 0.6, 0.4, 0.4},
}

const (
	miss  = 0.05 // the error that is allowed
	limit = 500_000
)

// Run runs 4 races of each kind in two worlds, and in the long form 1,000 in each world. Both kinds
// stop by the same test.
func Run(ctx context.Context, call *kit.Call) (err error) {
	defer kit.Catch(&err)
	races := call.Count("races", 4, 1000, "how many races of each kind a world has")
	seed := call.Uint64("seed", 2026, "the seed of the races")
	kit.Check(call.Parse())
	table := kit.NewTable(call.Out)
	fmt.Fprintln(table, "rates\tequal shares\twrong\ttop-two\twrong\tratio\ttop-two's loss of "+
		"the equal shares'\t")
	for _, rates := range worlds[:call.Pick(2, len(worlds))] {
		var all [2][]race // with equal shares, and by top-two sampling
		for way := range all {
			all[way] = make([]race, *races)
		}
		kit.Parallel(ctx, 2**races, func(job int) {
			all[job%2][job/2] = run(rates, job%2 == 1, rand.New(rand.NewPCG(*seed, uint64(job))))
		})
		var samples, loss, wrong [2]kit.Estimate
		for way, races := range all {
			samples[way] = kit.MeanOf(races, func(r *race) float64 { return r.samples })
			loss[way] = kit.MeanOf(races, func(r *race) float64 { return r.loss })
			wrong[way] = kit.MeanOf(races, func(r *race) float64 {
				if r.winner < 0 || rates[r.winner] < slices.Max(rates) {
					return 1
				}
				return 0
			})
		}
		fmt.Fprintf(table, "%v\t%s\t%s\t%s\t%s\t%.2f\t%.0f %%\t\n", rates, samples[0],
			wrong[0].Percent(), samples[1],
			wrong[1].Percent(), samples[1].Mean/samples[0].Mean, 100*loss[1].Mean/loss[0].Mean)
	}
	return table.Flush()
}

// A race is what it took to find a winner.
type race struct {
	samples, loss float64
	winner        int
}

// run tries arms until there is a winner, with a look at each fiftieth that the outcomes have
// grown.
func run(rates []float64, topTwo bool, rng *rand.Rand) (r race) {
	records := make([]winner.Record, len(rates))
	shares := slices.Repeat([]float64{1 / float64(len(rates))}, len(rates))
	best, looked := slices.Max(rates), winner.Seen{}
	for r.winner = -1; r.winner < 0 && r.samples < limit; {
		if now := (winner.Seen{Outcomes: r.samples}); looked.Due(now) {
			looked = now
			if r.winner = winner.Stop(records, miss, 0); topTwo {
				shares = winner.Shares(records)
			}
		}
		arm := int(r.samples) % len(rates)
		if topTwo {
			arm = pick(shares, rng)
		}
		records[arm].Mass++
		if rng.Float64() < rates[arm] {
			records[arm].Reward++
		}
		r.samples++
		r.loss += best - rates[arm]
	}
	return r
}

// pick draws an arm by the shares.
func pick(shares []float64, rng *rand.Rand) int {
	left := rng.Float64()
	for arm, share := range shares {
		if left -= share; left < 0 {
			return arm
		}
	}
	return len(shares) - 1
}
