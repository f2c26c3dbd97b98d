package agent

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/prompt"
)

const day = "Jan 2, 15:04"

// write writes the report.
func (r *result) write(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d events in %.1f days, seed %d: %d times the same events with the same luck\n", r.Events, r.Days, r.Seed, len(r.Ways))
	if r.Before > 0 {
		fmt.Fprintf(&b, "The one that learns has lived through %d events before, and goes on from what it knows. Confidences, tries and what\nwas measured are of all its runs, and answers and mistakes of this one.\n", r.Before)
	}
	b.WriteString("\n")
	for _, section := range []func(*strings.Builder) error{
		r.writeWays, r.writeTime, r.writeHeuristics, r.writeSorts, r.writePatterns, r.writeRules, r.writeWhys,
	} {
		if err := section(&b); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func table(b *strings.Builder, rows func(w io.Writer)) error {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	rows(w)
	return w.Flush()
}

func (r *result) writeWays(b *strings.Builder) error {
	err := table(b, func(w io.Writer) {
		fmt.Fprintln(w, "\tsuccess\tcalls an event\ttokens\tin the last quarter: success\theuristics\tcalls an event\ttokens\t")
		for _, way := range r.Ways {
			fmt.Fprintf(w, "%s\t%.1f %%\t%.2f\t%.0f\t%.1f %%\t%.0f %%\t%.2f\t%.0f\t\n", way.Way, 100*way.Whole.Success, way.Whole.Calls, way.Whole.Tokens,
				100*way.Last.Success, 100*way.Last.Heuristics, way.Last.Calls, way.Last.Tokens)
		}
	})
	b.WriteString("\nCalls are those of the model, and heuristics the share of events that they answered. The oracle gives the best answer to\neverything; what then still fails is bad luck.\n\n")
	return err
}

// writeTime draws the learner's tenths.
func (r *result) writeTime(b *strings.Builder) error {
	l, without := r.of(learns), r.of(off)
	curve := func(name string, w *wayResult, of func(score) float64) {
		fmt.Fprintf(b, "%26s  ", name)
		for _, s := range w.Tenths {
			b.WriteString(bar(of(s)))
		}
		fmt.Fprintf(b, "  from %.0f %% to %.0f %%\n", 100*of(w.Tenths[0]), 100*of(w.Tenths[9]))
	}
	b.WriteString("In tenths of the stream:\n\n")
	curve("answered by heuristics", l, func(s score) float64 { return s.Heuristics })
	curve("success", l, func(s score) float64 { return s.Success })
	first, last := l.Tenths[0], l.Tenths[9]
	cost := fmt.Sprintf("An event cost %.2f model calls and %.0f tokens in the first tenth, and %.2f and %.0f in the last.\n", first.Calls, first.Tokens, last.Calls, last.Tokens)
	if without != nil {
		curve("success without learning", without, func(s score) float64 { return s.Success })
		saved := 1 - l.Whole.Calls/without.Whole.Calls
		cost += fmt.Sprintf("Model calls saved: %.0f of %.0f, %.0f %%; in the last quarter %.0f %%.\n", float64(r.Events)*(without.Whole.Calls-l.Whole.Calls),
			float64(r.Events)*without.Whole.Calls, 100*saved, 100*(1-l.Last.Calls/without.Last.Calls))
	}
	b.WriteString("\n" + cost + "\n")
	return nil
}

// of returns the row of a way, or nil.
func (r *result) of(w way) *wayResult {
	i := slices.IndexFunc(r.Ways, func(row wayResult) bool { return row.Way == w })
	if i < 0 {
		return nil
	}
	return &r.Ways[i]
}

// bar is a share as a bar.
func bar(x float64) string {
	levels := []rune(" ▁▂▃▄▅▆▇█")
	return string(levels[int(min(max(x, 0), 1)*float64(len(levels)-1)+0.5)])
}

func (r *result) writeHeuristics(b *strings.Builder) error {
	b.WriteString("Heuristics, those that were learned among them; from a confidence of 0.7 on they answer:\n\n")
	err := table(b, func(w io.Writer) {
		fmt.Fprintln(w, "\tconfidence\tanswers\tlast quarter\tgood in truth\tlast one\t what it says")
		for _, h := range r.Heuristics {
			last, good := "never", ""
			if h.Fires > 0 {
				last, good = h.LastFire.Format(day), fmt.Sprintf("%.0f %%", 100*h.Good.share())
			}
			fmt.Fprintf(w, "%s\t%.2f\t%d\t%d\t%s\t%s\t %s\n", h.ID, h.Confidence, h.Fires, h.LastFires, good, last, prompt.Line(h.Action, 40))
		}
	})
	b.WriteString("\n")
	return err
}

func (r *result) writeSorts(b *strings.Builder) error {
	b.WriteString("Which way of using a note won, by its sort (the reward that is expected, and how often it was tried):\n\n")
	err := table(b, func(w io.Writer) {
		for i, d := range r.Sorts {
			if i == 0 {
				for _, a := range d.Arms {
					fmt.Fprintf(w, "\t%s", a.Arm)
				}
				fmt.Fprintln(w, "\twon\t")
			}
			fmt.Fprint(w, d.Category)
			for _, a := range d.Arms {
				fmt.Fprintf(w, "\t%.2f (%d)", a.Mean, a.Outcomes)
			}
			fmt.Fprintf(w, "\t%s\t\n", d.Leading)
		}
	})
	b.WriteString("\n")
	return err
}

func (r *result) writePatterns(b *strings.Builder) error {
	b.WriteString("Ways of cutting a task:\n\n")
	err := table(b, func(w io.Writer) {
		for _, p := range r.Patterns {
			prompts := ""
			if p.State == patterns.Inverted {
				prompts = "the prompt warns of it"
			}
			fmt.Fprintf(w, "%s\t%s since %s\t%d helped\t%d harmed\t%s\t\n", p.Name, p.State, p.Since.Format(day), p.Successes, p.Failures, prompts)
		}
	})
	b.WriteString("\n")
	return err
}

func (r *result) writeRules(b *strings.Builder) error {
	b.WriteString("Rules:\n\n")
	for _, rule := range r.Rules {
		fmt.Fprintf(b, "  %q\n    approved by %s on %s; %s: %d of %d answers before, %d of %d after; measured: %s\n", rule.Text,
			strings.Join(rule.Approvals, " and "), rule.Since.Format(day), rule.Mistake, rule.Before.Hits, rule.Before.Of, rule.After.Hits, rule.After.Of,
			rule.Measured.Status)
	}
	times := make(map[string]int)
	for _, p := range r.Refused {
		times[p.Cluster]++
	}
	for _, p := range r.Refused {
		if n := times[p.Cluster]; n > 0 {
			fmt.Fprintf(b, "  %q\n    refused by %s on %s: %s; proposed %d times in all\n", p.Text, p.Decider, p.Decided.Format(day), p.Reason, n)
		}
		times[p.Cluster] = 0
	}
	b.WriteString("\n")
	return nil
}
