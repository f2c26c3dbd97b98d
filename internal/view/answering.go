package view

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/strategy"
)

// An Event is what is to be answered.
type Event struct {
	loop.Event `need:"text" mcp:"person stream history at"`
}

// event returns the event for the agent. One without a text is refused.
func (c *Caller) event(in *Event) (loop.Event, error) {
	e := in.Event
	e.Person, e.OnChunk = c.user(e.Person), c.Pieces
	if c.Names != nil {
		e.ID, e.Session = c.Names(e.ID, e.Session)
	}
	if strings.TrimSpace(in.Text) == "" {
		return e, badField("text", "must not be empty")
	}
	return e, nil
}

// A plannedArm is the way of answering that was chosen.
type plannedArm struct {
	ID     string   `json:"id"`
	Model  string   `json:"model,omitempty"`
	System string   `json:"system,omitempty"`
	Tools  []string `json:"tools,omitempty"`
}

// A Given is an answer, or what to ask a model for one.
type Given struct {
	ID         string               `json:"id"`
	Ready      bool                 `json:"ready"` // the text is there
	Text       string               `json:"text"`
	Kept       bool                 `json:"kept"`
	Reason     string               `json:"reason,omitempty"` // why it is not kept
	Path       string               `json:"path,omitempty"`
	Heuristic  string               `json:"heuristic,omitempty"`
	Arm        *plannedArm          `json:"arm,omitempty"`
	Model      string               `json:"model,omitempty"`
	System     string               `json:"system,omitempty"`
	Prompt     string               `json:"prompt,omitempty"`
	Would      string               `json:"would,omitempty"`
	Rules      []string             `json:"rules,omitempty"`
	Notes      []string             `json:"notes,omitempty"`
	Ways       []string             `json:"ways,omitempty"`
	Warnings   []string             `json:"warnings,omitempty"`
	LeftOut    []loop.LeftOut       `json:"left_out,omitempty"`
	Undone     []string             `json:"undone,omitempty"`
	Command    bool                 `json:"command,omitempty"`
	Violations []feedback.Violation `json:"violations"`
}

func givenOf(a *loop.Answer) Given {
	p, res := &a.Plan, &a.Result
	g := Given{
		ID: a.ID, Ready: a.Text != "", Text: a.Text, Kept: a.Text != "" && a.Degraded.Recorded(),
		Path: string(res.Path), Heuristic: res.CreditID, Model: res.LLM, Would: p.Would,
		Rules: p.Rules, Ways: p.Ways, Warnings: p.Warnings, LeftOut: p.LeftOut, Undone: p.Undone,
		Command: p.Command, Violations: arrayOf(a.Violations)}
	if p.Arm.ID != "" {
		g.Arm = &plannedArm{p.Arm.ID, p.Arm.ModelName, p.Arm.System, p.Arm.Tools}
	}
	if a.Text != "" && !g.Kept {
		g.Reason = storeAway
	}
	for i := range p.Notes {
		g.Notes = append(g.Notes, p.Notes[i].ID)
	}
	return g
}

func (c *Caller) answer(ctx context.Context, in *Event) (none Given, _ error) {
	e, err := c.event(in)
	if err != nil {
		return none, err
	}
	got, err := c.View.Agent.Answer(ctx, e)
	res := &got.Result
	switch {
	case err != nil:
		return none, err
	case got.Text != "":
	case res.Reason == "llm_unavailable":
		return none, &Fault{Sort: MissingPart, Detail: "No trusted heuristic has an answer, and no " +
			"model is configured. Configure one, or ask a model of yours between /v1/prepare and " +
			"/v1/answered."}
	case ctx.Err() != nil:
		return none, ctx.Err()
	case res.Reason == "llm_busy":
		return none, decision.ErrBusy
	default:
		return none, &Fault{Sort: ModelFailed, Detail: "The reason is " + res.Reason + "."}
	}
	return givenOf(&got), nil
}

func (c *Caller) prepare(ctx context.Context, in *Event) (none Given, _ error) {
	e, err := c.event(in)
	if err != nil {
		return none, err
	}
	a := c.View.Agent
	p, err := a.Prepare(ctx, e)
	if err != nil {
		return none, err
	}
	if !p.Ready {
		if err := a.KeepPlan(ctx, c.Person, p); err != nil {
			return none, err
		}
	}
	g := givenOf(&loop.Answer{
		ID: p.Event.ID, Text: p.Text, Plan: p, Violations: p.Violations, Result: p.Result,
		Degraded: p.Degraded})
	g.Ready, g.System, g.Prompt = p.Ready, p.System, p.Prompt
	return g, nil
}

// A Reply is what a model of the caller's answered.
type Reply struct {
	ID      string `json:"id"`
	Failure string `json:"failure,omitempty"`
	loop.Reply
}

// storeAway is the reason why an answer is not kept: it may be sent again.
const storeAway = "store_unavailable"

// reasons are what a caller may give for a model without an answer.
var reasons = []llm.Failure{
	llm.Unreachable, llm.RateLimited, llm.ServerError, llm.TimedOut, llm.Cancelled, llm.Unusable}

func (c *Caller) answered(ctx context.Context, in *Reply) (none Given, _ error) {
	in.Failure = strings.ToLower(in.Failure)
	wrong := oneOf("failure", llm.Failure(in.Failure), reasons...)
	switch {
	case in.Text == "" && in.Err == nil && in.Failure == "":
		return none, badField("text", "must be set, or error")
	case wrong != nil:
		return none, wrong
	case in.InputTokens < 0:
		return none, badField("input_tokens", "must not be negative")
	case in.OutputTokens < 0:
		return none, badField("output_tokens", "must not be negative")
	}
	if in.Failure != "" {
		in.Err = &llm.Error{Failure: llm.Failure(in.Failure), Err: in.Err}
	}
	a := c.View.Agent
	p, err := a.KeptPlan(ctx, c.Person, in.ID)
	switch {
	case errors.Is(err, heed.ErrNotFound):
		return none, &Fault{Sort: Unknown, Field: "id", Detail: "There is no plan of this id for " +
			"you, or no longer. Prepare the event again, with the same id."}
	case err != nil:
		return none, err
	}
	got, err := a.Answered(ctx, p, in.Reply)
	if err != nil {
		return none, err
	}
	g := givenOf(&got)
	if g.Reason = got.Result.Reason; !got.Degraded.Recorded() {
		g.Reason = storeAway // a failure counts too, so it is to be sent again
	}
	return g, nil
}

// A ToolResult is what a tool of the caller's gave, or is to be asked.
type ToolResult struct {
	Answer          string `json:"answer" heed:"id ID"`
	Call            string `json:"call,omitempty"`
	loop.ToolResult `need:"name" not:"id task at"`
}

// A checked holds the rules that a call of a tool breaks.
type checked struct {
	Violations []feedback.Violation `json:"violations"`
}

func (c *Caller) toolResult(ctx context.Context, in *ToolResult) (checked, error) {
	a, r := c.View.Agent, in.ToolResult
	if r.ID = in.Call; !r.Before {
		if plan, err := a.KeptPlan(ctx, c.Person, in.Answer); err == nil {
			r.Task = plan.Event.Task
		} else if !errors.Is(err, heed.ErrNotFound) {
			return checked{}, err
		}
	}
	found, err := a.Tool(ctx, in.Answer, r)
	return checked{arrayOf(found)}, err
}

// A Reaction is what a user makes of an answer.
type Reaction struct {
	Answer        string `json:"answer" heed:"id"`
	loop.Reaction `need:"value" mcp:"person channel target weight at"`
}

func (c *Caller) react(ctx context.Context, in *Reaction) (n Nothing, _ error) {
	in.Person = c.user(in.Person)
	return n, c.View.Agent.React(ctx, in.Answer, in.Reaction)
}

// An Undo takes an answer back.
type Undo struct {
	Answer string `json:"answer" heed:"id"`
	Person string `json:"person,omitempty" mcp:"-"`
}

func (c *Caller) undo(ctx context.Context, in *Undo) (n Nothing, _ error) {
	return n, c.View.Agent.Undo(ctx, in.Answer, c.user(in.Person))
}

// A Message is a later message of a session that is not to be answered.
type Message struct {
	learning.Message `need:"text"`
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

func (c *Caller) hear(ctx context.Context, in *Message) (none Heard, _ error) {
	found, err := c.View.Agent.Hear(ctx, in.Message)
	out := Heard{Changes: make([]Change, len(found))}
	for i := range found {
		of := &found[i].Signal
		sign := []string{"negative", "neutral", "positive"}[1+cmp.Compare(of.Worth, 0)]
		out.Changes[i] = Change{of.EventID, of.HeuristicID, sign, of.Channel, found[i].Weight}
	}
	return out, err
}

// An Outcome is what came of an answer.
type Outcome struct {
	Answer       string `json:"answer" heed:"id"`
	loop.Outcome `mcp:"ways source at" not:"confidence"`
}

func (c *Caller) outcome(ctx context.Context, in *Outcome) (n Nothing, _ error) {
	in.Source = c.user(in.Source)
	return n, c.View.Agent.Outcome(ctx, in.Answer, in.Outcome)
}

// A Correction holds the words of the caller, who can't speak for another reviewer.
type Correction struct {
	Answer          string `json:"answer" heed:"id"`
	Text            string `json:"text,omitempty" heed:"Summary correction_summary"`
	Comment         string `json:"comment,omitempty" heed:"reviewer_comment"`
	loop.Correction `mcp:"id decision at" not:"reviewer"`
}

// A corrected is what was made of a correction.
type corrected struct {
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

func (c *Caller) correct(ctx context.Context, in *Correction) (corrected, error) {
	if err := c.named(); err != nil {
		return corrected{}, err
	}
	if c.Model && in.Text == "" {
		return corrected{}, badField("text", "must not be empty")
	}
	in.Reviewer, in.Correction.Text, in.Correction.Comment = c.Person, in.Text, in.Comment
	f, err := c.View.Agent.Correct(ctx, in.Answer, in.Correction)
	return corrected{f.ID, string(f.Class), f.Proposal}, err
}

// A Draft is a rule that the caller proposes for the agent. Others decide about it.
type Draft struct {
	Text   string `json:"text"`
	Reason string `json:"reason"`
	Type   string `json:"type,omitempty"`
}

// A Proposed is a proposal that waits, with what it conflicts with.
type Proposed struct {
	Proposal  string              `json:"proposal"`
	Status    string              `json:"status"`
	Missing   string              `json:"missing,omitempty"`
	Conflicts []feedback.Conflict `json:"conflicts"`
}

func (c *Caller) propose(ctx context.Context, in *Draft) (out Proposed, _ error) {
	if err := c.named(); err != nil {
		return out, err
	}
	p, err := c.View.Feedback.Rules().Propose(ctx, feedback.Submission{
		Draft: feedback.Draft{Type: in.Type, Text: in.Text, Agents: []string{c.View.Name}},
		Actor: c.Person, Reason: in.Reason})
	out = Proposed{p.ID, strings.ToLower(string(p.Status)), "", arrayOf(p.Conflicts)}
	if p.Quorum != nil {
		out.Missing = p.Quorum.String()
	}
	return out, err
}

// A selection asks for an arm.
type selection struct {
	strategy.Query `not:"key vector shares frozen"`
}

// A Selected is an arm, with the choice that outcomes refer to.
type Selected struct {
	Choice     string            `json:"choice"`
	Arm        string            `json:"arm"`
	Parameters map[string]string `json:"parameters"`
	At         time.Time         `json:"at"`
}

func (by *Caller) choose(ctx context.Context, in *selection) (none Selected, _ error) {
	c, err := by.View.Strategy.Select(ctx, in.Query)
	if err != nil { // there may be a choice all the same, which looks like a good one
		return none, err
	}
	text, err := json.Marshal(c)
	_, tenant := by.View.root()
	return Selected{base64.RawURLEncoding.EncodeToString(append(text, "\n"+tenant...)), string(c.Arm),
		maps.Collect(c.Parameters()), c.At}, err
}

// An Observation reports how a choice turned out.
type Observation struct {
	Choice           string `json:"choice"`
	strategy.Outcome `need:"value confidence"`
}

// An Observed reports what was made of an observation.
type Observed struct {
	Disposition string `json:"disposition"`
}

func (c *Caller) observe(ctx context.Context, in *Observation) (none Observed, _ error) {
	o := in.Outcome
	_, tenant := c.View.root()
	text, err := base64.RawURLEncoding.DecodeString(in.Choice)
	made, own := strings.CutSuffix(string(text), "\n"+tenant) // not another tenant's
	if err != nil || !own || json.Unmarshal([]byte(made), &o.Choice) != nil {
		return none, badField("choice", "must be what /v1/select has given")
	}
	did, err := c.View.Strategy.Observe(ctx, o)
	return Observed{string(did)}, err
}

// A Search asks for the newest answer of a session.
type Search struct {
	Session string `json:"session"`
}

// A Found is the id of an answer.
type Found struct {
	ID string `json:"id"`
}

func (c *Caller) find(ctx context.Context, in *Search) (Found, error) {
	id, err := c.View.Agent.Find(ctx, in.Session)
	return Found{id}, err
}

// A Named names an answer.
type Named struct {
	Answer string `json:"answer" heed:"id"`
}

func (c *Caller) explain(ctx context.Context, in *Named) (Explanation, error) {
	return c.View.Explain(ctx, in.Answer)
}
