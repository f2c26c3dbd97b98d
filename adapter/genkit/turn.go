package genkit

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/firebase/genkit/go/ai"

	"github.com/heedhq/heed/adapter/internal/turn"
)

// A call is one of Generate. Genkit runs its tools at once.
type call struct {
	turn.Turn

	adapter *Adapter
}

// generate wraps each round of a turn. The first one has the others in it.
func (t *call) generate(ctx context.Context, p *ai.GenerateParams,
	next ai.GenerateNext) (*ai.ModelResponse, error) {
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
	if t.Plan.Ready {
		return t.ready(ctx, p)
	}
	response, err := next(ctx, p)
	t.Lock()
	defer t.Unlock()
	if err != nil {
		if t.ToolFailed(); t.Reply.Err != nil { // and not the receiver of a stream
			err = errors.Join(err, t.Fail(ctx))
		}
		return nil, err
	}
	return t.answered(ctx, response)
}

// prepare prepares the turn. It reports whether there is something to learn.
func (t *call) prepare(ctx context.Context, r *ai.ModelRequest) (bool, error) {
	t.Lock()
	defer t.Unlock()
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == ai.RoleUser {
			t.Said = textOf(m)
			break
		}
	}
	if t.Event.Text = cmp.Or(t.Event.Text, t.Said); t.Event.Text == "" { // a picture alone
		return false, nil
	}
	if o := r.Output; o != nil && (o.Schema != nil || o.Format != "" &&
		o.Format != ai.OutputFormatText) {
		t.Event.AskModel = true
	}
	return true, t.Prepare(ctx)
}

// ready gives the answer that is there.
func (t *call) ready(ctx context.Context, p *ai.GenerateParams) (*ai.ModelResponse, error) {
	if p.Callback != nil {
		chunk := &ai.ModelResponseChunk{
			Content: []*ai.Part{ai.NewTextPart(t.Plan.Text)}, Role: ai.RoleModel, Index: p.MessageIndex,
		}
		if err := p.Callback(ctx, chunk); err != nil {
			return nil, err
		}
	}
	message := ai.NewModelTextMessage(t.Plan.Text)
	message.Metadata = turn.Metadata(nil, t.Plan.Event.ID, t.Plan.Violations)
	return &ai.ModelResponse{Request: p.Request, Message: message, FinishReason: ai.FinishReasonStop},
		nil
}

// answered reports the answer to heed. A response that asks for tools, or that waits for a person,
// is not an answer.
func (t *call) answered(ctx context.Context, r *ai.ModelResponse) (*ai.ModelResponse, error) {
	if t.Lost != nil {
		return nil, t.Lost
	}
	if r.FinishReason == ai.FinishReasonInterrupted || len(r.ToolRequests()) > 0 ||
		r.Operation != nil {
		return r, nil
	}
	answer, err := t.Answered(ctx, textOf(r.Message))
	if err != nil {
		return nil, err
	}
	changed := *r
	message := *r.Message
	if answer.Text != t.Reply.Text {
		message = *withText(r.Message, answer.Text)
	}
	message.Metadata = turn.Metadata(message.Metadata, answer.ID, answer.Violations)
	changed.Message = &message
	return &changed, nil
}

// model wraps each call of the model.
func (t *call) model(
	ctx context.Context, p *ai.ModelParams, next ai.ModelNext,
) (*ai.ModelResponse, error) {
	t.Lock()
	prepared := t.Prepared
	t.Failed = nil
	t.Unlock()
	if !prepared {
		return next(ctx, p)
	}
	named, err := turn.ModelOf(t.adapter.cfg.Models, nil, &t.Plan.Arm)
	if err != nil {
		return nil, err
	}
	if named != nil {
		next = func(ctx context.Context, p *ai.ModelParams) (*ai.ModelResponse, error) {
			return named.Generate(ctx, p.Request, p.Callback)
		}
	}
	var stream *spoken
	request := &ai.ModelParams{Request: t.brief(p.Request)}
	if p.Callback != nil {
		stream = &spoken{to: p.Callback}
		request.Callback = stream.chunk
	}
	began := t.adapter.now()
	response, err := next(ctx, request)
	took := max(t.adapter.now().Sub(began), 0)
	failed := err
	if stream != nil {
		if stream.failed != nil {
			failed = nil // the receiver, and not the model
		}
		if err == nil {
			err = stream.end(ctx)
		}
	}
	t.Lock()
	defer t.Unlock()
	if err != nil || response == nil || response.Message == nil && response.Operation == nil {
		t.Count(0, 0, took, t.Reply.Cut, failed)
		if err != nil {
			return nil, err
		}
		return response, nil
	}
	in, out := tokensOf(response)
	t.Count(in, out, took, response.FinishReason == ai.FinishReasonLength, failed)
	changed := *response
	changed.Request = p.Request // without what heed added, for the host's history
	return &changed, nil
}

// brief returns a request with the plan added.
func (t *call) brief(r *ai.ModelRequest) *ai.ModelRequest {
	changed := *r
	changed.Messages = slices.Clone(r.Messages)
	for i, m := range slices.Backward(r.Messages) {
		if m.Role == ai.RoleUser && textOf(m) == t.Said {
			changed.Messages[i] = withText(m, t.Plan.Prompt)
			break
		}
	}
	if t.Plan.System != "" {
		if len(r.Messages) > 0 && r.Messages[0].Role == ai.RoleSystem {
			system := *r.Messages[0]
			system.Content = append(slices.Clone(system.Content), ai.NewTextPart("\n\n"+t.Plan.System))
			changed.Messages[0] = &system
		} else {
			changed.Messages = slices.Insert(changed.Messages, 0, ai.NewSystemTextMessage(t.Plan.System))
		}
	}
	changed.Tools = turn.Offered(&t.Turn, r.Tools,
		func(d *ai.ToolDefinition) string { return d.Name })
	return &changed
}

// A spoken stream leaves out thoughts in tags.
type spoken struct {
	turn.Speech

	to     ai.ModelStreamCallback
	failed error // of the receiver
}

// chunk passes on a piece.
func (s *spoken) chunk(ctx context.Context, c *ai.ModelResponseChunk) error {
	if c.Aggregated { // it has all pieces before it
		s.Speech = turn.Speech{}
	}
	changed := *c
	changed.Content = nil
	for _, part := range c.Content {
		if part != nil && part.IsText() {
			other := *part
			if other.Text = s.Say(part.Text); other.Text == "" && part.Text != "" {
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
	if rest := s.Rest(); rest != "" {
		return s.to(ctx, &ai.ModelResponseChunk{Content: []*ai.Part{ai.NewTextPart(rest)},
			Role: ai.RoleModel})
	}
	return nil
}

// tool wraps each call of a tool. A tool that interrupts the turn to ask a person has no result.
func (t *call) tool(ctx context.Context, p *ai.ToolParams,
	next ai.ToolNext) (*ai.MultipartToolResponse, error) {
	asked := p.Request
	if why := t.Refusal(ctx, asked.Ref, asked.Name, asked.Input); why != "" {
		return &ai.MultipartToolResponse{Output: why}, nil
	}
	result, err := next(ctx, p)
	if waits, _ := ai.IsToolInterruptError(err); waits {
		return result, err
	}
	var output any
	if result != nil {
		output = result.Output
	}
	t.Tool(ctx, asked.Ref, asked.Name, asked.Input, output, err)
	return result, err
}
