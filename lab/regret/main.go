// Package regret measures how much is lost by learning. heed's poolings, and other rules with them,
// choose in simulated worlds whose truth is known.
//
//	go run ./lab regret [-long] [-seed S]
//	go run ./lab regret -context [-long] [-runs N] [-topics N] [-noise X] [-all] [-seed S]
//
// With -context requests have a vector, and arms differ by it: by topic, for a few topics, linearly, or not at all. The policies are heed without
// the context, with the true topic as the item, and with partitions of the vectors; and a linear Thompson learner. The ratio is to no context.
//
// The long form takes an hour of one core, and with -context 20 minutes. Regret is for each item:
// how much more the best arm would have earned, summed over the rounds. Worlds "s=…" have 200
// items and four arms, whose rates for an item are Beta distributed around the segment's with
// strength s: with a small s items differ, with a great one they are alike.
package regret

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/heedhq/heed/lab/internal/kit"
)

// Run runs the study of items, or the one of contexts.
func Run(ctx context.Context, call *kit.Call) error {
	seed := call.Uint64("seed", 2026, "the seed of the worlds and choices")
	withContext := call.Bool("context", false, "worlds whose requests have a vector")
	runs := call.Count("runs", 4, 1000, "with -context: how many runs to average over")
	topics := call.Int("topics", 30, "with -context: how many topics requests have")
	noise := call.Float64("noise", 0.5,
		"with -context: how far requests lie from their topics, which have length 1")
	all := call.Bool("all", false,
		"with -context: other numbers of clusters, poolings and explorations, too")
	if err := call.Parse(); err != nil {
		return err
	}
	if *withContext {
		if *topics < 1 || !(*noise >= 0 && *noise <= 100) {
			return call.Usage("-topics %d must be at least 1, and -noise %v in [0, 100]", *topics, *noise)
		}
		results, err := studyContext(ctx, settings(*topics, *noise), contextuals(*all), *runs, *seed,
			call.Progress)
		if err != nil {
			return err
		}
		return reportContext(call.Out, results)
	}
	results, err := study(ctx, worlds(!call.Long), *seed, call.Progress)
	if err != nil {
		return err
	}
	return report(call.Out, results)
}

// A result is what the rules came to in one world.
type result struct {
	World string
	Runs  int
	Rules []regret
}

type regret struct {
	Name string
	Mean float64
	CI95 float64 // half the width of the 95 % confidence interval of the mean
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
	err := kit.Parallel(ctx, len(jobs), progress, func(i int) (err error) {
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
			mean, ci95 := kit.Mean(each[i][j])
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
