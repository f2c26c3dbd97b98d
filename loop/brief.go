package loop

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/prompt"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// cuts reports whether a text is too long for a prompt.
func (a *Agent) cuts(text string) bool {
	most := cmp.Or(a.cfg.Tuning.Decision.MaxText, maxText)
	return len(text) > most && prompt.Code(text, most) != prompt.Code(text, len(text))
}

// shortened reports whether a line of a prompt has no room for all of a text.
func shortened(text string) bool {
	return len(text) > prompt.DefaultMax && prompt.Line(text, 0) != prompt.Line(text, len(text))
}

// brief puts together what the model is told: rules, what went well and badly, and notes, in the
// way that an arm uses them. ctx is the caller's; the step's reads are bounded by the budget.
func (a *Agent) brief(ctx context.Context, tx *store.Tx, f *fitting, p *Plan) error {
	p.item = f.item
	if err := p.late(ctx, f.late[2], "item"); err != nil {
		return err
	}
	if a.cfg.Trial.Shadow {
		return a.asAlways(tx, p)
	}
	if err := p.late(ctx, a.addRules(tx, p), "rules"); err != nil {
		return err
	}
	if err := p.late(ctx, a.addPatterns(tx, p), "patterns"); err != nil {
		return err
	}
	if err := p.late(ctx, a.addErrors(tx, p), "errors"); err != nil {
		return err
	}
	if err := p.late(ctx, f.late[1], "notes"); err != nil {
		return err
	}
	notes := f.noted()
	chosen := a.choose(tx, p, notes)
	if err := p.late(ctx, chosen, "arm"); err != nil {
		return err
	}
	if chosen != nil {
		p.Arm = a.unchosen()
	}
	if p.Arm.System != "" {
		p.add("arm", p.Arm.System)
	}
	return p.late(ctx, a.addNotes(tx.Context(), p, notes), "notes")
}

// add adds a text to the system prompt, if there is room for it.
func (p *Plan) add(what, text string) bool {
	text = strings.TrimSpace(text)
	n := utf8.RuneCountInString(text)
	switch {
	case text == "":
		return true
	case n > p.room:
		p.LeftOut = append(p.LeftOut, LeftOut{What: what, Why: "characters"})
		return false
	case p.System != "":
		text = p.System + "\n\n" + text
	}
	p.room -= n
	p.System = text
	return true
}

func (a *Agent) addRules(tx *store.Tx, p *Plan) error {
	if a.feedback == nil {
		return nil
	}
	in, err := a.feedback.Rules().InjectIn(tx, a.cfg.Name, "", "")
	if err != nil {
		return err
	}
	p.unchecked = len(in.Checked) == 0
	if p.add("rules", in.Section) {
		p.Rules = in.Rules
	}
	for _, o := range in.Omitted {
		p.LeftOut = append(p.LeftOut, LeftOut{What: "rule", ID: o.Rule, Why: o.Reason})
	}
	return nil
}

func (a *Agent) addPatterns(tx *store.Tx, p *Plan) error {
	if a.patterns == nil || p.Event.Task == "" {
		return nil
	}
	plan, err := a.patterns.PlanIn(tx, beginning(p.Event.Text))
	if err != nil {
		return err
	}
	text, recommended, warned := plan.Prompt()
	if !p.add("patterns", text) {
		return nil
	}
	p.Contents = make(map[string]string)
	texts := func(included []patterns.PatternID, all []patterns.Standing) (ids []string) {
		for _, s := range all {
			if slices.Contains(included, s.Pattern.ID) {
				ids = append(ids, string(s.Pattern.ID))
				p.Contents[string(s.Pattern.ID)] = s.Pattern.Content
			}
		}
		return ids
	}
	p.Ways = texts(recommended, plan.Patterns)
	p.Warnings = texts(warned, slices.Concat(plan.Deprecated, plan.AntiPatterns))
	return nil
}

// The newest errors of a task that a prompt has, and the characters of their section.
const (
	maxErrors     = 20
	maxErrorRunes = 6_000
)

// errorsOf returns the query for the errors that tools gave in earlier attempts at the task of an
// event.
func errorsOf(e *Event) patterns.HistoryQuery {
	return patterns.HistoryQuery{About: e.Task, Limit: maxErrors}
}

// addErrors adds the errors that tools gave in earlier attempts at the task.
func (a *Agent) addErrors(tx *store.Tx, p *Plan) error {
	if a.patterns == nil || p.Event.Task == "" {
		return nil
	}
	report, err := a.patterns.ErrorsIn(tx, errorsOf(&p.Event))
	if err != nil || report.Unresolved == 0 {
		return err
	}
	size := patterns.SectionSize{Items: maxErrors, Chars: min(p.room, maxErrorRunes)}
	if size.Chars == 0 {
		size.Chars = -1
	}
	text, included := report.Prompt(size, false)
	p.add("errors", text)
	for _, e := range report.Errors {
		if !e.Resolved && !slices.Contains(included, e.ID) {
			p.LeftOut = append(p.LeftOut, LeftOut{What: "error", ID: e.ID, Why: "characters"})
		}
	}
	return nil
}

// choose chooses an arm, if there are arms that matter for the event.
func (a *Agent) choose(tx *store.Tx, p *Plan, notes []Note) error {
	a.strategy.RLock()
	learner, chooser, arms := a.strategy.learner, a.strategy.chooser, a.strategy.arms
	a.strategy.RUnlock()
	if chooser == nil || aboutNotes(arms) && len(notes) == 0 {
		return nil
	}
	q := p.query(notes)
	q.Frozen, q.Arms = a.frozen.Load(), a.available()
	choice, err := a.chosen(tx, chooser, q)
	away := p.Degraded != nil && errors.Is(err, heed.ErrUnavailable)
	if err != nil && (away || choice.Arm == "" || tx.Context().Err() != nil) {
		return overdue(tx.Context(), err)
	}
	known := func(arm Arm) bool { return arm.ID == string(choice.Arm) }
	if choice.Learner() != learner.Config().Name || !slices.ContainsFunc(arms, known) {
		return errors.Join(err, &heed.ConfigError{
			Field: "Choose", Value: choice.Arm, Reason: "gave a choice that is none of the learner's",
		})
	}
	a.watch.Failed(tx.Context(), "choose an arm", err) // there is one all the same
	p.take(choice, arms)
	return nil
}

// chosen asks the chooser. A chooser of the host's is given up when its time is over.
func (a *Agent) chosen(tx *store.Tx, c Chooser, q strategy.Query) (strategy.Choice, error) {
	if own, ok := c.(stepChooser); ok {
		return own.SelectIn(tx, q)
	}
	return pass(tx.Context(), a, "Config.Choose", func(ctx context.Context) (strategy.Choice, error) {
		return c.Select(ctx, q)
	})
}

// unchosen returns the arm that answers where no choice came in time: Strategy.Default, or the
// first one if there is no other model than the arms'. Nothing is learned of it.
func (a *Agent) unchosen() Arm {
	arms := a.arms()
	for _, arm := range arms {
		if arm.ID == string(a.cfg.Tuning.Strategy.Default) {
			return arm
		}
	}
	if i := slices.IndexFunc(arms, func(arm Arm) bool { return !arm.ForNotes }); i >= 0 &&
		len(a.model(Arm{}).models) == 0 {
		return arms[i]
	}
	return Arm{}
}

// aboutNotes reports whether all arms are about notes alone.
func aboutNotes(arms []Arm) bool {
	return !slices.ContainsFunc(arms, func(arm Arm) bool { return !arm.ForNotes })
}

func (p *Plan) take(choice strategy.Choice, arms []Arm) {
	p.Choice, p.Arm = &choice, Arm{ID: string(choice.Arm)}
	for _, arm := range arms {
		if arm.ID == string(choice.Arm) {
			p.Arm = arm
		}
	}
}

// asAlways takes the arm that answers without heed, if the host named one, so that what it is worth
// is learned.
func (a *Agent) asAlways(tx *store.Tx, p *Plan) error {
	always := a.cfg.Tuning.Strategy.Default
	learner := a.Strategy()
	if learner == nil || always == "" {
		return nil
	}
	choice, err := learner.RecordIn(tx, p.query(nil), always, 1)
	if err == nil {
		p.take(choice, a.arms())
		p.System = p.Arm.System
	}
	return err
}

// query returns what an arm is chosen for.
func (p *Plan) query(notes []Note) strategy.Query {
	e := &p.Event
	q := strategy.Query{
		Session: e.Session, Key: e.ID, Tenant: e.Tenant, Item: cmp.Or(e.Item, p.item),
		Category: e.Domain, Context: e.Context,
	}
	if q.Item == "" && len(notes) > 0 {
		q.Item, q.Category = notes[0].ID, cmp.Or(notes[0].Category, e.Domain)
	}
	return q
}

// notesHeading is the heading under which notes stand in a prompt.
const notesHeading = "## Notes"

func (a *Agent) addNotes(ctx context.Context, p *Plan, notes []Note) error {
	if len(notes) == 0 {
		return nil
	}
	if brief := p.Arm.Brief; brief != nil {
		text, err := pass(ctx, a, "Arm.Brief", func(ctx context.Context) (string, error) {
			return brief(ctx, p.Event, slices.Clone(notes))
		})
		if err == nil && p.add("notes", text) {
			p.Notes = notes
		}
		return overdue(ctx, err)
	}
	text := notesHeading + "\n\n"
	for _, n := range notes {
		text += "- " + prompt.Line(n.Text, 0) + "\n"
	}
	if !p.add("notes", text) {
		return nil
	}
	p.Notes = notes
	for _, n := range notes {
		if shortened(n.Text) {
			p.LeftOut = append(p.LeftOut, LeftOut{What: "note", ID: n.ID, Why: "characters"})
		}
	}
	return nil
}
