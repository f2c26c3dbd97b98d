package view

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/heedhq/heed/strategy"
)

// A selection asks for an arm.
type selection struct {
	strategy.Query `not:"key vector shares frozen"`
}

// A Selected is an arm, with the choice that outcomes refer to.
type Selected struct {
	Choice     string            `json:"choice"`
	Arm        string            `json:"arm"`
	Parameters map[string]string `json:"parameters"`
	At         time.Time         `json:"at"`
}

func (*Server) choose(ctx context.Context, by *Caller, in *selection) (none Selected, _ error) {
	c, err := by.view.Strategy.Select(ctx, in.Query)
	if err != nil { // there may be a choice all the same, which looks like a good one
		return none, err
	}
	text, err := json.Marshal(c)
	return Selected{
		base64.RawURLEncoding.EncodeToString(text), string(c.Arm), maps.Collect(c.Parameters()), c.At,
	}, err
}

// An Observation reports how a choice turned out.
type Observation struct {
	Choice           string `json:"choice"`
	strategy.Outcome `need:"value confidence"`
}

// An Observed reports what was made of an observation.
type Observed struct {
	Disposition string `json:"disposition"`
}

func (*Server) observe(ctx context.Context, c *Caller, in *Observation) (none Observed, _ error) {
	o := in.Outcome
	text, err := base64.RawURLEncoding.DecodeString(in.Choice)
	if err != nil || json.Unmarshal(text, &o.Choice) != nil {
		return none, badField("choice", "must be what /v1/select has given")
	}
	did, err := c.view.Strategy.Observe(ctx, o)
	return Observed{string(did)}, err
}

// A Range asks for a part of a list.
type Range struct {
	Limit int    `json:"limit,omitempty"`
	After string `json:"after,omitempty"`
}

const (
	usuallyListed = 50
	mostListed    = 200
)

// part reads a part of a list.
func part[T any](in Range, read func(Page) (List[T], error)) (l List[T], err error) {
	p := Page{Limit: cmp.Or(in.Limit, usuallyListed), After: in.After}
	if p.Limit < 1 || p.Limit > mostListed {
		return l, badField("limit", fmt.Sprintf("must be 1 to %d", mostListed))
	}
	return read(p)
}

func (*Server) segments(ctx context.Context, c *Caller, in *Range) (List[Segment], error) {
	return part(*in, func(p Page) (List[Segment], error) { return c.view.Segments(ctx, p) })
}

// A heuristicRange asks for heuristics.
type heuristicRange struct {
	Domain string `json:"domain,omitempty"`
	Range
}

func (*Server) heuristics(ctx context.Context, c *Caller, in *heuristicRange) (
	List[Heuristic], error,
) {
	return part(in.Range, func(p Page) (List[Heuristic], error) {
		return c.view.Heuristics(ctx, in.Domain, p)
	})
}

// A ruleRange asks for rules.
type ruleRange struct {
	Agent  string `json:"agent,omitempty"`
	Status string `json:"status,omitempty"`
	Range
}

func (*Server) rules(ctx context.Context, c *Caller, in *ruleRange) (List[Rule], error) {
	return part(in.Range, func(p Page) (List[Rule], error) {
		q := RuleQuery{in.Agent, in.Status}
		if q.proposals() {
			return c.view.Proposals(ctx, q, p)
		}
		return c.view.Rules(ctx, q, p)
	})
}

// warnings are the ways of working that prompts warn of.
func (*Server) warnings(ctx context.Context, c *Caller, in *Range) (List[Way], error) {
	return part(*in, func(p Page) (List[Way], error) {
		return c.view.Ways(ctx, WayQuery{Warned: true}, p)
	})
}

// A Search asks for the newest answer of a session.
type Search struct {
	Session string `json:"session"`
}

// A Found is the id of an answer.
type Found struct {
	ID string `json:"id"`
}

func (*Server) find(ctx context.Context, c *Caller, in *Search) (Found, error) {
	id, err := c.view.Agent.Find(ctx, in.Session)
	return Found{id}, err
}

// A Named names an answer.
type Named struct {
	Answer string `json:"answer" heed:"id"`
}

func (*Server) explain(ctx context.Context, c *Caller, in *Named) (Explanation, error) {
	return c.view.Explain(ctx, in.Answer)
}
