package feedback

import (
	"context"
	"slices"
	"strings"

	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/oppose"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/prompt"
)

// A Drafter words the rule of a cluster. The oldest of the cluster's feedback comes first. Agents and Action of the draft may
// be left empty: they are then those of the evidence.
//
// Many goroutines call it at the same time, without a lock that others wait for. It must return when the context is done. Its
// error, an answer that is not valid, and a panic leave the cluster without a proposal until the next [Service.Flush].
type Drafter func(ctx context.Context, cluster []Feedback) (Draft, error)

// Representative is the [Drafter] that needs no model. The text of the feedback that is most like the others becomes the
// rule, word for word, and its type follows the rules of [RuleType]. Of a large cluster, the latest 200 are compared.
func Representative(_ context.Context, cluster []Feedback) (Draft, error) {
	const compared = 200 // each with each
	cluster = cluster[max(len(cluster)-compared, 0):]
	texts := make([]string, len(cluster))
	sets := make([][]uint64, len(cluster))
	for i := range cluster {
		texts[i] = ruleText(&cluster[i])
		sets[i] = text.Trigrams(texts[i])
	}
	best, most := 0, -1.
	for i := range sets {
		var sum float64
		for j := range sets {
			sum += text.Jaccard(sets[i], sets[j])
		}
		if texts[i] != "" && sum > most {
			best, most = i, sum
		}
	}
	line := prompt.Line(texts[best], maxText)
	return Draft{Type: selectType(cluster, line), Text: line}, nil
}

// ruleText is what a rule is made of: the summary, or the first line of the comment that says something.
func ruleText(f *Feedback) string {
	text := strings.TrimSpace(strip(f.Summary))
	if text == "" {
		text, _, _ = strings.Cut(strings.TrimSpace(strip(f.Comment)), "\n")
	}
	return text
}

// obligations are the words by which a text binds.
var obligations = strings.Fields("must never always shall required mandatory forbidden prohibited cannot muss nie immer verboten doit jamais debe nunca")

func selectType(cluster []Feedback, text string) RuleType {
	all := func(d Decision) bool {
		return !slices.ContainsFunc(cluster, func(r Feedback) bool { return r.Decision != d })
	}
	switch {
	case all(Approved):
		return PositiveExample
	case slices.ContainsFunc(cluster, func(r Feedback) bool { return r.Severity == "critical" }),
		slices.ContainsFunc(obligations, oppose.Read(text).Has):
		return Constraint
	case all(Rejected):
		return NegativeExample
	default:
		return Guideline
	}
}

// draft asks the drafter, survives what it does, and completes its answer from the evidence.
func (s *Service) draft(ctx context.Context, cluster []Feedback) (d Draft, err error) {
	err = host.Call("the drafter", func() error {
		d, err = s.cfg.Drafter(ctx, copies(cluster))
		return err
	})
	if err != nil {
		return Draft{}, err
	}
	if !d.AllAgents && len(d.Agents) == 0 {
		for i := range cluster {
			d.Agents = append(d.Agents, cluster[i].Agent)
		}
	}
	if d.Action == "" {
		d.Action = cluster[len(cluster)-1].Action
	}
	d = d.normal()
	return d, s.validateDraft(&d)
}
