package adk

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/platform"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/heedhq/heed/loop"
)

// A turn is a run of the runner. ADK may run several agents in it at once.
type turn struct {
	event   loop.Event
	said    string // the person's message
	resumed bool   // the run goes on after a pause
	runs    int    // with the turn's id; of the adapter's lock

	mu       sync.Mutex
	prepared bool
	plan     loop.Plan
	reply    loop.Reply
	lost     error // why heed could not be told of a tool
	told     bool  // of the answer
	silent   int   // how often the model only thought
	empty    bool  // the model's last response has no content: ADK makes no event of it
	began    time.Time
}

// mostSilent is how often ADK may ask a model again that only thinks.
const mostSilent = 3

var errThinks = errors.New("the model only thinks")

func (a *Adapter) beforeRun(ctx agent.InvocationContext) (*genai.Content, error) {
	e, said, resumed := eventOf(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.turns[ctx.InvocationID()]
	if t == nil {
		t = &turn{event: e, said: said, resumed: resumed}
		a.turns[ctx.InvocationID()] = t
	}
	t.runs++
	return nil, nil
}

// afterRun forgets the turn. The failure of a model is told here, as another plugin may have answered in its place.
func (a *Adapter) afterRun(ctx agent.InvocationContext) {
	t := a.turn(ctx.InvocationID(), "")
	if t == nil {
		return
	}
	a.mu.Lock()
	if t.runs--; t.runs == 0 {
		delete(a.turns, ctx.InvocationID())
	}
	a.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.prepared && !t.plan.Ready && !t.told && (t.reply.Err != nil || t.empty) && ctx.Err() == nil {
		t.told = true
		_, _ = a.cfg.Agent.Answered(ctx, t.plan, t.reply) // the run has its error, and can't be given another one
	}
}

// turn returns the turn that a call belongs to, or nil if it does not learn.
func (a *Adapter) turn(invocation, agent string) *turn {
	if agent != "" && a.cfg.Agents != nil && !slices.Contains(a.cfg.Agents, agent) {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.turns[invocation]
}

// prepare prepares the turn once.
func (a *Adapter) prepare(ctx context.Context, t *turn) error {
	if t.prepared {
		return nil
	}
	plan, err := a.cfg.Agent.Prepare(ctx, t.event)
	t.plan, t.prepared = plan, err == nil
	return err
}

func (a *Adapter) beforeModel(ctx agent.Context, r *model.LLMRequest) (*model.LLMResponse, error) {
	t := a.turn(ctx.InvocationID(), ctx.AgentName())
	if t == nil || t.event.Text == "" {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.event.AskModel = t.event.AskModel || formatted(r)
	if err := a.prepare(ctx, t); err != nil {
		return nil, err
	}
	if t.plan.Ready && t.resumed { // the run has its answer, and ADK goes on with what a person or another program said to a tool
		return nil, nil
	}
	if t.plan.Ready {
		return &model.LLMResponse{
			Content: genai.NewContentFromText(t.plan.Text, genai.RoleModel), TurnComplete: true, FinishReason: genai.FinishReasonStop,
			CustomMetadata: metadata(nil, t.plan.Event.ID, t.plan.Violations),
		}, nil
	}
	if t.silent >= mostSilent { // ADK may ask again before the runner ends
		return nil, errThinks
	}
	brief(r, t.said, &t.plan)
	t.began = platform.Now(ctx)
	return nil, nil
}

// afterModel counts tokens and time.
func (a *Adapter) afterModel(ctx agent.Context, r *model.LLMResponse, err error) (*model.LLMResponse, error) {
	t := a.turn(ctx.InvocationID(), ctx.AgentName())
	if t == nil || r == nil || r.Partial || err != nil {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if u := r.UsageMetadata; u != nil {
		t.reply.InputTokens += int(max(u.PromptTokenCount, 0))
		t.reply.OutputTokens += int(max(u.CandidatesTokenCount, 0)) + int(max(u.ThoughtsTokenCount, 0))
	}
	set(&t.reply.Model, r.ModelVersion)
	t.reply.Latency += max(platform.Now(ctx).Sub(t.began), 0)
	t.reply.Cut = cutOff(r)
	t.reply.Err, t.empty = nil, r.Content == nil && r.ErrorCode == ""
	return nil, nil
}

func (a *Adapter) onModelError(ctx agent.Context, r *model.LLMRequest, err error) (*model.LLMResponse, error) {
	if t := a.turn(ctx.InvocationID(), ctx.AgentName()); t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.reply.Err = err
		set(&t.reply.Model, r.Model)
	}
	return nil, nil
}

// onEvent sees each event before the session keeps it and the person sees it. It tells heed the answer.
func (a *Adapter) onEvent(ctx agent.InvocationContext, e *session.Event) (*session.Event, error) {
	t := a.turn(ctx.InvocationID(), e.Author)
	if t == nil || e.Partial || !e.IsFinalResponse() || len(e.LongRunningToolIDs) > 0 {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.prepared || t.plan.Ready || t.told || !t.answers(e) {
		return nil, nil
	}
	if t.lost != nil {
		return nil, t.lost
	}
	t.reply.Text = textOf(e.Content)
	answer, err := a.cfg.Agent.Answered(ctx, t.plan, t.reply)
	if err != nil {
		return nil, err
	}
	t.told = true
	if answer.Text == "" {
		return nil, errors.New("heed has no answer: " + string(answer.Result.Reason))
	}
	if answer.Text != t.reply.Text {
		e.Content = withText(e.Content, answer.Text)
	}
	e.CustomMetadata = metadata(e.CustomMetadata, answer.ID, answer.Violations)
	return nil, nil
}

// cutOff reports whether a response ends at its most tokens. ADK makes an error of that where it streams, beside the text.
func cutOff(r *model.LLMResponse) bool {
	return r.FinishReason == genai.FinishReasonMaxTokens || r.ErrorCode == string(genai.FinishReasonMaxTokens)
}

// answers reports whether a final event is the model's answer.
func (t *turn) answers(e *session.Event) bool {
	if e.ErrorCode != "" && !(cutOff(&e.LLMResponse) && textOf(e.Content) != "") {
		t.reply.Err = errors.New(e.ErrorCode + ": " + e.ErrorMessage)
		return false
	}
	if e.Content == nil || slices.ContainsFunc(e.Content.Parts, func(p *genai.Part) bool { return p.FunctionResponse != nil }) {
		return false
	}
	thinks := len(e.Content.Parts) > 0 && !slices.ContainsFunc(e.Content.Parts, func(p *genai.Part) bool { return !p.Thought })
	if thinks {
		t.silent++ // ADK asks again
	}
	return !thinks || t.silent >= mostSilent
}
