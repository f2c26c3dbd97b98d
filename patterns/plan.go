package patterns

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/internal/text"
)

// PlanLimits bound a [Plan]. The zero value of each field means its default.
type PlanLimits struct {
	Similar      int    // past tasks. 0 means 5
	Patterns     Limits // proven and established ones. 0 means 10 items, 3,000 characters
	AntiPatterns Limits // likewise
	// Warnings adds a section that warns of deprecated patterns.
	Warnings bool
}

func (l PlanLimits) withDefaults() PlanLimits {
	l.Similar = cmp.Or(l.Similar, 5)
	for _, limits := range []*Limits{&l.Patterns, &l.AntiPatterns} {
		limits.Items = cmp.Or(limits.Items, 10)
		limits.Chars = cmp.Or(limits.Chars, 3_000)
	}
	return l
}

func (l PlanLimits) validate() error {
	var found faults.List
	found.Check(l.Similar > 0, "Similar", l.Similar, "must not be negative")
	found.Add("Patterns", l.Patterns.validate())
	found.Add("AntiPatterns", l.AntiPatterns.validate())
	return found.Err()
}

// A Precedent is a past task that is like the one that is planned.
type Precedent struct {
	Task        string
	Description string
	Similarity  float64 // in [0, 1]
	Strategy    PatternID
	Class       Class
	Result      string // how it went, for people
}

// A Plan is what the prompt of a planner needs to know of the past. It must not be used concurrently while it is changed.
type Plan struct {
	Similar      []Precedent // the most similar first
	Patterns     []Standing  // proven and established ones, the best first
	Deprecated   []Standing  // those to warn of, where [PlanLimits] ask for them
	AntiPatterns []Standing

	limits PlanLimits
}

// PlanContext gathers what is known that a new task can use: past tasks that are like it, the patterns that are proven or
// established, and the anti-patterns. What is deprecated or archived is not in it.
//
// If Config.Similar fails, or panics, the plan lacks the past tasks and is returned together with the error.
func (r *Recorder) PlanContext(ctx context.Context, task string) (Plan, error) {
	plan := Plan{limits: r.cfg.Plan}
	all, err := r.Standings(ctx, PatternQuery{})
	if err != nil {
		return Plan{}, fmt.Errorf("patterns: plan: %w", err)
	}
	slices.SortFunc(all, compareStandings)
	for _, s := range all {
		switch {
		case s.Pattern.Archived():
		case s.Pattern.Kind == Anti:
			plan.AntiPatterns = append(plan.AntiPatterns, s)
		case s.State == Proven || s.State == Established:
			plan.Patterns = append(plan.Patterns, s)
		case s.State == Deprecated && r.cfg.Plan.Warnings:
			plan.Deprecated = append(plan.Deprecated, s)
		}
	}
	if plan.Similar, err = r.similar(ctx, task); err != nil {
		return plan, fmt.Errorf("patterns: plan: without similar tasks, as %w", err)
	}
	return plan, nil
}

// similar asks for past tasks, of a host's own function if there is one.
func (r *Recorder) similar(ctx context.Context, task string) (found []Precedent, err error) {
	limit := r.cfg.Plan.Similar
	if r.cfg.Similar == nil {
		return r.sharingWords(ctx, task, limit)
	}
	defer func() {
		if p := recover(); p != nil {
			found, err = nil, fmt.Errorf("Config.Similar panicked: %v", p)
		}
	}()
	found, err = r.cfg.Similar(ctx, task, limit)
	if err != nil {
		return nil, err
	}
	return found[:min(len(found), limit)], nil
}

// scanned is how many outcomes are compared with a task.
const scanned = 2000

// sharingWords finds past tasks by the words that their descriptions share with the text: the size of the intersection by
// that of the union (Jaccard 1901). Of each task its last outcome counts; of equals, the later.
func (r *Recorder) sharingWords(ctx context.Context, task string, limit int) ([]Precedent, error) {
	words := wordSet(task)
	var found []Precedent
	seen := make(map[string]bool)
	for e, err := range r.Entries(ctx, EntryQuery{Limit: scanned}) {
		if err != nil {
			return nil, err
		}
		o := &e.Outcome
		if e.Review != nil || seen[o.Task] {
			continue
		}
		seen[o.Task] = true
		if similarity := text.Jaccard(words, wordSet(o.Description)); similarity > 0 {
			found = append(found, Precedent{o.Task, o.Description, similarity, o.Strategy, e.Score.Class, e.Score.Reason})
		}
	}
	slices.SortStableFunc(found, func(a, b Precedent) int { return cmp.Compare(b.Similarity, a.Similarity) })
	return found[:min(len(found), limit)], nil
}

func wordSet(task string) []string {
	return text.Distinct(slices.DeleteFunc(tokens(task), func(t string) bool { return len(t) < 2 })) // without marks and articles
}

// Prompt writes the plan as sections of a prompt, a blank line between them. It is empty where nothing is known.
func (p *Plan) Prompt() string {
	var sections []string
	for _, s := range []string{
		similarSection(p.Similar),
		MaturitySections(append(slices.Clone(p.Patterns), p.Deprecated...), p.limits.Warnings, p.limits.withDefaults().Patterns),
		AntiPatternSection(p.AntiPatterns, p.limits.withDefaults().AntiPatterns),
	} {
		if s = strings.TrimSuffix(s, "\n"); s != "" {
			sections = append(sections, s)
		}
	}
	if len(sections) == 0 {
		return ""
	}
	return strings.Join(sections, "\n\n") + "\n"
}

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
		fmt.Fprintf(&b, "  - Result: %s\n", line(cmp.Or(s.Result, string(s.Class))))
	}
	return b.String()
}
