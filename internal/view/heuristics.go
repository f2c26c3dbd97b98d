package view

import (
	"context"
	"fmt"
	"slices"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/learning"
)

// A Heuristic is how far a heuristic is trusted.
type Heuristic struct {
	ID         string  `json:"id"`
	Domain     string  `json:"domain"`
	Condition  string  `json:"condition"`
	Action     string  `json:"action"`
	Confidence float64 `json:"confidence"`
	Low        float64 `json:"low"` // of the interval of 90 %
	High       float64 `json:"high"`
	Needed     float64 `json:"needed"` // the confidence from which it answers
	Fires      uint64  `json:"fires"`
	Successes  uint64  `json:"successes"`
	Failures   uint64  `json:"failures"`
	Pinned     bool    `json:"pinned"`
	Held       Held    `json:"held"`
	// Limits lists what holds the confidence now: see [learning.Explanation].
	Limits []string `json:"limits"`
}

// Held are the constraints of all layers that are in force.
type Held struct {
	Locked  bool    `json:"locked"` // no signal counts
	Floor   float64 `json:"floor"`
	Ceiling float64 `json:"ceiling"`
	Weight  float64 `json:"feedback_weight"` // multiplies signals
}

// DisagreementChannel is the channel of disagreement of a model, which package learning limits.
const DisagreementChannel = "disagreement"

// ChannelOf returns the channel of an observation. Disagreement has the channel of agreement, and
// another cell.
func ChannelOf(o *evidence.Observation) string {
	if o.Cell.Name == "disagreed" {
		return DisagreementChannel
	}
	return o.Channel
}

// By describes in words what holds a confidence: a pin, a limit or a cap. "" means that no limit
// holds it.
func (h Heuristic) By() string {
	fixed := h.Held.Floor == h.Held.Ceiling && h.Held.Ceiling > 0
	switch {
	case fixed && h.Held.Locked:
		return fmt.Sprintf("at %.3f, locked", h.Held.Floor)
	case fixed:
		return fmt.Sprintf("at %.3f", h.Held.Floor)
	case h.Held.Locked:
		return "locked"
	case slices.Contains(h.Limits, "floor"):
		return "by its floor"
	case slices.Contains(h.Limits, "ceiling"):
		return "by its ceiling"
	case slices.Contains(h.Limits, DisagreementChannel):
		return "by disagreement"
	case slices.Contains(h.Limits, "people"):
		return "by limits on people"
	case len(h.Limits) > 0, h.Confidence < h.Low, h.Confidence > h.High:
		return "by caps"
	}
	return ""
}

// Known describes how something is known, by the name of its channel.
func Known(channel string) string {
	if channel == DisagreementChannel {
		return "the model said something else"
	}
	return text.ChannelWords(channel)
}

// KnownBy describes how a share of the evidence is known.
func KnownBy(s learning.Share) string {
	switch {
	case s.Channel != "" && s.Channel != DisagreementChannel:
		return text.StatementWords(s.Channel, string(s.Kind), s.Source)
	case s.Channel != "":
		return Known(s.Channel)
	case s.Said:
		return "said"
	}
	return "seen"
}

// A HeuristicDetail is a heuristic with what made its confidence.
type HeuristicDetail struct {
	Heuristic
	Prior   evidence.Beta          `json:"prior"`
	Shares  []learning.Share       `json:"-"`
	People  float64                `json:"-"` // of the domain
	Pin     learning.Pin           `json:"-"`
	History []evidence.Observation `json:"history,omitempty"` // the newest first
}

// usuallyNeeded is the confidence that a heuristic needs in agents without another setting, which
// the store does not have.
const usuallyNeeded = 0.7

// A HeuristicQuery selects heuristics.
type HeuristicQuery struct {
	Domain string `json:"domain,omitempty" placeholder:"NAME"` // empty: every domain
	Page   `kong:"-"`
}

// Heuristics lists heuristics by their ids.
func (s *Source) Heuristics(ctx context.Context, q HeuristicQuery) (l List[Heuristic], err error) {
	var all []learning.Heuristic
	for h, failure := range s.Learning.Heuristics(ctx) {
		if err = failure; err == nil && (q.Domain == "" || h.Domain == q.Domain) {
			all = append(all, h)
		}
	}
	texts := func(h *learning.Heuristic) []string {
		return []string{h.ID, h.Domain, h.Condition, h.Action}
	}
	name := func(h *learning.Heuristic) string { return h.ID }
	return listed(q.Page, all, err, name, texts, func(h *learning.Heuristic) (Heuristic, error) {
		e, err := s.Learning.Explain(ctx, h.ID)
		return s.heuristicOf(&e), err
	})
}

// Heuristic explains a heuristic with at most a number of observations, or returns
// [heed.ErrNotFound].
func (s *Source) Heuristic(ctx context.Context, id string, most int) (HeuristicDetail, error) {
	e, err := s.Learning.Explain(ctx, id)
	if err != nil {
		return HeuristicDetail{}, err
	}
	return HeuristicDetail{
		Heuristic: s.heuristicOf(&e), Prior: e.Prior, Shares: e.Shares, People: e.People,
		Pin: e.Standing.Pin, History: e.History[:min(len(e.History), most)]}, nil
}

func (s *Source) heuristicOf(e *learning.Explanation) Heuristic {
	of, h := &e.Standing, &e.Standing.Heuristic
	one := Heuristic{
		ID: h.ID, Domain: h.Domain, Condition: h.Condition, Action: h.Action, Confidence: of.Confidence,
		Needed: usuallyNeeded, Fires: of.Fires, Successes: of.Successes, Failures: of.Failures,
		Pinned: of.Pin != (learning.Pin{}), Limits: arrayOf(e.Limits),
		Held: Held{
			Locked: e.Constraints.Lock == "locked", Floor: e.Constraints.Floor,
			Ceiling: e.Constraints.Ceiling, Weight: e.Constraints.FeedbackWeight},
	}
	if s.Agent != nil {
		one.Needed = s.Agent.Decision().Config().Threshold
	}
	one.Low, one.High = interval(e)
	return one
}

// interval returns the range in which a heuristic's rate lies with a probability of 90 %, by what
// counts of the evidence, and within the bounds of its confidence.
func interval(e *learning.Explanation) (low, high float64) {
	belief, agreed, disagreed := e.Prior, 0., 0.
	for i := range e.Shares {
		switch s := &e.Shares[i]; s.Channel {
		case DisagreementChannel:
			disagreed += s.CountsAgainst
		case learning.ChannelAgreement:
			agreed += s.CountsFor
			fallthrough
		default:
			belief.Alpha, belief.Beta = belief.Alpha+s.CountsFor, belief.Beta+s.CountsAgainst
		}
	}
	belief.Beta += min(agreed, disagreed) // disagreement takes back what agreement gave
	low, high = belief.Interval(0.9)
	of := e.Constraints
	return min(max(low, of.Floor), of.Ceiling), min(max(high, of.Floor), of.Ceiling)
}
