package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/patterns"
)

// millis makes a duration of milliseconds.
func millis(field string, ms float64) (time.Duration, error) {
	const most = 1e12 // some 30 years
	if !(ms >= 0 && ms <= most) {
		return 0, badField(field, "must be in [0, 1e12]")
	}
	return time.Duration(math.Round(ms * float64(time.Millisecond))), nil
}

// failed makes an error of a text, or nil of "".
func failed(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

// An Event is what is to be answered.
type Event struct {
	ID       string      `json:"id,omitempty"`
	Text     string      `json:"text"`
	Session  string      `json:"session,omitempty"`
	Person   string      `json:"person,omitempty" mcp:"-"`
	Stream   string      `json:"stream,omitempty" mcp:"-"`
	Domain   string      `json:"domain,omitempty"`
	Task     string      `json:"task,omitempty"`
	Item     string      `json:"item,omitempty"`
	Context  string      `json:"context,omitempty"`
	History  []loop.Turn `json:"history,omitempty" mcp:"-"`
	At       time.Time   `json:"at,omitzero" mcp:"-"`
	AskModel bool        `json:"ask_model,omitempty"`
}

// event returns the agent and the event for it. An event without a text is refused.
func (s *Server) event(c *Caller, in *Event) (*loop.Agent, loop.Event, error) {
	e := loop.Event{
		ID: cmp.Or(in.ID, c.Event), Text: in.Text, Session: in.Session, Person: c.user(in.Person),
		Stream: in.Stream, Domain: in.Domain, Task: in.Task, Item: in.Item, Context: in.Context,
		At: in.At, AskModel: in.AskModel, History: in.History, OnChunk: c.Pieces,
	}
	if c.Names != nil {
		e.ID, e.Session = c.Names(e.ID, e.Session)
	}
	a, err := s.agent()
	if err == nil && strings.TrimSpace(in.Text) == "" {
		err = badField("text", "must not be empty")
	}
	return a, e, err
}

// A Basis is what an answer, or the prompt for one, rests on.
type Basis struct {
	Rules      []string             `json:"rules"`
	Notes      []string             `json:"notes"`
	Ways       []string             `json:"ways"`
	Warnings   []string             `json:"warnings"`
	LeftOut    []loop.LeftOut       `json:"left_out"`
	Undone     []string             `json:"undone"`
	Command    bool                 `json:"command"`
	Violations []feedback.Violation `json:"violations"`
}

func basisOf(p *loop.Plan, broken []feedback.Violation) Basis {
	b := Basis{
		Rules: arrayOf(p.Rules), Notes: []string{}, Ways: arrayOf(p.Ways),
		Warnings: arrayOf(p.Warnings), LeftOut: arrayOf(p.LeftOut), Undone: arrayOf(p.Undone),
		Command: p.Command, Violations: arrayOf(broken),
	}
	for _, n := range p.Notes {
		b.Notes = append(b.Notes, n.ID)
	}
	return b
}

// A PlannedArm is the way of answering that was chosen.
type PlannedArm struct {
	ID     string   `json:"id"`
	Model  string   `json:"model,omitempty"`
	System string   `json:"system,omitempty"`
	Tools  []string `json:"tools,omitempty"`
}

// armIn returns the arm of a plan, or nil if no arm was chosen.
func armIn(p *loop.Plan) *PlannedArm {
	if p.Arm.ID == "" {
		return nil
	}
	return &PlannedArm{p.Arm.ID, p.Arm.ModelName, p.Arm.System, p.Arm.Tools}
}

// An Answered is an answer of the agent's model or of a heuristic.
type Answered struct {
	ID        string      `json:"id"`
	Text      string      `json:"text"`
	Path      string      `json:"path"`
	Heuristic string      `json:"heuristic,omitempty"`
	Arm       *PlannedArm `json:"arm,omitempty"`
	Model     string      `json:"model,omitempty"`
	Basis
}

func (s *Server) answer(ctx context.Context, c *Caller, in *Event) (none Answered, _ error) {
	a, e, err := s.event(c, in)
	if err != nil {
		return none, err
	}
	got, err := a.Answer(ctx, e)
	res := &got.Result
	switch {
	case err != nil:
		return none, err
	case got.Text != "":
	case res.Reason == decision.LLMUnavailable:
		return none, &Fault{Sort: MissingPart, Detail: "No trusted heuristic has an answer, and no " +
			"model is configured. Configure one, or ask a model of yours between /v1/prepare and " +
			"/v1/answered."}
	case ctx.Err() != nil:
		return none, ctx.Err()
	case res.Reason == "llm_busy":
		return none, decision.ErrBusy
	default:
		return none, &Fault{Sort: ModelFailed, Detail: "The reason is " + string(res.Reason) + "."}
	}
	return Answered{
		got.ID, got.Text, string(res.Path), res.CreditID, armIn(&got.Plan), res.LLM,
		basisOf(&got.Plan, got.Violations),
	}, nil
}

// A Prepared is an answer, or what to ask a model for one.
type Prepared struct {
	ID        string      `json:"id"`
	Ready     bool        `json:"ready"`
	Text      string      `json:"text"`
	Heuristic string      `json:"heuristic,omitempty"`
	Arm       *PlannedArm `json:"arm,omitempty"`
	System    string      `json:"system"`
	Prompt    string      `json:"prompt"`
	Would     string      `json:"would,omitempty"`
	Basis
}

func (s *Server) prepare(ctx context.Context, c *Caller, in *Event) (none Prepared, _ error) {
	a, e, err := s.event(c, in)
	if err != nil {
		return none, err
	}
	p, err := a.Prepare(ctx, e)
	if err != nil {
		return none, err
	}
	if !p.Ready {
		if err := a.KeepPlan(ctx, c.Person, p); err != nil {
			return none, err
		}
		s.plans.Store(planOf{c.Person, p.Event.ID}, p)
	}
	return Prepared{
		p.Event.ID, p.Ready, p.Text, p.Result.CreditID, armIn(&p), p.System, p.Prompt, p.Would,
		basisOf(&p, p.Violations),
	}, nil
}

// A planOf names a plan.
type planOf struct{ person, id string }

// A Reply is what a model of the caller's answered.
type Reply struct {
	ID           string  `json:"id"`
	Text         string  `json:"text,omitempty"`
	Model        string  `json:"model,omitempty"`
	Error        string  `json:"error,omitempty"`
	Failure      string  `json:"failure,omitempty"`
	Cut          bool    `json:"cut,omitempty"`
	InputTokens  int     `json:"input_tokens,omitempty"`
	OutputTokens int     `json:"output_tokens,omitempty"`
	Latency      float64 `json:"latency_ms,omitempty"`
}

// A Kept is an answer as it is kept, or why it is not.
type Kept struct {
	ID         string               `json:"id"`
	Text       string               `json:"text"`
	Kept       bool                 `json:"kept"`
	Reason     string               `json:"reason,omitempty"`
	Arm        *PlannedArm          `json:"arm,omitempty"`
	Violations []feedback.Violation `json:"violations"`
}

// storeAway is the reason why an answer is not kept: it may be sent again.
const storeAway = "store_unavailable"

// failures are the reasons that a caller may give for a model without an answer.
var failures = []llm.Failure{
	llm.Unreachable, llm.RateLimited, llm.ServerError, llm.TimedOut, llm.Cancelled, llm.Unusable,
}

// err returns why there is no answer, or nil.
func (r *Reply) err() error {
	if r.Failure == "" {
		return failed(r.Error)
	}
	return &llm.Error{Failure: llm.Failure(r.Failure), Err: failed(r.Error)}
}

func (s *Server) answered(ctx context.Context, c *Caller, in *Reply) (none Kept, _ error) {
	a, err := s.agent()
	if err != nil {
		return none, err
	}
	switch {
	case in.Text == "" && in.Error == "" && in.Failure == "":
		return none, badField("text", "must be set, or error")
	case in.Failure != "" && !slices.Contains(failures, llm.Failure(in.Failure)):
		return none, badField("failure", fmt.Sprintf("must be one of %q", failures))
	case in.InputTokens < 0:
		return none, badField("input_tokens", "must not be negative")
	case in.OutputTokens < 0:
		return none, badField("output_tokens", "must not be negative")
	}
	latency, err := millis("latency_ms", in.Latency)
	if err != nil {
		return none, err
	}
	p, err := a.KeptPlan(ctx, c.Person, in.ID)
	known, here := s.plans.LoadAndDelete(planOf{c.Person, in.ID})
	if here && err != nil && !errors.Is(err, heed.ErrNotFound) { // the store can't be reached
		p, err = known.(loop.Plan), nil
	}
	switch {
	case errors.Is(err, heed.ErrNotFound):
		return none, &Fault{Sort: Unknown, Field: "id", Detail: "There is no plan of this id for " +
			"you, or no longer. Prepare the event again, with the same id."}
	case err != nil:
		return none, err
	}
	got, err := a.Answered(ctx, p, loop.Reply{
		Text: in.Text, Model: in.Model, Cut: in.Cut, InputTokens: in.InputTokens,
		OutputTokens: in.OutputTokens, Latency: latency, Err: in.err(),
	})
	if err != nil {
		return none, err
	}
	reason := string(got.Result.Reason)
	if !got.Degraded.Recorded() {
		reason = storeAway
	}
	return Kept{
		got.ID, got.Text, got.Text != "" && reason != storeAway, reason, armIn(&got.Plan),
		arrayOf(got.Violations),
	}, nil
}

// A ToolResult is what a tool of the caller's gave, or is to be asked.
type ToolResult struct {
	Answer string `json:"answer" heed:"id ID"`
	Name   string `json:"name"`
	Call   string `json:"call,omitempty"`
	Before bool   `json:"before,omitempty"`
	Input  string `json:"input,omitempty"`
	Text   string `json:"text,omitempty"`
	Error  string `json:"error,omitempty"`
}

// A Checked holds the rules that a call of a tool breaks.
type Checked struct {
	Violations []feedback.Violation `json:"violations"`
}

func (s *Server) toolResult(ctx context.Context, c *Caller, in *ToolResult) (Checked, error) {
	a, err := s.agent()
	if err != nil {
		return Checked{}, err
	}
	r := loop.ToolResult{
		ID: in.Call, Name: in.Name, Before: in.Before, Input: in.Input, Text: in.Text,
		Err: failed(in.Error),
	}
	if !in.Before {
		if plan, err := a.KeptPlan(ctx, c.Person, in.Answer); err == nil {
			r.Task = plan.Event.Task
		} else if !errors.Is(err, heed.ErrNotFound) {
			return Checked{}, err
		}
	}
	found, err := a.Tool(ctx, in.Answer, r)
	return Checked{arrayOf(found)}, err
}

// A Reaction is what a user makes of an answer.
type Reaction struct {
	Answer  string    `json:"answer" heed:"id"`
	Person  string    `json:"person,omitempty" mcp:"-"`
	Channel string    `json:"channel,omitempty" mcp:"-"`
	Target  string    `json:"target,omitempty" mcp:"-"`
	Value   float64   `json:"value"`
	Weight  float64   `json:"weight,omitempty" mcp:"-"`
	At      time.Time `json:"at,omitzero" mcp:"-"`
}

func (s *Server) react(ctx context.Context, c *Caller, in *Reaction) (n Nothing, _ error) {
	a, err := s.agent()
	if err != nil {
		return n, err
	}
	return n, a.React(ctx, in.Answer, loop.Reaction{
		Person: c.user(in.Person), Channel: in.Channel, Target: answer.Target(in.Target),
		Value: in.Value, Weight: in.Weight, At: in.At,
	})
}

// An Undo takes an answer back.
type Undo struct {
	Answer string `json:"answer" heed:"id"`
	Person string `json:"person,omitempty" mcp:"-"`
}

func (s *Server) undo(ctx context.Context, c *Caller, in *Undo) (n Nothing, _ error) {
	a, err := s.agent()
	if err != nil {
		return n, err
	}
	return n, a.Undo(ctx, in.Answer, c.user(in.Person))
}

// A Message is a later message of a session that is not to be answered.
type Message struct {
	ID      string    `json:"id,omitempty"`
	Text    string    `json:"text"`
	Session string    `json:"session,omitempty"`
	Person  string    `json:"person,omitempty"`
	Stream  string    `json:"stream,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

// A Heard lists what a message changed.
type Heard struct {
	Changes []Change `json:"changes"`
}

// A Change is what a message counts for an answer.
type Change struct {
	Answer    string  `json:"answer"`
	Heuristic string  `json:"heuristic,omitempty"`
	Signal    string  `json:"signal"`
	Channel   string  `json:"channel"`
	Weight    float64 `json:"weight"`
}

func (s *Server) hear(ctx context.Context, c *Caller, in *Message) (none Heard, _ error) {
	a, err := s.agent()
	if err != nil {
		return none, err
	}
	found, err := a.Hear(ctx, learning.Message{
		ID: cmp.Or(in.ID, c.Event), Text: in.Text, Session: in.Session, Person: in.Person,
		Stream: in.Stream, At: in.At,
	})
	out := Heard{Changes: make([]Change, len(found))}
	for i := range found {
		of := &found[i].Signal
		out.Changes[i] = Change{
			of.EventID, of.HeuristicID, string(of.Type), of.Channel, found[i].Weight,
		}
	}
	return out, err
}

// An Outcome is what came of an answer.
type Outcome struct {
	Answer   string               `json:"answer" heed:"id"`
	Success  *bool                `json:"success,omitempty"`
	Reward   *float64             `json:"reward,omitempty"`
	Withdraw bool                 `json:"withdraw,omitempty"`
	Errors   int                  `json:"errors,omitempty"`
	Retries  int                  `json:"retries,omitempty"`
	Duration float64              `json:"duration_ms,omitempty"`
	Failure  string               `json:"failure,omitempty"`
	Ways     []patterns.PatternID `json:"ways,omitempty" mcp:"-"`
	Cost     float64              `json:"cost,omitempty"`
	Source   string               `json:"source,omitempty" mcp:"-"`
	At       time.Time            `json:"at,omitzero" mcp:"-"`
}

func (s *Server) outcome(ctx context.Context, c *Caller, in *Outcome) (n Nothing, _ error) {
	a, err := s.agent()
	if err != nil {
		return n, err
	}
	took, err := millis("duration_ms", in.Duration)
	if err != nil {
		return n, err
	}
	return n, a.Outcome(ctx, in.Answer, loop.Outcome{
		Success: in.Success, Reward: in.Reward, Withdraw: in.Withdraw, Errors: in.Errors,
		Retries: in.Retries, Duration: took, Failure: in.Failure, Ways: in.Ways, Cost: in.Cost,
		Source: c.user(in.Source), At: in.At,
	})
}

// A Correction holds the words of the caller, who can't speak for another reviewer.
type Correction struct {
	Answer   string            `json:"answer" heed:"id"`
	ID       string            `json:"id,omitempty" mcp:"-"`
	Decision string            `json:"decision,omitempty" mcp:"-"`
	Text     string            `json:"text,omitempty" heed:"Summary correction_summary"`
	Comment  string            `json:"comment,omitempty" heed:"reviewer_comment"`
	Severity feedback.Severity `json:"severity,omitempty"`
	Tags     []string          `json:"tags,omitempty"`
	At       time.Time         `json:"at,omitzero" mcp:"-"`
}

// A Corrected is what was made of a correction.
type Corrected struct {
	ID       string `json:"id"`
	Class    string `json:"class,omitempty"`
	Proposal string `json:"proposal,omitempty"`
}

// named refuses a call without a person.
func (c *Caller) named() error {
	if c.Person == "" {
		return badField("person",
			"is not known: start the server with a person, or give each person a token")
	}
	return nil
}

func (s *Server) correct(ctx context.Context, c *Caller, in *Correction) (Corrected, error) {
	a, err := s.agent()
	if err = cmp.Or(err, c.named()); err != nil {
		return Corrected{}, err
	}
	if c.Model && in.Text == "" {
		return Corrected{}, badField("text", "must not be empty")
	}
	f, err := a.Correct(ctx, in.Answer, loop.Correction{
		ID: in.ID, Reviewer: c.Person, Decision: feedback.Decision(in.Decision), Text: in.Text,
		Comment: in.Comment, Severity: in.Severity, Tags: slices.Clone(in.Tags), At: in.At,
	})
	return Corrected{f.ID, string(f.Class), f.Proposal}, err
}

// A Draft is a rule that the caller proposes for the agent. Others decide about it.
type Draft struct {
	Text   string `json:"text"`
	Reason string `json:"reason"`
	Type   string `json:"type,omitempty"`
}

// A Proposed is a proposal that waits, with what it conflicts with.
type Proposed struct {
	Proposal  string     `json:"proposal"`
	Status    string     `json:"status"`
	Missing   string     `json:"missing,omitempty"`
	Conflicts []Conflict `json:"conflicts"`
}

// A Conflict is one of a proposal with a rule or another proposal.
type Conflict struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
	Why  string `json:"why"`
}

func (s *Server) propose(ctx context.Context, c *Caller, in *Draft) (out Proposed, _ error) {
	v := s.view()
	if err := c.named(); err != nil {
		return out, err
	}
	if v.Feedback == nil {
		return out, Lacks("rules")
	}
	p, err := v.Feedback.Rules().Propose(ctx, feedback.Submission{
		Draft: feedback.Draft{
			Type: feedback.RuleType(in.Type), Text: in.Text, Agents: []string{v.Name},
		},
		Actor: c.Person, Reason: in.Reason,
	})
	out = Proposed{Proposal: p.ID, Status: string(p.Status), Conflicts: []Conflict{}}
	if p.Quorum != nil {
		out.Missing = p.Quorum.String()
	}
	for _, c := range p.Conflicts {
		out.Conflicts = append(out.Conflicts, Conflict{string(c.Kind), c.ID, c.Explanation})
	}
	return out, err
}
