package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
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

// resources are what a client can read: lists of the HTTP API, with the status of their elements.
var resources = []struct{ name, path, status string }{
	{"rules", "/v1/rules", "active"}, {"proposals", "/v1/rules", "pending"},
	{"warnings", "/v1/warnings", ""}, {"heuristics", "/v1/heuristics", ""},
	{"segments", "/v1/segments", ""},
}

// addResources adds the first 200 elements of each list, as the API returns them.
func (s *server) addResources(to *sdk.Server, operations map[string]view.Operation) {
	for _, r := range resources {
		o, uri := operations[r.path], "heed://"+r.name
		query := url.Values{"limit": {"200"}}
		if r.status != "" {
			query.Set("status", r.status)
			query.Set("agent", s.agent.Name())
		}
		title, _, _ := o.Describe()
		to.AddResource(&sdk.Resource{
			URI: uri, Name: r.name, Description: title, MIMEType: "application/json",
		}, func(ctx context.Context, _ *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			found, err := o.Query(ctx, &view.Caller{View: s.view()}, query.Encode())
			if err != nil {
				return nil, told(err, o.In)
			}
			text, err := json.MarshalIndent(found, "", "  ")
			return &sdk.ReadResourceResult{
				Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: "application/json",
					Text: string(text)}},
				Cacheable: sdk.Cacheable{CacheScope: "private"}, // it changes, and differs by person
			}, err
		})
	}
}
