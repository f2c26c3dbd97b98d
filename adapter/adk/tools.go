package adk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/tool"

	"github.com/heedhq/heed/loop"
)

// beforeTool asks the rules.
func (a *Adapter) beforeTool(ctx agent.Context, called tool.Tool, args map[string]any) (map[string]any, error) {
	t := a.turn(ctx.InvocationID(), ctx.AgentName())
	if t == nil {
		return nil, nil
	}
	why := t.refusal(ctx, a, loop.ToolResult{ID: ctx.FunctionCallID(), Name: called.Name(), Input: encode(args)})
	if a.cfg.Enforce && args != nil && encode(args) == "" {
		why = unasked
	}
	if why == "" {
		return nil, nil
	}
	return map[string]any{"error": why}, nil
}

// onToolError sees all errors of tools, before another plugin makes results of them.
func (a *Adapter) onToolError(ctx agent.Context, called tool.Tool, args map[string]any, err error) (map[string]any, error) {
	a.tool(ctx, called, args, nil, err)
	return nil, nil
}

func (a *Adapter) afterTool(ctx agent.Context, called tool.Tool, args, result map[string]any, err error) (map[string]any, error) {
	if err == nil {
		a.tool(ctx, called, args, result, nil)
	}
	return nil, nil
}

// tool tells heed what a tool gave. The id of the call has it count once.
func (a *Adapter) tool(ctx agent.Context, called tool.Tool, args, result map[string]any, failure error) {
	t := a.turn(ctx.InvocationID(), ctx.AgentName())
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.prepared || t.plan.Ready {
		return
	}
	_, err := a.cfg.Agent.Tool(ctx, t.plan.Event.ID, loop.ToolResult{
		ID: ctx.FunctionCallID(), Name: called.Name(), Input: encode(args), Text: encode(result), Err: failure, Task: t.plan.Event.Task,
	})
	if err != nil {
		t.lost = errors.Join(t.lost, fmt.Errorf("heed was not told of the tool %s: %w", called.Name(), err))
	}
}

func encode(m map[string]any) string {
	text, err := json.Marshal(m)
	if err != nil || m == nil {
		return ""
	}
	return string(text)
}

const unasked = "The call is not made, as the rules can't be asked."

// refusal says why a call of a tool is not made, or "". Rules hold in each turn, whether heed has prepared it or not.
func (t *turn) refusal(ctx context.Context, a *Adapter, call loop.ToolResult) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !a.cfg.Enforce {
		return ""
	}
	call.Before = true
	broken, err := a.cfg.Agent.Tool(ctx, cmp.Or(t.plan.Event.ID, t.event.ID), call)
	if err != nil {
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
