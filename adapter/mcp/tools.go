package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/heedhq/heed/internal/view"
)

// addTool adds an operation of the HTTP API that models have, too. A model must not set the person
// it acts for, nor how much a statement counts.
func (s *server) addTool(to *sdk.Server, o *view.Operation) {
	title, when, schema := o.Describe()
	no, reads := false, o.Method == http.MethodGet
	to.AddTool(&sdk.Tool{
		Name: o.Tool, Description: when, InputSchema: schema,
		Annotations: &sdk.ToolAnnotations{ // it adds to heed's records, and reads from heed alone
			Title: title, DestructiveHint: &no, OpenWorldHint: &no, ReadOnlyHint: reads,
			IdempotentHint: reads,
		},
	}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		out, err := call(ctx, o, s.caller(req.Extra), req.Params.Arguments)
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

// call carries an operation out.
func call(
	ctx context.Context, o *view.Operation, c *view.Caller, given json.RawMessage,
) ([]byte, error) {
	if len(given) == 0 {
		given = json.RawMessage("{}")
	}
	out, err := o.Do(ctx, c, given)
	if err != nil {
		return nil, err
	}
	if _, nothing := out.(view.Nothing); nothing {
		return []byte(`{"done":true}`), nil
	}
	return json.Marshal(out)
}

// told returns an error in words for the client's model. A failure inside keeps its words.
func told(err error, in reflect.Type) error {
	f := view.FaultOf(err, in)
	if f.Cause != nil {
		return f.Cause
	}
	return f
}
