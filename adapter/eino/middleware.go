package eino

import (
	"cmp"
	"context"
	"io"
	"slices"
	"time"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"

	"github.com/heedhq/heed/adapter/internal/turn"
)

type middleware struct {
	*adk.BaseChatModelAgentMiddleware
	adapter *Adapter
}

// WrapModel has the model learn in the runs of [Adapter.Run].
func (m *middleware) WrapModel(ctx context.Context, inner model.BaseChatModel,
	_ *adk.ModelContext) (model.BaseChatModel, error) {
	if t := m.adapter.runOf(ctx); t != nil {
		return &learning{turn: t, inner: inner}, nil
	}
	return inner, nil
}

// learning is a model in a turn.
type learning struct {
	turn  *run
	inner model.BaseChatModel
}

func (l *learning) Generate(ctx context.Context, input []*schema.Message,
	opts ...model.Option) (*schema.Message, error) {
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

func (l *learning) Stream(ctx context.Context, input []*schema.Message,
	opts ...model.Option) (*schema.StreamReader[*schema.Message], error) {
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
	turn    *run
	began   time.Time
	in, out int             // tokens
	cut     bool            // the answer ends at the most of them
	ready   *schema.Message // the answer that is there
	model   model.BaseChatModel
	input   []*schema.Message
	opts    []model.Option
}

// call prepares the turn, once, and a call of its model.
func (t *run) call(ctx context.Context, inner model.BaseChatModel, input []*schema.Message,
	opts []model.Option) (*call, error) {
	t.Lock()
	defer t.Unlock()
	t.Failed = nil
	c := &call{turn: t, model: inner, input: input, opts: opts, began: t.adapter.now()}
	if !t.Prepared {
		if i := person(input); i >= 0 {
			t.Said = textOf(input[i])
		}
		if t.Event.Text = cmp.Or(t.Event.Text, t.Said); t.Event.Text == "" { // a picture alone
			return c, nil
		}
		if err := t.Prepare(ctx); err != nil {
			return nil, err
		}
	}
	if t.Plan.Ready {
		c.ready = schema.AssistantMessage(t.Plan.Text, nil)
		c.ready.Extra = turn.Metadata(nil, t.Plan.Event.ID, t.Plan.Violations)
		return c, nil
	}
	c.input = t.brief(input)
	if t.Plan.Arm.Tools != nil {
		c.opts = append(slices.Clone(opts), model.WithTools(turn.Offered(&t.Turn,
			model.GetCommonOptions(nil, opts...).Tools,
			func(o *schema.ToolInfo) string { return o.Name })))
	}
	var err error
	c.model, err = turn.ModelOf(t.adapter.cfg.Models, inner, &t.Plan.Arm)
	return c, err
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

// brief returns a request with the plan added. The agent's state keeps the messages.
func (t *run) brief(input []*schema.Message) []*schema.Message {
	input = slices.Clone(input)
	for i, m := range slices.Backward(input) {
		if m.Role == schema.User && textOf(m) == t.Said {
			input[i] = withText(m, t.Plan.Prompt)
			break
		}
	}
	if t.Plan.System == "" {
		return input
	}
	if len(input) > 0 && input[0].Role == schema.System {
		system := *input[0]
		system.Content += "\n\n" + t.Plan.System
		input[0] = &system
		return input
	}
	return append([]*schema.Message{schema.SystemMessage(t.Plan.System)}, input...)
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
	t.Lock()
	defer t.Unlock()
	now := t.adapter.now()
	t.Count(c.in, c.out, now.Sub(c.began), c.cut, err)
	c.in, c.out, c.cut, c.began = 0, 0, false, now
}
