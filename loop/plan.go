package loop

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// A Plan is how to answer an event. It is for one answer. Use it in the process that made it.
type Plan struct {
	Event Event // with its ID and At filled in
	// Ready reports that the answer is there: Text. A heuristic gave it, or the event was answered
	// before. Ask no model, and don't call [Agent.Answered].
	Ready  bool
	Text   string
	Result decision.Result // of an answer that is ready

	// Arm is the way of answering that was chosen, and Choice its record. Without arms, Arm has no
	// ID and Choice is nil.
	Arm    Arm
	Choice *strategy.Choice
	// System is what to add to the system prompt. Prompt is what to ask the model in place of the
	// event's text: it has the text, and the heuristics that may help.
	System, Prompt string

	Candidates []decision.Candidate // the heuristics that fit, the best first
	Rules      []string             // the ids of the rules in System
	Notes      []Note               // those in System
	Ways       []string             // the ways of working that System recommends
	Warnings   []string             // the ways of working that System warns of
	Contents   map[string]string    // the texts of those ways of working, by their ids
	LeftOut    []LeftOut            // what is not in the plan, though it belongs there
	Heard      []learning.Change    // what the event's text changed about earlier answers
	// the answers that the event's text took back. If there are any, this answer earns nothing
	Undone []string
	// Command reports that the event's text asks to undo an earlier answer. If Undone is empty,
	// nothing was undone: the answer had been undone already, it was older than the undo window, or
	// the event has no session and no person. Without Learning, or while the agent is frozen, it is
	// false.
	Command bool
	// Violations are the rules that an answer breaks which is ready, as in [Answer].Violations. A
	// heuristic does not answer if it would break one, so these are of an answer that was given
	// before.
	Violations []feedback.Violation
	Would      string // with [Config].Shadow: the heuristic that would have answered, or ""
	// Degraded is what the plan lacks because the store could not be reached. nil: nothing.
	Degraded *Degraded

	item      string        // the cell of the event's text; see query
	ask       decision.Ask  // what the model is asked
	followed  []string      // the ways of working that the model's answer follows
	began     time.Time     // when the model was asked; zero: the framework asked it
	took      time.Duration // of the framework's model, as it reported
	spare     bool          // a fallback answered, and not the arm's model
	blamed    bool          // the arm's model gave an answer that is of no use
	spared    bool          // the arm's model is unavailable, and another one is to be asked
	left      bool          // it is not even asked if there is no other one
	room      int
	unchecked bool              // no rule has a check
	overruled map[string]string // heuristics, each with the rule that contradicts it

	repeated    bool // the event was answered before
	undelivered bool // the caller's context ended before the answer was recorded
}

// LeftOut is something that a plan lacks.
type LeftOut struct {
	// What names the part that was left out: "candidates", "heuristic", "rules", "rule",
	// "patterns", "errors", "error" (of a tool, in the same task), "notes", "note", "item" (the
	// cell of the text) or "arm"; or the end of the "event", or of a turn of its "history".
	What string `json:"what"`
	ID   string `json:"id,omitempty"` // which one; "" means all of it
	// Why is "time", "characters" or "rules": there are enough of them. "characters" of a heuristic
	// or note that the prompt shows means the end of a text of more than [prompt.DefaultMax]
	// characters. Of a heuristic, it may also be "rule" and the id of an active rule that
	// contradicts it, or whose check its answer does not pass.
	Why string `json:"why"`
}

// Prepare returns how to answer an event. It first interprets the event's text as [Agent.Hear]
// does. A trusted heuristic answers at once, and its answer is stored, unless an active rule is
// against it. Otherwise the plan has what to ask the model, and [Agent.Answered] records the
// model's answer.
//
// Bad input is a [*heed.InputError]. An [*UnavailableError] comes with a plan: the model of its arm
// has failed at least ten times in a row, and so have the models of all other arms, so it is likely
// to fail again. After any other error, call Prepare again. If the store can't be reached, there is
// a plan all the same: see [Degraded].
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
		err = a.models.dead([]string{name}, a.cfg.Testing.Now())
	case p.spared: // the framework asks it all the same
		a.models.probe(name, a.cfg.Testing.Now())
	}
	return p, wrap("prepare", err)
}

// ask puts into the plan what the model is asked.
func (a *Agent) ask(p *Plan, r decision.Request) error {
	ask, err := a.decider.Ask(r)
	p.ask, p.Prompt = ask, ask.Prompt
	for _, id := range ask.LeftOut {
		out := LeftOut{What: "heuristic", ID: id, Why: "characters"}
		if !slices.Contains(p.LeftOut, out) {
			p.LeftOut = append(p.LeftOut, out)
		}
	}
	return err
}

// complete gives an event an ID and a time, if it has none, and a copy of its history.
func (a *Agent) complete(e *Event) error {
	e.ID = cmp.Or(e.ID, a.cfg.Testing.NewID())
	if err := a.checkLength(e.ID); err != nil {
		return err
	}
	if e.At.IsZero() {
		e.At = a.cfg.Testing.Now()
	}
	e.History = slices.Clone(e.History)
	return valid.Time("At", e.At, a.cfg.Testing.Now())
}

// prepare makes a plan without its prompt. It is one step: what it reads is one read, and there is
// a commit only if the event's text changes earlier answers, a session's arm is chosen, or a
// heuristic answers.
func (a *Agent) prepare(ctx context.Context, e Event) (p Plan, err error) {
	if err := cmp.Or(e.validate(), a.cfg.person("Person", e.Person)); err != nil {
		return p, err
	}
	if err := a.complete(&e); err != nil {
		return p, err
	}
	began := a.cfg.Testing.Now()
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
		p = Plan{Event: e, room: a.cfg.Budget.Runes}
		a.want(tx, &p, &f, h)
		row, err := a.answers.In(tx, answers.ID(e.ID))
		if err != nil {
			return err
		}
		if done = row.Value.Reply != nil; done {
			a.repeat(&p, &row.Value)
			p.Command = h != nil && h.Command()
			return nil
		}
		if changes, err = a.hearIn(tx, &p, h); err != nil {
			return err
		}
		if h != nil {
			failed = a.learning.FailuresIn(tx)
		}
		return a.planIn(tx, &p, &f)
	})
	if down := a.down(ctx, limited, err); down != nil {
		p, done, err = a.recalled(ctx, &e, &f, h, down)
		changes, failed = nil, nil
	}
	if err != nil {
		return p, err
	}
	a.tellOutages(ctx)
	if p.Heard = changesOf(changes); p.Ready && !done {
		a.decider.Notify(ctx, p.Result, began)
	} else if name := a.nameOf(&p.Arm); !p.Ready {
		p.spared, p.left = a.models.begin(name, a.cfg.Testing.Now())
	}
	return p, failed
}

// recalled makes the plan of an event by what this process has read before the store was away. It
// commits nothing but the answer of a heuristic, if the store is back by then. done reports that
// the event was answered before.
func (a *Agent) recalled(
	ctx context.Context, e *Event, f *fitting, h *learning.Hearing, down error,
) (p Plan, done bool, err error) {
	p = Plan{
		Event: *e, room: a.cfg.Budget.Runes, Command: h != nil && h.Command(),
		Degraded: &Degraded{Before: down},
	}
	tx := store.Reading(ctx, recalled{a.lifeline})
	if err := a.planIn(tx, &p, f); err != nil || !p.Ready {
		return p, false, err
	}
	done, err = a.keep(ctx, &p)
	return p, done, err
}

// want names what a plan reads.
func (a *Agent) want(tx *store.Tx, p *Plan, f *fitting, h *learning.Hearing) {
	e := &p.Event
	w := store.Wants{Refs: []store.Ref{a.answers.Ref(answers.ID(e.ID)), a.notes.Ref("")}}
	a.wantHealth(&w)
	if h != nil {
		w.Add(h.Wants())
		if h.Command() {
			w.Queries = append(w.Queries, a.undoneQuery(e))
		}
	}
	if a.learning != nil {
		ids := make([]string, len(f.heuristics))
		for i, m := range f.heuristics {
			ids[i] = m.it.ID
		}
		w.Add(a.learning.HeuristicsWants(), a.learning.Wants(ids...))
	}
	if a.feedback != nil && !a.cfg.Trial.Shadow {
		w.Add(a.feedback.Rules().Wants(a.cfg.Name))
	}
	if a.patterns != nil && !a.cfg.Trial.Shadow && e.Task != "" {
		w.Add(a.patterns.PlanWants(tx), a.patterns.ErrorsWants(errorsOf(e)))
	}
	p.item = f.item
	if c := a.stepChooser(); c != nil && (!aboutNotes(a.arms()) || len(f.notes) > 0) {
		q := p.query(f.noted())
		q.Arms = a.available()
		w.Add(c.Wants(q))
	}
	tx.Want(w)
}

// hearIn counts what the event's own text means for earlier answers.
func (a *Agent) hearIn(
	tx *store.Tx, p *Plan, h *learning.Hearing,
) (changes []*learning.Change, err error) {
	e := &p.Event
	if h == nil {
		return nil, nil
	}
	if p.Command = h.Command(); p.Command {
		if p.Undone, err = a.undoneBefore(tx, e); err != nil {
			return nil, err
		}
	}
	// An event from nowhere can only show an outcome that is expected.
	nowhere := e.Session == "" && e.Person == "" && e.Stream == ""
	if nowhere && len(a.cfg.Tuning.Learning.Expectations) == 0 {
		return nil, nil
	}
	changes, undone, err := a.heard(tx, h, new(error))
	for _, id := range undone {
		if !slices.Contains(p.Undone, id) {
			p.Undone = append(p.Undone, id)
		}
	}
	return changes, err
}

// planIn has a trusted heuristic answer, or puts together what the model is told.
func (a *Agent) planIn(tx *store.Tx, p *Plan, f *fitting) error {
	ctx := tx.Context()
	if p.Degraded == nil {
		if err := a.takeHealth(tx); err != nil {
			return err
		}
	}
	limited, cancel := context.WithTimeout(ctx, a.cfg.Budget.Time-f.took)
	defer cancel()
	err := tx.Within(limited, func() error {
		b, err := f.books, error(nil)
		if p.Degraded == nil {
			b, err = a.booksIn(tx)
		} else if b == nil {
			err = &unreachable{errNotRemembered}
		}
		if err == nil && b != f.books {
			*f = a.refit(limited, f, b, &p.Event)
		}
		if err = cmp.Or(err, f.late[0]); err == nil {
			p.Candidates, err = a.candidatesIn(tx, f.heuristics)
		}
		return err
	})
	if err := p.late(ctx, err, "candidates"); err != nil {
		return err
	}
	if err := a.byHeuristic(tx, p); err != nil || p.Ready {
		return err
	}
	if a.cuts(p.Event.Text) {
		p.LeftOut = append(p.LeftOut, LeftOut{What: "event", Why: "characters"})
	}
	return tx.Within(limited, func() error { return a.brief(ctx, tx, f, p) })
}

// repeat makes the plan of an event that was answered before.
func (a *Agent) repeat(p *Plan, r *answer.Answer) {
	p.Ready, p.Text, p.Undone = true, r.Reply.Text, slices.Clone(r.Undoes)
	p.repeated = true
	if p.Arm, p.Choice = (Arm{}), nil; r.Choice != nil {
		p.take(strategy.ChoiceOf(r.Choice), a.arms())
	}
	if p.Rules = nil; r.Prompt != nil {
		p.Rules = slices.Clone(r.Prompt.Rules)
	}
	p.Result = decision.Result{
		Path: decision.Path(r.Reply.Path), Text: r.Reply.Text, Cut: r.Reply.Cut,
		ResponseID: r.Reply.Response,
		CreditID:   r.Reply.Heuristic, Threshold: r.Reply.Threshold,
	}
}

// late notes that a part was not there in time, or is not remembered. Other errors stay.
func (p *Plan) late(ctx context.Context, err error, what string) error {
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case p.Degraded != nil && errors.Is(err, heed.ErrUnavailable):
		p.unread(what)
		return nil
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, host.ErrBusy):
		p.LeftOut = append(p.LeftOut, LeftOut{What: what, Why: "time"})
		return nil
	}
	return err
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
		res, trusted := a.decider.Trusted(a.request(p))
		if !trusted {
			return nil
		}
		rule, err := a.against(tx, res.Text)
		switch {
		case p.Degraded != nil && errors.Is(err, heed.ErrUnavailable):
			p.unread("rules") // which may be against it
			return nil
		case err != nil:
			return err
		case rule != "":
			p.overrule(res.CreditID, rule)
			continue
		case a.cfg.Trial.Shadow:
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

// against returns an active rule that contradicts what a heuristic would answer, or whose check the
// answer does not pass, or "".
func (a *Agent) against(tx *store.Tx, action string) (rule string, err error) {
	if a.feedback == nil {
		return "", nil
	}
	found, err := a.feedback.Rules().CheckIn(tx, feedback.Checked{
		Agent: a.cfg.Name, Text: action, Words: true,
	})
	if len(found) > 0 {
		rule = found[0].Rule
	}
	return rule, err
}

// overrule takes a heuristic out of the plan that a rule contradicts.
func (p *Plan) overrule(heuristic, rule string) {
	is := func(c decision.Candidate) bool { return c.HeuristicID == heuristic }
	p.Candidates = slices.DeleteFunc(slices.Clone(p.Candidates), is)
	p.LeftOut = append(p.LeftOut, LeftOut{What: "heuristic", ID: heuristic, Why: "rule " + rule})
	if p.overruled == nil {
		p.overruled = make(map[string]string)
	}
	p.overruled[heuristic] = rule
}

// request returns what the decider is asked.
func (a *Agent) request(p *Plan) decision.Request {
	e := &p.Event
	told := make([]string, len(e.History))
	for i, turn := range e.History {
		told[i] = turn.Text
	}
	r := decision.Request{
		EventID: e.ID, Text: e.Text, Source: e.Person, Domain: e.Domain,
		Candidates: p.Candidates, Briefing: p.System, Told: told, AskModel: e.AskModel,
	}
	d := &a.cfg.Tuning.Decision
	if p.Arm.System != "" && a.cfg.System == "" && d.Persona == "" && d.Prompts.System == "" {
		r.System, r.Briefing = p.System, "" // the arm has it in place of the default
	}
	return r
}

// asking returns what the decider is asked after no heuristic has answered.
func (a *Agent) asking(p *Plan) decision.Request {
	r := a.request(p)
	if a.cfg.Trial.Shadow || len(p.Undone) > 0 { // the model is asked as if there were no heed
		r.AskModel, r.ShowNone = true, true
	}
	return r
}

var _ heed.Sweeper = (*Agent)(nil)
