package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/prompt"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// How a plan is made. It is one step of the store: want names all that is read, so that it is one
// round trip, and planIn works on what was read. In the order of their precedence, for example if
// the budget of characters is used up:
//
// 	1. the rules that people approved
// 	2. the ways of working and the errors of earlier attempts, if the event has a task
// 	3. the arm's own system prompt, which is put above them, because rules refine what is above
// 	4. the notes, in the way that the arm uses them
//
// A part that is not ready in the time of the budget, or whose service fails, is left out and
// listed in Plan.LeftOut, because an answer without it is better than no answer.

// A Plan is how to answer an event. It is for one answer. Use it in the process that made it, or
// keep it by [Agent.KeepPlan].
type Plan struct {
	// Event is what to answer, with its ID and At filled in.
	Event Event
	// Ready reports that the answer is there: Text. A heuristic gave it, or the event was answered
	// before. Ask no model, and don't call [Agent.Answered]. Result is how it came about.
	Ready  bool
	Text   string
	Result decision.Result

	// Arm is the way of answering that was chosen, and Choice its record. Without arms, Arm has no
	// ID and Choice is nil.
	Arm    Arm
	Choice *strategy.Choice
	// System is what to add to the system prompt. Prompt is what to ask the model in place of the
	// event's text: it has the text, and the heuristics that may help.
	System, Prompt string

	// Candidates are the heuristics that fit, the best first.
	Candidates []decision.Candidate
	// Rules are the ids of the rules in System, and Notes are the notes in System.
	Rules []string
	Notes []Note
	// Ways and Warnings are the ways of working that System recommends, and that it warns of.
	// Contents has their texts, by their ids.
	Ways     []string
	Warnings []string
	Contents map[string]string
	// LeftOut lists what is not in the plan, though it belongs there.
	LeftOut []LeftOut
	// Heard is what the event's text changed about earlier answers.
	Heard []learning.Change
	// Undone are the answers that the event's text took back. If there are any, this answer earns no
	// credit.
	Undone []string
	// Command reports that the event's text asks to undo an earlier answer. If Undone is empty, no
	// answer was undone: the answer had been undone already, it was older than the undo window, or
	// the event has no session and no person. While the agent is frozen, it is false.
	Command bool
	// Violations lists the rules that a finished answer breaks, like [Answer].Violations. A heuristic
	// does not answer if it would break one, so these belong to an answer that was given before.
	Violations []feedback.Violation
	// Would is the heuristic that would have answered, if the event is in the control group: see
	// [Config].Control.
	Would string
	// Degraded is what the plan lacks because the store could not be reached. nil if it lacks no
	// part.
	Degraded *Degraded

	// kept is what KeepPlan keeps.
	kept keptPlan
	// followed are the ways of working that the model's answer follows.
	followed []string
	// began is when the model was asked; zero if a framework asked it. took is how long it took.
	began time.Time
	took  time.Duration
	// spare reports that a fallback answered, and blamed that the arm's model gave an answer of no
	// use.
	spare  bool
	blamed bool
	// spared reports that the arm's model is unavailable, so another one is to be asked. left reports
	// that it is not even asked if there is no other one.
	spared bool
	left   bool
	// room is how many characters may still be added to the system prompt.
	room int
	// repeated reports that the event was answered before.
	repeated bool
	// undelivered reports that the caller's context ended before the answer was recorded.
	undelivered bool
}

// LeftOut is something that a plan lacks.
type LeftOut struct {
	// What names the part that was left out: "candidates", "heuristic", "rules", "rule",
	// "patterns", "errors", "error" (of a tool, in the same task), "notes", "note", "item" (the
	// cell of the text) or "arm"; or the end of the "event", or of a turn of its "history".
	What string `json:"what"`
	ID   string `json:"id,omitempty"` // which one; "" means all of it
	// Why is "time", "failure" (of a service, such as an embedder's), "characters" or "rules": there
	// are enough of them. "characters" of a heuristic or note that the prompt shows means the end of
	// a text of more than [prompt.DefaultMax] characters. Of a heuristic, it may also be "rule" with
	// the id of an active rule that its answer would break, and how, such as "rule 9: it matches
	// (?i)sudo".
	Why string `json:"why"`
}

// Prepare returns how to answer an event. It first interprets the event's text, like [Agent.Hear].
// A trusted heuristic answers at once, and its answer is stored, unless an active rule is against
// it. Otherwise the plan contains what to ask the model, and [Agent.Answered] records the model's
// answer.
//
// Bad input is a [*heed.InputError]. An [ErrNoModel] comes with a plan: the model of its arm
// failed at least ten times in a row, and so did the models of all other arms, so it is likely to
// fail again. After any other error, call Prepare again. If the store can't be reached, there is a
// plan all the same: see [Degraded].
func (a *Agent) Prepare(ctx context.Context, e Event) (Plan, error) {
	p, err := a.prepare(ctx, e)
	if err == nil && p.Ready {
		var given Answer
		given, err = a.checked(ctx, &p)
		p.Violations = given.Violations
	} else if err == nil {
		err = a.ask(&p, a.asking(&p))
	}
	if err != nil {
		return Plan{}, wrap("prepare", err)
	}
	switch name := a.nameOf(&p.Arm); {
	case p.Ready:
	case p.left:
		err = a.models.dead(chain{{name: name}}, a.cfg.Testing.Now())
	case p.spared: // the framework asks it all the same
		a.models.probe(name, a.cfg.Testing.Now())
	}
	return p, wrap("prepare", err)
}

// ask puts into the plan what the model is asked.
func (a *Agent) ask(p *Plan, r decision.Request) error {
	ask, err := a.decider.Ask(r)
	p.kept.Ask, p.Prompt = ask, ask.Prompt
	for _, id := range ask.LeftOut {
		out := LeftOut{What: "heuristic", ID: id, Why: "characters"}
		if !slices.Contains(p.LeftOut, out) {
			p.LeftOut = append(p.LeftOut, out)
		}
	}
	return err
}

// prepare makes a plan without its prompt. It is one step: what it reads is one read, and there is
// a commit only if the event's text changes earlier answers, a session's arm is chosen, or a
// heuristic answers.
func (a *Agent) prepare(ctx context.Context, e Event) (p Plan, err error) {
	if err := a.complete(&e); err != nil {
		return p, err
	}
	began := a.cfg.Testing.Now()
	// What needs no reading is done before the step: it may take long, and a step should be short.
	f := a.fitting(ctx, &e)
	h, err := a.hearing(&e)
	if err != nil {
		return p, err
	}
	var changes []*learning.Change
	var done bool
	var failed error
	limited, cancel := patient(ctx, a.cfg.Budget.Time+storeTimeout)
	defer cancel()
	err = store.Do(limited, a.cfg.Store, func(tx *store.Tx) error {
		p = Plan{Event: e, room: a.cfg.Budget.runes, kept: keptPlan{Side: a.trial(&e)}}
		a.want(tx, &p, &f, h)
		row, err := a.answers.In(tx, answers.ID(e.ID))
		if err != nil {
			return err
		}
		if p.kept.Frozen, err = a.isFrozen(tx); err != nil {
			return err
		}
		p.Command = h.Command() && !p.kept.Frozen
		if done = row.Value.Reply != nil; done {
			a.repeat(&p, &row.Value)
			return nil
		}
		if changes, failed = nil, nil; !p.kept.Frozen {
			if changes, err = a.hearIn(tx, &p, h); err != nil {
				return err
			}
			failed = a.learning.Steps().FailuresIn(tx)
		}
		return a.planIn(tx, &p, &f)
	})
	// Without the store, the plan is made of what was read last. What the text means for earlier
	// answers is not counted then.
	if down := a.down(ctx, limited, err); down != nil {
		p, done, err = a.recalled(ctx, &e, &f, h, down)
		changes, failed = nil, nil
	}
	if err != nil {
		return p, err
	}
	a.reportOutages(ctx)
	if p.Heard = changesOf(changes); p.Ready && !done {
		a.decider.Notify(ctx, p.Result, began)
	} else if name := a.nameOf(&p.Arm); !p.Ready {
		p.spared, p.left = a.models.begin(name, a.cfg.Testing.Now())
	}
	return p, failed
}

// recalled makes the plan of an event by what this process read before the store was away. It
// commits only the answer of a heuristic, if the store is back by then. done reports that the event
// was answered before.
func (a *Agent) recalled(
	ctx context.Context, e *Event, f *fitting, h hearing, down error,
) (p Plan, done bool, err error) {
	tx, frozen := store.Reading(ctx, recalled{a.lifeline}), a.lastFrozen(ctx)
	p = Plan{
		Event: *e, room: a.cfg.Budget.runes, Command: h.Command() && !frozen,
		Degraded: &Degraded{Before: down}, kept: keptPlan{Frozen: frozen, Side: a.trial(e)},
	}
	if err := a.planIn(tx, &p, f); err != nil || !p.Ready {
		return p, false, err
	}
	done, err = a.keep(ctx, &p)
	return p, done, err
}

// want names what a plan reads. What is not named here and is read later costs another round trip,
// and is correct all the same.
func (a *Agent) want(tx *store.Tx, p *Plan, f *fitting, h hearing) {
	e := &p.Event
	w := store.Wants{Refs: []store.Ref{
		a.answers.Ref(answers.ID(e.ID)), a.notes.Ref(""), a.freezes.Ref(answers.FrozenID),
	}}
	a.wantHealth(&w)
	w.Add(h.Wants())
	if h.Command() {
		w.Queries = append(w.Queries, a.undoneQuery(e))
	}
	ids := make([]string, len(f.heuristics))
	for i, m := range f.heuristics {
		ids[i] = m.it.ID
	}
	w.Add(a.learning.Steps().HeuristicsWants(), a.learning.Steps().Wants(ids...))
	w.Add(a.feedback.Rules().Wants(a.cfg.Name))
	if !p.kept.Side.Control && e.Task != "" {
		w.Add(a.patterns.Steps().PlanWants(), a.patterns.Steps().ErrorsWants(errorsOf(e)))
	}
	p.kept.Item = f.item
	matters := !p.kept.Side.Control && (!aboutNotes(a.arms) || len(f.notes) > 0)
	if c, is := a.chooser.(stepChooser); is && matters {
		q := p.query(f.noted())
		q.Arms = a.available()
		w.Add(c.Wants(q))
	}
	tx.Want(w)
}

// planIn lets a trusted heuristic answer, or assembles the prompt for the model. If the heuristics
// or notes changed since the event was compared, it is compared again.
func (a *Agent) planIn(tx *store.Tx, p *Plan, f *fitting) error {
	ctx := tx.Context()
	if p.Degraded == nil {
		if err := a.takeHealth(tx); err != nil {
			return err
		}
	}
	// The budget of time is shared: what the comparisons took is no longer there for the rest.
	limited, cancel := context.WithTimeout(ctx, a.cfg.Budget.Time-f.took)
	defer cancel()
	err := tx.Within(limited, func() error {
		b, err := f.library, error(nil)
		if p.Degraded == nil {
			b, err = a.libraryIn(tx)
		} else if b == nil {
			err = &unreachable{errNotRemembered}
		}
		if err == nil && b != f.library {
			*f = a.refit(limited, f, b, &p.Event)
		}
		if err = cmp.Or(err, f.late[0]); err == nil {
			p.Candidates, err = a.candidatesIn(tx, p, f.heuristics)
		}
		return err
	})
	if err := a.late(ctx, p, err, "candidates"); err != nil {
		return err
	}
	// A heuristic that answers needs no prompt, so the rest is left out.
	if err := a.byHeuristic(tx, p); err != nil || p.Ready {
		return err
	}
	if a.cuts(p.Event.Text) {
		p.LeftOut = append(p.LeftOut, LeftOut{What: "event", Why: "characters"})
	}
	return tx.Within(limited, func() error { return a.brief(ctx, tx, f, p) })
}

// repeat makes the plan of an event that was answered before. Its text, its arm and what the prompt
// had are as they were recorded, and not as they would be now. Of notes, the record has the ids.
func (a *Agent) repeat(p *Plan, r *answer.Answer) {
	p.Ready, p.Text, p.Undone = true, r.Reply.Text, slices.Clone(r.Undoes)
	p.repeated = true
	if p.Arm, p.Choice = (Arm{}), nil; r.Choice != nil {
		choice := strategy.ChoiceOf(r.Choice)
		p.Choice = &choice
		p.Arm, _ = a.arm(string(choice.Arm))
	} else if r.Reply.Arm != "" {
		p.Arm, _ = a.arm(r.Reply.Arm)
	}
	p.Rules, p.Notes, p.Ways, p.Warnings, p.LeftOut = nil, nil, nil, nil, nil
	if shown := r.Prompt; shown != nil {
		p.Rules, p.Ways = slices.Clone(shown.Rules), slices.Clone(shown.Ways)
		p.Warnings = slices.Clone(shown.Warnings)
		for _, id := range shown.Notes {
			p.Notes = append(p.Notes, Note{ID: id})
		}
		for _, o := range shown.LeftOut {
			p.LeftOut = append(p.LeftOut, LeftOut{o[0], o[1], o[2]})
		}
	}
	p.Result = decision.Result{
		Path: decision.Path(r.Reply.Path), Text: r.Reply.Text, Cut: r.Reply.Cut, LLM: r.Reply.Model,
		ResponseID: r.Reply.Response,
		CreditID:   r.Reply.Heuristic, Threshold: r.Reply.Threshold,
	}
}

// late notes that a part was not there in time, that its service failed, or that it is not
// remembered. Other errors stay.
func (a *Agent) late(ctx context.Context, p *Plan, err error, what string) error {
	why := "time"
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case p.Degraded != nil && errors.Is(err, heed.ErrUnavailable):
		p.unread(what)
		return nil
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, host.ErrBusy):
	case !errors.Is(err, heed.ErrUnavailable) && (&attempt{called: true, err: err}).whose() == aModel:
		why = "failure"
		a.watch.Failed(ctx, "prepare "+what, err)
	default:
		return err
	}
	p.LeftOut = append(p.LeftOut, LeftOut{What: what, Why: why})
	return nil
}

// unread notes that a part is not remembered.
func (p *Plan) unread(what string) {
	if d := p.Degraded; !slices.Contains(d.Unread, what) {
		d.Unread = append(d.Unread, what)
	}
}

// byHeuristic lets a heuristic answer that is trusted, unless a rule is against it. Its answer is a
// part of the step.
func (a *Agent) byHeuristic(tx *store.Tx, p *Plan) error {
	for len(p.Candidates) > 0 && len(p.Undone) == 0 && !p.Event.AskModel {
		// A heuristic that a rule is against goes, and the next one is looked at, so the loop ends.
		res, trusted := a.decider.Trusted(a.request(p))
		if !trusted {
			return nil
		}
		rule, err := a.against(tx, &res)
		switch {
		case p.Degraded != nil && errors.Is(err, heed.ErrUnavailable):
			p.unread("rules") // which may be against it
			return nil
		case err != nil:
			return err
		case rule != "":
			p.overrule(res.CreditID, rule)
			continue
		case p.kept.Side.Control:
			p.Would = res.CreditID
			return nil
		}
		if p.Degraded == nil {
			if err := a.keepIn(tx, p, &res); err != nil {
				return err
			}
		}
		p.Ready, p.Text, p.Result = true, res.Text, res
		return nil
	}
	return nil
}

// against returns an active rule that a heuristic's answer would break, with how it would, or "".
func (a *Agent) against(tx *store.Tx, res *decision.Result) (rule string, err error) {
	found, err := a.feedback.Rules().CheckIn(tx, feedback.Checked{
		Agent: a.cfg.Name, Text: res.Text, Heuristic: res.CreditID,
	})
	if len(found) > 0 {
		rule = found[0].Rule + ": " + found[0].Reason
	}
	return rule, err
}

// overrule takes a heuristic out of the plan whose answer would break a rule.
func (p *Plan) overrule(heuristic, rule string) {
	is := func(c decision.Candidate) bool { return c.HeuristicID == heuristic }
	p.Candidates = slices.DeleteFunc(slices.Clone(p.Candidates), is)
	p.LeftOut = append(p.LeftOut, LeftOut{What: "heuristic", ID: heuristic, Why: "rule " + rule})
	if p.kept.Overruled == nil {
		p.kept.Overruled = make(map[string]string)
	}
	p.kept.Overruled[heuristic] = rule
}

var _ heed.Sweeper = (*Agent)(nil)

// cuts reports whether a text is too long for a prompt. It looks only so far that a text of
// megabytes costs little.
func (a *Agent) cuts(text string) bool {
	short := prompt.Code(text, maxText)
	return len(text) > maxText &&
		(short != prompt.Code(text, 2*maxText) || short == prompt.Code("…", 0)) // it begins with blanks
}

// shortened reports whether a line of a prompt has no room for all of a text.
func shortened(text string) bool {
	return len(text) > prompt.DefaultMax && prompt.Line(text, 0) != prompt.Line(text, len(text))
}

// brief assembles what heed adds to the prompt: rules, what went well and badly, and notes, in the
// way that an arm uses them. ctx is the caller's; the step's reads are bounded by the budget.
func (a *Agent) brief(ctx context.Context, tx *store.Tx, f *fitting, p *Plan) error {
	p.kept.Item = f.item
	if err := a.late(ctx, p, f.late[2], "item"); err != nil {
		return err
	}
	if err := a.late(ctx, p, a.addRules(tx, p), "rules"); err != nil {
		return err
	}
	if err := a.addLearned(ctx, tx, p); err != nil {
		return err
	}
	if err := a.late(ctx, p, f.late[1], "notes"); err != nil {
		return err
	}
	// The notes come before the choice of the arm, because an arm may be chosen for a note, and after
	// the rules, because they give way to them.
	notes := f.noted()
	if p.kept.Side.Control {
		p.Arm = a.always(notes)
	} else if chosen := a.choose(tx, p, notes); chosen != nil {
		if err := a.late(ctx, p, chosen, "arm"); err != nil {
			return err
		}
		p.Arm = a.unchosen()
	}
	p.add("arm", p.Arm.System)
	return a.late(ctx, p, a.addNotes(tx.Context(), p, notes), "notes")
}

// addLearned adds the ways of working and the errors of earlier attempts.
func (a *Agent) addLearned(ctx context.Context, tx *store.Tx, p *Plan) error {
	if p.kept.Side.Control {
		return nil
	}
	if err := a.late(ctx, p, a.addPatterns(tx, p), "patterns"); err != nil {
		return err
	}
	return a.late(ctx, p, a.addErrors(tx, p), "errors")
}

// add adds a text to the system prompt, if there is room for it. A text that does not fit is left
// out as a whole, because half a rule may mean the opposite.
func (p *Plan) add(what, text string) bool {
	text = strings.TrimSpace(text)
	n := utf8.RuneCountInString(text)
	switch {
	case text == "":
		return true
	case n > p.room:
		p.LeftOut = append(p.LeftOut, LeftOut{What: what, Why: "characters"})
		return false
	case what == "arm" && p.System != "":
		text += "\n\n" + p.System
	case p.System != "":
		text = p.System + "\n\n" + text
	}
	p.room -= n
	p.System = text
	return true
}

// addRules adds the rules that people approved, in the order of package feedback.
func (a *Agent) addRules(tx *store.Tx, p *Plan) error {
	in, err := a.feedback.Rules().InjectIn(tx, a.cfg.Name, "", "")
	if err != nil {
		return err
	}
	p.kept.Unchecked = len(in.Checked) == 0
	if p.add("rules", in.Section) {
		p.Rules = in.Rules
	}
	for _, o := range in.Omitted {
		p.LeftOut = append(p.LeftOut, LeftOut{What: "rule", ID: o.Rule, Why: o.Reason})
	}
	return nil
}

// addPatterns adds which ways of working went well and badly in tasks like this one. The plan's
// lists have only the ways that the text really has, because it may have been cut to its size.
func (a *Agent) addPatterns(tx *store.Tx, p *Plan) error {
	if p.Event.Task == "" {
		return nil
	}
	plan, err := a.patterns.Steps().PlanIn(tx, beginning(p.Event.Text))
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
	if p.Event.Task == "" {
		return nil
	}
	report, err := a.patterns.Steps().ErrorsIn(tx, errorsOf(&p.Event))
	if err != nil {
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

// choose chooses an arm, if there are arms that matter for the event. Arms whose model is
// unavailable are not offered. A choice of an arm that this agent does not have is an error of the
// host's chooser.
func (a *Agent) choose(tx *store.Tx, p *Plan, notes []Note) error {
	if a.chooser == nil || aboutNotes(a.arms) && len(notes) == 0 {
		return nil
	}
	q := p.query(notes)
	q.Frozen, q.Arms = p.kept.Frozen, a.available()
	choice, err := a.chosen(tx, q)
	// A chooser may return a choice together with an error, for example because it could not record
	// it. The choice is used then.
	away := p.Degraded != nil && errors.Is(err, heed.ErrUnavailable)
	if err != nil && (away || choice.Arm == "" || tx.Context().Err() != nil) {
		return overdue(tx.Context(), err)
	}
	arm, known := a.arm(string(choice.Arm))
	if choice.Record().Learner != a.learner.Config().Name || !known {
		return errors.Join(err, &heed.ConfigError{
			Field: "Choose", Value: choice.Arm, Reason: "gave a choice that is not the learner's",
		})
	}
	a.watch.Failed(tx.Context(), "choose an arm", err) // there is one all the same
	p.Choice, p.Arm = &choice, arm
	return nil
}

// chosen asks the chooser. A chooser of the host's is given up when its time is over.
func (a *Agent) chosen(tx *store.Tx, q strategy.Query) (strategy.Choice, error) {
	if own, ok := a.chooser.(stepChooser); ok {
		return own.SelectIn(tx, q)
	}
	return pass(tx.Context(), a, "Config.Choose", func(ctx context.Context) (strategy.Choice, error) {
		return a.chooser.Select(ctx, q)
	})
}

// unchosen returns the arm that answers if no choice came in time: Tuning.Strategy.Default, or the
// first one if there is no other model than the arms'. heed does not learn from it.
func (a *Agent) unchosen() Arm {
	if arm, known := a.arm(string(a.cfg.Tuning.Strategy.Default)); known {
		return arm
	}
	for _, arm := range a.arms {
		if !arm.ForNotes && len(a.model(Arm{})) == 0 {
			return arm
		}
	}
	return Arm{}
}

// aboutNotes reports whether all arms are about notes alone.
func aboutNotes(arms []Arm) bool {
	return !slices.ContainsFunc(arms, func(arm Arm) bool { return !arm.ForNotes })
}

// arm returns an arm by its id, and reports whether it is configured. If not, it has its id alone.
func (a *Agent) arm(id string) (arm Arm, known bool) {
	i := slices.IndexFunc(a.arms, func(arm Arm) bool { return arm.ID == id })
	if i < 0 {
		return Arm{ID: id}, false
	}
	return a.arms[i], true
}

// query returns what an arm is chosen for. The item is the event's, or the cell of its text, or the
// best note, in this order. A note also brings its category, so that arms learn how to use notes of
// one sort. The event's id keys the draw, so a step that runs again chooses the same arm.
func (p *Plan) query(notes []Note) strategy.Query {
	e := &p.Event
	q := strategy.Query{
		Session: e.Session, Key: e.ID, Item: cmp.Or(e.Item, p.kept.Item),
		Category: e.Domain, Context: e.Context, Vector: e.Vector,
	}
	if q.Item == "" && len(notes) > 0 {
		q.Item, q.Category = notes[0].ID, cmp.Or(notes[0].Category, e.Domain)
	}
	return q
}

// notesHeading is the heading of the notes in a prompt.
const notesHeading = "## Notes"

// addNotes adds the notes that fit, written by the arm if it has a Brief. A Brief that is not done
// in time leaves the notes out. Any other error of it is an error of the plan.
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

// overdue adds the context's error if a function of the host's failed after its end with another
// error.
func overdue(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return err
}

// maxCalls is how many calls of a function of the host's run at a time, abandoned ones included
// until they return.
const maxCalls = 64

// pass calls a function of the host's, and gives it up when the context ends.
func pass[T any](
	ctx context.Context, a *Agent, who string, f func(context.Context) (T, error),
) (T, error) {
	return host.Pass(ctx, a.gate(who, maxCalls), who, f)
}
