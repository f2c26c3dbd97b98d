package agent

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/strategy"
)

// writeWhys explains the last answers of each sort, by the evidence that there was when they were given.
func (r *result) writeWhys(b *strings.Builder) error {
	for _, w := range []struct {
		title string
		why   *why
		rest  func(*strings.Builder, *why) error
	}{
		{"the last answer of a heuristic", r.learner.ByHeuristic, writeTrust},
		{"the last answer of the model's where there is a note", r.learner.WithNote, writeBriefing},
	} {
		if w.why == nil {
			continue
		}
		a, e := &w.why.Account, &w.why.Plan.Event
		fmt.Fprintf(b, "Why: %s\n\n  %s, %s: %q\n", w.title, e.ID, e.At.Format(day), e.Text)
		for _, c := range w.why.Plan.Candidates {
			fmt.Fprintf(b, "  candidate %s: similarity %.2f, confidence %.2f\n", c.HeuristicID, c.Similarity, c.Confidence)
		}
		if err := w.rest(b, w.why); err != nil {
			return err
		}
		fmt.Fprintf(b, "  so the answer was %q\n", a.Text)
		fmt.Fprintf(b, "  and what people made of it was %+.1f, from -1 to 1\n\n", a.Worth)
	}
	return nil
}

// writeTrust shows what made a heuristic's confidence.
func writeTrust(b *strings.Builder, why *why) error {
	t := why.Account.Trust
	fmt.Fprintf(b, "  it takes %.2f to answer, and %s had %.2f, which is the mean of a prior and of what was seen and said, as far as it has not faded:\n\n",
		why.Account.Needed, t.Standing.Heuristic.ID, t.Standing.Confidence)
	sums := make(map[string]*learning.Share)
	for _, s := range t.Shares {
		sum := sums[s.Channel]
		if sum == nil {
			sum = &learning.Share{Channel: s.Channel}
			sums[s.Channel] = sum
		}
		sum.For += s.For
		sum.Against += s.Against
		sum.Count += s.Count
	}
	good, bad := t.Prior.Alpha, t.Prior.Beta
	err := table(b, func(w io.Writer) {
		fmt.Fprintf(w, "\tfor\tagainst\tsignals\t\nprior\t%.2f\t%.2f\t\t\n", good, bad)
		for _, channel := range slices.Sorted(maps.Keys(sums)) {
			s := sums[channel]
			good, bad = good+s.For, bad+s.Against
			fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%d\t\n", channel, s.For, s.Against, s.Count)
		}
		fmt.Fprintf(w, "in all\t%.2f\t%.2f\t\t\n", good, bad)
	})
	fmt.Fprintf(b, "\n  that is %.2f before limits (%v); it was shown %d times, and of the times that came to an end, %d ended well and %d badly\n",
		good/(good+bad), limits(t.Limits), t.Standing.Fires, t.Standing.Successes, t.Standing.Failures)
	return err
}

func limits(l []learning.Limit) string {
	texts := make([]string, len(l))
	for i, limit := range l {
		texts[i] = string(limit)
	}
	return cmp.Or(strings.Join(texts, ", "), "there are none")
}

// writeBriefing shows what the prompt said, and by what right.
func writeBriefing(b *strings.Builder, why *why) error {
	for _, rule := range why.Account.Rules {
		fmt.Fprintf(b, "  the prompt had the rule %q, since", rule.Text)
		for i, a := range rule.Approvals {
			fmt.Fprintf(b, "%s %s (%s)", strings.Repeat(" and", min(i, 1)), a.Actor, a.At.Format(day))
		}
		b.WriteString("\n")
	}
	writeChoice(b, *why.Account.Choice, why.Account.Item)
	return nil
}

func writeChoice(b *strings.Builder, c strategy.Choice, note *strategy.ItemReport) {
	fmt.Fprintf(b, "  %s was used by way of %s, as the greatest of these draws was its:\n", c.Item, c.Arm)
	for d := range c.Draws() {
		fmt.Fprintf(b, "    %s drew %.2f", d.Arm, d.Sample)
		if note != nil {
			for _, a := range note.Arms {
				if a.Arm == d.Arm {
					fmt.Fprintf(b, ", from %.2f to %.2f (outcomes of this note: %d)", a.Low, a.High, a.Outcomes)
				}
			}
		}
		b.WriteString("\n")
	}
}
