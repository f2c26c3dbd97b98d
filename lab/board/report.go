package board

import (
	"cmp"
	"fmt"
	"io"
	"strings"

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

func sameWorld(a, b *cell) bool   { return a.world == b.world }
func sameTrouble(a, b *cell) bool { return a.world == b.world && a.trouble == b.trouble }

// report writes a table for each world: of regrets under all troubles, and of the rest under the
// first.
func (s *study) report(call *kit.Call, cells []*cell) {
	fmt.Fprintf(call.Out, "`%s`: %d requests a run, %d runs, seed %d. ± is half of a 95 %% interval of the mean.\n",
		call.Command(), s.requests, s.runs, s.seed)
	for _, world := range blocks(cells, sameWorld) {
		reportWorld(call.Out, blocks(world, sameTrouble))
	}
	switch {
	case s.runs < 2:
		fmt.Fprintln(call.Out, "\nOne run has no intervals, and does not say which policy is better.")
	case s.ranks:
		notBest(call.Out, cells)
	}
}

func reportWorld(w io.Writer, under [][]*cell) {
	first := under[0][0]
	fmt.Fprintf(w, "\n%s: regret to the best arm of each request\n", first.world)
	table := kit.NewTable(w)
	fmt.Fprint(table, "\t")
	for _, cells := range under {
		fmt.Fprintf(table, "%s\t", cells[0].trouble)
	}
	fmt.Fprintf(table, "more than %s\tratio\tquality (%s)\tcost\tkB at the half\tand the end\t\n",
		first.policy, first.trouble)
	for i, c := range under[0] {
		fmt.Fprintf(table, "%s\t", c.policy)
		for _, cells := range under {
			fmt.Fprintf(table, "%s\t", cells[i].regret)
		}
		fmt.Fprintf(table, "%s\t%s\t%.3f ±%.3f\t%.3f ±%.3f\t%s\t%s\t\n", c.more, c.ratio,
			c.quality.Mean, c.quality.Half, c.cost.Mean, c.cost.Half, kit.Number(c.half.Mean/1000),
			kit.Number(c.state.Mean/1000))
	}
	kit.Check(table.Flush())
}

// notBest lists where another policy had less regret than heed's default, beyond the interval: one
// that learns, and one arm for all requests, which is known only afterwards.
func notBest(w io.Writer, cells []*cell) {
	all := blocks(cells, sameTrouble)
	list := func(what string, among func(c *cell) bool) {
		var found []string
		for _, block := range all {
			if line := lessThan(block, among); line != "" {
				found = append(found, line)
			}
		}
		fmt.Fprintf(w, "In %d of %d, %s:\n%s\n", len(found), len(all), what,
			cmp.Or(strings.Join(found, "\n"), "  nowhere"))
	}
	fmt.Fprintln(w, "\nWhere heed is not the best.")
	list("another policy that learns had less regret than heed's default, beyond the interval",
		func(c *cell) bool { return c.kind == rule })
	list("one arm for all requests had, which is known only afterwards",
		func(c *cell) bool { return c.kind == yardstick && c.policy != "oracle" })
}

// lessThan compares heed's default, which is the first, with the best of some others. It returns ""
// if that did not have less regret beyond the interval.
func lessThan(block []*cell, among func(c *cell) bool) string {
	own, other := block[0], (*cell)(nil)
	for _, c := range block {
		if c.kind == heeds && c.regret.Mean < own.regret.Mean {
			own = c
		}
		if among(c) && (other == nil || c.regret.Mean < other.regret.Mean) {
			other = c
		}
	}
	if other == nil || -other.more.Mean <= other.more.Half {
		return ""
	}
	less := kit.Estimate{Mean: -other.more.Mean, Half: other.more.Half}
	line := fmt.Sprintf("  %s, %s: %s had %s less than %s (%s)", other.world, other.trouble,
		other.policy, less, block[0].policy, kit.Number(block[0].regret.Mean))
	if own != block[0] && own.regret.Mean < other.regret.Mean {
		line += fmt.Sprintf("; %s had %s less than %s", own.policy,
			kit.Number(other.regret.Mean-own.regret.Mean), other.policy)
	}
	return line
}
