package eino

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/heedhq/heed/loop"
)

// refused is what the model is told of a tool that its arm has not.
const refused = "This tool is not available."

// refusal says why a call of a tool is not made, or "". Rules hold in each turn, whether heed has prepared it or not.
func (t *turn) refusal(ctx context.Context, called *adk.ToolContext, input string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.prepared && !t.plan.Ready && t.plan.Arm.Tools != nil && !slices.Contains(t.plan.Arm.Tools, called.Name) {
		return refused
	}
	if !t.adapter.cfg.Enforce {
		return ""
	}
	broken, err := t.adapter.cfg.Agent.Tool(ctx, cmp.Or(t.plan.Event.ID, t.event.ID, called.CallID, "call"), loop.ToolResult{
		ID: called.CallID, Name: called.Name, Input: input, Before: true,
	})
	if err != nil {
		t.lost = errors.Join(t.lost, err)
		return "The call is not made, as the rules can't be asked."
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

// tool tells heed what a tool gave. The id of the call has it count once. A tool that interrupts the run to ask a person has no result.
func (t *turn) tool(ctx context.Context, called *adk.ToolContext, input, text string, failure error) {
	if _, waits := compose.IsInterruptRerunError(failure); failure != nil && waits {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.prepared || t.plan.Ready {
		return
	}
	t.failed = cmp.Or(t.failed, failure)
	_, err := t.adapter.cfg.Agent.Tool(ctx, t.plan.Event.ID, loop.ToolResult{
		ID: called.CallID, Name: called.Name, Input: input, Text: text, Err: failure, Task: t.plan.Event.Task,
	})
	if err != nil {
		t.lost = errors.Join(t.lost, fmt.Errorf("heed was not told of the tool %s: %w", called.Name, err))
	}
}

// WrapInvokableToolCall tells heed what the tool gave.
func (m *middleware) WrapInvokableToolCall(
	ctx context.Context, next adk.InvokableToolCallEndpoint, called *adk.ToolContext,
) (adk.InvokableToolCallEndpoint, error) {
	t := cmp.Or(m.adapter.turnOf(ctx), &turn{adapter: m.adapter})
	return func(ctx context.Context, input string, opts ...tool.Option) (string, error) {
		if why := t.refusal(ctx, called, input); why != "" {
			return why, nil
		}
		text, err := next(ctx, input, opts...)
		t.tool(ctx, called, input, text, err)
		return text, err
	}, nil
}

// WrapStreamableToolCall tells heed what the tool gave, when its stream has ended.
func (m *middleware) WrapStreamableToolCall(
	ctx context.Context, next adk.StreamableToolCallEndpoint, called *adk.ToolContext,
) (adk.StreamableToolCallEndpoint, error) {
	t := cmp.Or(m.adapter.turnOf(ctx), &turn{adapter: m.adapter})
	return func(ctx context.Context, input string, opts ...tool.Option) (*schema.StreamReader[string], error) {
		if why := t.refusal(ctx, called, input); why != "" {
			return schema.StreamReaderFromArray([]string{why}), nil
		}
		stream, err := next(ctx, input, opts...)
		return followed(ctx, t, called, input, stream, err, func(piece string) string { return piece })
	}, nil
}

// WrapEnhancedInvokableToolCall tells heed what the tool gave.
func (m *middleware) WrapEnhancedInvokableToolCall(
	ctx context.Context, next adk.EnhancedInvokableToolCallEndpoint, called *adk.ToolContext,
) (adk.EnhancedInvokableToolCallEndpoint, error) {
	t := cmp.Or(m.adapter.turnOf(ctx), &turn{adapter: m.adapter})
	return func(ctx context.Context, input *schema.ToolArgument, opts ...tool.Option) (*schema.ToolResult, error) {
		if why := t.refusal(ctx, called, input.Text); why != "" {
			return said(why), nil
		}
		result, err := next(ctx, input, opts...)
		t.tool(ctx, called, input.Text, resultText(result), err)
		return result, err
	}, nil
}

// WrapEnhancedStreamableToolCall tells heed what the tool gave, when its stream has ended.
func (m *middleware) WrapEnhancedStreamableToolCall(
	ctx context.Context, next adk.EnhancedStreamableToolCallEndpoint, called *adk.ToolContext,
) (adk.EnhancedStreamableToolCallEndpoint, error) {
	t := cmp.Or(m.adapter.turnOf(ctx), &turn{adapter: m.adapter})
	return func(ctx context.Context, input *schema.ToolArgument, opts ...tool.Option) (*schema.StreamReader[*schema.ToolResult], error) {
		if why := t.refusal(ctx, called, input.Text); why != "" {
			return schema.StreamReaderFromArray([]*schema.ToolResult{said(why)}), nil
		}
		stream, err := next(ctx, input, opts...)
		return followed(ctx, t, called, input.Text, stream, err, resultText)
	}, nil
}

func said(text string) *schema.ToolResult {
	return &schema.ToolResult{Parts: []schema.ToolOutputPart{{Type: schema.ToolPartTypeText, Text: text}}}
}

func resultText(r *schema.ToolResult) (text string) {
	if r != nil {
		for _, part := range r.Parts {
			text += part.Text
		}
	}
	return text
}

// followed returns a tool's stream, of whose end heed is told.
func followed[T any](
	ctx context.Context, t *turn, called *adk.ToolContext, input string, stream *schema.StreamReader[T], err error, text func(T) string,
) (*schema.StreamReader[T], error) {
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
