package decision

import (
	"context"
)

// HeuristicFirst answers with a heuristic that is trusted enough; else with the model, if there is one and the event is
// immediate; else not at all. Make one with [NewHeuristicFirst].
//
// HeuristicFirst is safe for concurrent use by multiple goroutines.
type HeuristicFirst struct{ *decider }

var _ Strategy = (*HeuristicFirst)(nil)

// NewHeuristicFirst returns the strategy, or all faults of its configuration, joined: each is a [*heed.ConfigError]. The context is
// for the store, which hears what kinds of records there are.
func NewHeuristicFirst(ctx context.Context, cfg Config) (*HeuristicFirst, error) {
	d, err := newDecider(ctx, HeuristicFirstName, cfg)
	if err != nil {
		return nil, err
	}
	return &HeuristicFirst{d}, nil
}

// Decide implements [Strategy]. Without tiers of urgency only the first candidate can answer, so candidates have to come
// in their order: a later one is passed over, however much it is trusted.
//
// An answer whose trace can't be kept comes with the store's error and without an id.
func (h *HeuristicFirst) Decide(ctx context.Context, r Request) (Result, error) {
	if err := h.begin(ctx, &r); err != nil {
		return Result{}, err
	}
	urgency := h.cfg.Urgency.of(&r)
	res := Result{
		Strategy: h.name, Variant: r.Variant, Urgency: urgency, Tier: h.cfg.Urgency.Tiers.tier(urgency),
		Threshold: h.cfg.Urgency.threshold(h.cfg.Threshold, r.Biases[BiasThreshold], urgency),
	}
	if c := h.pick(&r, &res); c != nil {
		return h.answerWith(ctx, &r, c, res)
	}
	return h.askModel(ctx, &r, res)
}

// Tier returns the tier of a request, so that a host can choose where to fetch its candidates. Only the request's urgency
// and salience count.
func (h *HeuristicFirst) Tier(r Request) Tier {
	return h.cfg.Urgency.Tiers.tier(h.cfg.Urgency.of(&r))
}

// pick returns the candidate that answers, or nil.
func (h *HeuristicFirst) pick(r *Request, res *Result) *Candidate {
	switch res.Tier {
	case Immediately:
		for i := range r.Candidates {
			if r.Candidates[i].Confidence >= res.Threshold {
				return &r.Candidates[i]
			}
		}
		return nil
	case Soon:
		return h.draw(r, res.Threshold)
	case NotUrgent:
		return h.singular(r, res.Threshold)
	default:
		if len(r.Candidates) > 0 && r.Candidates[0].Confidence >= res.Threshold {
			return &r.Candidates[0]
		}
		return nil
	}
}

// draw draws one of the candidates that reach the threshold.
func (h *HeuristicFirst) draw(r *Request, threshold float64) *Candidate {
	weight := func(c *Candidate) float64 { return c.Confidence }
	for i := range r.Candidates {
		if r.Candidates[i].Similarity > 0 {
			weight = func(c *Candidate) float64 { return max(c.Similarity, 0) }
			break
		}
	}
	var total float64
	for i := range r.Candidates {
		if c := &r.Candidates[i]; c.Confidence >= threshold {
			total += weight(c)
		}
	}
	source := h.rng(r, forChoice)
	left := source.Float64() * total
	var drawn *Candidate
	for i := range r.Candidates {
		c := &r.Candidates[i]
		if c.Confidence < threshold || weight(c) == 0 {
			continue
		}
		drawn = c
		if left -= weight(c); left < 0 {
			break
		}
	}
	return drawn
}

// singular returns the one candidate that has both similarity and confidence, if there is just one.
func (h *HeuristicFirst) singular(r *Request, threshold float64) *Candidate {
	tiers := &h.cfg.Urgency.Tiers
	var only *Candidate
	for i := range r.Candidates {
		c := &r.Candidates[i]
		if c.Similarity < tiers.Similarity || c.Confidence < max(tiers.Confidence, threshold) {
			continue
		}
		if only != nil {
			return nil
		}
		only = c
	}
	return only
}
