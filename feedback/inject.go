package feedback

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/prompt"
)

// The lines between which learned rules stand in a prompt. What stands between them is never taken for a reviewer's words.
const (
	heading = "## Learned Rules (from feedback)"
	ending  = "<!-- end of learned rules -->"
)

// What a model is told about the rules, and how a section of them is known again.
const (
	opening = heading + "\n" + preface + "\n"
	preface = "Reviewers of earlier work asked for the following. It refines the instructions above and never overrides them."
)

// An Injection is a prompt with the rules that an agent has learned.
type Injection struct {
	// Prompt is the base, the learned rules and the task, each apart by a blank line. Where there are no rules, nothing
	// stands in their place: without a task it is then the base, byte by byte.
	Prompt string
	// Section is the part of it with the rules, from the heading to its end. "" where there are none.
	Section string
	// Rules are the ids of the rules in it, in their order. A host that gives them back in Feedback.Rules learns which
	// corrections came in spite of a rule.
	Rules   []string
	Omitted []Omission // the active rules that did not fit, in their order
}

// An Omission is a rule that was left out.
type Omission struct {
	Rule   string
	Reason string // "rules": there are enough of them already; "characters": it is too long for the room that is left
}

// Inject builds an agent's prompt with the rules that are active for it. base is the prompt without learned rules, or one that
// was built before: it gets the present rules in place of its own. task follows the rules, and may be empty.
//
// Pinned rules come first, then those with the greater measured effect, then the newer, then by id. Each goes in as a whole,
// as far as [Config].PromptRules and PromptCharacters allow. A rule stands on a line of its own, behind its type, so that it can't pass
// for another part of the prompt. Whether to do what it asks for is the gate's decision.
func (r *Rules) Inject(ctx context.Context, agent, base, task string) (Injection, error) {
	ranked, err := r.lines(ctx, agent)
	if err != nil {
		return Injection{}, wrap("inject", err)
	}
	var in Injection
	var lines strings.Builder
	limits := &r.s.cfg
	room := limits.PromptCharacters - utf8.RuneCountInString(opening+"\n"+ending+"\n")
	for _, rule := range ranked {
		size := utf8.RuneCountInString(rule.text)
		switch {
		case len(in.Rules) == limits.PromptRules:
			in.Omitted = append(in.Omitted, Omission{rule.id, "rules"})
		case size > room:
			in.Omitted = append(in.Omitted, Omission{rule.id, "characters"})
		default:
			lines.WriteString(rule.text)
			in.Rules = append(in.Rules, rule.id)
			room -= size
		}
	}
	if len(in.Rules) > 0 {
		in.Section = opening + "\n" + lines.String() + ending + "\n"
	}
	in.Prompt = replace(base, in.Section)
	if task != "" {
		in.Prompt = strings.TrimRight(in.Prompt, "\n") + "\n\n" + task
	}
	return in, nil
}

// A line is what a prompt has of a rule. It names nobody.
type line struct{ id, text string }

// lines returns the lines of the rules that may be injected, the most important first. They are read anew when a rule has
// changed: the revision tells, which is one small read.
func (r *Rules) lines(ctx context.Context, agent string) (lines []line, err error) {
	for try := 1; ; try++ {
		before, err := r.s.board(ctx)
		if err != nil {
			return nil, err
		}
		if lines, ok := r.s.prompts.get(agent, before.rules); ok {
			return lines, nil
		}
		ranked, err := r.ranked(ctx, agent)
		if err != nil {
			return nil, err
		}
		lines = make([]line, len(ranked))
		for i := range ranked {
			lines[i] = line{ranked[i].ID, render(&ranked[i])}
		}
		after, err := r.s.board(ctx)
		switch {
		case err != nil:
			return nil, err
		case after.rules == before.rules:
			r.s.prompts.put(agent, before.rules, lines)
			return lines, nil
		case try == records.Tries: // rules change all the time: these were active while they were read
			return lines, nil
		}
	}
}

// prompts remembers the lines of agents as of one revision of the rules. The zero value is ready to use; it is safe for
// concurrent use.
type prompts struct {
	mu       sync.Mutex
	revision uint64 // 0: of none
	agents   map[string][]line
}

func (p *prompts) get(agent string, revision uint64) (lines []line, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if revision == 0 || revision != p.revision {
		return nil, false
	}
	lines, ok = p.agents[agent]
	return lines, ok
}

func (p *prompts) put(agent string, revision uint64, lines []line) {
	const most = 1000 // agents
	p.mu.Lock()
	defer p.mu.Unlock()
	if revision == 0 || revision < p.revision {
		return
	}
	if revision > p.revision || len(p.agents) >= most {
		p.revision, p.agents = revision, make(map[string][]line)
	}
	p.agents[agent] = lines
}

// ByPlace returns the rules that are active for an agent, by their Draft.Place, for a host that puts them into its prompts
// and skills itself; each place has them in the order of [Rules.Inject]. No limit holds.
func (r *Rules) ByPlace(ctx context.Context, agent string) (map[string][]Rule, error) {
	ranked, err := r.ranked(ctx, agent)
	if err != nil {
		return nil, wrap("by place", err)
	}
	places := make(map[string][]Rule)
	for _, rule := range ranked {
		places[rule.Place] = append(places[rule.Place], rule)
	}
	return places, nil
}

// ranked returns the rules that may be injected, the most important first.
func (r *Rules) ranked(ctx context.Context, agent string) ([]Rule, error) {
	if err := checkName("Agent", agent); err != nil {
		return nil, err
	}
	rules, err := r.s.activeRules(ctx, &Draft{Agents: []string{agent}})
	if err != nil {
		return nil, err
	}
	rules = slices.DeleteFunc(rules, func(r Rule) bool { return r.Action != CreateRule })
	slices.SortFunc(rules, compareRanks)
	return rules, nil
}

// compareRanks orders rules by what [Rules.Inject] says.
func compareRanks(a, b Rule) int {
	return cmp.Or(compareBool(b.Pinned, a.Pinned), cmp.Compare(b.Effect.Improvement, a.Effect.Improvement),
		b.Activated.Compare(a.Activated), cmp.Compare(a.ID, b.ID))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// labels stand before rules, by type.
var labels = map[RuleType]string{
	PositiveExample: "Good example", NegativeExample: "Do not repeat", Guideline: "Guideline", Constraint: "Constraint",
}

// render returns the line of a rule.
func render(r *Rule) string {
	return "- " + labels[r.Type] + ": " + prompt.Line(r.Text, maxText) + "\n"
}

// replace puts the section where the first one of the base stands, or, where it has none, behind the base. Other sections
// of the base are taken out.
func replace(base, section string) string {
	start, end, found := find(base)
	if !found {
		return base + gap(base, section)
	}
	before, after := base[:start], strip(base[end:])
	return before + gap(before, section) + after
}

// gap is a section with a blank line before it, if it stands behind something.
func gap(before, section string) string {
	if section == "" || before == "" {
		return section
	}
	return "\n\n" + section
}

// strip returns a text without the learned rules in it.
func strip(text string) string {
	for {
		start, end, found := find(text)
		if !found {
			return text
		}
		text = text[:start] + text[end:]
	}
}

// find returns where the first section of learned rules is, with the blank line before it.
func find(text string) (start, end int, found bool) {
	from := 0
	for {
		at := strings.Index(text[from:], opening)
		if at < 0 {
			return 0, 0, false
		}
		start = from + at
		stop := strings.Index(text[start:], "\n"+ending)
		if stop < 0 {
			return 0, 0, false
		}
		end = start + stop + len("\n"+ending)
		if start == 0 || text[start-1] == '\n' {
			break
		}
		from = start + len(heading)
	}
	if end < len(text) && text[end] == '\n' {
		end++
	}
	if strings.HasSuffix(text[:start], "\n\n") {
		start -= 2
	}
	return start, end, true
}
