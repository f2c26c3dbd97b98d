package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/heedhq/heed/internal/view"
)

// most is the part of a list that a resource has: the first 200 elements.
var most = view.Page{Number: 1, Limit: 200}

// resources are what a client can read. Each part has a name in the result.
var resources = []struct {
	name, title, about string
	read               func(context.Context, *view.Source) (map[string]any, error)
}{
	{"rules", "Rules", "The rules that hold for this agent: people approved them.",
		func(ctx context.Context, v *view.Source) (map[string]any, error) {
			found, err := v.Rules(ctx, view.RuleQuery{Agent: v.Name, Status: "active"}, most)
			return map[string]any{"rules": found.Items}, err
		}},
	{"proposals", "Proposed rules", "The rules that wait for people's decision.",
		func(ctx context.Context, v *view.Source) (map[string]any, error) {
			found, err := v.Proposals(ctx, view.RuleQuery{Agent: v.Name, Status: "pending"}, most)
			return map[string]any{"proposals": found.Items, "total": found.Total}, err
		}},
	{"warnings", "Warnings", "Ways of working that went badly.",
		func(ctx context.Context, v *view.Source) (map[string]any, error) {
			found, err := v.Ways(ctx, view.WayQuery{Warned: true}, most)
			return map[string]any{"warnings": found.Items}, err
		}},
	{"learned", "What was learned",
		"Heuristics, arms and ways of working, with how far each is trusted.", learned},
}

func (s *server) addResources(to *sdk.Server) {
	for _, r := range resources {
		uri := "heed://" + r.name
		to.AddResource(&sdk.Resource{
			URI: uri, Name: r.name, Title: r.title, Description: r.about, MIMEType: "application/json",
		}, func(ctx context.Context, _ *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			v := view.Of(s.agent, s.now)
			if v.Feedback == nil && (r.name == "rules" || r.name == "proposals") {
				return nil, view.Lacks("rules")
			}
			found, err := r.read(ctx, v)
			if err != nil {
				return nil, told(err, reflect.TypeFor[view.Nothing]())
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

func learned(ctx context.Context, v *view.Source) (map[string]any, error) {
	heuristics, err := v.Heuristics(ctx, "", most)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(heuristics.Items, func(a, b view.Heuristic) int {
		return cmp.Compare(b.Confidence, a.Confidence)
	})
	segments, err := v.Segments(ctx, most)
	if err != nil {
		return nil, err
	}
	ways, err := v.Ways(ctx, view.WayQuery{Followed: true}, most)
	return map[string]any{
		"heuristics": heuristics.Items, "segments": segments.Items, "ways": ways.Items,
	}, err
}
