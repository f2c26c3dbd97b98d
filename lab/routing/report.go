package routing

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/heedhq/heed/lab/internal/kit"
)

// report writes what a person wants to see of a study.
func (s *study) report(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d tasks of %d items, %d arms, %d runs; the last arm costs %v of a right answer more\n\n",
		s.Tasks, s.Items, len(s.table.arms), s.Runs, s.Price)

	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "policy\treward a task\tregret\t±\tafter 10 %\t50 %\t\tregret over time\t")
	top := 0.
	for _, r := range s.Policies {
		top = max(top, r.steepest())
	}
	for _, r := range s.Policies {
		fmt.Fprintf(table, "%s\t%.4f\t%.0f\t%.0f\t%.0f\t%.0f\t\t%s\t\n", r.Name, r.RewardMean/float64(s.Tasks),
			r.RegretMean, r.RegretCI95, r.curve[points/10], r.curve[points/2], r.sparkline(top))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	b.WriteString(`
Regret is what the best arm of each item would have earned on top, were it known beforehand: the sum over all
tasks, mean over the runs with a 95 % confidence interval. The bars show how fast it grows: the lower, the less
there is left to learn.

`)
	s.reportSettled(&b)
	if err := s.reportCurve(&b); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// reportSettled lists which arm was found for each item in the first run, and where that is not the best one.
func (s *study) reportSettled(b *strings.Builder) {
	right := 0
	byArm := make([][]string, len(s.table.arms))
	for i, arm := range s.settled {
		item := s.table.items[i]
		if arm == s.best[i] {
			right++
		} else {
			item += "*"
		}
		byArm[arm] = append(byArm[arm], item)
	}
	fmt.Fprintf(b, "two-level settled on the best arm for %d of %d items (* on another):\n", right, s.Items)
	for arm, items := range byArm {
		if len(items) > 0 {
			fmt.Fprintf(b, "\n  %s\n%s\n", s.table.arms[arm], wrap(strings.Join(items, ", "), 76, "    "))
		}
	}
}

// chart returns the learning curves.
func (s *study) chart() *kit.Chart {
	c := &kit.Chart{
		Title: fmt.Sprintf("Regret against each item's best arm, %d tasks, mean of %d runs", s.Tasks, s.Runs),
		Label: "tasks", End: s.Tasks,
	}
	for i := range s.Policies {
		c.Lines = append(c.Lines, kit.Line{Name: s.Policies[i].Name, Values: s.Policies[i].curve[:]})
	}
	return c
}

// bins is how many bars a curve is drawn with.
const bins = 20

// slope returns the regret of one of the bins.
func (r *result) slope(bin int) float64 {
	return r.curve[(bin+1)*points/bins] - r.curve[bin*points/bins]
}

func (r *result) steepest() (top float64) {
	for bin := range bins {
		top = max(top, r.slope(bin))
	}
	return top
}

func (r *result) sparkline(top float64) string {
	levels := []rune(" ▁▂▃▄▅▆▇█")
	bars := make([]rune, bins)
	for bin := range bars {
		level := 0
		if top > 0 {
			level = int(max(r.slope(bin), 0)/top*float64(len(levels)-1) + 0.5)
		}
		bars[bin] = levels[level]
	}
	return string(bars)
}

// wrap breaks text into lines of at most width, each after the indent.
func wrap(text string, width int, indent string) string {
	var b strings.Builder
	column := width
	for word := range strings.FieldsSeq(text) {
		switch {
		case column+1+len(word) <= width:
			b.WriteString(" ")
			column++
		case b.Len() > 0:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteString(indent)
			column = len(indent)
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
