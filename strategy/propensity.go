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
//
// The sample of each arm is max(own, mean), plus a bonus: see sampled. Its distribution is made
// once for each arm, as polynomials on panels, and looked up at each node of the chosen arm's
// integral. So n arms cost n distributions and n lookups at each node, and no integral within an
// integral.
func bestOf(draws []Draw, chosen int) (p float64, ok bool) {
	all := make([]sampled, len(draws))
	for i := range draws {
		if !all[i].take(&draws[i]) {
			return 0, false
		}
	}
	// Below the floor the chosen arm never wins, so no arm's distribution is needed there.
	one, floor := &all[chosen], floorOf(all, chosen)
	others := make([]*sampled, 0, len(all))
	for i := range all {
		s := &all[i]
		if !s.of(floor.plus(one.bonus - s.bonus)) {
			return 0, false
		}
		if i != chosen && len(s.panels) > 0 { // others are always below the floor
			others = append(others, s)
		}
	}
	for i := range one.panels {
		panel := &one.panels[i]
		whole := one.wins(panel, panel.from, panel.to, others)
		p += one.refine(panel, panel.from, panel.to, whole, others, mostHalvings)
	}
	// What is left of the chosen arm's probability lies where its rate is 1 as a float64.
	p += (1 - min(one.sum, 1)) * equal(all, chosen)
	return p, p >= 0 && p <= 1+1e-4
}

// A panel is halved until that changes its integral by at most integralError, mostHalvings times
// at most. Twelve nodes in each half err by far less than the change.
const (
	mostHalvings  = 12
	integralError = 1e-8
)

// refine integrates a part of a panel. whole is an estimate of that integral. This is adaptive
// quadrature: if halving changes the estimate, each half is integrated by itself.
func (s *sampled) refine(
	p *sampledPanel, from, to, whole float64, others []*sampled, halvings int,
) float64 {
	middle := (from + to) / 2
	left, right := s.wins(p, from, middle, others), s.wins(p, middle, to, others)
	if halvings == 0 || math.Abs(left+right-whole) <= integralError {
		return left + right
	}
	return s.refine(p, from, middle, left, others, halvings-1) +
		s.refine(p, middle, to, right, others, halvings-1)
}

// wins integrates, over a part of a panel, the density times the probability that all others are
// below.
func (s *sampled) wins(p *sampledPanel, from, to float64, others []*sampled) (sum float64) {
	rule, half := curves.Legendre(), (to-from)/2
	for j, x := range rule.At {
		own := from + half*(1+x)
		if d := p.density.At(p.unit(own)); d > 0 {
			sum += rule.Weight[j] * half * d * below(others, s.point(own, p.beyond), s.bonus)
		}
	}
	return sum
}

// floorOf returns a sample of the chosen arm below which it is practically never the greatest. A
// sample is at least its mean, so the product of the distribution functions of the others' means is
// a bound. Bisection on the logit finds where the bound is about never, to 0.01.
func floorOf(all []sampled, chosen int) point {
	low, high := -top, top
	for high-low > 0.01 {
		middle := (low + high) / 2
		product, p := 1., at(middle)
		for i := range all {
			if s := &all[i]; i != chosen && product > never {
				product *= s.meanBelow(p.plus(all[chosen].bonus - s.bonus))
			}
		}
		if product > never {
			high = middle
		} else {
			low = middle
		}
	}
	return at(low)
}

// never is a probability that counts as 0.
const never = 1e-9

// top is the logit from which on a rate is 1 as a float64.
const top = 37.4

// equal returns the probability that an arm whose rate is 1 has the greatest sample. Of equals the
// first has it. A rate of 1 exceeds all smaller ones. Other arms with a rate of 1 have the same
// sample if their bonus is the same, and the order of arms decides, as in drawArms.
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
func below(others []*sampled, p point, bonus float64) float64 {
	product := 1.
	for _, o := range others {
		if product *= o.below(p.plus(bonus - o.bonus)); product < never {
			return 0
		}
	}
	return product
}

// A point is a rate, to full precision at either end: its logit, the logarithm of the rate, and the
// logarithm of one minus the rate. A rate of 1 − 1e-30 is 1 as a float64, but its logRest is exact.
type point struct{ logit, log, logRest float64 }

func at(logit float64) point {
	log, rest := curves.Logs(logit)
	return point{logit, log, rest}
}

// plus returns the rate that is greater by x, cut at 0 and 1. It compares rates of arms that have
// different bonuses.
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
// greatest mean have the logit of the rate as their coordinate. Only what is above a floor has
// panels. The method of all panels is Gauss-Legendre quadrature, and the distribution functions are
// the polynomials through its nodes: see package curves.
type sampled struct {
	strength, successes, failures float64
	total                         float64 // of these three
	sharpness                     float64 // 0: the sample is the mean
	bonus                         float64
	level                         curves.Curve
	panels                        []sampledPanel
	nodes                         []levelNode // the values of the level's panels, in order
	asked                         int         // the panel that was asked last
	under                         float64     // the probability up to the first panel
	sum                           float64     // the probability up to the end of the last panel
}

// A sampledPanel is an interval of the coordinate on which density and distribution are
// polynomials.
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

// take takes a belief, or reports that it can't be integrated. A level alone is taken as a level
// whose item has no outcomes and no own rate, so that one code serves both.
func (s *sampled) take(d *Draw) bool {
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
	s.level = curves.Of(b.Level.Alpha, b.Level.Beta)
	return s.successes >= 0 && s.failures >= 0 && s.sharpness >= 0 && math.Abs(s.bonus) <= 1
}

// meanBelow returns the probability that the item's mean is at most a rate.
func (s *sampled) meanBelow(p point) float64 {
	// The mean grows with the level, so the question about the mean is one about the level.
	level := s.own(p, false)
	switch {
	case level <= -top:
		return 0
	case level >= top:
		return 1
	}
	log, rest := curves.Logs(level)
	return betaBelow(s.level.Alpha, s.level.Beta, point{level, log, rest})
}

// of works out the distribution above a floor, and the probability below.
//
// The panels of the level come first, cut where its density bends and where means reach the floor.
// Levels whose means are below the floor have no panel in the end, because only their own rates can
// exceed the floor; they stay as nodes, over which before integrates. It reports false if the
// probabilities do not sum to 1 within 1e-5, and then the draws are counted.
func (s *sampled) of(floor point) bool {
	cuts := s.level.AppendCuts(nil)
	slices.Sort(cuts)
	lowest, highest, end := cuts[0], cuts[len(cuts)-2], s.own(at(top), false)
	under := min(max(s.own(floor, false), cuts[0]), cuts[len(cuts)-1])
	from := s.reach(cuts[0], under, &floor)
	if from > cuts[0] {
		s.under = betaBelow(s.level.Alpha, s.level.Beta, at(from))
	}
	cuts = append(slices.DeleteFunc(cuts, func(c float64) bool { return c <= from }), from, under)
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	for i := 1; i < len(cuts) && cuts[i-1] < end; i++ {
		s.split(cuts[i-1], min(cuts[i], end))
	}
	if len(s.panels) >= mostPanels {
		return false
	}
	below := 0
	for ; below < len(s.panels) && s.panels[below].to <= under; below++ {
		s.integrateUnder(&s.panels[below], &floor)
	}
	last := floor.logit
	if len(s.panels) > 0 {
		last = max(last, s.panels[len(s.panels)-1].end)
	}
	s.panels, s.sum = s.panels[below:], s.under
	if s.sharpness > 0 && s.under < 1-never {
		s.beyond(last, lowest, s.level.Mode, highest)
	}
	for i := range s.panels {
		before := s.sum
		if s.sum = s.integrate(i, before); s.sum-before < never && s.sum > 1-1e-5 {
			s.panels = s.panels[:i+1]
			break
		}
	}
	return s.sum <= 1+1e-5 && (s.sum >= 1-1e-5 || len(s.panels) > 0 &&
		s.panels[len(s.panels)-1].end > top-1e-3)
}

// reach returns a level from which on own rates reach the floor. Levels below it add nothing above
// the floor, so they need no nodes. Bisection to 0.05 is near enough, because a level too many
// costs a node.
func (s *sampled) reach(low, high float64, floor *point) float64 {
	if s.sharpness == 0 {
		return high
	}
	for high-low > 0.05 {
		middle := (low + high) / 2
		if n := s.node(middle, 1); n.exponent(floor) < -negligible {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// integrateUnder adds the levels of a panel whose means are below the floor.
func (s *sampled) integrateUnder(p *sampledPanel, floor *point) {
	rule, half := curves.Legendre(), (p.to-p.from)/2
	for j, x := range rule.At {
		n := s.node(p.from+half*(1+x), half)
		s.nodes = append(s.nodes, n)
		upTo := 1.
		if s.sharpness > 0 && n.exponent(floor) > -negligible {
			upTo = betaBelow(n.alpha, n.beta, *floor)
		}
		s.under += rule.Weight[j] * n.weight * upTo
	}
}

// node returns a level of a panel of twice this length.
func (s *sampled) node(own, half float64) levelNode {
	level := at(own)
	n := levelNode{weight: half * s.level.Density(level.log, level.logRest)}
	if s.sharpness > 0 {
		n.alpha, n.beta = s.shapes(level)
		n.log = -curves.LnBeta(n.alpha, n.beta)
	}
	return n
}

// split adds panels of the level that are narrow next to the spread of the own rate. The own rate's
// density moves with the level. A panel that is wide next to it would step over the peak.
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

// shapes returns the shapes of the own rate at a level. The own rate is Beta around the item's
// mean, with a concentration of sharpness times all outcomes and the strength.
func (s *sampled) shapes(level point) (alpha, beta float64) {
	alpha = s.sharpness * (s.strength*math.Exp(level.log) + s.successes)
	beta = s.sharpness * (s.strength*math.Exp(level.logRest) + s.failures)
	return max(alpha, leastShape), max(beta, leastShape)
}

// spread is about the standard deviation of the logit of the own rate at a level.
func (s *sampled) spread(level float64) float64 {
	alpha, beta := s.shapes(at(level))
	return math.Sqrt(1/alpha + 1/beta)
}

// beyond adds panels above the greatest mean. Own rates reach there. Panels end where one of the
// own rates' densities bends, at the lowest, the most probable and the highest level, and at
// distances that grow, because tails are smooth.
func (s *sampled) beyond(from float64, levels ...float64) {
	var cuts []float64
	for _, bend := range [...]float64{1, 2.5, 7, 16} {
		cuts = append(cuts, from+bend)
	}
	for _, level := range levels {
		alpha, beta := s.shapes(at(level))
		own := curves.Of(alpha, beta)
		cuts = own.AppendCuts(cuts)
	}
	slices.Sort(cuts)
	least := max(s.spread(s.level.Mode), 1e-6)
	for _, to := range cuts {
		if to = min(to, top); to > from+least {
			s.panels = append(s.panels, sampledPanel{from: from, to: to, start: from, end: to,
				beyond: true})
			from = to
		}
	}
}

// integrate works out a panel. sum is the probability up to it.
//
// The density of the sample has two parts at a coordinate. One is the level itself, if its own rate
// is at most the mean: the level's density times that probability. The other is an own rate that
// exceeds its mean: the own rates' densities, integrated over all levels whose mean is below. Below
// the greatest mean, these are the levels of earlier panels, by before, and the levels of this
// panel up to the coordinate, by UpTo. Beyond it there is only the second part.
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
		s.nodes = append(s.nodes, s.node(own, half))
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
		density[j] = n.weight*betaBelow(n.alpha, n.beta, points[j]) + half*slope*d
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

// betaBelow is the probability that a Beta variate is at most a rate.
func betaBelow(alpha, beta float64, p point) float64 {
	switch {
	case alpha < 1e-7:
		return 1
	case beta < 1e-7:
		return 0
	case p.logit < 0:
		return mathext.RegIncBeta(alpha, beta, math.Exp(p.log))
	}
	return 1 - mathext.RegIncBeta(beta, alpha, math.Exp(p.logRest))
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

// unit returns a coordinate of the panel in [-1, 1].
func (p *sampledPanel) unit(own float64) float64 {
	return min(max((2*own-p.from-p.to)/(p.to-p.from), -1), 1)
}

// below returns the distribution function at or above the floor.
func (s *sampled) below(p point) float64 {
	last := len(s.panels) - 1
	switch {
	case math.IsInf(p.logit, 1): // a bonus lifts it above every rate
		return 1
	case last < 0 || p.logit >= s.panels[last].end:
		return min(s.sum, 1)
	case p.logit <= s.panels[0].start:
		return s.under
	}
	for s.asked < last && p.logit > s.panels[s.asked].end {
		s.asked++
	}
	for s.asked > 0 && p.logit < s.panels[s.asked].start {
		s.asked--
	}
	panel := &s.panels[s.asked]
	return min(max(panel.below.At(panel.unit(s.own(p, panel.beyond))), 0), 1)
}

// drawsFor returns how often each arm is drawn to count a propensity.
func drawsFor(arms int) int { return min(propensityDraws, propensityWork/arms) }

// count returns the share of draws in which an arm has the greatest sample. The generator is keyed
// by the choice's id, so the same choice has the same propensity each time. The share is kept half
// a draw from 0 and 1, because off-policy estimates divide by it.
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
