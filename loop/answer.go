package loop

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/prompt"
	"github.com/heedhq/heed/store"
)

// A Reply is what a model answered that the framework asked.
type Reply struct {
	Text  string // the whole answer, also of one that was streamed
	Model string // its name
	Err   error  // why there is no answer; nil if there is one
	Cut   bool   // Text ends too early, as at the most tokens that were asked for
	// Tokens as the provider counts them. 0 where it does not tell.
	InputTokens, OutputTokens int
	Latency                   time.Duration // how long the model took. 0 where that is not known
}

// Answer answers an event: with a heuristic that is trusted, else with the model. It is [Agent.Prepare] and [Agent.Answered]
// around a call of [Config].Model, or of the arm's.
//
// A model that fails gives an answer without a text, and no error: see Result.Reason.
func (a *Agent) Answer(ctx context.Context, e Event) (Answer, error) {
	p, err := a.prepare(ctx, e)
	if err != nil {
		return Answer{}, wrap("answer", err)
	}
	if p.Ready {
		if e.OnChunk != nil {
			err = a.show(ctx, &p)
		}
		answer, failed := a.checked(ctx, &p)
		return answer, wrap("answer", errors.Join(err, failed))
	}
	m := a.model(p.Arm)
	if m == nil {
		p.Result = decision.Result{Path: decision.Rejected, Reason: decision.LLMUnavailable}
		return p.answer(), nil
	}
	c := &call{model: m, event: &p.Event}
	if e.OnChunk != nil {
		c.pipe = &pipe{to: e.OnChunk}
	}
	p.began = a.cfg.Now()
	answer, err := a.decide(ctx, &p, c)
	return answer, wrap("answer", errors.Join(err, c.pipe.close()))
}

// show gives the host an answer that is ready.
func (a *Agent) show(ctx context.Context, p *Plan) error {
	ctx, cancel := context.WithTimeout(ctx, a.decider.Config().Timeout)
	defer cancel()
	return receive(func() { p.Event.OnChunk(ctx, p.Text, false) })
}

// receive calls the receiver of pieces.
func receive(f func()) error {
	return host.Call("Event.OnChunk", func() error { f(); return nil })
}

// Answered takes what the model made of a plan that is not ready, and begins to wait for what becomes of the answer. The answer of
// one event counts once, however often it is told.
func (a *Agent) Answered(ctx context.Context, p Plan, r Reply) (Answer, error) {
	switch {
	case p.Event.ID == "":
		return Answer{}, wrap("answered", &heed.InputError{Field: "Plan", Reason: "must come from Prepare"})
	case p.Ready:
		return Answer{}, wrap("answered", &heed.InputError{Field: "Plan", Reason: "is ready: no model was to be asked"})
	case r.InputTokens < 0 || r.OutputTokens < 0 || r.Latency < 0:
		return Answer{}, wrap("answered", &heed.InputError{Field: "Reply", Reason: "must not have negative tokens or a negative latency"})
	}
	before, _, _, err := a.begin(ctx, p.Event.ID)
	if err != nil {
		return Answer{}, wrap("answered", err)
	}
	if before.Revision > 0 {
		a.repeat(&p, &before.Value)
		answer, err := a.checked(ctx, &p)
		return answer, wrap("answered", err)
	}
	p.took = r.Latency
	answer, err := a.decide(ctx, &p, &call{model: given{r}})
	return answer, wrap("answered", err)
}

// answer returns the answer of a plan that is ready.
func (p *Plan) answer() Answer {
	return Answer{ID: p.Event.ID, Text: p.Text, Plan: *p, Result: p.Result}
}

// decide has a model answer.
func (a *Agent) decide(ctx context.Context, p *Plan, c *call) (Answer, error) {
	first := a.first(p)
	r := a.request(p, func(ctx context.Context, res decision.Result, trace store.Batch) error {
		p.spare = c.spare.Load()
		return first(ctx, res, trace)
	})
	if c.event != nil {
		a.tell(p, c, &r)
	}
	res, err := a.deciderOf(p).Decide(context.WithValue(ctx, callKey{}, c), r)
	if errors.Is(err, errAnswered) {
		if err = a.earlier(ctx, p); err == nil {
			return a.checked(ctx, p)
		}
	}
	if err != nil {
		return Answer{}, err
	}
	if c.event != nil && res.Prompt != "" {
		res.Prompt = withHistory(c.event.History, res.Prompt, c.most)
	}
	p.Text, p.Result = res.Text, res
	p.shorten(res.ShownIDs)
	if res.Path == decision.Fallback && ctx.Err() == nil && c.pipe.fault() == nil {
		err = a.failed(ctx, p)
	} else if p.spare && p.Choice != nil && !a.frozen.Load() {
		err = a.settle(ctx, p.Event.ID)
	}
	answer, failed := a.checked(ctx, p)
	return answer, cmp.Or(err, failed)
}

// tell has the model be told the conversation so far.
func (a *Agent) tell(p *Plan, c *call, r *decision.Request) {
	c.most = cmp.Or(a.cfg.Decision.MaxText, maxText)
	for _, turn := range p.Event.History {
		if a.cuts(turn.Text) {
			p.LeftOut = append(p.LeftOut, LeftOut{What: "history", Why: "characters"})
			break
		}
	}
	beside := len(p.Event.History) > 0 || strings.Contains(strings.ToLower(r.Text), strings.ToLower(historyHeading))
	r.Code = beside && prompt.Check(r.Text) != nil
}

// checked returns the answer of a plan, with the rules that it breaks.
func (a *Agent) checked(ctx context.Context, p *Plan) (answer Answer, err error) {
	answer = p.answer()
	if answer.Text != "" && !p.unchecked {
		answer.Violations, err = a.violations(ctx, feedback.Checked{ID: answer.ID, Text: answer.Text})
	}
	return answer, err
}

// errAnswered says that the event was answered while this answer was made.
var errAnswered = errors.New("the event has an answer")

// first returns what commits an answer, if it is the first one of its event.
func (a *Agent) first(p *Plan) func(context.Context, decision.Result, store.Batch) error {
	commit := a.committer(p)
	return func(ctx context.Context, res decision.Result, trace store.Batch) error {
		err := commit(ctx, res, trace)
		if errors.Is(err, heed.ErrConflict) {
			if before, _, _, e := a.begin(ctx, p.Event.ID); e == nil && before.Revision > 0 {
				return errAnswered
			}
		}
		return err
	}
}

// earlier fills the plan with the answer that its event already has.
func (a *Agent) earlier(ctx context.Context, p *Plan) error {
	before, _, _, err := a.begin(ctx, p.Event.ID)
	if err == nil {
		a.repeat(p, &before.Value)
	}
	return err
}

// committer returns what commits an answer: its trace, what waits for its fate, and what was in it.
func (a *Agent) committer(p *Plan) func(context.Context, decision.Result, store.Batch) error {
	return func(ctx context.Context, res decision.Result, trace store.Batch) error {
		r, err := a.rowOf(ctx, p, &res)
		if err != nil {
			return err
		}
		kept := store.Batch{Records: []store.Record{a.answers.Record(r, 0)}}
		if a.learning == nil || a.frozen.Load() || len(p.Undone) > 0 {
			_, err := a.cfg.Store.Commit(ctx, trace, kept)
			return err
		}
		e := &p.Event
		return a.learning.Fire(ctx, learning.Fire{
			HeuristicID: res.CreditID, EventID: e.ID, Stream: e.Stream, Person: e.Person, Session: e.Session,
			Path: string(res.Path), Prediction: res.Predicted(), At: e.At, Compared: res.Compared[:min(len(res.Compared), maxCompared)],
		}, trace, kept)
	}
}

// maxCompared is how many comparisons package learning takes.
const maxCompared = 64

// silenceWindow is how long nobody may say anything until that counts, where the agent has no heuristics.
const silenceWindow = 30 * time.Second

// rowOf returns the record of an answer.
func (a *Agent) rowOf(ctx context.Context, p *Plan, res *decision.Result) (r row, err error) {
	e := &p.Event
	r = row{
		ID: e.ID, Response: res.ResponseID, Person: e.Person, Session: e.Session, Domain: e.Domain, Task: e.Task,
		Path: res.Path, Heuristic: res.CreditID, Threshold: res.Threshold, Choice: p.Choice,
		Cut: res.Cut, Shown: slices.Clone(res.ShownIDs), Compared: slices.Clone(res.Compared), Known: slices.Clone(res.Told), Rules: p.Rules, At: e.At,
	}
	if r.Choice != nil {
		r.Spent = p.spentOn(res, a.cfg.Now())
	}
	if r.Undoes = slices.Clone(p.Undone); len(r.Undoes) > 0 {
		r.Choice = nil
	}
	if res.Path == decision.Heuristic {
		r.Believed = res.Prediction.Confidence
		r.Choice = nil
	}
	if r.Spare = p.spare && r.Choice != nil; r.Spare {
		r.Spent.Cost, r.Spent.Tokens = 0, 0 // they are the fallback's
	}
	r.Overruled = p.overruled
	r.Ways, r.Warnings = slices.Clone(p.Ways), slices.Clone(p.Warnings)
	for _, n := range p.Notes {
		r.Notes = append(r.Notes, n.ID)
	}
	if !a.cfg.Decision.HashTexts {
		r.Text, r.About = res.Text, e.Text
		if err := a.redact(&r.Text, &r.About); err != nil { // whole, as a part of a secret does not look like one
			return r, err
		}
		r.About = beginning(r.About)
	}
	if a.patterns != nil && e.Task != "" && res.Path == decision.Model {
		followed, err := a.patterns.Extract(ctx, res.Text)
		if err != nil {
			a.watch.Failed(ctx, "find the patterns of "+e.ID, err)
		}
		r.Followed = followed
	}
	switch {
	case r.Choice == nil || a.frozen.Load():
	case r.Spare:
		r.Owed = true
	default:
		r.Due = r.At.Add(a.window(e.Domain))
	}
	return r, nil
}

// redact leaves out of texts what must not be kept.
func (a *Agent) redact(texts ...*string) error {
	if a.cfg.Redact == nil {
		return nil
	}
	return host.Call("Config.Redact", func() error {
		for _, text := range texts {
			if *text != "" {
				*text = cmp.Or(a.cfg.Redact(*text), "[redacted]")
			}
		}
		return nil
	})
}

// window returns after how long silence counts for an arm.
func (a *Agent) window(domain string) time.Duration {
	if a.learning == nil {
		return silenceWindow
	}
	windows := a.learning.Config().Strategy.Windows(domain)
	return cmp.Or(max(windows.Silence, 0), max(windows.Undo, 0), silenceWindow)
}

// failed tells the arm that its model gave no answer.
func (a *Agent) failed(ctx context.Context, p *Plan) error {
	if p.Choice == nil || len(p.Undone) > 0 || a.frozen.Load() || errors.Is(p.Result.Err, context.Canceled) {
		return nil
	}
	return a.observe(ctx, *p.Choice, p.Event.ID+"/failed", statement{part{Value: -1, Trust: 1, Share: 1}, "error", "", p.Event.At}, p.spentOn(&p.Result, a.cfg.Now()))
}
