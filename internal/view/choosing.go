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

// learner returns what chooses arms, or a fault without one.
func (s *Server) learner() (*strategy.Learner, error) {
	if l := s.view().Strategy; l != nil {
		return l, nil
	}
	return nil, Lacks("arms")
}

func (s *Server) choose(ctx context.Context, _ *Caller, in *selection) (none Selected, _ error) {
	learner, err := s.learner()
	if err != nil {
		return none, err
	}
	c, err := learner.Select(ctx, in.Query)
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

func (s *Server) observe(ctx context.Context, _ *Caller, in *Observation) (none Observed, _ error) {
	learner, err := s.learner()
	if err != nil {
		return none, err
	}
	o := in.Outcome
	text, err := base64.RawURLEncoding.DecodeString(in.Choice)
	if err != nil || json.Unmarshal(text, &o.Choice) != nil {
		return none, badField("choice", "must be what /v1/select has given")
	}
	did, err := learner.Observe(ctx, o)
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

// part reads a part of a list, if the agent has what it is about.
func part[T any](v *Source, what string, in Range, read func(Page) (List[T], error)) (
	l List[T], err error,
) {
	if !v.Has(what) {
		return l, Lacks(what)
	}
	p := Page{Limit: cmp.Or(in.Limit, usuallyListed), After: in.After}
	if p.Limit < 1 || p.Limit > mostListed {
		return l, badField("limit", fmt.Sprintf("must be 1 to %d", mostListed))
	}
	return read(p)
}

func (s *Server) segments(ctx context.Context, _ *Caller, in *Range) (List[Segment], error) {
	v := s.view()
	return part(v, "arms", *in, func(p Page) (List[Segment], error) {
		return v.Segments(ctx, p)
	})
}

// A heuristicRange asks for heuristics.
type heuristicRange struct {
	Domain string `json:"domain,omitempty"`
	Range
}

func (s *Server) heuristics(ctx context.Context, _ *Caller, in *heuristicRange) (
	List[Heuristic], error,
) {
	v := s.view()
	return part(v, "heuristics", in.Range, func(p Page) (List[Heuristic], error) {
		return v.Heuristics(ctx, in.Domain, p)
	})
}

// A ruleRange asks for rules.
type ruleRange struct {
	Agent  string `json:"agent,omitempty"`
	Status string `json:"status,omitempty"`
	Range
}

func (s *Server) rules(ctx context.Context, _ *Caller, in *ruleRange) (List[Rule], error) {
	v := s.view()
	return part(v, "rules", in.Range, func(p Page) (List[Rule], error) {
		q := RuleQuery{in.Agent, in.Status}
		if q.proposals() {
			return v.Proposals(ctx, q, p)
		}
		return v.Rules(ctx, q, p)
	})
}

// warnings are the ways of working that prompts warn of.
func (s *Server) warnings(ctx context.Context, _ *Caller, in *Range) (List[Way], error) {
	v := s.view()
	return part(v, "ways of working", *in, func(p Page) (List[Way], error) {
		return v.Ways(ctx, WayQuery{Warned: true}, p)
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

func (s *Server) find(ctx context.Context, _ *Caller, in *Search) (Found, error) {
	a, err := s.agent()
	if err != nil {
		return Found{}, err
	}
	id, err := a.Find(ctx, in.Session)
	return Found{id}, err
}

// A Named names an answer.
type Named struct {
	Answer string `json:"answer" heed:"id"`
}

func (s *Server) explain(ctx context.Context, _ *Caller, in *Named) (Explanation, error) {
	return s.view().Explain(ctx, in.Answer)
}
