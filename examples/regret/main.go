// Regret measures how much is lost by learning: it lets heed's poolings, and the rules that they are to be measured
// against, choose in simulated worlds whose truth is known.
//
// Usage:
//
//	go run ./examples/regret [-quick] [-seed S] [-json] [-svg FILE]
//
// Without -quick it takes long enough to go and have a meal. Regret is for each item: how much more the best arm would
// have earned, summed over the rounds. Worlds "s=…" have 200 items and four arms, whose rates for an item are Beta
// distributed around the segment's with strength s: with a small s items differ, with a great one they are alike.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"sync"
	"text/tabwriter"

	"github.com/heedhq/heed/examples/internal/show"
)

func main() {
	err := command(os.Args[1:], os.Stdout, show.Progress())
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "regret:", err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "regret:", err)
		os.Exit(1)
	}
}

// errUsage marks errors in how the command was called.
var errUsage = errors.New("see -help")

func command(args []string, out io.Writer, progress func(done, of int)) error {
	flags := flag.NewFlagSet("regret", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "fewer runs, in less than a minute")
	seed := flags.Uint64("seed", 2026, "the seed of the worlds and choices")
	asJSON := flags.Bool("json", false, "write the result as JSON")
	picture := flags.String("svg", "", "draw regret over items' likeness, at 30 rounds, to this `file`")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%w%.0w", err, errUsage)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: %w", flags.Arg(0), errUsage)
	}
	results, err := study(worlds(*quick), *seed, progress)
	if err != nil {
		return err
	}
	if *picture != "" {
		if err := chart(results).WriteFile(*picture); err != nil {
			return err
		}
	}
	if *asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(map[string]any{"worlds": results})
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

// study lets every rule play in every world, on all processors.
func study(all []world, seed uint64, progress func(done, of int)) ([]result, error) {
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
	var (
		wait     sync.WaitGroup
		mu       sync.Mutex
		next     int
		finished int
		failure  error
	)
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for {
				mu.Lock()
				if next == len(jobs) || failure != nil {
					mu.Unlock()
					return
				}
				j := jobs[next]
				next++
				mu.Unlock()
				regret, err := all[j.world].play(j.run, seed, rules[j.rule].begin)
				mu.Lock()
				each[j.world][j.rule][j.run] = regret
				if finished++; err != nil {
					failure = err
				} else {
					progress(finished, len(jobs))
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if failure != nil {
		return nil, failure
	}
	results := make([]result, len(all))
	for i, w := range all {
		results[i] = result{World: w.name, Runs: w.runs}
		for j, rule := range rules {
			results[i].Rules = append(results[i].Rules, summarize(rule.name, each[i][j]))
		}
	}
	return results, nil
}

func summarize(name string, runs []float64) regret {
	r, n := regret{Name: name}, float64(len(runs))
	for _, x := range runs {
		r.Mean += x / n
	}
	var squares float64
	for _, x := range runs {
		squares += (x - r.Mean) * (x - r.Mean)
	}
	if n > 1 {
		r.CI95 = 1.96 * math.Sqrt(squares/(n-1)/n)
	}
	return r
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

// chart draws the first five worlds: those of 30 rounds.
func chart(results []result) *show.Chart {
	c := &show.Chart{Title: "Regret of an item in 30 rounds, from items that differ to items that are alike", Label: "s = 2, 5, 10, 30, 100"}
	for j, r := range results[0].Rules {
		line := show.Line{Name: r.Name}
		for _, result := range results[:5] {
			line.Values = append(line.Values, result.Rules[j].Mean)
		}
		c.Lines = append(c.Lines, line)
	}
	return c
}
