package eino

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"

	"github.com/heedhq/heed/loop"
)

type middleware struct {
	*adk.BaseChatModelAgentMiddleware
	adapter *Adapter
}

// WrapModel has the model learn in the runs of [Adapter.Run].
func (m *middleware) WrapModel(ctx context.Context, inner model.BaseChatModel, _ *adk.ModelContext) (model.BaseChatModel, error) {
	if t := m.adapter.turnOf(ctx); t != nil {
		return &learning{turn: t, inner: inner}, nil
	}
	return inner, nil
}

// learning is a model in a turn.
type learning struct {
	turn  *turn
	inner model.BaseChatModel
}

func (l *learning) Generate(ctx context.Context, input []*schema.Message, opts ...model.Option) (*schema.Message, error) {
	call, err := l.turn.call(ctx, l.inner, input, opts)
	if err != nil {
		return nil, err
	}
	if call.ready != nil {
		return call.ready, nil
	}
	said, err := call.model.Generate(ctx, call.input, call.opts...)
	if said != nil {
		call.count(said)
	}
	call.ended(err)
	return said, err
}

func (l *learning) Stream(ctx context.Context, input []*schema.Message, opts ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	call, err := l.turn.call(ctx, l.inner, input, opts)
	if err != nil {
		return nil, err
	}
	if call.ready != nil {
		return schema.StreamReaderFromArray([]*schema.Message{call.ready}), nil
	}
	said, err := call.model.Stream(ctx, call.input, call.opts...)
	if err != nil {
		call.ended(err)
		return nil, err
	}
	return schema.StreamReaderWithConvert(said, func(piece *schema.Message) (*schema.Message, error) {
		call.count(piece)
		return piece, nil
	}, schema.WithErrWrapper(func(err error) error {
		call.ended(err)
		return err
	}), schema.WithOnEOF(func() (any, error) {
		call.ended(nil)
		return nil, io.EOF
	})), nil
}

// A call is one of a model in a turn.
type call struct {
	turn    *turn
	began   time.Time
	in, out int             // tokens
	cut     bool            // the answer ends at the most of them
	ready   *schema.Message // the answer that is there
	model   model.BaseChatModel
	input   []*schema.Message
	opts    []model.Option
}

// call prepares the turn, once, and a call of its model.
func (t *turn) call(ctx context.Context, inner model.BaseChatModel, input []*schema.Message, opts []model.Option) (*call, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = nil
	c := &call{turn: t, model: inner, input: input, opts: opts, began: t.adapter.cfg.Now()}
	if !t.prepared {
		if i := person(input); i >= 0 {
			t.said = textOf(input[i])
		}
		if t.event.Text == "" {
			t.event.Text = t.said
		}
		if t.event.Text == "" { // a picture alone
			return c, nil
		}
		plan, err := t.adapter.cfg.Agent.Prepare(ctx, t.event)
		if err != nil {
			return nil, err
		}
		t.plan, t.prepared = plan, true
	}
	if t.plan.Ready {
		c.ready = schema.AssistantMessage(t.plan.Text, nil)
		c.ready.Extra = extra(nil, &loop.Answer{ID: t.plan.Event.ID, Violations: t.plan.Violations})
		return c, nil
	}
	c.input = t.brief(input)
	arm := t.plan.Arm
	if arm.Tools != nil {
		offered := model.GetCommonOptions(nil, opts...).Tools
		kept := slices.DeleteFunc(slices.Clone(offered), func(o *schema.ToolInfo) bool { return !slices.Contains(arm.Tools, o.Name) })
		c.opts = append(slices.Clone(opts), model.WithTools(kept))
	}
	if arm.ModelName != "" {
		if c.model = t.adapter.cfg.Models[arm.ModelName]; c.model == nil {
			return nil, fmt.Errorf("the arm %q names the model %q, which is not in Config.Models", arm.ID, arm.ModelName)
		}
	}
	return c, nil
}

// person returns which message is the person's, or -1.
func person(input []*schema.Message) int {
	for i, m := range slices.Backward(input) {
		if m.Role == schema.User {
			return i
		}
	}
	return -1
}

// brief returns a request that says what the plan says. The agent's state keeps the messages.
func (t *turn) brief(input []*schema.Message) []*schema.Message {
	input = slices.Clone(input)
	for i, m := range slices.Backward(input) {
		if m.Role == schema.User && textOf(m) == t.said {
			input[i] = withText(m, t.plan.Prompt)
			break
		}
	}
	if t.plan.System == "" {
		return input
	}
	if len(input) > 0 && input[0].Role == schema.System {
		system := *input[0]
		system.Content += "\n\n" + t.plan.System
		input[0] = &system
		return input
	}
	return append([]*schema.Message{schema.SystemMessage(t.plan.System)}, input...)
}

// withText returns a person's message with another text. Its other parts stay.
func withText(m *schema.Message, text string) *schema.Message {
	changed := *m
	if m.Content != "" || len(m.UserInputMultiContent) == 0 {
		changed.Content, text = text, ""
	}
	changed.UserInputMultiContent = nil
	for _, part := range m.UserInputMultiContent {
		if part.Type == schema.ChatMessagePartTypeText {
			if text == "" {
				continue
			}
			part.Text, text = text, ""
		}
		changed.UserInputMultiContent = append(changed.UserInputMultiContent, part)
	}
	return &changed
}

// count keeps what a provider counts so far.
func (c *call) count(m *schema.Message) {
	in, out := tokensOf(m)
	c.in, c.out = max(c.in, in), max(c.out, out)
	c.cut = c.cut || cutOff(m)
}

// ended keeps how the call ended.
func (c *call) ended(err error) {
	t := c.turn
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reply.Err = err
	t.reply.InputTokens += c.in
	t.reply.OutputTokens += c.out
	t.reply.Latency += max(t.adapter.cfg.Now().Sub(c.began), 0)
	t.reply.Cut = c.cut
	c.in, c.out, c.cut = 0, 0, false
	c.began = t.adapter.cfg.Now()
}
