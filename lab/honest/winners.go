package honest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/heedhq/heed/internal/winner"
	"github.com/heedhq/heed/lab/internal/kit"
)

// races are the worlds in which a winner is looked for: the success rates of their arms.
var races = [][]float64{
	{0.5, 0.6},
	{0.8, 0.75, 0.7, 0.5},
	{0.6, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5},
	{0.9, 0.8, 0.5, 0.1},
	{0.65, 0.6, 0.6, 0.4, 0.4},
}

const (
	miss      = 0.05 // the error that is allowed
	raceLimit = 500_000
)

// winners compares, under the same stop, how many outcomes it takes to find the best arm if all are tried equally often, and by package
// best's allocation. It counts how often the winner was not the best.
func winners(ctx context.Context, call *kit.Call, seed uint64) error {
	table := kit.NewTable(call.Out)
	fmt.Fprintln(table, "rates\tequal shares\twrong\ttop-two\twrong\tratio\ttop-two's loss of the equal shares'\t")
	worlds, ratios := races[:call.Pick(2, len(races))], 0.
	for n, rates := range worlds {
		runs, err := play(ctx, call.Pick(4, 1000), func(n uint64) (both [2]race, _ error) {
			for way := range both {
				both[way] = runRace(rates, way == 1, rand.New(rand.NewPCG(seed, 2*n+uint64(way))))
			}
			return both, nil
		})
		if err != nil {
			return err
		}
		var sum [2]race
		var wrong [2]float64
		for _, run := range runs {
			for way := range 2 {
				sum[way].samples += run[way].samples / float64(len(runs))
				sum[way].loss += run[way].loss / float64(len(runs))
				if rates[run[way].winner] < slices.Max(rates) {
					wrong[way] += 100 / float64(len(runs))
				}
			}
		}
		ratio := sum[1].samples / sum[0].samples
		ratios += ratio / float64(len(worlds))
		fmt.Fprintf(table, "%v\t%.0f\t%.1f %%\t%.0f\t%.1f %%\t%.2f\t%.0f %%\t\n", rates, sum[0].samples, wrong[0], sum[1].samples, wrong[1], ratio, 100*sum[1].loss/sum[0].loss)
		call.Progress(n+1, len(worlds))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(call.Out, "mean ratio %.2f\n", ratios)
	return err
}

// A race is what it took to find a winner.
type race struct {
	samples, loss float64
	winner        int
}

// runRace tries arms until there is a winner, with a look at each fiftieth that the outcomes have grown.
func runRace(rates []float64, topTwo bool, rng *rand.Rand) (r race) {
	records := make([]winner.Record, len(rates))
	shares := slices.Repeat([]float64{1 / float64(len(rates))}, len(rates))
	best, looked := slices.Max(rates), winner.Seen{}
	for r.winner = -1; r.winner < 0 && r.samples < raceLimit; {
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
		records[arm].Reward += toss(rates[arm], rng)
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
