package strategy

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/curves"
)

// bestOf returns the probability that the sample of one of the draws is the greatest: the integral
// of its density times the distribution functions of the others. It reports false if it can't
// compute it, and the draws must be counted.
func bestOf(draws []Draw, chosen int) (p float64, ok bool) {
	all := make([]sampled, len(draws))
	for i := range draws {
		if !all[i].of(&draws[i]) {
			return 0, false
		}
	}
	one := &all[chosen]
	var cuts []float64
	for i := range all {
		if i != chosen {
			cuts = all[i].cuts(one, cuts)
		}
	}
	slices.Sort(cuts)
	others := slices.Concat(all[:chosen], all[chosen+1:])
	rule := curves.Legendre()
	for i := range one.panels {
		panel := &one.panels[i]
		first, _ := slices.BinarySearch(cuts, panel.start)
		last, _ := slices.BinarySearch(cuts, panel.end)
		from := panel.from
		for n := first; n <= last; n++ {
			to := panel.to
			if n < last {
				to = min(max(one.own(at(cuts[n]), panel.beyond), from), panel.to)
			}
			if half := (to - from) / 2; half > 1e-9*(panel.to-panel.from) {
				for j, x := range rule.At {
					own := from + half*(1+x)
					if d := panel.density.At(panel.unit(own)); d > 0 {
						p += rule.Weight[j] * half * d * below(others, one.point(own, panel.beyond), one.bonus)
					}
				}
			}
			from = to
		}
	}
	p += (1 - min(one.sum, 1)) * equal(all, chosen)
	return p, p >= 0 && p <= 1+1e-4
}

// top is the logit from which on a rate is 1 as a float64.
const top = 37.4

// equal returns the probability that an arm whose rate is 1 has the greatest sample. Of equals the
// first has it.
func equal(all []sampled, chosen int) float64 {
	product := 1.
	for i := range all {
		switch more := all[chosen].bonus - all[i].bonus; {
		case more < 0 || more == 0 && i < chosen:
			product *= all[i].below(at(top).plus(more))
		}
	}
	return product
}

// below returns the probability that all others are below a sample.
func below(others []sampled, p point, bonus float64) float64 {
	product := 1.
	for i := range others {
		o := &others[i]
		if product *= o.below(p.plus(bonus - o.bonus)); product < 1e-12 {
			return 0
		}
	}
	return product
}

// A point is a rate, to full precision at either end.
type point struct{ logit, log, logRest float64 }

func at(logit float64) point {
	log, rest := curves.Logs(logit)
	return point{logit, log, rest}
}

func (p point) plus(x float64) point {
	if x == 0 {
		return p
	}
	x += math.Exp(p.log)
	switch {
	case x <= 0:
		return point{math.Inf(-1), math.Inf(-1), 0}
	case x >= 1:
		return point{math.Inf(1), 0, math.Inf(-1)}
	}
	return point{math.Log(x / (1 - x)), math.Log(x), math.Log1p(-x)}
}

// A sampled is the distribution of the sample of an arm: max(own, mean) for a level, the item's
// mean at the level, and an own rate around that mean. It is integrated in panels. At first the
// coordinate is the logit of the level, whose mean the sample is at least. Panels beyond the
// greatest mean have the logit of the rate as their coordinate.
type sampled struct {
	strength, successes, failures float64
	total                         float64 // of these three
	sharpness                     float64 // 0: the sample is the mean
	bonus                         float64
	level                         curves.Curve
	panels                        []sampledPanel
	nodes                         []levelNode // the values of the level's panels, in order
	next                          int         // the panel that was asked last
	sum                           float64     // the probability up to the end of the last panel
}

type sampledPanel struct {
	from, to       float64 // in its own coordinate
	beyond         bool    // whether that is the logit of the rate
	start, end     float64 // logits of the rate
	density, below curves.Polynomial
}

// negligible is the logarithm of one over a density that counts as 0.
const negligible = 30

// A levelNode is a level at which the own rate is weighed.
type levelNode struct {
	alpha, beta float64 // of the own rate
	log         float64 // of one over their beta function
	weight      float64 // of the level: its density, times half of the panel's length
}

// The shapes of a level are at least least, and leastBeside if the arm had a success: below it,
// many levels are so small that the means are equal as float64. No shape is above mostShape. An arm
// of more than mostPanels panels is faster to count.
const (
	least, leastBeside, mostShape = 0.01, 0.25, 1e6
	mostPanels                    = 128
)

// of works out the distribution.
func (s *sampled) of(d *Draw) bool {
	b := &d.Belief
	*s = sampled{strength: b.Strength, successes: b.Successes, failures: b.Failures,
		sharpness: b.Sharpness, bonus: d.Bonus}
	if s.strength == 0 {
		s.strength, s.successes, s.failures, s.sharpness = 1, 0, 0, 0
	}
	s.total = s.strength + s.successes + s.failures
	alpha := b.Level.Alpha
	if s.successes > 0 {
		alpha *= least / leastBeside
	}
	for _, x := range [...]float64{alpha, b.Level.Beta, s.strength, s.total,
		s.sharpness*s.strength + least} {
		if !(x >= least && x <= mostShape) {
			return false
		}
	}
	if !(s.successes >= 0 && s.failures >= 0 && s.sharpness >= 0 && math.Abs(s.bonus) <= 1) {
		return false
	}
	s.level = curves.Of(b.Level.Alpha, b.Level.Beta)
	cuts := s.level.AppendCuts(nil)
	slices.Sort(cuts)
	end := s.own(at(top), false)
	for i := 1; i < len(cuts) && cuts[i-1] < end; i++ {
		s.split(cuts[i-1], min(cuts[i], end))
	}
	if s.sharpness > 0 {
		s.beyond(cuts)
	}
	if len(s.panels) >= mostPanels {
		return false
	}
	for i := range s.panels {
		s.sum = s.integrate(i, s.sum)
	}
	return s.sum <= 1+1e-5 && (s.sum >= 1-1e-5 || s.panels[len(s.panels)-1].end > top-1e-3)
}

// split adds panels of the level that are narrow next to the spread of the own rate.
func (s *sampled) split(from, to float64) {
	start, end := s.point(from, false).logit, s.point(to, false).logit
	if s.sharpness > 0 && end-start > 4*min(s.spread(from), s.spread(to)) &&
		len(s.panels) < mostPanels {
		s.split(from, (from+to)/2)
		s.split((from+to)/2, to)
		return
	}
	s.panels = append(s.panels, sampledPanel{from: from, to: to, start: start, end: end})
}

// shapes returns the shapes of the own rate at a level.
func (s *sampled) shapes(level point) (alpha, beta float64) {
	alpha = s.sharpness * (s.strength*math.Exp(level.log) + s.successes)
	beta = s.sharpness * (s.strength*math.Exp(level.logRest) + s.failures)
	return max(alpha, leastShape), max(beta, leastShape)
}

func (s *sampled) spread(level float64) float64 {
	alpha, beta := s.shapes(at(level))
	return math.Sqrt(1/alpha + 1/beta)
}

// beyond adds panels above the greatest mean. Own rates reach there.
func (s *sampled) beyond(levels []float64) {
	from := s.panels[len(s.panels)-1].end
	var cuts []float64
	for _, bend := range [...]float64{1, 2.5, 7, 16} {
		cuts = append(cuts, from+bend)
	}
	for _, level := range [...]float64{levels[0], s.level.Mode, levels[len(levels)-2]} {
		alpha, beta := s.shapes(at(level))
		own := curves.Of(alpha, beta)
		cuts = own.AppendCuts(cuts)
	}
	slices.Sort(cuts)
	for _, to := range cuts {
		if to = min(to, top); to > from+1e-6 {
			s.panels = append(s.panels, sampledPanel{from: from, to: to, start: from, end: to,
				beyond: true})
			from = to
		}
	}
}

// integrate works out a panel. sum is the probability up to it.
func (s *sampled) integrate(i int, sum float64) float64 {
	p, rule := &s.panels[i], curves.Legendre()
	half := (p.to - p.from) / 2
	first := len(s.nodes)
	var points, levels [curves.Nodes]point
	for j, x := range rule.At {
		own := p.from + half*(1+x)
		points[j] = s.point(own, p.beyond)
		if p.beyond {
			continue
		}
		levels[j] = at(own)
		n := levelNode{weight: half * s.level.Density(levels[j].log, levels[j].logRest)}
		if s.sharpness > 0 {
			n.alpha, n.beta = s.shapes(levels[j])
			n.log = -curves.LnBeta(n.alpha, n.beta)
		}
		s.nodes = append(s.nodes, n)
	}
	var density [curves.Nodes]float64
	for j := range density {
		if p.beyond {
			density[j] = half * s.before(first, &points[j])
			continue
		}
		n := &s.nodes[first+j]
		if s.sharpness == 0 {
			density[j] = n.weight
			continue
		}
		d := s.before(first, &points[j])
		for k := range density {
			d += rule.UpTo[j][k] * s.nodes[first+k].at(&points[j])
		}
		// The slope of the logit of the mean over the logit of the level.
		slope := math.Exp(levels[j].log + levels[j].logRest + math.Log(
			s.strength/s.total) - points[j].log - points[j].logRest)
		density[j] = n.weight*n.notAbove(&points[j]) + half*slope*d
	}
	var upTo [curves.Nodes]float64
	for j := range upTo {
		upTo[j] = sum
		for k, d := range density {
			upTo[j] += rule.UpTo[j][k] * d
		}
	}
	for j, d := range density {
		sum += rule.Weight[j] * d
		density[j] /= half
	}
	p.density, p.below = rule.Through(&density), rule.Through(&upTo)
	return sum
}

// before integrates the density of the own rate over all levels of the panels before.
func (s *sampled) before(nodes int, p *point) (sum float64) {
	rule := curves.Legendre()
	for nodes -= curves.Nodes; nodes >= 0; nodes -= curves.Nodes {
		if s.nodes[nodes+curves.Nodes-1].exponent(p) < -negligible {
			break // lower levels are even farther away
		}
		for k, w := range rule.Weight {
			sum += w * s.nodes[nodes+k].at(p)
		}
	}
	return sum
}

func (n *levelNode) exponent(p *point) float64 { return n.alpha*p.log + n.beta*p.logRest + n.log }

// at is the density of the logit of the own rate, times the weight of the level.
func (n *levelNode) at(p *point) float64 {
	e := n.exponent(p)
	if e < -negligible {
		return 0
	}
	return n.weight * math.Exp(e)
}

// notAbove is the probability that the own rate is not above its mean.
func (n *levelNode) notAbove(mean *point) float64 {
	switch {
	case n.alpha < 1e-7:
		return 1
	case n.beta < 1e-7:
		return 0
	case mean.logit < 0:
		return mathext.RegIncBeta(n.alpha, n.beta, math.Exp(mean.log))
	}
	return 1 - mathext.RegIncBeta(n.beta, n.alpha, math.Exp(mean.logRest))
}

// point returns the rate at a coordinate: of a level its mean.
func (s *sampled) point(own float64, beyond bool) point {
	p := at(own)
	if beyond || s.successes == 0 && s.failures == 0 {
		return p
	}
	p.log = part(s.strength, p.log, s.successes) - math.Log(s.total)
	p.logRest = part(s.strength, p.logRest, s.failures) - math.Log(s.total)
	p.logit = p.log - p.logRest
	return p
}

// part returns the logarithm of strength·x + more.
func part(strength, log, more float64) float64 {
	if more == 0 {
		return math.Log(strength) + log
	}
	return math.Log(strength*math.Exp(log) + more)
}

// own returns the coordinate of a rate: the inverse of point.
func (s *sampled) own(p point, beyond bool) float64 {
	if beyond || s.successes == 0 && s.failures == 0 {
		return p.logit
	}
	log, rest := s.without(p.log, s.successes), s.without(p.logRest, s.failures)
	switch {
	case math.IsInf(log, -1):
		return log
	case math.IsInf(rest, -1):
		return -rest
	}
	return log - rest
}

// without is the inverse of part.
func (s *sampled) without(log, more float64) float64 {
	if more == 0 {
		return log + math.Log(s.total/s.strength)
	}
	return math.Log(max(math.Exp(log)*s.total-more, 0) / s.strength)
}

// cuts appends the logits of the ends of the panels, shifted to another arm by the bonuses.
func (s *sampled) cuts(to *sampled, cuts []float64) []float64 {
	for i := range s.panels {
		cuts = append(cuts, at(s.panels[i].start).plus(s.bonus-to.bonus).logit)
	}
	return append(cuts, at(s.panels[len(s.panels)-1].end).plus(s.bonus-to.bonus).logit)
}

// unit returns a coordinate of the panel in [-1, 1].
func (p *sampledPanel) unit(own float64) float64 {
	return min(max((2*own-p.from-p.to)/(p.to-p.from), -1), 1)
}

// below returns the distribution function. Each call asks for a rate at or above the rate of the
// call before, except for rounding.
func (s *sampled) below(p point) float64 {
	last := len(s.panels) - 1
	for s.next < last && p.logit > s.panels[s.next].end {
		s.next++
	}
	panel := &s.panels[s.next]
	switch {
	case math.IsInf(p.logit, 1): // a bonus lifts it above every rate
		return 1
	case p.logit <= s.panels[0].start:
		return 0
	case p.logit >= s.panels[last].end:
		return min(s.sum, 1)
	}
	return min(max(panel.below.At(panel.unit(s.own(p, panel.beyond))), 0), 1)
}

// drawsFor returns how often each arm is drawn to count a propensity.
func drawsFor(arms int) int { return min(propensityDraws, propensityWork/arms) }

// count returns the share of draws in which an arm has the greatest sample.
func (c *Choice) count(draws []Draw, chosen int) float64 {
	draws = slices.Clone(draws)
	for i := range draws {
		draws[i].Belief = draws[i].Belief.Keep()
	}
	rng := evidence.Key{A: propensityDraws, B: uint64(len(draws))}.Rand(0, string(c.ID[:]))
	n := drawsFor(len(draws))
	wins := 0.
	for range n {
		if drawArms(draws, &rng) == chosen {
			wins++
		}
	}
	return min(max(wins, 0.5), float64(n)-0.5) / float64(n)
}
