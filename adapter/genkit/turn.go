package genkit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/firebase/genkit/go/ai"

	"github.com/heedhq/heed/loop"
)

// A turn is a call of Generate. Genkit runs its tools at once.
type turn struct {
	adapter *Adapter

	mu       sync.Mutex
	event    loop.Event
	said     string // the person's message
	prepared bool
	plan     loop.Plan
	reply    loop.Reply
	failed   error // of a tool, since the model's last call
	lost     error // why heed could not be told of a tool
}

// unasked is what the model is told of a call that could not be checked.
const unasked = "The call is not made, as the rules can't be asked."

// refused is what the model is told of a tool that its arm has not.
const refused = "This tool is not available."

// generate wraps each round of a turn. The first one has the others in it.
func (t *turn) generate(ctx context.Context, p *ai.GenerateParams, next ai.GenerateNext) (*ai.ModelResponse, error) {
	if p.Iteration > 0 {
		return next(ctx, p)
	}
	learns, err := t.prepare(ctx, p.Request)
	if err != nil {
		return nil, err
	}
	if !learns {
		return next(ctx, p)
	}
	if t.plan.Ready {
		return t.ready(ctx, p)
	}
	response, err := next(ctx, p)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		if t.reply.Err = cmp.Or(t.reply.Err, t.failed); t.reply.Err != nil && ctx.Err() == nil { // and not the receiver of a stream
			_, told := t.adapter.cfg.Agent.Answered(ctx, t.plan, t.reply)
			err = errors.Join(err, told)
		}
		return nil, err
	}
	return t.answered(ctx, response)
}

// prepare prepares the turn. It reports whether there is something to learn.
func (t *turn) prepare(ctx context.Context, r *ai.ModelRequest) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == ai.RoleUser {
			t.said = textOf(m)
			break
		}
	}
	if t.event.Text == "" {
		t.event.Text = t.said
	}
	if t.event.Text == "" { // a picture alone
		return false, nil
	}
	if o := r.Output; o != nil && (o.Schema != nil || o.Format != "" && o.Format != ai.OutputFormatText) {
		t.event.AskModel = true
	}
	plan, err := t.adapter.cfg.Agent.Prepare(ctx, t.event)
	t.plan, t.prepared = plan, err == nil
	return true, err
}

// ready gives the answer that is there.
func (t *turn) ready(ctx context.Context, p *ai.GenerateParams) (*ai.ModelResponse, error) {
	if p.Callback != nil {
		chunk := &ai.ModelResponseChunk{Content: []*ai.Part{ai.NewTextPart(t.plan.Text)}, Role: ai.RoleModel, Index: p.MessageIndex}
		if err := p.Callback(ctx, chunk); err != nil {
			return nil, err
		}
	}
	message := ai.NewModelTextMessage(t.plan.Text)
	message.Metadata = metadata(nil, &loop.Answer{ID: t.plan.Event.ID, Violations: t.plan.Violations})
	return &ai.ModelResponse{Request: p.Request, Message: message, FinishReason: ai.FinishReasonStop}, nil
}

// answered tells heed the answer. A response that asks for tools, or that waits for a person, is none.
func (t *turn) answered(ctx context.Context, r *ai.ModelResponse) (*ai.ModelResponse, error) {
	if t.lost != nil {
		return nil, t.lost
	}
	if r.FinishReason == ai.FinishReasonInterrupted || len(r.ToolRequests()) > 0 || r.Operation != nil {
		return r, nil
	}
	t.reply.Text = textOf(r.Message)
	answer, err := t.adapter.cfg.Agent.Answered(ctx, t.plan, t.reply)
	if err != nil {
		return nil, err
	}
	if answer.Text == "" {
		return nil, errors.New("heed has no answer: " + string(answer.Result.Reason))
	}
	changed := *r
	message := *r.Message
	if answer.Text != t.reply.Text {
		message = *withText(r.Message, answer.Text)
	}
	message.Metadata = metadata(message.Metadata, &answer)
	changed.Message = &message
	return &changed, nil
}

// metadata returns metadata with the id of an answer and the rules that it breaks.
func metadata(m map[string]any, answer *loop.Answer) map[string]any {
	m = maps.Clone(m)
	if m == nil {
		m = make(map[string]any)
	}
	m[idKey] = answer.ID
	if len(answer.Violations) > 0 {
		rules := make([]any, len(answer.Violations)) // as JSON gives it back
		for i, v := range answer.Violations {
			rules[i] = v.Rule
		}
		m[rulesKey] = rules
	}
	return m
}

// model wraps each call of the model.
func (t *turn) model(ctx context.Context, p *ai.ModelParams, next ai.ModelNext) (*ai.ModelResponse, error) {
	t.mu.Lock()
	prepared, arm := t.prepared, t.plan.Arm
	t.failed = nil
	t.mu.Unlock()
	if !prepared {
		return next(ctx, p)
	}
	if arm.ModelName != "" {
		named := t.adapter.cfg.Models[arm.ModelName]
		if named == nil {
			return nil, fmt.Errorf("the arm %q names the model %q, which is not in Config.Models", arm.ID, arm.ModelName)
		}
		next = func(ctx context.Context, p *ai.ModelParams) (*ai.ModelResponse, error) {
			return named.Generate(ctx, p.Request, p.Callback)
		}
	}
	var stream *spoken
	call := &ai.ModelParams{Request: t.brief(p.Request)}
	if p.Callback != nil {
		stream = &spoken{to: p.Callback}
		call.Callback = stream.chunk
	}
	began := t.adapter.cfg.Now()
	response, err := next(ctx, call)
	took := max(t.adapter.cfg.Now().Sub(began), 0)
	failed := err
	if stream != nil {
		if stream.failed != nil {
			failed = nil // the receiver, and not the model
		}
		if err == nil {
			err = stream.end(ctx)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reply.Err = failed
	t.reply.Latency += took
	if err != nil {
		return nil, err
	}
	if response == nil || response.Message == nil && response.Operation == nil {
		return response, nil
	}
	t.reply.Cut = response.FinishReason == ai.FinishReasonLength
	in, out := tokensOf(response)
	t.reply.InputTokens += in
	t.reply.OutputTokens += out
	changed := *response
	changed.Request = p.Request // without what heed added, for the host's history
	return &changed, nil
}

// brief returns a request that says what the plan says.
func (t *turn) brief(r *ai.ModelRequest) *ai.ModelRequest {
	changed := *r
	changed.Messages = slices.Clone(r.Messages)
	for i, m := range slices.Backward(r.Messages) {
		if m.Role == ai.RoleUser && textOf(m) == t.said {
			changed.Messages[i] = withText(m, t.plan.Prompt)
			break
		}
	}
	if t.plan.System != "" {
		if len(r.Messages) > 0 && r.Messages[0].Role == ai.RoleSystem {
			system := *r.Messages[0]
			system.Content = append(slices.Clone(system.Content), ai.NewTextPart("\n\n"+t.plan.System))
			changed.Messages[0] = &system
		} else {
			changed.Messages = append([]*ai.Message{ai.NewSystemTextMessage(t.plan.System)}, changed.Messages...)
		}
	}
	if t.plan.Arm.Tools != nil {
		changed.Tools = slices.DeleteFunc(slices.Clone(r.Tools), func(d *ai.ToolDefinition) bool {
			return !slices.Contains(t.plan.Arm.Tools, d.Name)
		})
	}
	return &changed
}

// A spoken stream leaves out thoughts in tags.
type spoken struct {
	to     ai.ModelStreamCallback
	failed error // of the receiver
	write  func(string)
	close  func()
	piece  strings.Builder
}

func (s *spoken) say(text string) string {
	if s.write == nil {
		s.write, s.close = loop.Spoken(func(text string) { s.piece.WriteString(text) })
	}
	s.write(text)
	return s.take()
}

func (s *spoken) take() string {
	defer s.piece.Reset()
	return s.piece.String()
}

// chunk passes on a piece.
func (s *spoken) chunk(ctx context.Context, c *ai.ModelResponseChunk) error {
	if c.Aggregated { // it has all pieces before it
		s.write = nil
	}
	changed := *c
	changed.Content = nil
	for _, part := range c.Content {
		if part != nil && part.IsText() {
			other := *part
			if other.Text = s.say(part.Text); other.Text == "" && part.Text != "" {
				continue
			}
			part = &other
		}
		changed.Content = append(changed.Content, part)
	}
	if len(changed.Content) == 0 && len(c.Content) > 0 {
		return nil
	}
	s.failed = s.to(ctx, &changed)
	return s.failed
}

// end passes on what was held back.
func (s *spoken) end(ctx context.Context) error {
	if s.write == nil {
		return nil
	}
	s.close()
	if rest := s.take(); rest != "" {
		return s.to(ctx, &ai.ModelResponseChunk{Content: []*ai.Part{ai.NewTextPart(rest)}, Role: ai.RoleModel})
	}
	return nil
}

// tool wraps each call of a tool. The id of the call has it count once. A tool that interrupts the turn to ask a person has no result.
func (t *turn) tool(ctx context.Context, p *ai.ToolParams, next ai.ToolNext) (*ai.MultipartToolResponse, error) {
	t.mu.Lock()
	learns := t.prepared && !t.plan.Ready
	t.mu.Unlock()
	if learns && t.plan.Arm.Tools != nil && !slices.Contains(t.plan.Arm.Tools, p.Request.Name) {
		return &ai.MultipartToolResponse{Output: refused}, nil
	}
	if why := t.refusal(ctx, p.Request); why != "" {
		return &ai.MultipartToolResponse{Output: why}, nil
	}
	result, err := next(ctx, p)
	if waits, _ := ai.IsToolInterruptError(err); waits || !learns {
		return result, err
	}
	told := loop.ToolResult{ID: p.Request.Ref, Name: p.Request.Name, Input: encode(p.Request.Input), Err: err, Task: t.plan.Event.Task}
	if result != nil {
		told.Text = encode(result.Output)
	}
	_, lost := t.adapter.cfg.Agent.Tool(ctx, t.plan.Event.ID, told)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = cmp.Or(t.failed, err)
	if lost != nil {
		t.lost = errors.Join(t.lost, fmt.Errorf("heed was not told of the tool %s: %w", p.Request.Name, lost))
	}
	return result, err
}

// refusal says why a call of a tool is not made, or "". Rules hold in each turn, whether heed has prepared it or not.
func (t *turn) refusal(ctx context.Context, r *ai.ToolRequest) string {
	if !t.adapter.cfg.Enforce {
		return ""
	}
	call := loop.ToolResult{ID: r.Ref, Name: r.Name, Input: encode(r.Input), Before: true}
	if call.Input == "" && r.Input != nil && r.Input != "" {
		return unasked
	}
	broken, err := t.adapter.cfg.Agent.Tool(ctx, cmp.Or(t.plan.Event.ID, t.event.ID, r.Ref, "call"), call)
	if err != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.lost = errors.Join(t.lost, err)
		return unasked
	}
	if len(broken) == 0 {
		return ""
	}
	reasons := []string{"The call is not made. It breaks a rule:"}
	for _, v := range broken {
		reasons = append(reasons, "- "+v.Text+" ("+v.Reason+")")
	}
	return strings.Join(reasons, "\n")
}

func encode(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(text)
}
