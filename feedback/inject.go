package feedback

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/prompt"
	"github.com/heedhq/heed/store"
)

// The lines before and behind learned rules in a prompt. Text between them never counts as a
// reviewer's words.
const (
	heading = "## Learned Rules (from feedback)"
	ending  = "<!-- end of learned rules -->"
)

// The words around the rules in a prompt, and the signs by which a section of them is known again.
const (
	opening = heading + "\n" + preface + "\n"
	preface = "Reviewers asked for the following. It refines the instructions above and never " +
		"overrides them."
)

// promptRules and promptCharacters (runes, headings included) bound the section of rules of a
// prompt.
const (
	promptRules      = 20
	promptCharacters = 4000
)

// An Injection is a prompt with the rules that an agent learned.
type Injection struct {
	// Prompt is the base, the learned rules and the task, with a blank line between them. Without
	// rules and a task it is the base, byte by byte.
	Prompt  string
	Section string // the part of it with the rules, from the heading to the end; "" without rules
	// Rules are the ids of its rules, in their order. Give them back in Feedback.Rules: then
	// corrections that came in spite of a rule are counted.
	Rules []string
	// Omitted are the active rules that did not fit, in their order. Reason is "rules" if there are
	// enough of them already, and "characters" if the rule is too long for the room that is left.
	Omitted []struct{ Rule, Reason string }
	// Checked are the ids of the active rules that [Rules.CheckIn] asks, whether they are in the
	// prompt or not.
	Checked []string
}

// Inject builds an agent's prompt with the rules that are active for it. base is the prompt without
// learned rules, or one that was built before, whose rules are replaced. task follows the rules,
// and may be empty. A section of rules in the task is removed, because it was not approved.
//
// Pinned rules come first, then those with the greater measured effect, then the newer ones. Each
// goes in as a whole, up to 20 rules and 4,000 characters. It has a line of
// its own, behind its type, so that it can't pass for another part of the prompt. Whether agents
// may do what it asks for is the gate's decision.
func (r *Rules) Inject(ctx context.Context, agent, base, task string) (Injection, error) {
	return r.InjectIn(r.s.reading(ctx), agent, base, task)
}

// InjectIn is [Rules.Inject] in a step. The lines in memory are used if no rule has changed, and
// then it reads one small record.
func (r *Rules) InjectIn(tx *store.Tx, agent, base, task string) (Injection, error) {
	ranked, err := r.lines(tx, agent)
	if err != nil {
		return Injection{}, wrap("inject", err)
	}
	var in Injection
	var lines strings.Builder
	room := promptCharacters - utf8.RuneCountInString(opening+"\n"+ending+"\n")
	for _, rule := range ranked {
		if rule.check != nil {
			in.Checked = append(in.Checked, rule.id)
		}
		size := utf8.RuneCountInString(rule.text)
		switch {
		case len(in.Rules) == promptRules:
			in.Omitted = append(in.Omitted, struct{ Rule, Reason string }{rule.id, "rules"})
		case size > room:
			in.Omitted = append(in.Omitted, struct{ Rule, Reason string }{rule.id, "characters"})
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
	if task = unforged(task); task != "" {
		in.Prompt = strings.TrimRight(in.Prompt, "\n") + "\n\n" + task
	}
	return in, nil
}

// A line is what a prompt has of a rule, and what enforces the rule. It names no person. Lines are
// kept in memory for each agent.
type line struct {
	// text is the line in the prompt. words is the rule's text, which is compared with heuristics and
	// answers.
	id, text, words string
	check           *checker // nil without a check
	withheld        []string // the heuristics that its approvers found to break it
}

// Wants lists the records that [Rules.InjectIn] and [Rules.CheckIn] read for agents. If the service
// read the agents' rules before, that is a single small record, which shows whether a rule has
// changed since.
func (r *Rules) Wants(agents ...string) store.Wants {
	w := store.Wants{Refs: []store.Ref{ruleKind.Ref("")}}
	for _, agent := range agents {
		if known, ok := r.s.prompts.Get(agent); !ok || known.version != r.s.version.Load() {
			w.Queries = append(w.Queries,
				ruleKind.queries((&Draft{Agents: []string{agent}}).activeKeys())...)
		}
	}
	return w
}

// lines returns the lines of the rules that may be injected, the most important first. It reads
// them again if a rule changed. The version of the kind is one small record. If it is the one that
// this process read last, the lines in memory are current.
func (r *Rules) lines(tx *store.Tx, agent string) (lines []line, err error) {
	if err := valid.Names(evidence.MaxText, "Agent", agent); err != nil {
		return nil, err
	}
	tx.Want(r.Wants(agent))
	var read store.Snapshot
	if err := tx.Read(&read, nil, []store.Ref{ruleKind.Ref("")}); err != nil {
		return nil, err
	}
	version := read.Records[0].Revision
	if known, ok := r.s.prompts.Get(agent); ok && known.version == version {
		return known.lines, nil
	}
	draft := &Draft{Agents: []string{agent}}
	// One call of Read returns no record older than the version.
	if err := tx.Read(&read, nil, []store.Ref{ruleKind.Ref("")},
		ruleKind.queries(draft.activeKeys())...); err != nil {
		return nil, err
	}
	rules, err := ruleKind.merge(read.Found, func(r *Rule) bool {
		return r.Action == createRule && draft.overlaps(&r.Draft)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rules, compareRanks)
	lines = make([]line, len(rules))
	for i := range rules {
		r := &rules[i]
		text := "- " + labels[r.Type] + ": " + prompt.Line(r.Text, maxText) + "\n"
		lines[i] = line{r.ID, text, r.Text, newChecker(r.Check), r.withheld()}
	}
	r.s.prompts.Put(agent, promptLines{version, lines})
	r.s.version.Store(version)
	return lines, nil
}

// promptLines are the lines of an agent for one version of the rules. They are replaced as a whole
// when the version has changed.
type promptLines struct {
	version uint64
	lines   []line
}

// compareRanks sorts rules in the order of [Rules.Inject].
func compareRanks(a, b Rule) int {
	return cmp.Or(compareBool(b.Pinned, a.Pinned),
		cmp.Compare(b.Effect.Improvement, a.Effect.Improvement),
		b.Activated.Compare(a.Activated), cmp.Compare(a.ID, b.ID))
}

// compareBool orders false before true.
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

// labels precede rules, by type.
var labels = map[string]string{
	positiveExample: "Good example", negativeExample: "Do not repeat", guideline: "Guideline",
	constraint: "Constraint",
}

// section is a section of learned rules that begins a line, with the blank line before it.
var section = regexp.MustCompile(`(?s)(?:\n\n)?(?m:^)` + regexp.QuoteMeta(
	opening) + `(?:.*?\n)??` + regexp.QuoteMeta(ending) + `\n?`)

// replace puts the new section where the first one of the base is, or behind the base, and removes
// all others.
func replace(base, rules string) string {
	before, after := base, ""
	if at := section.FindStringIndex(base); at != nil {
		before, after = base[:at[0]], strip(base[at[1]:])
	}
	if rules != "" && before != "" {
		rules = "\n\n" + rules
	}
	return before + rules + after
}

// strip returns a text without the learned rules in it.
func strip(text string) string {
	for strings.Contains(text, opening) && section.MatchString(text) {
		text = section.ReplaceAllString(text, "")
	}
	return text
}

// unforged returns a text without what could pass for learned rules in it: whole sections, and ones
// that are indented, quoted, of another level or without an end. It leaves all other bytes as they
// are. Of a section without an end go the lines of its list.
func unforged(text string) string {
	text = strip(text)
	if !strings.Contains(strings.ToLower(text), bare(heading)) {
		return text
	}
	lines := strings.SplitAfter(text, "\n")
	ends := make([]int, len(lines)+1) // behind the next line that ends a section; 0 if no line does
	for i := len(lines) - 1; i >= 0; i-- {
		if ends[i] = ends[i+1]; bare(lines[i]) == bare(ending) {
			ends[i] = i + 1
		}
	}
	var kept strings.Builder
	found := false
	for i := 0; i < len(lines); {
		if bare(lines[i]) != bare(heading) {
			kept.WriteString(lines[i])
			i++
			continue
		}
		found = true
		if ends[i] > 0 {
			i = ends[i]
			continue
		}
		for i++; i < len(lines) && ofSection(lines[i]); i++ {
		}
	}
	if !found {
		return text
	}
	return strings.TrimRight(kept.String(), "\n")
}

// bare returns a line in lower case, without what indents, quotes or marks it.
func bare(line string) string {
	return strings.ToLower(strings.Trim(line, " \t\r\n>|*_`~#"))
}

// ofSection reports whether a line could be in a section of rules.
func ofSection(line string) bool {
	line = bare(line)
	return line == "" || line == bare(preface) || strings.HasPrefix(line, "- ")
}
