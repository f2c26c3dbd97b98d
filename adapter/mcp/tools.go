package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/view"
)

// addTools adds the operations of the HTTP API that models have, too. A model must not set the
// person it acts for, nor how much a statement counts.
func (s *server) addTools(to *sdk.Server) {
	for _, o := range view.Operations() {
		if o.Tool == "" {
			continue
		}
		title, when, schema := o.Describe()
		tool := annotated(o.Tool, title, when)
		tool.InputSchema = schema
		if o.Method == http.MethodGet {
			tool.Annotations.ReadOnlyHint, tool.Annotations.IdempotentHint = true, true
		}
		to.AddTool(tool, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult,
			error) {
			out, err := s.call(ctx, &o, s.speaker(req.Session, req.Extra), req.Params.Arguments)
			result := &sdk.CallToolResult{}
			if err != nil {
				result.SetError(told(err, o.In))
				return result, nil
			}
			result.StructuredContent = json.RawMessage(out)
			result.Content = []sdk.Content{&sdk.TextContent{Text: string(out)}}
			return result, nil
		})
	}
}

// call carries an operation out for a speaker.
func (s *server) call(
	ctx context.Context, o *view.Operation, who speaker, given json.RawMessage,
) ([]byte, error) {
	if len(given) == 0 {
		given = json.RawMessage("{}")
	}
	out, err := s.operations.Do(ctx, o, &view.Caller{
		Person: who.person, Model: true, Names: who.names,
	}, given)
	if err != nil {
		return nil, err
	}
	if _, nothing := out.(view.Nothing); nothing {
		return []byte(`{"done":true}`), nil
	}
	return json.Marshal(out)
}

// annotated returns a tool that adds to heed's records, and reads from heed alone.
func annotated(name, title, description string) *sdk.Tool {
	no := false
	return &sdk.Tool{Name: name, Description: description, Annotations: &sdk.ToolAnnotations{
		Title: title, DestructiveHint: &no, OpenWorldHint: &no,
	}}
}

// rules returns the agent's rules, or an error if the agent has no rules.
func (s *server) rules() (*feedback.Rules, error) {
	if s.agent.Feedback() == nil {
		return nil, view.Lacks("rules")
	}
	return s.agent.Feedback().Rules(), nil
}

func fault(field, reason string) error { return errors.New(field + ": " + reason) }

// told returns an error in words for the client's model. A failure inside keeps its words.
func told(err error, in reflect.Type) error {
	if err == nil {
		return nil
	}
	f := view.FaultOf(err, in)
	if f.Cause != nil {
		return f.Cause
	}
	return f
}
