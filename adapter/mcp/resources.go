package mcp

import (
	"context"
	"encoding/json"
	"net/url"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/heedhq/heed/internal/view"
)

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
