package decision

import (
	"math"
	"slices"
)

// The safe range of the threshold. Bias and urgency move it no further.
const (
	minThreshold = 0.30
	maxThreshold = 0.95
)

// threshold returns the confidence that a heuristic needs. It is rounded to 12 places, so that 0.8
// with a bias of -0.1 is reached by 0.7.
func (u *Urgency) threshold(base, bias, urgency float64) float64 {
	t := math.Round((base+bias-urgency*u.Reduction)*1e12) / 1e12
	return min(max(t, minThreshold), maxThreshold)
}

// Trusted returns the answer of a trusted heuristic and true, or false if none answers. Its path is
// [Heuristic]. It stores nothing and calls no code of the host, and the same request always gives
// the same result. An invalid request gives false, and [Decider.Ask] returns its fault.
//
// To keep a heuristic from answering, call Trusted again without this candidate.
func (d *Decider) Trusted(r Request) (Result, bool) {
	if r.prepare() != nil {
		return Result{}, false
	}
	return d.trusted(&r)
}

func (d *Decider) trusted(r *Request) (Result, bool) {
	res := d.begin(r)
	if res.Strategy == AlwaysLLM {
		return Result{}, false
	}
	c := d.pick(r, &res)
	if c == nil {
		return Result{}, false
	}
	res.Path, res.Text = Heuristic, c.Action
	res.MatchedID, res.CreditID = c.HeuristicID, c.HeuristicID
	res.Prediction = &Prediction{c.Confidence, c.Confidence}
	return res, true
}

// pick returns the candidate that answers, or nil. Without tiers only the first candidate that may
// answer can.
func (d *Decider) pick(r *Request, res *Result) *Candidate {
	from := r.Candidates
	if showOnly := func(c Candidate) bool { return c.ShowOnly }; slices.ContainsFunc(from, showOnly) {
		from = slices.DeleteFunc(slices.Clone(from), showOnly)
	}
	switch res.Tier {
	case Soon:
		return d.draw(r, from, res.Threshold)
	case NotUrgent:
		return singular(from, res.Threshold)
	case Immediately:
	default:
		from = from[:min(len(from), 1)]
	}
	for i := range from {
		if from[i].Confidence >= res.Threshold {
			return &from[i]
		}
	}
	return nil
}

// draw draws one of the candidates that reach the threshold, by similarity, or by confidence if
// none has a similarity.
func (d *Decider) draw(r *Request, from []Candidate, threshold float64) *Candidate {
	similar := slices.ContainsFunc(from, func(c Candidate) bool { return c.Similarity > 0 })
	weights, total := make([]float64, len(from)), 0.
	for i, c := range from {
		if c.Confidence >= threshold {
			weights[i] = c.Confidence
			if similar {
				weights[i] = max(c.Similarity, 0)
			}
			total += weights[i]
		}
	}
	rng := d.rng(r, forChoice)
	left := rng.Float64() * total
	var drawn *Candidate
	for i, weight := range weights {
		if weight == 0 {
			continue
		}
		drawn = &from[i]
		if left -= weight; left < 0 {
			break
		}
	}
	return drawn
}

// singular returns the candidate that has both similarity and confidence, if exactly one has.
func singular(from []Candidate, threshold float64) *Candidate {
	var only *Candidate
	for i := range from {
		c := &from[i]
		if c.Similarity < singularFit || c.Confidence < max(singularFit, threshold) {
			continue
		}
		if only != nil {
			return nil
		}
		only = c
	}
	return only
}
