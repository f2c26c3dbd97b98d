package loop

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/ahead"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/limits"
	"github.com/heedhq/heed/internal/winner"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/prompt"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// A Plan says how to answer an event. It is for one answer. Use it in the process that made it.
type Plan struct {
	Event Event // with its ID and At filled in
	// Ready says that the answer is there: Text. A heuristic gave it, or the event was answered before. Ask no model, and
	// don't call [Agent.Answered].
	Ready  bool
	Text   string
	Result decision.Result // of an answer that is ready

	// Arm is the way of answering that was chosen, and Choice its record. Without arms, Arm has no ID and Choice is nil.
	Arm    Arm
	Choice *strategy.Choice
	// System is what to add to the system prompt. Prompt is what to ask the model in place of the event's text: it has the
	// text, and the heuristics that may help.
	System, Prompt string

	Candidates []decision.Candidate // the heuristics that fit, the best first
	Rules      []string             // the ids of the rules in System
	Notes      []Note               // those in System
	Ways       []string             // the ways of working that System recommends
	Warnings   []string             // those that it warns of
	Contents   map[string]string    // what those ways of working say, by their ids
	LeftOut    []LeftOut            // what is not in the plan, though it belongs there
	Heard      []learning.Change    // what the event's text changed about earlier answers
	Undone     []string             // the answers that the event's text took back. If there are any, this answer earns nothing
	// Command says that the event's text is a command to take an answer back. If Undone is empty then, there was nothing to take back: the answer was
	// taken back before, its time to be undone by a text is over, or the event names neither the session nor the person. Without Learning, or while the
	// agent is frozen, it is false.
	Command bool
	// Violations are the rules that an answer breaks which is ready, as [Answer].Violations. A heuristic does not answer where it would break one,
	// so these are of an answer that was given before.
	Violations []feedback.Violation
	Would      string // with [Config].Shadow: the heuristic that would have answered, or ""

	item      string        // the cell of the event's text; see query
	system    string        // the whole system prompt
	began     time.Time     // when the model was asked; zero: the framework asked it
	took      time.Duration // of the framework's model, as it was told
	spare     bool          // a fallback answered, as the arm's model failed
	room      int
	unchecked bool              // no rule has a check
	overruled map[string]string // heuristics, each with the rule that contradicts it
}

// LeftOut is something that a plan lacks.
type LeftOut struct {
	// What names the part that was left out: "candidates", "heuristic", "rules", "rule", "patterns", "errors", "error" (of a tool, in the same task), "notes", "note", "item" (the cell of the text) or "arm"; or the end of
	// the "event", or of a turn of its "history".
	What string
	ID   string // which one; "" means all of it
	// Why is "time", "characters" or "rules": there are enough of them. "characters" of a heuristic or note that the prompt shows means
	// the end of a text of more than [prompt.DefaultMax] characters. Of a heuristic, it may also be "rule" and the id of an active rule that
	// contradicts it, or whose check its answer does not pass.
	Why string
}

// Prepare says how to answer an event. It first hears the event's text as [Agent.Hear] does. A trusted heuristic answers at once, and its
// answer is stored, unless an active rule is against it. Otherwise the plan says what to ask the model, and [Agent.Answered] takes the
// model's answer.
//
// Bad input is a [*heed.InputError]. After any other error, call it again.
func (a *Agent) Prepare(ctx context.Context, e Event) (Plan, error) {
	p, err := a.prepare(ctx, e)
	if err == nil && p.Ready {
		var answer Answer
		answer, err = a.checked(ctx, &p)
		p.Violations = answer.Violations
	} else if err == nil {
		c := &call{}
		quiet := context.WithValue(context.WithValue(ctx, callKey{}, c), quietKey{}, true)
		var res decision.Result
		res, err = a.deciderOf(&p).Decide(quiet, a.request(&p, nil))
		p.system, p.Prompt = c.asked.System, c.asked.Prompt
		p.shorten(res.ShownIDs)
	}
	if err != nil {
		return Plan{}, wrap("prepare", err)
	}
	return p, nil
}

// deciderOf returns the decider that asks the model.
func (a *Agent) deciderOf(p *Plan) *decision.Decider {
	if a.cfg.Shadow || len(p.Undone) > 0 {
		return a.plain
	}
	if p.Event.AskModel {
		return a.asker
	}
	return a.decider
}

// complete gives an event an ID and a time, if it has none, and a history of its own.
func (a *Agent) complete(e *Event) error {
	e.ID = cmp.Or(e.ID, a.cfg.NewID())
	if err := a.checkLength(e.ID); err != nil {
		return err
	}
	if e.At.IsZero() {
		e.At = a.cfg.Now()
	}
	e.History = slices.Clone(e.History)
	return limits.CheckTime("At", e.At, a.cfg.Now())
}

// prepare makes a plan without its prompt.
func (a *Agent) prepare(ctx context.Context, e Event) (p Plan, err error) {
	if err := e.validate(); err != nil {
		return p, err
	}
	if err := a.complete(&e); err != nil {
		return p, err
	}
	p = Plan{Event: e, room: a.cfg.Budget.Runes}
	ctx, end := a.foresight.Begin(ctx)
	defer end()
	f := a.foreseen(ctx, &e)
	before, undid, version, err := a.begin(ctx, e.ID)
	if err != nil {
		return p, err
	}
	if before.Revision > 0 {
		a.repeat(&p, &before.Value)
		p.Command, err = a.commands(ctx, e.Text)
		return p, err
	}
	if p.Heard, err = a.hear(ctx, &e); err != nil {
		return p, err
	}
	if p.Command, err = a.commands(ctx, e.Text); err != nil {
		return p, err
	}
	p.Undone = slices.Clone(undid.Undone) // by a plan before this one
	for _, c := range p.Heard {
		for _, id := range undoneBy([]learning.Signal{c.Signal}) {
			if !slices.Contains(p.Undone, id) {
				p.Undone = append(p.Undone, id)
			}
		}
	}
	limited, cancel := context.WithTimeout(ctx, a.cfg.Budget.Time-f.took)
	defer cancel()
	b, err := a.books(limited, version)
	if err == nil && b != f.books {
		f = a.refit(limited, &f, b, &e)
	}
	if err = cmp.Or(err, f.late[0]); err == nil {
		p.Candidates, err = a.candidates(limited, f.heuristics)
	}
	if err = p.late(ctx, err, "candidates"); err != nil {
		return p, err
	}
	if ready, err := a.byHeuristic(ctx, &p); err != nil || ready {
		return p, err
	}
	if a.cuts(e.Text) {
		p.LeftOut = append(p.LeftOut, LeftOut{What: "event", Why: "characters"})
	}
	return p, a.brief(ctx, limited, &f, &p)
}

// repeat makes the plan that of an event which was answered before.
func (a *Agent) repeat(p *Plan, r *row) {
	p.Ready, p.Text, p.Undone = true, r.Text, slices.Clone(r.Undoes)
	p.Arm, p.Choice, p.Rules = Arm{}, nil, slices.Clone(r.Rules)
	if r.Choice != nil {
		a.strategy.RLock()
		arms := a.strategy.arms
		a.strategy.RUnlock()
		p.take(*r.Choice, arms)
	}
	p.Result = decision.Result{Path: r.Path, Text: r.Text, Cut: r.Cut, ResponseID: r.Response, CreditID: r.Heuristic, Threshold: r.Threshold}
}

// late notes that a part was not there in time. Other errors stay.
func (p *Plan) late(ctx context.Context, err error, what string) error {
	if err != nil && ctx.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, host.ErrBusy)) {
		p.LeftOut = append(p.LeftOut, LeftOut{What: what, Why: "time"})
		return nil
	}
	return err
}

// byHeuristic lets a heuristic answer that is trusted.
func (a *Agent) byHeuristic(ctx context.Context, p *Plan) (ready bool, err error) {
	if len(p.Candidates) == 0 || len(p.Undone) > 0 || p.Event.AskModel {
		return false, nil
	}
	commit, heuristic, rule := a.first(p), "", ""
	if a.cfg.Shadow {
		commit = func(context.Context, decision.Result, store.Batch) error { return nil }
	}
	r := a.request(p, func(ctx context.Context, res decision.Result, trace store.Batch) (err error) {
		heuristic = res.CreditID
		rule, err = a.against(ctx, res.Text)
		switch {
		case err != nil:
			return err
		case rule != "":
			return errOverruled
		}
		return commit(ctx, res, trace)
	})
	r.CanWait = true
	res, err := a.decider.Decide(context.WithValue(ctx, quietKey{}, a.cfg.Shadow), r)
	switch {
	case errors.Is(err, errOverruled):
		p.overrule(heuristic, rule)
		return a.byHeuristic(ctx, p)
	case errors.Is(err, errAnswered):
		err = a.earlier(ctx, p)
		return err == nil, err
	case err != nil:
		return false, err
	case res.Path != decision.Heuristic:
		return false, nil
	case a.cfg.Shadow:
		p.Would = res.CreditID
		return false, nil
	}
	p.Ready, p.Text, p.Result = true, res.Text, res
	return true, nil
}

// errOverruled says that a rule is against what a heuristic would have answered.
var errOverruled = errors.New("a rule is against the heuristic")

// against returns an active rule that contradicts what a heuristic would answer, or whose check the answer does not pass, or "".
func (a *Agent) against(ctx context.Context, action string) (rule string, err error) {
	if a.feedback == nil {
		return "", nil
	}
	found, err := a.feedback.Rules().Check(ctx, feedback.Checked{Agent: a.cfg.Name, Text: action, Words: true})
	if len(found) > 0 {
		rule = found[0].Rule
	}
	return rule, err
}

// overrule takes a heuristic out of the plan that a rule contradicts.
func (p *Plan) overrule(heuristic, rule string) {
	p.Candidates = slices.DeleteFunc(slices.Clone(p.Candidates), func(c decision.Candidate) bool { return c.HeuristicID == heuristic })
	p.LeftOut = append(p.LeftOut, LeftOut{What: "heuristic", ID: heuristic, Why: "rule " + rule})
	if p.overruled == nil {
		p.overruled = make(map[string]string)
	}
	p.overruled[heuristic] = rule
}

// request returns what the decider is asked.
func (a *Agent) request(p *Plan, commit func(context.Context, decision.Result, store.Batch) error) decision.Request {
	e := &p.Event
	told := make([]string, len(e.History))
	for i, turn := range e.History {
		told[i] = turn.Text
	}
	r := decision.Request{
		EventID: e.ID, Text: e.Text, Source: e.Person, Domain: e.Domain,
		Candidates: p.Candidates, Briefing: p.System, Told: told, Commit: commit,
	}
	d := &a.cfg.Decision
	if p.Arm.System != "" && a.cfg.System == "" && d.Persona == "" && d.Prompts.System == "" { // the arm says it in place of the default
		r.System, r.Briefing = p.System, ""
	}
	return r
}

// cuts reports whether a text is too long for a prompt.
func (a *Agent) cuts(text string) bool {
	most := cmp.Or(a.cfg.Decision.MaxText, maxText)
	return len(text) > most && prompt.Code(text, most) != prompt.Code(text, len(text))
}

// shorten notes which of the heuristics that the prompt shows stand there without their end.
func (p *Plan) shorten(shown []string) {
	for _, c := range p.Candidates {
		out := LeftOut{What: "heuristic", ID: c.HeuristicID, Why: "characters"}
		if slices.Contains(shown, c.HeuristicID) && (shortened(c.Condition) || shortened(c.Action)) && !slices.Contains(p.LeftOut, out) {
			p.LeftOut = append(p.LeftOut, out)
		}
	}
}

// shortened reports whether a line of a prompt has no room for all of a text.
func shortened(text string) bool {
	return len(text) > prompt.DefaultMax && prompt.Line(text, 0) != prompt.Line(text, len(text))
}

// brief puts together what the model is told: rules, what went well and badly, and notes, in the way that an arm uses them.
func (a *Agent) brief(ctx, limited context.Context, f *fitting, p *Plan) error {
	p.item = f.item
	if err := p.late(ctx, f.late[2], "item"); err != nil {
		return err
	}
	if a.cfg.Shadow {
		return a.asAlways(ctx, p)
	}
	if err := p.late(ctx, a.addRules(limited, p), "rules"); err != nil {
		return err
	}
	if err := p.late(ctx, a.addPatterns(limited, p), "patterns"); err != nil {
		return err
	}
	if err := p.late(ctx, a.addErrors(limited, p), "errors"); err != nil {
		return err
	}
	if err := p.late(ctx, f.late[1], "notes"); err != nil {
		return err
	}
	notes := f.noted()
	chosen := a.choose(limited, p, notes)
	if err := p.late(ctx, chosen, "arm"); err != nil {
		return err
	}
	if chosen != nil {
		p.Arm = a.unchosen()
	}
	if p.Arm.System != "" {
		p.add("arm", p.Arm.System)
	}
	return p.late(ctx, a.addNotes(limited, p, notes), "notes")
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

func (a *Agent) addRules(ctx context.Context, p *Plan) error {
	if a.feedback == nil {
		return nil
	}
	in, err := a.feedback.Rules().Inject(ctx, a.cfg.Name, "", "")
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

func (a *Agent) addPatterns(ctx context.Context, p *Plan) error {
	if a.patterns == nil || p.Event.Task == "" {
		return nil
	}
	plan, err := a.patterns.Plan(ctx, beginning(p.Event.Text))
	if err != nil {
		return err
	}
	text := plan.Prompt()
	if !p.add("patterns", text) {
		return nil
	}
	p.Contents = make(map[string]string)
	in := func(all []patterns.Standing) (ids []string) {
		for _, s := range all {
			if strings.Contains(text, prompt.Line(s.Pattern.Content, 0)) { // there is room for some of them only
				ids = append(ids, string(s.Pattern.ID))
				p.Contents[string(s.Pattern.ID)] = s.Pattern.Content
			}
		}
		return ids
	}
	p.Ways, p.Warnings = in(plan.Patterns), in(slices.Concat(plan.Deprecated, plan.AntiPatterns))
	return nil
}

// The newest errors of a task that a prompt tells of, and the characters of their section.
const (
	maxErrors     = 20
	maxErrorRunes = 6_000
)

// addErrors tells of the errors that tools gave in earlier attempts at the task.
func (a *Agent) addErrors(ctx context.Context, p *Plan) error {
	if a.patterns == nil || p.Event.Task == "" {
		return nil
	}
	report, err := a.patterns.Errors(ctx, patterns.HistoryQuery{About: p.Event.Task, Limit: maxErrors})
	if err != nil || report.Unresolved == 0 {
		return err
	}
	size := patterns.SectionSize{Items: maxErrors, Chars: min(p.room, maxErrorRunes)}
	if size.Chars == 0 {
		size.Chars = -1
	}
	text := report.Prompt(size, false)
	p.add("errors", text)
	left := report.Unresolved - strings.Count(text, "\n  - Time: ") // each error has one, and its texts are lines
	for _, e := range report.Errors {
		if !e.Resolved && left > 0 {
			p.LeftOut = append(p.LeftOut, LeftOut{What: "error", ID: e.ID, Why: "characters"})
			left--
		}
	}
	return nil
}

// choose chooses an arm, if there are arms that matter for the event.
func (a *Agent) choose(ctx context.Context, p *Plan, notes []Note) error {
	a.strategy.RLock()
	learner, chooser, arms := a.strategy.learner, a.strategy.chooser, a.strategy.arms
	a.strategy.RUnlock()
	if chooser == nil {
		return nil
	}
	if aboutNotes(arms) && len(notes) == 0 {
		return nil
	}
	if a.frozen.Load() {
		ctx = winner.Freeze(ctx)
	}
	choice, err := a.chosen(ctx, chooser, p.query(notes))
	if err != nil && (choice.Arm == "" || ctx.Err() != nil) {
		return overdue(ctx, err)
	}
	if choice.Learner() != learner.Config().Name || !slices.ContainsFunc(arms, func(arm Arm) bool { return arm.ID == string(choice.Arm) }) {
		return errors.Join(err, &heed.ConfigError{Field: "Choose", Value: choice.Arm, Reason: "gave a choice that is none of the learner's"})
	}
	a.watch.Failed(ctx, "choose an arm", err) // there is one all the same
	p.take(choice, arms)
	return nil
}

// chosen asks who chooses. heed's own choosers heed their context.
func (a *Agent) chosen(ctx context.Context, c Chooser, q strategy.Query) (strategy.Choice, error) {
	if a.rehearses() {
		return c.Select(ctx, q)
	}
	return pass(ctx, a, "Config.Choose", func(ctx context.Context) (strategy.Choice, error) { return c.Select(ctx, q) })
}

// unchosen returns the arm that answers where no choice came in time: Strategy.Default, or the first one if there is no other model than the arms'.
// Nothing is learned of it.
func (a *Agent) unchosen() Arm {
	a.strategy.RLock()
	arms := a.strategy.arms
	a.strategy.RUnlock()
	for _, arm := range arms {
		if arm.ID == string(a.cfg.Strategy.Default) {
			return arm
		}
	}
	if i := slices.IndexFunc(arms, func(arm Arm) bool { return !arm.ForNotes }); i >= 0 && a.model(Arm{}) == nil {
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

// asAlways takes the arm that answers without heed, if the host named one, so that what it is worth is learned.
func (a *Agent) asAlways(ctx context.Context, p *Plan) error {
	always := a.cfg.Strategy.Default
	a.strategy.RLock()
	learner, arms := a.strategy.learner, a.strategy.arms
	a.strategy.RUnlock()
	if learner == nil || always == "" {
		return nil
	}
	choice, err := learner.Record(ctx, p.query(nil), always, 1)
	if err == nil {
		p.take(choice, arms)
		p.System = p.Arm.System
	}
	return err
}

// query returns what an arm is chosen for.
func (p *Plan) query(notes []Note) strategy.Query {
	e := &p.Event
	q := strategy.Query{Session: cmp.Or(e.Session, e.ID), Item: cmp.Or(e.Item, p.item), Category: e.Domain, Context: e.Context}
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
		text, err := pass(ctx, a, "Arm.Brief", func(ctx context.Context) (string, error) { return brief(ctx, p.Event, slices.Clone(notes)) })
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

// commands reports whether a text is a command to take an answer back. Package learning asks the same, and the host's strategy answers once.
func (a *Agent) commands(ctx context.Context, text string) (bool, error) {
	if a.learning == nil || a.frozen.Load() {
		return false, nil
	}
	return ahead.Once(ctx, ahead.IsUndo{Of: a.learning, Text: text}, func() (is bool, err error) {
		err = host.Call("the strategy", func() error { is = a.learning.Config().Strategy.IsUndo(text); return nil })
		return is, err
	})
}

// hear hears an event's own text.
func (a *Agent) hear(ctx context.Context, e *Event) ([]learning.Change, error) {
	nowhere := e.Session == "" && e.Person == "" && e.Stream == "" // it can then only show an outcome that is expected
	if a.frozen.Load() || nowhere && len(a.cfg.Learning.Expectations) == 0 {
		return nil, nil
	}
	return a.heard(ctx, learning.Message{
		ID: e.ID, Stream: e.Stream, Session: e.Session, Person: e.Person, Text: e.Text, At: e.At,
	})
}

var _ heed.Sweeper = (*Agent)(nil)
