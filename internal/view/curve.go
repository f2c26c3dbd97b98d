package view

import (
	"math"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/learning"
)

// The cells of agreement, and the channel that stands for disagreement, as package learning names
// them.
const (
	agreedCell          = "agreed"
	disagreedCell       = "disagreed"
	DisagreementChannel = "disagreement"
)

// ChannelOf returns the channel of an observation. Disagreement has the channel of agreement, and
// another cell.
func ChannelOf(o *evidence.Observation) string {
	if o.Cell.Name == disagreedCell {
		return DisagreementChannel
	}
	return o.Channel
}

// A pool is the evidence about a heuristic. Disagreement takes back at most what agreement gave,
// and both together have a cap.
type pool struct{ own, agreed, disagreed evidence.Sums }

func (p *pool) add(cell string, s evidence.Sums) {
	switch cell {
	case agreedCell:
		p.agreed = p.agreed.Plus(s)
	case disagreedCell:
		p.disagreed = p.disagreed.Plus(s)
	default:
		p.own = p.own.Plus(s)
	}
}

func (p pool) times(x float64) pool {
	return pool{scaled(p.own, x), scaled(p.agreed, x), scaled(p.disagreed, x)}
}

func (p pool) plus(q pool) pool {
	return pool{p.own.Plus(q.own), p.agreed.Plus(q.agreed), p.disagreed.Plus(q.disagreed)}
}

// less takes out what is counted apart. A sum that rounding leaves below 0 becomes 0.
func (p pool) less(q pool) pool {
	sub := func(a, b evidence.Sums) evidence.Sums {
		mass := max(a.Mass-b.Mass, 0)
		return evidence.Sums{Mass: mass, Reward: min(max(a.Reward-b.Reward, 0), mass)}
	}
	return pool{
		sub(p.own, q.own), sub(p.agreed, q.agreed), sub(p.disagreed, q.disagreed),
	}
}

// posterior is what is believed by the evidence, without caps on persons. most is the cap on
// agreement.
func (p pool) posterior(prior evidence.Beta, most float64) evidence.Beta {
	of := func(s evidence.Sums) evidence.Beta {
		if s.Mass > most {
			s = scaled(s, most/s.Mass)
		}
		return p.own.Plus(s).Posterior(prior)
	}
	found, least := of(p.agreed.Plus(p.disagreed)), of(p.agreed)
	if none := of(evidence.Sums{}); none.Mean() < least.Mean() {
		least = none
	}
	if found.Mean() < least.Mean() {
		return least
	}
	return found
}

func scaled(s evidence.Sums, x float64) evidence.Sums {
	return evidence.Sums{Mass: s.Mass * x, Reward: s.Reward * x}
}

// poolOf adds up the shares of an explanation.
func poolOf(e *learning.Explanation) (p pool) {
	for _, share := range e.Shares {
		cell := ""
		switch share.Channel {
		case learning.ChannelAgreement:
			cell = agreedCell
		case DisagreementChannel:
			cell = disagreedCell
		}
		p.add(cell, evidence.Sums{Mass: share.For + share.Against, Reward: share.For})
	}
	return p
}

// A Point is how far a heuristic was trusted from a moment on.
type Point struct {
	At    time.Time
	Trust float64
}

// curve returns how far a heuristic was trusted after each of the observations of its explanation,
// and how far it is trusted now. It reads at most the 400 latest that are kept, and returns nil if
// there are fewer than two. Evidence fades by its half-life. Observations that are no longer kept
// count all along, and caps on persons do not count.
func curve(e *learning.Explanation, cfg learning.Config, now time.Time) (points []Point) {
	history := e.History[:min(len(e.History), mostPoints)]
	if len(history) < 2 {
		return nil
	}
	fade := func(from, to time.Time) float64 {
		if cfg.HalfLife <= 0 {
			return 1
		}
		return math.Exp2(-min(float64(to.Sub(from))/float64(cfg.HalfLife), 100))
	}
	var known pool
	for _, o := range history {
		known = known.plus(poolOfOne(o).times(fade(o.At, now)))
	}
	rest := poolOf(e).less(known)
	var sum pool
	before := history[len(history)-1].At
	for i := len(history) - 1; i >= 0; i-- {
		o := history[i]
		sum = sum.times(fade(before, o.At)).plus(poolOfOne(o))
		before = o.At
		pooled := sum.plus(rest.times(1 / fade(o.At, now)))
		trust := pooled.posterior(e.Prior, learning.AgreementMass).Mean()
		points = append(points, Point{o.At, held(e, trust)})
	}
	return append(points, Point{now, e.Standing.Confidence})
}

// mostPoints is how many observations a curve has at most.
const mostPoints = 400

// interval returns the range in which a heuristic's rate lies with a probability of 90 %, within
// the bounds of its confidence and without caps on persons.
func interval(e *learning.Explanation) (low, high float64) {
	low, high = poolOf(e).posterior(e.Prior, learning.AgreementMass).Interval(0.9)
	return held(e, low), held(e, high)
}

func poolOfOne(o evidence.Observation) (p pool) {
	mass := o.Weight
	if o.Share > 0 {
		mass *= o.Share
	}
	p.add(o.Cell.Name, evidence.Sums{Mass: mass, Reward: mass * o.Reward})
	return p
}

// held keeps a confidence in its range.
func held(e *learning.Explanation, x float64) float64 {
	of := e.Constraints.Range
	return min(max(x, of.Floor), of.Ceiling)
}
