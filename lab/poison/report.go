package poison

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// report writes a table for each number of honest outcomes.
func report(w io.Writer, rates []float64, runs int, results []result) error {
	fmt.Fprintf(w, "Share of the choices that go to the worst of the arms, whose rates are %v; %d runs, ± half the 95 %% confidence interval.\n", rates, runs)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for i, r := range results {
		if i == 0 || r.Honest != results[i-1].Honest {
			fmt.Fprintf(table, "\nafter %d honest outcomes\tlost by then\t", r.Honest)
			for _, s := range r.Worst {
				fmt.Fprintf(table, "%s\t", s.Attack)
			}
			fmt.Fprintln(table)
		}
		fmt.Fprintf(table, "%s\t%.1f ± %.1f\t", r.Setting, r.Lost, r.LostCI)
		for _, s := range r.Worst {
			fmt.Fprintf(table, "%.1f ± %.1f %%\t", 100*s.Mean, 100*s.CI95)
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}
