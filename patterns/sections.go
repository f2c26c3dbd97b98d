package patterns

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/prompt"
)

// Limits bound a section of a prompt. Only whole items are left out, the least first. The zero value of each field means
// its default.
type Limits struct {
	Items int // 0 means 20
	Chars int // of the whole section, in runes. 0 means 6,000
}

func (l Limits) withDefaults() Limits {
	l.Items = cmp.Or(l.Items, 20)
	l.Chars = cmp.Or(l.Chars, 6_000)
	return l
}

func (l Limits) validate() error {
	var found faults.List
	found.Check(l.Items > 0, "Items", l.Items, "must not be negative")
	found.Check(l.Chars > 0, "Chars", l.Chars, "must not be negative")
	return found.Err()
}

const (
	lineRunes  = 300 // of a text in a prompt
	stackRunes = 100 // of a stack
	timeLayout = "2006-01-02 15:04:05 UTC"
)

// A page is text within limits.
type page struct {
	text  strings.Builder
	left  Limits
	after int // characters that are kept free for what comes at the end
}

func newPage(l Limits, after string) *page {
	return &page{left: l.withDefaults(), after: utf8.RuneCountInString(after)}
}

// item writes an item, with what goes before the first of its group, if there is room for both.
func (p *page) item(before, text string) bool {
	n := utf8.RuneCountInString(before) + utf8.RuneCountInString(text)
	if p.left.Items <= 0 || n+p.after > p.left.Chars {
		p.left.Items = 0 // what comes later is worth less, even where it is shorter
		return false
	}
	p.left.Items--
	p.left.Chars -= n
	p.text.WriteString(before)
	p.text.WriteString(text)
	return true
}

// MaturitySections writes patterns for a prompt, a section for each of proven, established and candidate, and, where
// warnings is set, for deprecated ones: best first, each with a label that says how much is known. Archived patterns,
// inverted ones and anti-patterns are left out. It is empty where there is nothing to write, and has no line break at its end.
func MaturitySections(patterns []Standing, warnings bool, l Limits) string {
	sorted := slices.Clone(patterns)
	slices.SortFunc(sorted, compareStandings)
	sections := []struct {
		state         State
		heading, text string
	}{
		{Proven, "## Proven Patterns", "These patterns consistently work well:"},
		{Established, "## Established Patterns", "These patterns have track records:"},
		{Candidate, "## Candidate Patterns", "These patterns need more validation:"},
		{Deprecated, "## Deprecated Patterns", "AVOID these patterns - they have poor track records:"},
	}
	if !warnings {
		sections = sections[:3]
	}
	page := newPage(l, "")
	for _, section := range sections {
		before := section.heading + "\n\n" + section.text + "\n\n"
		if page.text.Len() > 0 {
			before = "\n" + before
		}
		for i := range sorted {
			s := &sorted[i]
			if s.State != section.state || s.Pattern.Archived() || s.Pattern.Kind != Positive {
				continue
			}
			if !page.item(before, "- "+line(s.Pattern.Content)+" "+s.Label()+"\n") {
				break
			}
			before = ""
		}
	}
	return strings.TrimSuffix(page.text.String(), "\n")
}

func line(text string) string { return prompt.Line(text, lineRunes) }

// Label says in brackets how much is known of the pattern: its state and its observations, which are counted and do not
// fade.
func (s *Standing) Label() string {
	n := s.Counts.Total()
	helpful, harmful := percent(s.Counts.Successes, n), percent(s.Counts.Failures, n)
	switch {
	case n == 1:
		return "[LIMITED DATA - 1 observation]"
	case n < 3:
		return fmt.Sprintf("[LIMITED DATA - %d observations]", n)
	case s.State == Established:
		return fmt.Sprintf("[ESTABLISHED - %d%% helpful, %d%% harmful from %d observations]", helpful, harmful, n)
	case s.State == Proven:
		return fmt.Sprintf("[PROVEN - %d%% helpful from %d observations]", helpful, n)
	case s.State == Deprecated || s.State == Inverted:
		return fmt.Sprintf("[DEPRECATED - %d%% harmful, avoid using]", harmful)
	default:
		return fmt.Sprintf("[CANDIDATE - %d observations, needs more data]", n)
	}
}

// SuccessfulSection writes the patterns with at least two observations and a rate of success of at least floor (0 means
// 0.7), the highest rate first. What is deprecated, inverted or archived is left out. It is empty where there is nothing to
// write.
func SuccessfulSection(patterns []Standing, floor float64, l Limits) string {
	floor = cmp.Or(floor, 0.7)
	var good []Standing
	for _, s := range patterns {
		if n := s.Counts.Total(); n >= 2 && s.rate() >= floor-tolerance && s.Pattern.Kind == Positive &&
			s.State != Deprecated && s.State != Inverted && !s.Pattern.Archived() {
			good = append(good, s)
		}
	}
	slices.SortFunc(good, func(a, b Standing) int {
		return cmp.Or(cmp.Compare(b.rate(), a.rate()), compareStandings(a, b))
	})
	page, before := newPage(l, ""), "## Successful Patterns\n\nThese decomposition strategies have worked well in the past:\n\n"
	for i := range good {
		c := good[i].Counts
		if !page.item(before, fmt.Sprintf("- %s (%d%% success rate)\n", line(good[i].Pattern.Content), percent(c.Successes, c.Total()))) {
			break
		}
		before = ""
	}
	return page.text.String()
}

// rate is the share of successes among all observations, as they are counted.
func (s *Standing) rate() float64 { return float64(s.Counts.Successes) / float64(s.Counts.Total()) }

// AntiPatternSection writes the anti-patterns, those with the most failures first. What is archived is left out. It is
// empty where there is nothing to write.
func AntiPatternSection(patterns []Standing, l Limits) string {
	var anti []Standing
	for _, s := range patterns {
		if s.Pattern.Kind == Anti && !s.Pattern.Archived() {
			anti = append(anti, s)
		}
	}
	slices.SortFunc(anti, func(a, b Standing) int {
		return cmp.Or(cmp.Compare(b.Counts.Failures, a.Counts.Failures), strings.Compare(string(a.Pattern.ID), string(b.Pattern.ID)))
	})
	page, before := newPage(l, ""), "## Anti-Patterns to Avoid\n\nBased on past failures, avoid these decomposition strategies:\n\n"
	for i := range anti {
		if !page.item(before, "- "+line(anti[i].Pattern.Content)+"\n") {
			break
		}
		before = ""
	}
	return page.text.String()
}

// A PromptQuery selects the errors of a task for the prompt of its next attempt.
type PromptQuery struct {
	Task            string
	IncludeResolved bool
	Limits          Limits // the newest errors are written where not all have room
}

// Prompt writes the errors of a task for the prompt of its next attempt: by type, in the order in which types first came
// up. It is empty where there are none.
func (a *Accumulator) Prompt(ctx context.Context, q PromptQuery) (string, error) {
	if err := q.Limits.withDefaults().validate(); err != nil {
		return "", fmt.Errorf("patterns: error prompt: %w", err)
	}
	var entries []ErrorEntry
	for kept, err := range a.newest(ctx, q.Task, MaxErrors) {
		if err != nil {
			return "", fmt.Errorf("patterns: error prompt: %w", err)
		}
		if q.IncludeResolved || !kept.Value.Resolved {
			entries = append(entries, kept.Value)
		}
	}
	slices.Reverse(entries)
	return errorSection(entries, q.Limits), nil
}

const (
	errorHeading = "## Previous Errors\n\nThe following errors were encountered during execution:\n\n"
	errorAction  = "**Action Required**: Address these errors before proceeding. Consider:\n\n" +
		"- What caused each error?\n" +
		"- How can you prevent similar errors?\n" +
		"- Are there patterns across error types?\n"
)

func errorSection(entries []ErrorEntry, l Limits) string {
	kept := newest(entries, l)
	if len(kept) == 0 {
		return ""
	}
	var types []ErrorType
	groups := make(map[ErrorType][]string)
	for i := range kept {
		t := kept[i].Type
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
		groups[t] = append(groups[t], kept[i].text())
	}
	var b strings.Builder
	b.WriteString(errorHeading)
	for _, t := range types {
		fmt.Fprintf(&b, "### %s (%s)\n\n%s", t, plural(len(groups[t]), "error", "errors"), strings.Join(groups[t], ""))
	}
	b.WriteString(errorAction)
	return b.String()
}

// newest returns the last of the entries that have room, in their order.
func newest(entries []ErrorEntry, l Limits) []ErrorEntry {
	const group = "### tool_failure (10000 errors)\n\n" // the longest
	page := newPage(l, errorHeading+errorAction+strings.Repeat(group, 5))
	from := len(entries)
	for from > 0 && page.item("", entries[from-1].text()) {
		from--
	}
	return entries[from:]
}

// text writes an error as an item, with a blank line after it.
func (e *ErrorEntry) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "- **%s**\n", strings.ReplaceAll(line(e.Message), "**", "∗∗")) // so that it does not end before its end
	for _, detail := range []struct {
		name, text string
		limit      int
	}{{"Context", e.Context, lineRunes}, {"Tool", e.Tool, lineRunes}, {"Stack", e.Stack, stackRunes}} {
		if detail.text != "" {
			fmt.Fprintf(&b, "  - %s: %s\n", detail.name, prompt.Line(detail.text, detail.limit))
		}
	}
	fmt.Fprintf(&b, "  - Time: %s", e.At.UTC().Format(timeLayout))
	if e.Resolved {
		b.WriteString(" (resolved)")
	}
	b.WriteString("\n\n")
	return b.String()
}
