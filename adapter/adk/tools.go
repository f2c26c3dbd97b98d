package adk

import (
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/tool"

	"github.com/heedhq/heed/loop"
)

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
