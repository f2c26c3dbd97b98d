package adk

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"time"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/platform"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/heedhq/heed/adapter/internal/turn"
	"github.com/heedhq/heed/llm"
)

// A run is one of the runner. ADK may run several agents in it at once.
type run struct {
	turn.Turn

	resumed bool // it goes on after a pause
	runs    int  // with the run's id; of the adapter's lock
	silent  int  // how often the model only thought
	empty   bool // the model's last response contains no content: ADK makes no event of it
	began   time.Time
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
		t = &run{resumed: resumed}
		t.Agent, t.Enforce, t.Event, t.Said = a.cfg.Agent, a.cfg.Enforce, e, said
		a.turns[ctx.InvocationID()] = t
	}
	t.runs++
	return nil, nil
}

// afterRun forgets the turn. The failure of a model is reported here, because another plugin may
// have answered in its place.
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
	t.Lock()
	defer t.Unlock()
	if t.Open() && (t.Reply.Err != nil || t.empty) {
		_ = t.Fail(ctx) // the run has its error, and can't be given another one
	}
}

// turn returns the turn that a call belongs to, or nil if it does not learn.
func (a *Adapter) turn(invocation, agent string) *run {
	if agent != "" && a.cfg.Agents != nil && !slices.Contains(a.cfg.Agents, agent) {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.turns[invocation]
}

func (a *Adapter) beforeModel(ctx agent.Context, r *model.LLMRequest) (*model.LLMResponse, error) {
	t := a.turn(ctx.InvocationID(), ctx.AgentName())
	if t == nil || t.Event.Text == "" {
		return nil, nil
	}
	t.Lock()
	defer t.Unlock()
	t.Event.AskModel = t.Event.AskModel || formatted(r)
	if err := t.Prepare(ctx); err != nil {
		return nil, err
	}
	if t.Plan.Ready && t.resumed {
		// the run has its answer, and ADK goes on with the reply to a tool
		return nil, nil
	}
	if t.Plan.Ready {
		return &model.LLMResponse{
			Content: genai.NewContentFromText(t.Plan.Text, genai.RoleModel), TurnComplete: true,
			FinishReason:   genai.FinishReasonStop,
			CustomMetadata: turn.Metadata(nil, t.Plan.Event.ID, t.Plan.Violations),
		}, nil
	}
	if t.silent >= mostSilent { // ADK may ask again before the runner ends
		return nil, errThinks
	}
	brief(r, &t.Turn)
	t.began = platform.Now(ctx)
	return nil, nil
}

// afterModel counts tokens and time.
func (a *Adapter) afterModel(ctx agent.Context, r *model.LLMResponse,
	err error) (*model.LLMResponse, error) {
	t := a.turn(ctx.InvocationID(), ctx.AgentName())
	if t == nil || r == nil || r.Partial || err != nil {
		return nil, nil
	}
	t.Lock()
	defer t.Unlock()
	in, out := 0, 0
	if u := r.UsageMetadata; u != nil {
		in = int(u.PromptTokenCount)
		out = int(max(u.CandidatesTokenCount, 0) + max(u.ThoughtsTokenCount, 0))
	}
	t.Count(in, out, platform.Now(ctx).Sub(t.began), cutOff(r), nil)
	t.Reply.Model = cmp.Or(t.Reply.Model, r.ModelVersion)
	t.empty = r.Content == nil && r.ErrorCode == ""
	return nil, nil
}

func (a *Adapter) onModelError(ctx agent.Context, r *model.LLMRequest,
	err error) (*model.LLMResponse, error) {
	if t := a.turn(ctx.InvocationID(), ctx.AgentName()); t != nil {
		t.Lock()
		defer t.Unlock()
		t.Reply.Err = err
		t.Reply.Model = cmp.Or(t.Reply.Model, r.Model)
	}
	return nil, nil
}

// onEvent sees each event before the session keeps it and the person sees it. It reports the answer
// to heed.
func (a *Adapter) onEvent(ctx agent.InvocationContext, e *session.Event) (*session.Event, error) {
	t := a.turn(ctx.InvocationID(), e.Author)
	if t == nil || e.Partial || !e.IsFinalResponse() || len(e.LongRunningToolIDs) > 0 {
		return nil, nil
	}
	t.Lock()
	defer t.Unlock()
	if !t.Open() || !t.answers(e) {
		return nil, nil
	}
	answer, err := t.Answered(ctx, textOf(e.Content))
	if err != nil {
		return nil, err
	}
	if answer.Text != t.Reply.Text {
		e.Content = withText(e.Content, answer.Text)
	}
	e.CustomMetadata = turn.Metadata(e.CustomMetadata, answer.ID, answer.Violations)
	return nil, nil
}

// cutOff reports whether a response ends at its most tokens. ADK makes an error of that where it
// streams, next to the text.
func cutOff(r *model.LLMResponse) bool {
	return r.FinishReason == genai.FinishReasonMaxTokens ||
		r.ErrorCode == string(genai.FinishReasonMaxTokens)
}

// failureOf returns what the code of a response means: the status of a service, or else why the
// model's answer cannot be used, such as SAFETY.
func failureOf(code string) llm.Failure {
	switch code {
	case "RESOURCE_EXHAUSTED":
		return llm.RateLimited
	case "UNAVAILABLE", "INTERNAL":
		return llm.ServerError
	case "DEADLINE_EXCEEDED":
		return llm.TimedOut
	case "CANCELLED":
		return llm.Cancelled
	case "UNAUTHENTICATED", "PERMISSION_DENIED", "NOT_FOUND":
		return llm.Unreachable
	}
	if status, err := strconv.Atoi(code); err == nil {
		return llm.FromStatus(status, 0, nil).Failure
	}
	return llm.Unusable
}

// answers reports whether a final event is the model's answer.
func (t *run) answers(e *session.Event) bool {
	if e.ErrorCode != "" && !(cutOff(&e.LLMResponse) && textOf(e.Content) != "") {
		t.Reply.Err = &llm.Error{
			Failure: failureOf(e.ErrorCode), Err: errors.New(e.ErrorCode + ": " + e.ErrorMessage),
		}
		return false
	}
	if e.Content == nil || slices.ContainsFunc(e.Content.Parts,
		func(p *genai.Part) bool { return p.FunctionResponse != nil }) {
		return false
	}
	thinks := len(e.Content.Parts) > 0 && !slices.ContainsFunc(e.Content.Parts,
		func(p *genai.Part) bool { return !p.Thought })
	if thinks {
		t.silent++ // ADK asks again
	}
	return !thinks || t.silent >= mostSilent
}
