package web

import (
	"cmp"
	"context"
	"fmt"

	"github.com/heedhq/heed/internal/view"
)

// A pageCall asks for a part of a list.
type pageCall struct {
	Limit int    `json:"limit,omitempty"`
	After string `json:"after,omitempty"`
}

const (
	defaultItems = 50
	mostItems    = 200
)

func (in *pageCall) page() (view.Page, error) {
	p := view.Page{Limit: cmp.Or(in.Limit, defaultItems), After: in.After}
	if p.Limit < 1 || p.Limit > mostItems {
		return p, &fieldFault{"limit", fmt.Sprintf("must be 1 to %d", mostItems)}
	}
	return p, nil
}

// listOf reads a part of a list, if the handler has the part of the agent that it is about.
func listOf[T any](
	has bool, what string, in *pageCall, read func(view.Page) (view.List[T], error),
) (view.List[T], error) {
	if !has {
		return view.List[T]{}, lacks(what)
	}
	p, err := in.page()
	if err != nil {
		return view.List[T]{}, err
	}
	return read(p)
}

func (a *api) segments(ctx context.Context, _ *caller, in *pageCall) (
	view.List[view.Segment], error,
) {
	v := a.view()
	return listOf(v.Strategy != nil, "arms", in, func(p view.Page) (view.List[view.Segment], error) {
		return a.reports.of(ctx, p, func() (view.List[view.Segment], error) {
			return v.Segments(ctx, p) // it takes milliseconds of a core for each segment
		})
	})
}

type heuristicsCall struct {
	Domain string `json:"domain,omitempty"`
	pageCall
}

func (a *api) heuristics(ctx context.Context, _ *caller, in *heuristicsCall) (
	view.List[view.Heuristic], error,
) {
	v := a.view()
	return listOf(v.Learning != nil, "heuristics", &in.pageCall,
		func(p view.Page) (view.List[view.Heuristic], error) {
			return v.Heuristics(ctx, in.Domain, p)
		})
}

type rulesCall struct {
	Agent  string `json:"agent,omitempty"`
	Status string `json:"status,omitempty"`
	pageCall
}

func (a *api) rules(ctx context.Context, _ *caller, in *rulesCall) (view.List[view.Rule], error) {
	v := a.view()
	return listOf(v.Feedback != nil, "rules", &in.pageCall,
		func(p view.Page) (view.List[view.Rule], error) {
			return v.Rules(ctx, view.RuleQuery{Agent: in.Agent, Status: in.Status}, p)
		})
}

// warnings are the ways of working that prompts warn of.
func (a *api) warnings(ctx context.Context, _ *caller, in *pageCall) (view.List[view.Way], error) {
	v := a.view()
	return listOf(v.Patterns != nil, "ways of working", in,
		func(p view.Page) (view.List[view.Way], error) {
			return v.Ways(ctx, view.WayQuery{Warned: true}, p)
		})
}

type findCall struct {
	Session string `json:"session"`
}

type foundJSON struct {
	ID string `json:"id"`
}

// find returns the newest answer of a session.
func (a *api) find(ctx context.Context, _ *caller, in *findCall) (foundJSON, error) {
	if a.cfg.Agent == nil {
		return foundJSON{}, lacks("agent")
	}
	id, err := a.cfg.Agent.Find(ctx, in.Session)
	return foundJSON{id}, err
}

type explanationCall struct {
	Answer string `json:"answer" heed:"id"`
}

func (a *api) explanation(ctx context.Context, _ *caller, in *explanationCall) (
	view.Explanation, error,
) {
	return a.view().Explain(ctx, in.Answer)
}
