package web

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/strategy"
)

// In the structs below, the tag heed says what heed's errors call a field, where that differs from the field's own name.

type selectCall struct {
	Session  string   `json:"session,omitempty"`
	Item     string   `json:"item,omitempty"`
	Category string   `json:"category,omitempty"`
	Context  string   `json:"context,omitempty"`
	Arms     []string `json:"arms,omitempty"`
}

type selected struct {
	Choice     string            `json:"choice"`
	Arm        string            `json:"arm"`
	Parameters map[string]string `json:"parameters"`
	At         time.Time         `json:"at"`
}

// nextFor says how a server comes by a part.
var nextFor = map[string]string{
	"agent": "Start heed serve with --run, or set Agent in Go's web.Config.",
	"arms": "Start heed serve with --run and --lessons FILE, where FILE has \"arms\", or set Arms " +
		"in Go's loop.Config. Beside an application, arms are there once it has chosen one.",
	"heuristics":      "The application has to be an agent that learns heuristics.",
	"rules":           "The application has to be an agent that takes corrections.",
	"ways of working": "The application has to be an agent that learns ways of working.",
}

// lacks says that the handler was made without a part.
func lacks(part string) error {
	return problemOf(missingPart, "The server has no "+part+". "+nextFor[part])
}

func (a *api) choose(ctx context.Context, _ *caller, in *selectCall) (selected, error) {
	learner := a.view().Strategy
	if learner == nil {
		return selected{}, lacks("arms")
	}
	q := strategy.Query{Session: in.Session, Item: in.Item, Category: in.Category, Context: in.Context}
	for _, arm := range in.Arms {
		q.Arms = append(q.Arms, strategy.ArmID(arm))
	}
	c, err := learner.Select(ctx, q)
	if err != nil { // there may be a choice all the same, which nobody can tell from a good one
		return selected{}, err
	}
	text, err := json.Marshal(c)
	return selected{base64.RawURLEncoding.EncodeToString(text), string(c.Arm), maps.Collect(c.Parameters()), c.At}, err
}

type observeCall struct {
	Choice     string    `json:"choice"`
	ID         string    `json:"id,omitempty"`
	Value      float64   `json:"value"`
	Confidence float64   `json:"confidence"`
	Share      float64   `json:"share,omitempty"`
	Channel    string    `json:"channel,omitempty"`
	Source     string    `json:"source,omitempty"`
	At         time.Time `json:"at,omitzero"`
	Cost       float64   `json:"cost,omitempty"`
	Latency    float64   `json:"latency_ms,omitempty"`
	Tokens     int       `json:"tokens,omitempty"`
}

type observed struct {
	Disposition string `json:"disposition"`
}

func (a *api) observe(ctx context.Context, _ *caller, in *observeCall) (observed, error) {
	learner := a.view().Strategy
	if learner == nil {
		return observed{}, lacks("arms")
	}
	o := strategy.Outcome{
		ID: in.ID, Value: in.Value, Confidence: in.Confidence, Share: in.Share, Channel: in.Channel, Source: in.Source, At: in.At,
		Cost: in.Cost, Tokens: in.Tokens,
	}
	text, err := base64.RawURLEncoding.DecodeString(in.Choice)
	if err != nil || json.Unmarshal(text, &o.Choice) != nil {
		return observed{}, &fieldFault{"choice", "must be what /v1/select has given"}
	}
	if o.Latency, err = millis("latency_ms", in.Latency); err != nil {
		return observed{}, err
	}
	did, err := learner.Observe(ctx, o)
	return observed{string(did)}, err
}

// millis makes a duration of milliseconds.
func millis(field string, ms float64) (time.Duration, error) {
	const most = 1e12 // some 30 years
	if !(ms >= 0 && ms <= most) {
		return 0, &fieldFault{field, "must be in [0, 1e12]"}
	}
	return time.Duration(math.Round(ms * float64(time.Millisecond))), nil
}

type turnJSON struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

type eventCall struct {
	ID      string     `json:"id,omitempty"`
	Text    string     `json:"text"`
	Session string     `json:"session,omitempty"`
	Person  string     `json:"person,omitempty"`
	Stream  string     `json:"stream,omitempty"`
	Domain  string     `json:"domain,omitempty"`
	Task    string     `json:"task,omitempty"`
	Item    string     `json:"item,omitempty"`
	Context string     `json:"context,omitempty"`
	History []turnJSON `json:"history,omitempty"`
	At      time.Time  `json:"at,omitzero"`
	// AskModel has the model answer, and no heuristic.
	AskModel bool `json:"ask_model,omitempty"`
}

// needsText refuses an event without a text. There is nothing to answer then.
func (in *eventCall) needsText() error {
	if strings.TrimSpace(in.Text) == "" {
		return &fieldFault{"text", "must not be empty"}
	}
	return nil
}

func (in *eventCall) event(c *caller) loop.Event {
	e := loop.Event{
		ID: cmp.Or(in.ID, c.event), Text: in.Text, Session: in.Session, Person: in.Person, Stream: in.Stream, Domain: in.Domain,
		Task: in.Task, Item: in.Item, Context: in.Context, At: in.At, AskModel: in.AskModel,
	}
	for _, t := range in.History {
		e.History = append(e.History, loop.Turn(t))
	}
	if c.pieces != nil {
		e.OnChunk = c.pieces.piece
	}
	return e
}

type leftOutJSON struct {
	What string `json:"what"`
	ID   string `json:"id,omitempty"`
	Why  string `json:"why"`
}

type violationJSON struct {
	Rule      string `json:"rule"`
	Text      string `json:"text"`
	Reason    string `json:"reason"`
	Unchecked bool   `json:"unchecked"`
}

// A basis is what an answer, or the prompt for one, rests on.
type basis struct {
	Rules      []string        `json:"rules"`
	Notes      []string        `json:"notes"`
	Ways       []string        `json:"ways"`
	Warnings   []string        `json:"warnings"`
	LeftOut    []leftOutJSON   `json:"left_out"`
	Undone     []string        `json:"undone"`
	Command    bool            `json:"command"`
	Violations []violationJSON `json:"violations"`
}

func basisOf(p *loop.Plan, broken []feedback.Violation) basis {
	b := basis{
		Rules: arrayOf(p.Rules), Notes: []string{}, Ways: arrayOf(p.Ways), Warnings: arrayOf(p.Warnings), LeftOut: []leftOutJSON{},
		Undone: arrayOf(p.Undone), Command: p.Command, Violations: []violationJSON{},
	}
	for _, n := range p.Notes {
		b.Notes = append(b.Notes, n.ID)
	}
	for _, l := range p.LeftOut {
		b.LeftOut = append(b.LeftOut, leftOutJSON(l))
	}
	for _, v := range broken {
		b.Violations = append(b.Violations, violationJSON(v))
	}
	return b
}

// arrayOf returns a list that JSON has as an array, also if it is empty.
func arrayOf(texts []string) []string { return append([]string{}, texts...) }

type answered struct {
	ID        string `json:"id"`
	Text      string `json:"text"`
	Path      string `json:"path"`
	Heuristic string `json:"heuristic,omitempty"`
	Arm       *armOf `json:"arm,omitempty"`
	Model     string `json:"model,omitempty"`
	basis
}

func (a *api) answer(ctx context.Context, c *caller, in *eventCall) (answered, error) {
	if a.cfg.Agent == nil {
		return answered{}, lacks("agent")
	}
	if err := in.needsText(); err != nil {
		return answered{}, err
	}
	got, err := a.cfg.Agent.Answer(ctx, in.event(c))
	if err != nil {
		return answered{}, err
	}
	return answerOf(ctx, &got)
}

// answerOf returns an answer, or the problem that there is none.
func answerOf(ctx context.Context, got *loop.Answer) (answered, error) {
	res := &got.Result
	switch {
	case got.Text != "":
	case res.Reason == decision.LLMUnavailable:
		return answered{}, problemOf(missingPart, "No trusted heuristic has an answer, and no model is configured. "+
			"Configure one, or ask a model of yours between /v1/prepare and /v1/answered.")
	case ctx.Err() != nil:
		return answered{}, ctx.Err()
	default:
		return answered{}, problemOf(modelFailed, "The reason is "+string(res.Reason)+".")
	}
	return answered{
		got.ID, got.Text, string(res.Path), res.CreditID, armIn(&got.Plan), res.LLM, basisOf(&got.Plan, got.Violations),
	}, nil
}

type armOf struct {
	ID     string   `json:"id"`
	Model  string   `json:"model,omitempty"`
	System string   `json:"system,omitempty"`
	Tools  []string `json:"tools,omitempty"`
}

// armIn returns the arm of a plan, or nil if none was chosen.
func armIn(p *loop.Plan) *armOf {
	if p.Arm.ID == "" {
		return nil
	}
	return &armOf{p.Arm.ID, p.Arm.ModelName, p.Arm.System, p.Arm.Tools}
}

type prepared struct {
	ID        string `json:"id"`
	Ready     bool   `json:"ready"`
	Text      string `json:"text"`
	Heuristic string `json:"heuristic,omitempty"`
	Arm       *armOf `json:"arm,omitempty"`
	System    string `json:"system"`
	Prompt    string `json:"prompt"`
	Would     string `json:"would,omitempty"`
	basis
}

func (a *api) prepare(ctx context.Context, c *caller, in *eventCall) (prepared, error) {
	if a.cfg.Agent == nil {
		return prepared{}, lacks("agent")
	}
	if err := in.needsText(); err != nil {
		return prepared{}, err
	}
	p, err := a.cfg.Agent.Prepare(ctx, in.event(c))
	if err != nil {
		return prepared{}, err
	}
	if !p.Ready {
		a.plans.Put(c.person, p)
	}
	return prepared{
		ID: p.Event.ID, Ready: p.Ready, Text: p.Text, Heuristic: p.Result.CreditID, Arm: armIn(&p), System: p.System, Prompt: p.Prompt, Would: p.Would,
		basis: basisOf(&p, p.Violations),
	}, nil
}

type answeredCall struct {
	ID           string  `json:"id"`
	Text         string  `json:"text,omitempty"`
	Model        string  `json:"model,omitempty"`
	Error        string  `json:"error,omitempty"`
	Cut          bool    `json:"cut,omitempty"`
	InputTokens  int     `json:"input_tokens,omitempty"`
	OutputTokens int     `json:"output_tokens,omitempty"`
	Latency      float64 `json:"latency_ms,omitempty"`
}

// told is the answer to /v1/answered, which may be that there is no answer.
type told struct {
	ID         string          `json:"id"`
	Text       string          `json:"text"`
	Reason     string          `json:"reason,omitempty"`
	Arm        *armOf          `json:"arm,omitempty"`
	Violations []violationJSON `json:"violations"`
}

func (a *api) answered(ctx context.Context, c *caller, in *answeredCall) (told, error) {
	if a.cfg.Agent == nil {
		return told{}, lacks("agent")
	}
	switch {
	case in.Text == "" && in.Error == "":
		return told{}, &fieldFault{"text", "must be set, or error"}
	case in.InputTokens < 0:
		return told{}, &fieldFault{"input_tokens", "must not be negative"}
	case in.OutputTokens < 0:
		return told{}, &fieldFault{"output_tokens", "must not be negative"}
	}
	latency, err := millis("latency_ms", in.Latency)
	if err != nil {
		return told{}, err
	}
	p, ok := a.plans.Get(c.person, in.ID)
	if !ok {
		return told{}, problemOf(unknown, "This server has no plan of this id, or no longer. Send the event to /v1/prepare again, with the same id.")
	}
	r := loop.Reply{Text: in.Text, Model: in.Model, Cut: in.Cut, InputTokens: in.InputTokens, OutputTokens: in.OutputTokens, Latency: latency}
	if in.Error != "" {
		r.Err = errors.New(in.Error)
	}
	got, err := a.cfg.Agent.Answered(ctx, p, r)
	if err != nil {
		return told{}, err
	}
	return told{got.ID, got.Text, string(got.Result.Reason), armIn(&got.Plan), basisOf(&got.Plan, got.Violations).Violations}, nil
}

type reactCall struct {
	Answer  string    `json:"answer" heed:"id"`
	Person  string    `json:"person,omitempty"`
	Channel string    `json:"channel,omitempty"`
	Target  string    `json:"target,omitempty"`
	Value   float64   `json:"value"`
	Weight  float64   `json:"weight,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

func (a *api) react(ctx context.Context, _ *caller, in *reactCall) (none, error) {
	if a.cfg.Agent == nil {
		return none{}, lacks("agent")
	}
	return none{}, a.cfg.Agent.React(ctx, in.Answer, loop.Reaction{
		Person: in.Person, Channel: in.Channel, Target: answer.Target(in.Target), Value: in.Value,
		Weight: in.Weight, At: in.At,
	})
}

type undoCall struct {
	Answer string `json:"answer" heed:"id"`
	Person string `json:"person,omitempty"`
}

func (a *api) undo(ctx context.Context, _ *caller, in *undoCall) (none, error) {
	if a.cfg.Agent == nil {
		return none{}, lacks("agent")
	}
	return none{}, a.cfg.Agent.Undo(ctx, in.Answer, in.Person)
}

type outcomeCall struct {
	Answer   string    `json:"answer" heed:"id"`
	Success  *bool     `json:"success,omitempty"`
	Reward   *float64  `json:"reward,omitempty"`
	Withdraw bool      `json:"withdraw,omitempty"`
	Errors   int       `json:"errors,omitempty"`
	Retries  int       `json:"retries,omitempty"`
	Duration float64   `json:"duration_ms,omitempty"`
	Failure  string    `json:"failure,omitempty"`
	Ways     []string  `json:"ways,omitempty"`
	Cost     float64   `json:"cost,omitempty"`
	Source   string    `json:"source,omitempty"`
	At       time.Time `json:"at,omitzero"`
}

func (a *api) outcome(ctx context.Context, _ *caller, in *outcomeCall) (none, error) {
	if a.cfg.Agent == nil {
		return none{}, lacks("agent")
	}
	took, err := millis("duration_ms", in.Duration)
	if err != nil {
		return none{}, err
	}
	o := loop.Outcome{
		Success: in.Success, Reward: in.Reward, Withdraw: in.Withdraw, Errors: in.Errors, Retries: in.Retries, Duration: took, Failure: in.Failure,
		Cost: in.Cost, Source: in.Source, At: in.At,
	}
	if in.Ways != nil {
		o.Ways = make([]patterns.PatternID, 0, len(in.Ways))
		for _, way := range in.Ways {
			o.Ways = append(o.Ways, patterns.PatternID(way))
		}
	}
	return none{}, a.cfg.Agent.Outcome(ctx, in.Answer, o)
}

type correctCall struct {
	Answer   string    `json:"answer" heed:"id"`
	ID       string    `json:"id,omitempty"`
	Decision string    `json:"decision,omitempty"`
	Text     string    `json:"text,omitempty" heed:"Summary"`
	Comment  string    `json:"comment,omitempty"`
	Severity string    `json:"severity,omitempty"`
	Tags     []string  `json:"tags,omitempty"`
	At       time.Time `json:"at,omitzero"`
}

type corrected struct {
	ID       string `json:"id"`
	Class    string `json:"class,omitempty"`
	Proposal string `json:"proposal,omitempty"`
}

// correct takes the words of whoever sent the request: nobody can speak for another reviewer.
func (a *api) correct(ctx context.Context, c *caller, in *correctCall) (corrected, error) {
	if a.cfg.Agent == nil {
		return corrected{}, lacks("agent")
	}
	f, err := a.cfg.Agent.Correct(ctx, in.Answer, loop.Correction{
		ID: in.ID, Reviewer: c.person, Decision: feedback.Decision(in.Decision), Text: in.Text, Comment: in.Comment,
		Severity: in.Severity, Tags: slices.Clone(in.Tags), At: in.At,
	})
	return corrected{f.ID, string(f.Class), f.Proposal}, err
}
