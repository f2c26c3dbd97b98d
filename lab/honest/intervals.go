package honest

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/strategy"
)

// intervals counts how many true rates lie in the 90 % intervals that a learner reports of its items, by how alike the items are and
// how many there are. The arms are chosen uniformly, or by the learner.
func intervals(ctx context.Context, call *kit.Call, seed uint64) error {
	strengths, sizes := []float64{2, 3, 10, 30, 62, 100, 300}, []int{5, 20, 50, 200}
	type cell struct{ held, asked int }
	table := kit.NewTable(call.Out)
	fmt.Fprintln(table, "choices\tstrength\t5 items\t20 items\t50 items\t200 items\t")
	done := 0
	for _, by := range []string{"uniform", "Thompson"} {
		var all cell
		for _, strength := range strengths {
			fmt.Fprintf(table, "%s\t%v\t", by, strength)
			for _, items := range sizes {
				held, err := play(ctx, call.Pick(2, 120), func(n uint64) (c cell, err error) {
					rng := rand.New(rand.NewPCG(seed, n<<32|uint64(items)))
					c.held, c.asked, err = holds(items, strength, by == "uniform", rng)
					return c, err
				})
				if err != nil {
					return err
				}
				var sum cell
				for _, h := range held {
					sum.held += h.held
					sum.asked += h.asked
				}
				all.held += sum.held
				all.asked += sum.asked
				fmt.Fprintf(table, "%.1f %%\t", 100*float64(sum.held)/float64(sum.asked))
				done++
				call.Progress(done, 2*len(strengths)*len(sizes))
			}
			fmt.Fprintln(table)
		}
		fmt.Fprintf(table, "%s\tall\t%.1f %%\t\t\t\t\n", by, 100*float64(all.held)/float64(all.asked))
	}
	return table.Flush()
}

// holds plays one segment and counts the rates of five items that lie in their intervals.
func holds(items int, strength float64, uniform bool, rng *rand.Rand) (held, asked int, err error) {
	const arms, rounds, level = 4, 10, 0.9
	levels := make([]float64, arms)
	for arm := range levels {
		levels[arm] = rng.Float64()
	}
	rates := around(levels, items, strength, rng)
	learner, err := newLearner(arms, nil, rng.Uint64())
	if err != nil {
		return 0, 0, err
	}
	ctx := context.Background()
	for range rounds {
		for item, rate := range rates {
			q := strategy.Query{Item: fmt.Sprint(item)}
			if uniform {
				q.Arms = []strategy.ArmID{armID(rng.IntN(arms))}
			}
			c, err := learner.Select(ctx, q)
			if err != nil {
				return 0, 0, err
			}
			o := strategy.Outcome{Choice: c, Value: 2*toss(rate[armOf(&c)], rng) - 1, Confidence: 1}
			if _, err := learner.Observe(ctx, o); err != nil {
				return 0, 0, err
			}
		}
	}
	for item := 0; item < items; item += items / 5 {
		beliefs, err := learner.Beliefs(ctx, strategy.Query{Item: fmt.Sprint(item)})
		if err != nil {
			return 0, 0, err
		}
		for arm, b := range beliefs {
			low, high := b.Interval(level)
			if asked++; low <= rates[item][arm] && rates[item][arm] <= high {
				held++
			}
		}
	}
	return held, asked, nil
}
