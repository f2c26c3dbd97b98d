package board

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/heedhq/heed/lab/internal/kit"
)

// blocks cuts the cells where a new world, or a new trouble of a world, begins.
func blocks(cells []*cell, same func(a, b *cell) bool) (parts [][]*cell) {
	for i, c := range cells {
		if i == 0 || !same(cells[i-1], c) {
			parts = append(parts, nil)
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], c)
	}
	return parts
}

func sameWorld(a, b *cell) bool   { return a.World == b.World }
func sameTrouble(a, b *cell) bool { return a.World == b.World && a.Trouble == b.Trouble }

// report writes a table of regrets for each world, then quality, cost and memory under its first trouble, and then where heed is
// not the best.
func (s *study) report(w io.Writer, cells []*cell) error {
	fmt.Fprintf(w, "%d requests a run, %d runs, seed %d. ± is half of a 95 %% interval of the mean.\n", s.requests, s.runs, s.seed)
	for _, world := range blocks(cells, sameWorld) {
		if err := reportWorld(w, blocks(world, sameTrouble)); err != nil {
			return err
		}
	}
	if s.runs < 2 {
		_, err := fmt.Fprintln(w, "\nOne run has no intervals, and does not say which policy is better.")
		return err
	}
	return notBest(w, cells)
}

func reportWorld(w io.Writer, under [][]*cell) error {
	fmt.Fprintf(w, "\n%s: regret to the best arm of each request\n", under[0][0].World)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "\t")
	for _, cells := range under {
		fmt.Fprintf(table, "%s\t", cells[0].Trouble)
	}
	fmt.Fprintf(table, "quality (%s)\tcost\tkB at the half\tand the end\t\n", under[0][0].Trouble)
	for i, c := range under[0] {
		fmt.Fprintf(table, "%s\t", c.Policy)
		for _, cells := range under {
			fmt.Fprintf(table, "%s ±%s\t", number(cells[i].Regret.Mean), number(cells[i].Regret.CI95))
		}
		fmt.Fprintf(table, "%.3f ±%.3f\t%.3f ±%.3f\t%s\t%s\t\n", c.Quality.Mean, c.Quality.CI95, c.Cost.Mean, c.Cost.CI95, number(c.Half.Mean/1000), number(c.State.Mean/1000))
	}
	return table.Flush()
}

// notBest says where another policy had less regret than heed's default, beyond the interval: one that learns, and one arm for all requests, which is known
// only afterwards.
func notBest(w io.Writer, cells []*cell) error {
	var rules, arms []string
	all := blocks(cells, sameTrouble)
	for _, block := range all {
		if line := lessThan(block, func(c *cell) bool { return c.Learns && !c.Heed }); line != "" {
			rules = append(rules, line)
		}
		if line := lessThan(block, func(c *cell) bool { return !c.Learns && c.Policy != "oracle" }); line != "" {
			arms = append(arms, line)
		}
	}
	_, err := fmt.Fprintf(w, `
Where heed is not the best.
In %d of %d, another policy that learns had less regret than heed's default, beyond the interval:
%s
In %d of %d, one arm for all requests had. Nobody knows before which one:
%s
`, len(rules), len(all), list(rules), len(arms), len(all), list(arms))
	return err
}

func list(found []string) string {
	if len(found) == 0 {
		return "  nowhere"
	}
	return strings.Join(found, "\n")
}

// lessThan compares heed's default, which is the first, with the best of some others. It returns "" if that did not have less regret beyond the interval.
func lessThan(block []*cell, among func(c *cell) bool) string {
	own, other := block[0], (*cell)(nil)
	for _, c := range block {
		if c.Heed && c.Regret.Mean < own.Regret.Mean {
			own = c
		}
		if among(c) && (other == nil || c.Regret.Mean < other.Regret.Mean) {
			other = c
		}
	}
	if other == nil || other.Less.Mean <= other.Less.CI95 {
		return ""
	}
	line := fmt.Sprintf("  %s, %s: %s had %s ±%s less than %s (%s)", other.World, other.Trouble, other.Policy,
		number(other.Less.Mean), number(other.Less.CI95), block[0].Policy, number(block[0].Regret.Mean))
	if own != block[0] && own.Regret.Mean < other.Regret.Mean {
		line += fmt.Sprintf("; %s had %s less than %s", own.Policy, number(other.Regret.Mean-own.Regret.Mean), other.Policy)
	}
	return line
}

// lines is how many policies a picture has: as many as a chart has colours.
const lines = 8

// picture draws the regret so far in the first world under the first trouble: of heed's default, and of the policies with the least regret at the end.
// The oracle's is always 0.
func (s *study) picture(cells []*cell) *kit.Chart {
	block := blocks(cells, sameTrouble)[0]
	c := &kit.Chart{Title: fmt.Sprintf("Regret: %s, %s, mean of %d runs", block[0].World,
		block[0].Trouble, s.runs), Label: "requests", End: s.requests}
	best := slices.Clone(block[1:])
	best = slices.DeleteFunc(best, func(c *cell) bool { return c.Policy == "oracle" })
	slices.SortStableFunc(best, func(a, b *cell) int { return cmp.Compare(a.Regret.Mean, b.Regret.Mean) })
	for _, policy := range append(block[:1:1], best[:min(lines-1, len(best))]...) {
		line := kit.Line{Name: policy.Policy, Values: make([]float64, points+1)}
		for _, run := range policy.runs {
			for i, x := range run.regret {
				line.Values[i] += x / float64(s.runs)
			}
		}
		c.Lines = append(c.Lines, line)
	}
	return c
}

// number writes three digits, or all before the point.
func number(x float64) string {
	switch {
	case x >= 100 || x <= -100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10 || x <= -10:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprintf("%.2f", x)
	}
}
