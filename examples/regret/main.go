// Regret measures how much is lost by learning. heed's poolings, and other rules beside them, choose in simulated worlds whose truth
// is known.
//
// Usage:
//
//	go run ./examples/regret [-quick] [-seed S] [-json]
//	go run ./examples/regret -context [-runs N] [-topics N] [-noise X] [-all] [-quick] [-seed S] [-json]
//
// With -context requests have a vector, and arms differ by it: by topic, for a few topics, linearly, or not at all. The policies are heed without
// the context, with the true topic as the item, and with partitions of the vectors; and a linear Thompson learner. The ratio is to no context.
//
// Without -quick it takes long enough to go and have a meal. Regret is for each item: how much more the best arm would
// have earned, summed over the rounds. Worlds "s=…" have 200 items and four arms, whose rates for an item are Beta
// distributed around the segment's with strength s: with a small s items differ, with a great one they are alike.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/heedhq/heed/examples/internal/show"
)

func main() { show.Main("regret", command) }

func command(ctx context.Context, args []string, out io.Writer, progress func(done, of int)) error {
	flags := flag.NewFlagSet("regret", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "fewer runs, in less than a minute")
	seed := flags.Uint64("seed", 2026, "the seed of the worlds and choices")
	asJSON := flags.Bool("json", false, "write the result as JSON")
	withContext := flags.Bool("context", false, "worlds whose requests have a vector")
	runs := flags.Int("runs", 1000, "with -context: how many runs to average over; 4 with -quick")
	topics := flags.Int("topics", 30, "with -context: how many topics requests have")
	noise := flags.Float64("noise", 0.5, "with -context: how far requests lie from their topics, which have length 1")
	all := flags.Bool("all", false, "with -context: other numbers of clusters, poolings and explorations, too")
	if err := show.Parse(flags, args); err != nil {
		return err
	}
	if *withContext {
		if *quick {
			*runs = 4
		}
		if *runs < 1 || *topics < 1 || !(*noise >= 0 && *noise <= 100) {
			return fmt.Errorf("-runs %d and -topics %d must be at least 1, and -noise %v in [0, 100]: %w", *runs, *topics, *noise, show.ErrUsage)
		}
		results, err := studyContext(ctx, settings(*topics, *noise), contextuals(*all), *runs, *seed, progress)
		switch {
		case err != nil:
			return err
		case *asJSON:
			return show.JSON(out, map[string]any{"worlds": results})
		default:
			return reportContext(out, results)
		}
	}
	results, err := study(ctx, worlds(*quick), *seed, progress)
	if err != nil {
		return err
	}
	if *asJSON {
		return show.JSON(out, map[string]any{"worlds": results})
	}
	return report(out, results)
}

// A result is what the rules came to in one world.
type result struct {
	World string   `json:"world"`
	Runs  int      `json:"runs"`
	Rules []regret `json:"rules"`
}

type regret struct {
	Name string  `json:"name"`
	Mean float64 `json:"regret_mean"`
	CI95 float64 `json:"regret_ci95"` // half the width of the 95 % confidence interval of the mean
}

// study lets every rule play in every world.
func study(ctx context.Context, all []world, seed uint64, progress func(done, of int)) ([]result, error) {
	type job struct{ world, rule, run int }
	var jobs []job
	each := make([][][]float64, len(all)) // regret by world, rule and run
	rules := rules()
	for i, w := range all {
		each[i] = make([][]float64, len(rules))
		for j := range rules {
			each[i][j] = make([]float64, w.runs)
			for run := range w.runs {
				jobs = append(jobs, job{i, j, run})
			}
		}
	}
	err := show.Parallel(ctx, len(jobs), progress, func(i int) (err error) {
		j := jobs[i]
		each[j.world][j.rule][j.run], err = all[j.world].play(j.run, seed, rules[j.rule].begin)
		return err
	})
	if err != nil {
		return nil, err
	}
	results := make([]result, len(all))
	for i, w := range all {
		results[i] = result{World: w.name, Runs: w.runs}
		for j, rule := range rules {
			mean, ci95 := show.Mean(each[i][j])
			results[i].Rules = append(results[i].Rules, regret{rule.name, mean, ci95})
		}
	}
	return results, nil
}

func report(w io.Writer, results []result) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "world\truns\t")
	for _, r := range results[0].Rules {
		fmt.Fprintf(table, "%s\t", r.Name)
	}
	fmt.Fprintln(table)
	for _, result := range results {
		fmt.Fprintf(table, "%s\t%d\t", result.World, result.Runs)
		for _, r := range result.Rules {
			fmt.Fprintf(table, "%s ±%s\t", number(r.Mean), number(r.CI95))
		}
		fmt.Fprintln(table)
	}
	fmt.Fprintln(table)
	fmt.Fprint(table, "over copy's\t\t")
	for range results[0].Rules {
		fmt.Fprint(table, "\t")
	}
	fmt.Fprintln(table)
	for _, result := range results {
		fmt.Fprintf(table, "%s\t\t", result.World)
		for _, r := range result.Rules {
			fmt.Fprintf(table, "%.2f\t", r.Mean/result.Rules[0].Mean)
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

// number writes three digits, or all before the point.
func number(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprintf("%.2f", x)
	}
}
