package patterns

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/text"
)

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
	Deprecated   []Standing  // those to warn of, if Config.Warnings asks for them
	AntiPatterns []Standing
	// Successful are written with their rate of success, if at least 70 % of at least two observations were successes.
	// [Recorder.Plan] leaves it empty.
	Successful []Standing
	// Size bounds each section of patterns. 0 means 10 items and 3,000 characters.
	Size SectionSize
}

var planSize = SectionSize{10, 3_000}

// Plan gathers what a new task can use: past tasks that are like it, the proven and established patterns, and the
// anti-patterns. Deprecated and archived patterns are not in it.
//
// If Config.Similar fails or panics, the plan lacks the past tasks and is returned together with the error.
func (r *Recorder) Plan(ctx context.Context, task string) (Plan, error) {
	plan := Plan{Size: r.cfg.Size}
	all, err := r.Standings(ctx, PatternQuery{})
	if err != nil {
		return Plan{}, failed("plan", err)
	}
	slices.SortFunc(all, compareStandings)
	for _, s := range all {
		switch {
		case s.Pattern.archived():
		case s.Pattern.Anti:
			plan.AntiPatterns = append(plan.AntiPatterns, s)
		case s.State == Proven || s.State == Established:
			plan.Patterns = append(plan.Patterns, s)
		case s.State == Deprecated && r.cfg.Warnings:
			plan.Deprecated = append(plan.Deprecated, s)
		}
	}
	if plan.Similar, err = r.similar(ctx, task); err != nil {
		r.watch.Failed(ctx, "similar", err)
		return plan, fmt.Errorf("patterns: plan: without similar tasks: %w", err)
	}
	return plan, nil
}

// similar asks the host's own function for past tasks, if there is one.
func (r *Recorder) similar(ctx context.Context, task string) (found []Precedent, err error) {
	limit := r.cfg.MaxSimilar
	if r.cfg.Similar == nil {
		return r.sharingWords(ctx, task, limit)
	}
	err = host.Call("Config.Similar", func() (err error) {
		found, err = r.cfg.Similar(ctx, task, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return found[:min(len(found), limit)], nil
}

// scanned is how many outcomes are compared with a task.
const scanned = 2000

// sharingWords finds past tasks by the words that their descriptions share with the text: the size of the intersection divided
// by that of the union (Jaccard 1901). The last outcome of each task counts. Of equals, the later comes first.
func (r *Recorder) sharingWords(ctx context.Context, task string, limit int) ([]Precedent, error) {
	words := wordSet(task)
	var found []Precedent
	seen := make(map[string]bool)
	for e, err := range r.Entries(ctx, HistoryQuery{Limit: scanned}) {
		if err != nil {
			return nil, err
		}
		o := &e.Outcome
		if e.isReview() || seen[o.Task] {
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

// Prompt writes the plan as sections of a prompt, with a blank line between them. It is empty if nothing is known.
func (p *Plan) Prompt() string {
	size := p.Size.or(planSize)
	var sections []string
	for _, s := range []string{
		similarSection(p.Similar),
		maturitySections(append(slices.Clone(p.Patterns), p.Deprecated...), len(p.Deprecated) > 0, size),
		successfulSection(p.Successful, size),
		antiPatternSection(p.AntiPatterns, size),
	} {
		if s != "" {
			sections = append(sections, strings.TrimSuffix(s, "\n")+"\n")
		}
	}
	return strings.Join(sections, "\n")
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
