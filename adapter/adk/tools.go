package adk

import (
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/tool"
)

// beforeTool asks the rules.
func (a *Adapter) beforeTool(ctx agent.Context, called tool.Tool,
	args map[string]any) (map[string]any, error) {
	t := a.turn(ctx.InvocationID(), ctx.AgentName())
	if t == nil {
		return nil, nil
	}
	if why := t.Refusal(ctx, ctx.FunctionCallID(), called.Name(), args); why != "" {
		return map[string]any{"error": why}, nil
	}
	return nil, nil
}

// onToolError sees all errors of tools, before another plugin makes results of them.
func (a *Adapter) onToolError(ctx agent.Context, called tool.Tool, args map[string]any,
	err error) (map[string]any, error) {
	a.tool(ctx, called, args, nil, err)
	return nil, nil
}

func (a *Adapter) afterTool(ctx agent.Context, called tool.Tool, args, result map[string]any,
	err error) (map[string]any, error) {
	if err == nil {
		a.tool(ctx, called, args, result, nil)
	}
	return nil, nil
}

// tool reports a tool's result to heed.
func (a *Adapter) tool(ctx agent.Context, called tool.Tool, args, result map[string]any,
	failure error) {
	if t := a.turn(ctx.InvocationID(), ctx.AgentName()); t != nil {
		t.Tool(ctx, ctx.FunctionCallID(), called.Name(), args, result, failure)
	}
}
