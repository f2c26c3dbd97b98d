package patterns

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/heedhq/heed/prompt"
)

// A SectionSize bounds a section of a prompt. Only whole items are left out, the least important first. The zero value of each
// field means a default, and a negative one leaves the section out.
type SectionSize struct {
	Items int
	Chars int // of the whole section, in runes
}

func (s SectionSize) or(defaults SectionSize) SectionSize {
	return SectionSize{cmp.Or(s.Items, defaults.Items), cmp.Or(s.Chars, defaults.Chars)}
}

const (
	lineRunes  = 300 // of a text in a prompt
	stackRunes = 100 // of a stack
	timeLayout = "2006-01-02 15:04:05 UTC"
)

// A page is text within limits.
type page struct {
	text  strings.Builder
	left  SectionSize
	after int // characters that are kept free for the end
}

func newPage(size SectionSize, after string) *page {
	return &page{left: size, after: utf8.RuneCountInString(after)}
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

// maturitySections writes patterns, a section for each of proven, established and candidate, and if warnings is set for
// deprecated ones: best first, each with a label that says how much is known. Archived patterns, inverted ones and anti-patterns
// are left out. There is no line break at the end.
func maturitySections(patterns []Standing, warnings bool, size SectionSize) string {
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
	page := newPage(size, "")
	for _, section := range sections {
		before := section.heading + "\n\n" + section.text + "\n\n"
		if page.text.Len() > 0 {
			before = "\n" + before
		}
		for i := range sorted {
			s := &sorted[i]
			if s.State != section.state || s.Pattern.archived() || s.Pattern.Anti {
				continue
			}
			if !page.item(before, "- "+line(s.Pattern.Content)+" "+s.label()+"\n") {
				break
			}
			before = ""
		}
	}
	return strings.TrimSuffix(page.text.String(), "\n")
}

func line(text string) string { return prompt.Line(text, lineRunes) }

// label says in brackets how much is known of the pattern: its state and its counts, which do not fade.
func (s *Standing) label() string {
	n := s.Counts.total()
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

// successfulSection writes the patterns with at least two observations and a rate of success of at least 70 %, the highest rate
// first. Deprecated, inverted and archived ones are left out.
func successfulSection(patterns []Standing, size SectionSize) string {
	rate := func(s *Standing) float64 { return float64(s.Counts.Successes) / float64(s.Counts.total()) } // of counts
	var good []Standing
	for _, s := range patterns {
		if s.Counts.total() >= 2 && rate(&s) >= 0.7-tolerance && !s.Pattern.Anti && s.State != Deprecated && s.State != Inverted && !s.Pattern.archived() {
			good = append(good, s)
		}
	}
	slices.SortFunc(good, func(a, b Standing) int { return cmp.Or(cmp.Compare(rate(&b), rate(&a)), compareStandings(a, b)) })
	return listSection("## Successful Patterns\n\nThese decomposition strategies have worked well in the past:\n\n", good, size, func(s *Standing) string {
		return fmt.Sprintf("%s (%d%% success rate)", line(s.Pattern.Content), percent(s.Counts.Successes, s.Counts.total()))
	})
}

// antiPatternSection writes the anti-patterns, those with the most failures first. Archived ones are left out.
func antiPatternSection(patterns []Standing, size SectionSize) string {
	var anti []Standing
	for _, s := range patterns {
		if s.Pattern.Anti && !s.Pattern.archived() {
			anti = append(anti, s)
		}
	}
	slices.SortFunc(anti, func(a, b Standing) int {
		return cmp.Or(cmp.Compare(b.Counts.Failures, a.Counts.Failures), strings.Compare(string(a.Pattern.ID), string(b.Pattern.ID)))
	})
	return listSection("## Anti-Patterns to Avoid\n\nBased on past failures, avoid these decomposition strategies:\n\n", anti, size,
		func(s *Standing) string { return line(s.Pattern.Content) })
}

// listSection writes a section of one list. It is empty if the list is, or if no item has room.
func listSection(heading string, all []Standing, size SectionSize, text func(*Standing) string) string {
	page := newPage(size, "")
	for i := range all {
		if !page.item(heading, "- "+text(&all[i])+"\n") {
			break
		}
		heading = ""
	}
	return page.text.String()
}

const (
	errorHeading = "## Previous Errors\n\nThe following errors were encountered during execution:\n\n"
	errorAction  = "**Action Required**: Address these errors before proceeding. Consider:\n\n" +
		"- What caused each error?\n" +
		"- How can you prevent similar errors?\n" +
		"- Are there patterns across error types?\n"
)

func errorSection(entries []TaskError, size SectionSize) string {
	kept := newest(entries, size)
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

// newest returns the newest errors that have room, in their order.
func newest(entries []TaskError, size SectionSize) []TaskError {
	const group = "### tool_failure (10000 errors)\n\n" // the longest
	page := newPage(size, errorHeading+errorAction+strings.Repeat(group, 5))
	from := len(entries)
	for from > 0 && page.item("", entries[from-1].text()) {
		from--
	}
	return entries[from:]
}

// text writes an error as an item, with a blank line after it.
func (e *TaskError) text() string {
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
