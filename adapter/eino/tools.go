package eino

import (
	"context"
	"io"
	"strings"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/heedhq/heed/loop"
)

// refusal returns why a call of a tool is not made, or "".
func (t *run) refusal(ctx context.Context, called *adk.ToolContext, input string) string {
	return t.Refusal(ctx, called.CallID, called.Name, input)
}

// tool reports a tool's result to heed. A tool that interrupts the run to ask a person has no
// result.
func (t *run) tool(ctx context.Context, called *adk.ToolContext, input, text string,
	failure error) {
	if _, waits := compose.IsInterruptRerunError(failure); failure == nil || !waits {
		t.Tool(ctx, called.CallID, called.Name, input, text, failure)
	}
}

// runFor returns the run that a call of a tool belongs to. Rules hold outside of one, too.
func (m *middleware) runFor(ctx context.Context) *run {
	if t := m.adapter.runOf(ctx); t != nil {
		return t
	}
	return m.adapter.newRun(loop.Event{})
}

// WrapInvokableToolCall reports the tool's result to heed.
func (m *middleware) WrapInvokableToolCall(ctx context.Context, next adk.InvokableToolCallEndpoint,
	called *adk.ToolContext) (adk.InvokableToolCallEndpoint, error) {
	t := m.runFor(ctx)
	return func(ctx context.Context, input string, opts ...tool.Option) (string, error) {
		if why := t.refusal(ctx, called, input); why != "" {
			return why, nil
		}
		text, err := next(ctx, input, opts...)
		t.tool(ctx, called, input, text, err)
		return text, err
	}, nil
}

// WrapStreamableToolCall reports the tool's result to heed when its stream ended.
func (m *middleware) WrapStreamableToolCall(
	ctx context.Context, next adk.StreamableToolCallEndpoint, called *adk.ToolContext,
) (adk.StreamableToolCallEndpoint, error) {
	t := m.runFor(ctx)
	return func(ctx context.Context, input string, opts ...tool.Option) (*schema.StreamReader[string],
		error) {
		if why := t.refusal(ctx, called, input); why != "" {
			return schema.StreamReaderFromArray([]string{why}), nil
		}
		stream, err := next(ctx, input, opts...)
		return followed(ctx, t, called, input, stream, err, func(piece string) string { return piece })
	}, nil
}

// WrapEnhancedInvokableToolCall reports the tool's result to heed.
func (m *middleware) WrapEnhancedInvokableToolCall(
	ctx context.Context, next adk.EnhancedInvokableToolCallEndpoint, called *adk.ToolContext,
) (adk.EnhancedInvokableToolCallEndpoint, error) {
	t := m.runFor(ctx)
	return func(ctx context.Context, input *schema.ToolArgument,
		opts ...tool.Option) (*schema.ToolResult, error) {
		if why := t.refusal(ctx, called, input.Text); why != "" {
			return said(why), nil
		}
		result, err := next(ctx, input, opts...)
		t.tool(ctx, called, input.Text, resultText(result), err)
		return result, err
	}, nil
}

// WrapEnhancedStreamableToolCall reports the tool's result to heed when its stream ended.
func (m *middleware) WrapEnhancedStreamableToolCall(
	ctx context.Context, next adk.EnhancedStreamableToolCallEndpoint, called *adk.ToolContext,
) (adk.EnhancedStreamableToolCallEndpoint, error) {
	t := m.runFor(ctx)
	return func(ctx context.Context, input *schema.ToolArgument,
		opts ...tool.Option) (*schema.StreamReader[*schema.ToolResult], error) {
		if why := t.refusal(ctx, called, input.Text); why != "" {
			return schema.StreamReaderFromArray([]*schema.ToolResult{said(why)}), nil
		}
		stream, err := next(ctx, input, opts...)
		return followed(ctx, t, called, input.Text, stream, err, resultText)
	}, nil
}

func said(text string) *schema.ToolResult {
	return &schema.ToolResult{Parts: []schema.ToolOutputPart{{Type: schema.ToolPartTypeText,
		Text: text}}}
}

func resultText(r *schema.ToolResult) (text string) {
	if r != nil {
		for _, part := range r.Parts {
			text += part.Text
		}
	}
	return text
}

// followed returns a tool's stream, and reports the end of the stream to heed.
func followed[T any](ctx context.Context, t *run, called *adk.ToolContext, input string,
	stream *schema.StreamReader[T], err error, text func(T) string) (*schema.StreamReader[T], error) {
	if err != nil {
		t.tool(ctx, called, input, "", err)
		return nil, err
	}
	var whole strings.Builder
	return schema.StreamReaderWithConvert(stream, func(piece T) (T, error) {
		whole.WriteString(text(piece))
		return piece, nil
	}, schema.WithErrWrapper(func(err error) error {
		t.tool(ctx, called, input, "", err)
		return err
	}), schema.WithOnEOF(func() (any, error) {
		t.tool(ctx, called, input, whole.String(), nil)
		return nil, io.EOF
	})), nil
}
