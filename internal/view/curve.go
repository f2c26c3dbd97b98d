package view

import (
	"math"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/learning"
)

// The cells of agreement, and the channel for disagreement, under their names in package learning.
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

// A pool is the evidence about a heuristic: its own, what agreed and what disagreed. Disagreement
// takes back at most what agreement gave, and both together have a cap.
type pool [3]evidence.Sums

// cellOf returns where the evidence of a cell is in a pool.
func cellOf(name string) int {
	return slices.Index([]string{agreedCell, disagreedCell}, name) + 1
}

// plus adds a part of another pool. A sum that rounding leaves below 0 becomes 0.
func (p pool) plus(q pool, part float64) pool {
	for i := range p {
		mass := max(p[i].Mass+part*q[i].Mass, 0)
		reward := p[i].Reward + part*q[i].Reward
		p[i] = evidence.Sums{Mass: mass, Reward: min(max(reward, 0), mass)}
	}
	return p
}

// posterior is what is believed by the evidence, without caps on persons. most is the cap on
// agreement.
func (p pool) posterior(prior evidence.Beta, most float64) evidence.Beta {
	of := func(all pool) evidence.Beta {
		s := all[1].Plus(all[2])
		capped := pool{s}.plus(pool{s}, min(most/max(s.Mass, most), 1)-1)
		return p[0].Plus(capped[0]).Posterior(prior)
	}
	found, least := of(p), of(pool{1: p[1]})
	if none := of(pool{}); none.Mean() < least.Mean() {
		least = none
	}
	if found.Mean() < least.Mean() {
		return least
	}
	return found
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
		i := cellOf(cell)
		p[i] = p[i].Plus(evidence.Sums{Mass: share.For + share.Against, Reward: share.For})
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
		known = known.plus(poolOfOne(o), fade(o.At, now))
	}
	rest := poolOf(e).plus(known, -1)
	var sum pool
	before := history[len(history)-1].At
	for i := len(history) - 1; i >= 0; i-- {
		o := history[i]
		sum = poolOfOne(o).plus(sum, fade(before, o.At))
		before = o.At
		pooled := sum.plus(rest, 1/fade(o.At, now))
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
	p[cellOf(o.Cell.Name)] = evidence.Sums{Mass: mass, Reward: mass * o.Reward}
	return p
}

// held keeps a confidence in its range.
func held(e *learning.Explanation, x float64) float64 {
	of := e.Constraints.Range
	return min(max(x, of.Floor), of.Ceiling)
}
