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

func (s *server) addResources(to *sdk.Server) {
	add := func(name, title, description string, read func(context.Context, *view.Source) (any,
		error)) {
		uri := "heed://" + name
		to.AddResource(&sdk.Resource{
			URI: uri, Name: name, Title: title, Description: description, MIMEType: "application/json",
		}, func(ctx context.Context, _ *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			found, err := read(ctx, view.Of(s.agent, s.now))
			if err != nil {
				return nil, told(err, reflect.TypeFor[view.Nothing]())
			}
			text, err := json.MarshalIndent(found, "", "  ")
			if err != nil {
				return nil, err
			}
			return &sdk.ReadResourceResult{
				Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: "application/json",
					Text: string(text)}},
				Cacheable: sdk.Cacheable{CacheScope: "private"}, // it changes, and differs by person
			}, nil
		})
	}
	add("rules", "Rules", "The rules that hold for this agent: people approved them.", s.activeRules)
	add("proposals", "Proposed rules", "The rules that wait for people's decision.", s.proposals)
	add("warnings", "Warnings", "Ways of working that went badly.", warnings)
	add("learned", "What was learned",
		"Heuristics, arms and ways of working, with how far each is trusted.", learned)
}

func (s *server) activeRules(ctx context.Context, v *view.Source) (any, error) {
	if _, err := s.rules(); err != nil {
		return nil, err
	}
	found, err := v.Rules(ctx, view.RuleQuery{Agent: v.Name, Status: "active"}, most)
	return map[string]any{"rules": found.Items}, err
}

func (s *server) proposals(ctx context.Context, v *view.Source) (any, error) {
	if _, err := s.rules(); err != nil {
		return nil, err
	}
	found, err := v.Proposals(ctx, view.RuleQuery{Agent: v.Name, Status: "pending"}, most)
	return map[string]any{"proposals": found.Items, "total": found.Total}, err
}

func warnings(ctx context.Context, v *view.Source) (any, error) {
	found, err := v.Ways(ctx, view.WayQuery{Warned: true}, most)
	return map[string]any{"warnings": found.Items}, err
}

func learned(ctx context.Context, v *view.Source) (any, error) {
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
