package loop

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/prompt"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// How an event is answered. Answer and the pair of Prepare and Answered share all steps:
//
// 	step        where                what it does
// 	prepare     plan.go              reads what was learned, counts what the event's text means for
// 	                                 earlier answers, lets a heuristic answer or chooses an arm
// 	ask         plan.go              makes the model's prompt from the plan
// 	call        model.go, stream.go  asks the model and its fallbacks, with pieces for the host
// 	conclude    answer.go            records the answer with its trace in one commit
// 	checked     answer.go            compares the answer with the rules
// 	delivered   delivery.go          records that the person has not seen the answer, if that is so
//
// A plan that is ready skips ask, call and conclude, because the heuristic's answer was recorded by
// the step that prepared it.

// A Reply is what a model answered that the framework asked.
type Reply struct {
	// Text is the whole answer, also of one that was streamed. Thoughts in tags are left out of it.
	Text string
	// Model is the name of the model, for traces.
	Model string
	// Err is why there is no answer. nil if there is one. Wrap it with an llm.Failure, because an
	// error that heed does not recognise does not count.
	Err error
	// Cut reports that Text ends too early, for example at the request's most tokens.
	Cut bool
	// InputTokens and OutputTokens are the tokens as the provider counts them. 0 if it does not
	// report them.
	InputTokens, OutputTokens int
	// Latency is how long the model took. 0 if that is not known.
	Latency time.Duration
}

// Answer answers an event: with a heuristic that is trusted, else with the model. It is
// [Agent.Prepare] and [Agent.Answered] around a call of [Config].Model, or of the arm's.
//
// A model that fails gives an answer without a text, and no error: see Result.Reason. If the caller
// left by then, Answer returns the context's error. If the store can't be reached, there is an
// answer all the same, and Answer.Degraded has what it lacks.
//
// If the context ends while the model answers, or OnChunk panics then, the model is stopped. There
// is no answer, no part of it is recorded, and its id is [ErrNoAnswer]. If the context ends later,
// or OnChunk panics at a heuristic's answer, the answer is recorded as not delivered: see
// [Agent.Undelivered].
func (a *Agent) Answer(ctx context.Context, e Event) (Answer, error) {
	if strings.TrimSpace(e.Text) == "" {
		if _, err := a.read(ctx, e.ID); err != nil { // the event was not answered before
			return Answer{}, wrap("answer", valid.Input("Text", "must not be empty"))
		}
	}
	p, err := a.prepare(ctx, e)
	if err != nil {
		return Answer{}, wrap("answer", err)
	}
	if p.Ready {
		if e.OnChunk != nil {
			err = a.show(ctx, &p, false)
		}
		given, failed := a.checked(ctx, &p)
		a.delivered(ctx, &p, err)
		return given, wrap("answer", errors.Join(err, failed))
	}
	// From here on the model is asked. If it was down for long, and so was every other model that
	// could answer, the caller gets an error at once, because waiting for it would be of no use.
	m := a.model(p.Arm)
	if p.left {
		err = a.models.dead(m, a.cfg.Testing.Now())
	}
	if len(m) == 0 || err != nil {
		res := decision.Result{Path: decision.Rejected, Reason: "llm_unavailable", Err: err}
		return a.unanswered(ctx, &p, res, a.cfg.Testing.Now()), wrap("answer", err)
	}
	// What the model is asked is made before the call, so that the trace has it even if the call
	// fails.
	c := a.call(&p, m)
	r := a.asking(&p)
	a.converse(&p, &r)
	err = a.ask(&p, r)
	var res decision.Result
	if p.began = a.cfg.Testing.Now(); err == nil {
		res, err = a.decider.Reply(ctx, r, p.kept.Ask, c)
	}
	if err != nil {
		return Answer{}, wrap("answer", err)
	}
	p.spare, p.blamed = c.spare.Load(), c.tries.close(ctx, res.Err)
	// If the receiver panicked, the model has not failed, and there is no answer.
	if fault := c.tries.pipe.fault(true); fault != nil {
		res.Path, res.Text, res.Reason = decision.Fallback, "", ""
		return a.unanswered(ctx, &p, res, p.began), wrap("answer", fault)
	}
	// The answer is recorded although the caller's context may have ended, because the model's work
	// is done. Then delivered records that the person has not seen it.
	given, err := a.conclude(ctx, &p, res)
	if err == nil {
		a.delivered(ctx, &p, nil)
	}
	if p.repeated && p.Event.OnChunk != nil && p.Text != res.Text { // another delivery was quicker
		err = errors.Join(err, a.show(ctx, &p, true))
	}
	// The trace contains the prompt without the conversation.
	given.Result.Prompt = withHistory(p.Event.History, given.Result.Prompt)
	return given, wrap("answer", err)
}

// unanswered returns an answer without a text, which is not recorded.
func (a *Agent) unanswered(
	ctx context.Context, p *Plan, res decision.Result, began time.Time,
) Answer {
	p.Result = res
	a.decider.Notify(ctx, res, began)
	return p.answer()
}

// call returns what the decider asks for a plan. Models that are unavailable are left out of its
// chain.
func (a *Agent) call(p *Plan, m chain) *call {
	return &call{
		models:  m.without(a.models, a.nameOf(&p.Arm), p.spared, a.cfg.Testing.Now()),
		history: p.Event.History, tries: tries{agent: a, pipe: pipe{to: p.Event.OnChunk}},
	}
}

// Answered records the answer of a model that the framework asked by a plan that is not ready, and
// begins to wait for what becomes of the answer. The answer of one event counts once, however often
// it is reported, and a failure that is reported after it does not count.
//
// If the store can't be reached, there is no error: Degraded.After is set in what it returns. Keep
// that Answer, and call Answered with its Plan when the store is back, which [heed.Restored]
// reports. The same applies to the results of [Agent.Answer] and [Agent.Prepare]. The Reply is not
// used then. Silence about an answer that is recorded so late does not count, because reactions
// could not be recorded either. A plan can't be kept after the process ends, and its answer is lost
// then.
func (a *Agent) Answered(ctx context.Context, p Plan, r Reply) (Answer, error) {
	switch {
	case p.Event.ID == "":
		return Answer{}, wrap("answered", valid.Input("Plan", "must come from Prepare"))
	case p.unkept() && p.Result.Path != "":
		return a.catchUp(ctx, p)
	case p.Ready:
		return Answer{}, wrap("answered", valid.Input("Plan", "is ready: no model was to be asked"))
	case r.InputTokens < 0 || r.OutputTokens < 0 || r.Latency < 0:
		return Answer{}, wrap("answered", valid.Input("Reply",
			"must not have negative tokens or a negative latency"))
	}
	p.took, p.Degraded = r.Latency, p.Degraded.clone()
	asked := a.asking(&p)
	res, err := a.decider.Reply(ctx, asked, p.kept.Ask, given{r})
	if err != nil {
		return Answer{}, wrap("answered", err)
	}
	// An answer that is recorded stays the answer: a failure that is reported after it is ignored.
	if res.Path == decision.Fallback && a.given(ctx, &p) == nil {
		made, err := a.checked(ctx, &p)
		return made, wrap("answered", err)
	}
	p.blamed = a.reported(ctx, &p, &r)
	made, err := a.conclude(ctx, &p, res)
	return made, wrap("answered", err)
}

// catchUp records what became of an event while the store was away: an answer, or that its arm gave
// none. The decider's result is in the plan already, so only the commit is made.
func (a *Agent) catchUp(ctx context.Context, p Plan) (Answer, error) {
	err := ctx.Err()
	if p.Degraded = p.Degraded.clone(); err == nil && p.Text != "" {
		_, err = a.keep(ctx, &p)
	} else if err == nil {
		err = a.failedLate(ctx, &p)
	}
	if err != nil {
		return Answer{}, wrap("answered", err)
	}
	made, err := a.checked(ctx, &p)
	return made, wrap("answered", err)
}

// failedLate credits the arm with an answer that was of no use, unless the event got another answer
// since, or the agent was frozen.
func (a *Agent) failedLate(ctx context.Context, p *Plan) error {
	err := a.given(ctx, p)
	if errors.Is(err, ErrNoAnswer) {
		if p.kept.Frozen, err = a.isFrozen(store.Reading(ctx, a.cfg.Store)); err == nil {
			err = a.failed(ctx, p)
		}
	}
	return err
}

// reported counts what became of the call of a model by a framework. It reports whether the arm is
// to blame.
func (a *Agent) reported(ctx context.Context, p *Plan, r *Reply) (blamed bool) {
	got := attempt{called: true, text: r.Text, err: r.Err, patient: a.patient(r.Latency)}
	if r.Latency > 0 && errors.Is(r.Err, context.DeadlineExceeded) {
		got.ended = context.DeadlineExceeded // the framework's, which may have been short
	}
	a.models.note(a.nameOf(&p.Arm), &got, a.cfg.Testing.Now())
	a.reportUnrecognised(ctx, a.nameOf(&p.Arm), &got)
	a.reportOutages(ctx)
	return got.whose() == someArm
}

// conclude records what a model answered. The decider's path decides: an answer of the model is
// kept; a Fallback means that no model gave one, which may count against the arm; and a rejection
// is an error.
func (a *Agent) conclude(ctx context.Context, p *Plan, res decision.Result) (Answer, error) {
	now := a.cfg.Testing.Now()
	began := p.began
	if began.IsZero() { // the framework asked the model
		began = now.Add(-p.took)
	}
	// A clock that was put back must not make the time negative.
	p.took = max(now.Sub(began), 0)
	var err error
	p.Text, p.Result = res.Text, res
	switch res.Path {
	case decision.Model:
		p.followed = a.ways(ctx, p)
		var before bool
		if before, err = a.keep(ctx, p); err != nil {
			return Answer{}, err
		} else if before {
			return a.checked(ctx, p)
		}
	// No model gave an answer that can be used. That counts for the arm only if its model is to
	// blame.
	case decision.Fallback:
		err = cmp.Or(a.failed(ctx, p), ctx.Err()) // the caller left
	case decision.Rejected: // the model was not called
		err = res.Err
	case decision.Heuristic:
	}
	a.decider.Notify(ctx, p.Result, began)
	given, failed := a.checked(ctx, p)
	return given, cmp.Or(err, failed)
}

// given puts into a plan the answer that was given since it was made, or returns [ErrNoAnswer].
func (a *Agent) given(ctx context.Context, p *Plan) error {
	row, err := a.read(ctx, p.Event.ID)
	if err == nil {
		a.repeat(p, &row)
	}
	return err
}

// ways returns the ways of working that the answer to a task follows, judged by its text.
func (a *Agent) ways(ctx context.Context, p *Plan) (ids []string) {
	if p.Event.Task == "" {
		return nil
	}
	found, err := a.patterns.Extract(ctx, p.Text)
	a.watch.Failed(ctx, "find the patterns of "+p.Event.ID, err)
	for _, id := range found {
		ids = append(ids, string(id))
	}
	return ids
}

// answer returns the answer of a plan that is ready.
func (p *Plan) answer() Answer {
	return Answer{ID: p.Event.ID, Text: p.Text, Plan: *p, Result: p.Result, Degraded: p.Degraded}
}

// converse has the model read the conversation so far. If there is a conversation, or the text has
// its heading, a text of several lines is put into a fence, because a message must not pass for a
// part of the prompt.
func (a *Agent) converse(p *Plan, r *decision.Request) {
	for _, turn := range p.Event.History {
		if a.cuts(turn.Text) {
			p.LeftOut = append(p.LeftOut, LeftOut{What: "history", Why: "characters"})
			break
		}
	}
	heads := strings.Contains(strings.ToLower(r.Text), strings.ToLower(historyHeading))
	r.Code = (len(p.Event.History) > 0 || heads) && prompt.Check(r.Text) != nil
}

// checked returns the answer of a plan, with the rules that it breaks. Rules that can't be read are
// listed as unread, and the answer is returned all the same.
func (a *Agent) checked(ctx context.Context, p *Plan) (given Answer, err error) {
	var broken []feedback.Violation
	if p.Text != "" && !p.kept.Unchecked {
		broken, err = a.violations(ctx, feedback.Checked{ID: p.Event.ID, Text: p.Text})
	}
	if a.down(ctx, ctx, err) != nil {
		p.degrade()
		p.unread("rules")
		err = nil
	}
	given = p.answer()
	given.Violations = broken
	return given, err
}

// keep records an answer in one commit: its record, its trace and what waits for its outcome. If
// the event was answered since it was planned, the plan gets that answer, and keep reports true.
// The caller's context does not end the commit, because the answer is there and should be kept.
func (a *Agent) keep(ctx context.Context, p *Plan) (before bool, err error) {
	p.undelivered = ctx.Err() != nil
	ctx = context.WithoutCancel(ctx)
	limited, cancel := patient(ctx, storeTimeout)
	defer cancel()
	// The step may run several times. Each run begins with the same result, because TraceIn changes
	// it.
	again, res := p.Degraded != nil, p.Result
	err = store.Do(limited, a.cfg.Store, func(tx *store.Tx) error {
		if p.Result = res; again { // the first run relies on what the plan read
			row, err := a.answers.In(tx, answers.ID(p.Event.ID))
			if before = row.Value.Reply != nil; err != nil || before {
				return err
			}
			if p.kept.Frozen, err = a.isFrozen(tx); err != nil {
				return err
			}
		}
		again = true
		return a.keepIn(tx, p, &p.Result)
	})
	// Another delivery of the event was quicker: both callers get the answer that is stored.
	if err == nil && before {
		err = a.given(limited, p)
	}
	err = a.recorded(ctx, limited, p, err)
	return before && !p.unkept(), err
}

// recorded notes whether the store was away in the step that records what became of an event. Any
// other error of the step is returned.
func (a *Agent) recorded(ctx, limited context.Context, p *Plan, err error) error {
	switch down := a.down(ctx, limited, err); {
	case down != nil:
		p.degrade().After, err = down, nil
	case err == nil && p.Degraded != nil:
		p.Degraded.After = nil
	}
	return err
}

// keepIn adds the record of an answer to a step, with its trace and what waits for its outcome. The
// trace, the fire and the record are in one commit, so a statement finds either all of them or none
// of them.
func (a *Agent) keepIn(tx *store.Tx, p *Plan, res *decision.Result) error {
	if err := a.decider.TraceIn(tx, a.asking(p), res); err != nil {
		return err
	}
	r, err := a.recordOf(p, res)
	if err != nil {
		return err
	}
	if e := &p.Event; !p.kept.Frozen && len(p.Undone) == 0 {
		err = a.learning.FireIn(tx, &r, learning.Fire{
			HeuristicID: res.CreditID, EventID: e.ID, Stream: e.Stream, Person: e.Person,
			Session: e.Session,
			Path:    string(res.Path), At: e.At,
			Compared: res.Compared[:min(len(res.Compared), maxCompared)],
			Unheard:  p.undelivered || p.unkept(),
		})
	}
	if err != nil {
		return err
	}
	if r.Reply.Spare && !p.kept.Frozen {
		if err := a.credit(tx, &r, nil, new(error)); err != nil {
			return err
		}
	}
	a.countTaken(tx, &r, p.spentOn(res))
	a.answers.Put(tx, r, 0)
	return nil
}

// maxCompared is how many comparisons package learning takes.
const maxCompared = 64

// recordOf returns the record of an answer. It has what later statements need to be credited, and
// what Explain shows.
func (a *Agent) recordOf(p *Plan, res *decision.Result) (r answer.Answer, err error) {
	e := &p.Event
	reply := &answer.Reply{
		Path: string(res.Path), Response: res.ResponseID, Cut: res.Cut, Heuristic: res.CreditID,
		Threshold: res.Threshold, Task: e.Task, Undelivered: p.undelivered, Model: res.LLM,
	}
	r = answer.Answer{
		ID: e.ID, At: evidence.InstantOf(e.At).Time(), Person: e.Person,
		Session: e.Session, Domain: e.Domain,
		Stream: e.Stream, Reply: reply, Prompt: promptOf(p, res), Undoes: slices.Clone(p.Undone),
	}
	// An answer that took another one back, or that a heuristic gave, is no evidence about the arm.
	if p.Choice != nil && len(p.Undone) == 0 && res.Path != decision.Heuristic {
		r.Choice = p.Choice.Record()
		r.Choice.IgnoreSilence = a.cfg.Choosing.ArmsIgnoreSilence
		reply.Spent = p.spentOn(res)
	} else {
		reply.Arm = p.Arm.ID
	}
	if res.Path == decision.Heuristic {
		reply.Believed = res.Prediction.Confidence
	}
	side := p.kept.Side
	reply.Side = &side
	// A fallback answered. The arm earns neither credit nor cost by it, unless its own model was
	// asked and gave an answer of no use.
	if reply.Spare = p.spare && r.Choice != nil; reply.Spare {
		reply.Unusable = p.blamed
		reply.Spent.Cost, reply.Spent.Tokens = 0, 0 // they are the fallback's
	}
	reply.Text, reply.About = res.Text, e.Text
	// whole, because a part of a secret does not look like one
	if err := a.redact(&reply.Text, &reply.About); err != nil {
		return r, err
	}
	reply.About = beginning(reply.About)
	reply.Followed = p.followed
	return r, nil
}

// promptOf returns what the model was shown and what was withheld from it, or nil if both are
// empty.
func promptOf(p *Plan, res *decision.Result) *answer.Prompt {
	shown := &answer.Prompt{
		Shown: slices.Clone(res.ShownIDs), Compared: slices.Clone(res.Compared),
		Told: slices.Clone(res.Told), Overruled: p.kept.Overruled,
		Rules: slices.Clone(p.Rules), Ways: slices.Clone(p.Ways), Warnings: slices.Clone(p.Warnings),
	}
	for _, n := range p.Notes {
		shown.Notes = append(shown.Notes, n.ID)
	}
	for _, o := range p.LeftOut {
		shown.LeftOut = append(shown.LeftOut, [3]string{o.What, o.ID, o.Why})
	}
	if max(len(shown.Shown), len(shown.Told), len(shown.Rules), len(shown.Notes), len(shown.Ways),
		len(shown.Warnings), len(shown.LeftOut), len(shown.Compared), len(shown.Overruled)) == 0 {
		return nil
	}
	return shown
}

// redact leaves out of texts what must not be kept. A text that Redact empties becomes
// "[redacted]", because an empty text means that there was no answer. A panic of Redact is an
// error, and then no text is stored.
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

// failed credits the arm with an answer that is of no use. Other failures do not count. There is no
// record of an answer without a text, so this outcome is observed by itself.
func (a *Agent) failed(ctx context.Context, p *Plan) error {
	if p.Choice == nil || len(p.Undone) > 0 || p.kept.Frozen || !p.blamed {
		return nil
	}
	if _, known := a.arm(string(p.Choice.Arm)); !known {
		return nil
	}
	limited, cancel := patient(ctx, storeTimeout)
	defer cancel()
	spent := p.spentOn(&p.Result)
	_, err := a.learner.Observe(limited, strategy.Outcome{
		Choice: *p.Choice, ID: p.Event.ID + "/failed", Value: -1, Confidence: 1, Channel: "error",
		At:   maxTime(p.Event.At, p.Choice.At),
		Cost: spent.Cost, Latency: spent.Latency, Tokens: spent.Tokens,
	})
	return a.recorded(ctx, limited, p, err)
}

// maxTime returns the later time: clocks of two systems may differ, and nothing about an event
// happened before it.
func maxTime(a, b time.Time) time.Time {
	return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare)
}

// request returns what the decider is asked. The prompts of the arm, the configuration and the plan
// have one place each: see Config.System.
func (a *Agent) request(p *Plan) decision.Request {
	e := &p.Event
	texts := make([]string, len(e.History))
	for i, turn := range e.History {
		texts[i] = turn.Text
	}
	r := decision.Request{
		EventID: e.ID, Text: e.Text, Source: e.Person, Domain: e.Domain,
		Candidates: p.Candidates, Briefing: p.System, Told: texts, AskModel: e.AskModel,
	}
	if p.Arm.System != "" && a.cfg.System == "" {
		r.System, r.Briefing = p.System, "" // the arm has it in place of the default
	}
	return r
}

// asking returns what the decider is asked after no heuristic answered.
func (a *Agent) asking(p *Plan) decision.Request {
	r := a.request(p)
	if p.kept.Side.Control || len(p.Undone) > 0 { // as if there were no heed
		r.AskModel, r.ShowNone = true, true
	}
	return r
}
