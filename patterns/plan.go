package patterns

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/prompt"
	"github.com/heedhq/heed/store"
)

// A Precedent is a past task that is like the one that is planned.
type Precedent struct {
	// Task and Description identify the past outcome. The prompt shows Task if Description is empty.
	Task        string
	Description string
	// Similarity is how like the planned task it is, in [0, 1].
	Similarity float64
	// Strategy is what was followed, and Class how good the outcome was. Both may be empty.
	Strategy PatternID
	Class    string
	// Result describes how it went. It is in the prompt. "" means Class.
	Result string
}

// A Plan is what the prompt of a planner needs to know of the past. Its lists are written in their
// order and contain at most 100 elements. It must not be used concurrently while it is changed.
type Plan struct {
	// Similar are past tasks that are like it, the most similar first.
	Similar []Precedent
	// Patterns are the proven and established ones, the best first: by the multiplier of the state,
	// and then by the rate of successes to expect.
	Patterns []Standing
	// Deprecated are the patterns to warn of, which a plan of [SpecConfig] has.
	Deprecated []Standing
	// AntiPatterns have those with the most failures first.
	AntiPatterns []Standing
	// Size bounds each section of patterns. 0 means 10 items and 3,000 characters. Lower it if the
	// prompt is short of room.
	Size SectionSize
}

// planSize is the size of a section if Plan.Size is zero.
var planSize = SectionSize{10, 3_000}

// Plan gathers what a new task can use: past tasks that are like it, the proven and established
// patterns, and the anti-patterns. Candidates are not in it, nor are patterns without evidence for
// their half-life, unless they were promoted by hand. New evidence brings them back.
//
// If Config.Similar fails or panics, the plan lacks the past tasks and is returned together with
// the error.
func (r *Recorder) Plan(ctx context.Context, task string) (Plan, error) {
	return r.Steps().PlanIn(store.Reading(ctx, r.cfg.Store), task)
}

// PlanIn is [Recorder.Plan] in a step. It reads what PlanWants names, and more only if
// patterns or outcomes changed since the last plan. A plan does not have what its own step adds. Of
// more than 500 patterns that are not candidates, it has those that changed last.
func (r steps) PlanIn(tx *store.Tx, task string) (Plan, error) {
	var s store.Snapshot
	if err := tx.Read(&s, nil, r.Steps().PlanWants().Refs); err != nil {
		return Plan{}, failed("plan", err)
	}
	// What the step read before may be older than the versions, so that it must not be remembered
	// with them.
	fresh := store.Reading(tx.Context(), r.cfg.Store)
	found, err := current(&r.past.patterns, s.Records[0].Revision, func() (*reading, error) {
		return r.readAll(fresh, PatternQuery{Limit: mostRead}, plannedKey)
	})
	if err != nil {
		return Plan{}, failed("plan", err)
	}
	plan := r.planOf(found)
	if plan.Similar, err = r.similar(fresh, task, s.Records[1:]); err != nil {
		r.watch.Failed(tx.Context(), "similar", err)
		return plan, fmt.Errorf("patterns: plan: without similar tasks: %w", err)
	}
	return plan, nil
}

// planOf returns the plan that these patterns make, the best first. Patterns are read with their
// stored state, and the state of now decides, because time may have made a proven pattern
// established.
func (r *Recorder) planOf(found *reading) (plan Plan) {
	now := r.cfg.Now()
	for _, id := range found.order {
		s := r.stand(found, id, now)
		list := &plan.Patterns
		switch {
		case s.Pattern.Anti:
			list = &plan.AntiPatterns
		case s.Pattern.Override == "" && !r.isRecent(&s, now).Met:
			continue
		case s.State == deprecated && r.cfg.literal:
			list = &plan.Deprecated
		case !inUse(s.State):
			continue
		}
		*list = append(*list, s)
	}
	slices.SortFunc(plan.AntiPatterns, func(a, b Standing) int {
		return cmp.Or(cmp.Compare(b.Counts.Failures, a.Counts.Failures), compareStandings(a, b))
	})
	for _, list := range []*[]Standing{&plan.Patterns, &plan.Deprecated} {
		slices.SortFunc(*list, compareStandings)
		*list = (*list)[:min(len(*list), mostPlanned)]
	}
	plan.AntiPatterns = plan.AntiPatterns[:min(len(plan.AntiPatterns), mostPlanned)]
	return plan
}

// similar asks the host's own function for past tasks, if there is one. Otherwise versions has the
// version of the outcomes. A result of the host may be longer than was asked for, so it is cut.
func (r *Recorder) similar(
	tx *store.Tx, task string, versions []store.Record,
) (found []Precedent, err error) {
	limit := maxSimilar
	if r.cfg.Similar == nil {
		known, err := current(&r.past.tasks, versions[0].Revision,
			func() (*pastTasks, error) { return r.pastTasks(tx) })
		if err != nil {
			return nil, err
		}
		return known.like(task, limit), nil
	}
	err = host.Call("Config.Similar", func() (err error) {
		found, err = r.cfg.Similar(tx.Context(), task, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return found[:min(len(found), limit)], nil
}

// Prompt writes the plan as sections of a prompt, with a blank line between them. The text is empty
// if the plan is empty. Prompt also returns which patterns the text recommends, and which it warns
// of, in their order in the text.
func (p *Plan) Prompt() (text string, recommended, warned []PatternID) {
	size := p.Size.or(planSize)
	ways, shown := maturitySections(append(slices.Clone(p.Patterns), p.Deprecated...), size)
	warning, avoided := antiPatternSection(p.AntiPatterns, size)
	sections := slices.DeleteFunc([]string{similarSection(p.Similar), ways, warning},
		func(s string) bool { return s == "" })
	for _, s := range append(shown, avoided...) {
		if s.Pattern.Anti || s.State == deprecated {
			warned = append(warned, s.Pattern.ID)
		} else {
			recommended = append(recommended, s.Pattern.ID)
		}
	}
	return strings.Join(sections, "\n"), recommended, warned
}

// similarSection writes past tasks. Descriptions are one line each, so that no text can pass for
// another part of the prompt.
func similarSection(similar []Precedent) string {
	if len(similar) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("## Similar Past Tasks\n\nHow tasks like this one went:\n\n")
	for _, s := range similar {
		fmt.Fprintf(&b, "- %s\n", line(cmp.Or(s.Description, s.Task)))
		if s.Strategy != "" {
			fmt.Fprintf(&b, "  - Strategy: %s\n", line(string(s.Strategy)))
		}
		fmt.Fprintf(&b, "  - Result: %s\n", line(cmp.Or(s.Result, s.Class)))
	}
	return b.String()
}

// A SectionSize bounds a section of a prompt. Only whole items are left out, the least important
// first. The zero value of each field means a default, and a negative one leaves the section out.
type SectionSize struct {
	// Items is how many items a section has at most.
	Items int
	// Chars is how many runes the whole section has at most, headings included.
	Chars int
}

// or returns the size with defaults in place of zeros. A negative bound stays, and leaves the
// section out.
func (s SectionSize) or(defaults SectionSize) SectionSize {
	return SectionSize{cmp.Or(s.Items, defaults.Items), cmp.Or(s.Chars, defaults.Chars)}
}

const (
	lineRunes = 300 // of a text in a prompt
	// timeLayout is for the times of errors and standings, which are in UTC.
	timeLayout = "2006-01-02 15:04:05 UTC"
)

// take takes room for an item, and reports whether there was any. After the first item without
// room, no later item gets any.
func (s *SectionSize) take(text string) bool {
	s.Items--
	s.Chars -= utf8.RuneCountInString(text)
	return s.Items >= 0 && s.Chars >= 0
}

// list writes a list of patterns with what goes before it, until the room is used up. It returns
// the patterns that it wrote.
func list(
	before string, size *SectionSize, all []*Standing, write func(*Standing) string,
) (string, []*Standing) {
	var b strings.Builder
	for i, s := range all {
		one := before + "- " + write(s) + "\n"
		if !size.take(one) {
			return b.String(), all[:i]
		}
		b.WriteString(one)
		before = ""
	}
	return b.String(), all
}

// maturitySections writes patterns, a section for each state, each with a label for how much is
// known.
func maturitySections(patterns []Standing, size SectionSize) (text string, shown []*Standing) {
	for _, section := range []struct {
		state  string
		before string
	}{
		{proven, "## Proven Patterns\n\nThese patterns consistently work well:\n\n"},
		{established, "## Established Patterns\n\nThese patterns have track records:\n\n"},
		{candidate, "## Candidate Patterns\n\nThese patterns need more validation:\n\n"},
		{deprecated, "## Deprecated Patterns\n\nAVOID these patterns - they have poor track " +
			"records:\n\n"},
	} {
		all := pointers(patterns, func(s *Standing) bool { return s.State == section.state })
		if text != "" {
			section.before = "\n" + section.before
		}
		written, in := list(section.before, &size, all,
			func(s *Standing) string { return line(s.Pattern.Content) + " " + s.label() })
		text, shown = text+written, append(shown, in...)
	}
	return text, shown
}

// pointers returns the selected standings without copying them.
func pointers(all []Standing, selects func(*Standing) bool) (selected []*Standing) {
	for i := range all {
		if selects(&all[i]) {
			selected = append(selected, &all[i])
		}
	}
	return selected
}

// antiPatternSection writes warnings under the design's heading, and returns those that had room.
func antiPatternSection(patterns []Standing, size SectionSize) (text string, shown []*Standing) {
	const before = "## Anti-Patterns to Avoid\n\nBased on past failures, avoid these decomposition " +
		"strategies:\n\n"
	return list(before, &size, pointers(patterns, func(*Standing) bool { return true }),
		func(s *Standing) string { return line(s.Pattern.Content) })
}

// line writes a text as one line of a prompt, without what could pass for another part of it.
func line(text string) string { return prompt.Line(text, lineRunes) }

// label returns in brackets how much is known of the pattern: its state and its counts, which do
// not fade.
func (s *Standing) label() string {
	n := s.Counts.total()
	helpful, harmful := percent(s.Counts.Successes, n), percent(s.Counts.Failures, n)
	switch {
	case n == 1:
		return "[LIMITED DATA - 1 observation]"
	case n < 3:
		return fmt.Sprintf("[LIMITED DATA - %d observations]", n)
	case s.State == established:
		return fmt.Sprintf("[ESTABLISHED - %d%% helpful, %d%% harmful from %d observations]", helpful,
			harmful, n)
	case s.State == proven:
		return fmt.Sprintf("[PROVEN - %d%% helpful from %d observations]", helpful, n)
	case s.State == deprecated || s.State == inverted:
		return fmt.Sprintf("[DEPRECATED - %d%% harmful, avoid using]", harmful)
	default:
		return fmt.Sprintf("[CANDIDATE - %d observations, needs more data]", n)
	}
}

const (
	// The texts around the errors are the design's.
	errorHeading = "## Previous Errors\n\nThe following errors were encountered during execution:\n\n"
	errorAction  = "**Action Required**: Address these errors before proceeding. Consider:\n\n" +
		"- What caused each error?\n" +
		"- How can you prevent similar errors?\n" + "- Are there patterns across error types?\n"
)

// errorSection writes the newest errors that have room, by type, and returns their ids. Room is
// taken from the newest backwards, with what the headings may need already set aside. Then the
// errors are written oldest first.
func errorSection(all []TaskError, size SectionSize) (text string, ids []string) {
	const group = "### tool_failure (10000 errors)\n\n" // the longest
	size.Chars -= utf8.RuneCountInString(errorHeading+errorAction) + len(errorTypes)*len(group)
	from := len(all)
	for from > 0 && size.take(all[from-1].text()) {
		from--
	}
	if from == len(all) {
		return "", nil
	}
	var types []string
	groups := make(map[string][]string)
	for i := range all[from:] {
		e := &all[from+i]
		if !slices.Contains(types, e.Type) {
			types = append(types, e.Type)
		}
		groups[e.Type] = append(groups[e.Type], e.text())
		ids = append(ids, e.ID)
	}
	var b strings.Builder
	b.WriteString(errorHeading)
	for _, t := range types {
		fmt.Fprintf(&b, "### %s (%s)\n\n%s", t, plural(len(groups[t]), "error", "errors"),
			strings.Join(groups[t], ""))
	}
	b.WriteString(errorAction)
	return b.String(), ids
}

// text writes an error as an item, with a blank line after it. The message is in bold, so two stars
// in it are replaced.
func (e *TaskError) text() string {
	var b strings.Builder
	// so that it does not end before its end
	fmt.Fprintf(&b, "- **%s**\n", strings.ReplaceAll(line(e.Message), "**", "∗∗"))
	for _, detail := range []struct {
		name, text string
		limit      int
	}{{"Context", e.Context, lineRunes}, {"Tool", e.Tool, lineRunes}, {"Stack", e.Stack, 100}} {
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
