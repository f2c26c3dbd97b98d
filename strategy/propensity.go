package strategy

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/chance"
)

// bestOf returns the probability that the sample of one of the draws is the greatest. It reports
// false if it can't compute it, and the draws must be counted.
//
// The sample of an arm is a draw of a Beta distribution that is raised to a floor, plus a bonus:
// see [evidence.Belief.Draw]. So an arm wins only above the highest floor of the others. There its
// density, times the distribution functions of the others, is integrated. If its own floor is the
// highest, it also wins if it is raised and all others are below.
func bestOf(draws []answer.Draw, chosen int) (p float64, ok bool) {
	all := make([]sampled, len(draws))
	for i := range draws {
		if !all[i].take(&draws[i]) {
			return 0, false
		}
		all[i].later = i > chosen
	}
	one := all[chosen]
	others := slices.Delete(all, chosen, chosen+1)
	own, highest := one.floor+one.bonus, math.Inf(-1)
	for i := range others {
		highest = max(highest, others[i].floor+others[i].bonus)
	}
	if one.floor > 0 && own >= highest-sameFloor {
		p = one.raised(others)
	}
	return p + one.above(max(own, highest)-one.bonus, others), true
}

// sameFloor is the greatest distance of two floors with their bonuses that count as equal. Two
// floors are equal or 2^-24 apart, so it only allows for rounding.
const sameFloor = chance.Trace / 1000

// A sampled is the distribution of the sample of an arm.
type sampled struct {
	of           evidence.Beta
	floor, bonus float64
	later        bool // whether the arm comes after the chosen one
}

// The shapes of a draw are at least least and at most mostShape, because the incomplete beta
// function is less exact for greater ones.
const least, mostShape = 0.01, 1e6

// take takes a draw, or reports that it can't be integrated.
func (s *sampled) take(d *answer.Draw) bool {
	s.of, s.floor = d.Belief.Drawn()
	s.bonus = d.Bonus
	for _, x := range [...]float64{s.of.Alpha, s.of.Beta} {
		if !(x >= least && x <= mostShape) {
			return false
		}
	}
	return s.floor >= 0 && s.floor <= 1 && math.Abs(s.bonus) <= 1
}

// below returns the probability that the draw is at most a rate.
func (s *sampled) below(p point) float64 {
	switch {
	case math.IsInf(p.logit, 1): // a bonus lifts it above every rate
		return 1
	case p.logit < 0:
		return mathext.RegIncBeta(s.of.Alpha, s.of.Beta, math.Exp(p.log))
	}
	return 1 - mathext.RegIncBeta(s.of.Beta, s.of.Alpha, math.Exp(p.logRest))
}

// raised returns the probability that an arm with the highest floor is raised to it, and wins.
// Among arms with the same floor, the one whose draw is the least far below wins.
func (s *sampled) raised(others []sampled) float64 {
	share := 1.
	var same []sampled
	for _, o := range others {
		if math.Abs(o.floor+o.bonus-s.floor-s.bonus) > sameFloor {
			share *= o.below(rate(s.floor + s.bonus - o.bonus))
			continue
		}
		// A draw of o is as far below its floor as one of s that is greater by this bonus.
		o.bonus = s.bonus + s.floor - o.floor
		same = append(same, o)
	}
	if len(same) == 0 || share < never {
		return share * s.below(rate(s.floor))
	}
	return share * s.between(math.Inf(-1), rate(s.floor).logit, same)
}

// above returns the probability that the draw is above a rate, and wins.
func (s *sampled) above(from float64, others []sampled) float64 {
	if from >= 1 {
		return 0
	}
	start := rate(from)
	others = slices.DeleteFunc(slices.Clone(others), func(o sampled) bool {
		return o.below(start.plus(s.bonus-o.bonus)) > 1-never // it is always below
	})
	// What is left lies where the rate is 1 as a float64.
	return s.between(start.logit, top, others) + (1-s.below(at(top)))*s.equal(others)
}

// never is a probability that counts as 0.
const never = 1e-12

// top is the logit from which on a rate is 1 as a float64.
const top = 37.4

// equal returns the probability that an arm whose rate is 1 has the greatest sample. Other arms
// with a rate of 1 have the same sample if their bonus is the same. Then the order of arms decides,
// as in drawArms.
func (s *sampled) equal(others []sampled) float64 {
	product := 1.
	for i := range others {
		o := &others[i]
		if more := s.bonus - o.bonus; more < 0 || more == 0 && !o.later {
			product *= o.below(at(top).plus(more))
		}
	}
	return product
}

// between returns the probability that the logit of the draw lies between two values, and that the
// draws of all others are below. It is integrated in panels, whose ends are where the density
// bends, by Gauss-Legendre quadrature: see package chance.
func (s *sampled) between(from, to float64, others []sampled) (p float64) {
	curve := chance.Of(s.of.Alpha, s.of.Beta)
	cuts := curve.AppendCuts([]float64{max(from, -mostLogit), min(to, mostLogit)})
	for _, o := range others { // where the other's rate is 0 or 1
		if more := s.bonus - o.bonus; more > 0 {
			cuts = append(cuts, rate(1-more).logit)
		} else if more < 0 {
			cuts = append(cuts, rate(-more).logit)
		}
	}
	slices.Sort(cuts)
	i := integral{s, &curve, others}
	for n := 1; n < len(cuts); n++ {
		if low, high := cuts[n-1], cuts[n]; low >= from && high <= to {
			p += i.refine(low, high, i.panel(low, high), mostHalvings)
		}
	}
	return p
}

// mostLogit is the greatest logit of a rate whose logarithm is a float64.
const mostLogit = 740

// A panel is halved until that changes its integral by at most integralError, mostHalvings times
// at most. Twelve nodes in each half err by far less than the change.
const (
	mostHalvings  = 12
	integralError = 1e-8
)

// An integral is of the density of a draw, times the probability that all others are below.
type integral struct {
	of     *sampled
	curve  *chance.Curve
	others []sampled
}

// refine integrates a panel. whole is an estimate of that integral. This is adaptive quadrature: if
// halving changes the estimate, each half is integrated by itself.
func (i *integral) refine(from, to, whole float64, halvings int) float64 {
	middle := (from + to) / 2
	left, right := i.panel(from, middle), i.panel(middle, to)
	if halvings == 0 || math.Abs(left+right-whole) <= integralError {
		return left + right
	}
	return i.refine(from, middle, left, halvings-1) + i.refine(middle, to, right, halvings-1)
}

func (i *integral) panel(from, to float64) (sum float64) {
	rule, half := chance.Legendre(), (to-from)/2
	for j, x := range rule.At {
		p := at(from + half*(1+x))
		product := rule.Weight[j] * half * i.curve.Density(p.log, p.logRest)
		for k := range i.others {
			if product < never*1e-3 {
				break
			}
			product *= i.others[k].below(p.plus(i.of.bonus - i.others[k].bonus))
		}
		sum += product
	}
	return sum
}

// A point is a rate, to full precision at either end: its logit, the logarithm of the rate, and the
// logarithm of one minus the rate. A rate of 1 − 1e-30 is 1 as a float64, but its logRest is exact.
type point struct{ logit, log, logRest float64 }

func at(logit float64) point {
	log, rest := chance.Logs(logit)
	return point{logit, log, rest}
}

// rate returns the point of a rate, cut at 0 and 1.
func rate(x float64) point {
	switch {
	case x <= 0:
		return point{math.Inf(-1), math.Inf(-1), 0}
	case x >= 1:
		return point{math.Inf(1), 0, math.Inf(-1)}
	}
	return point{math.Log(x / (1 - x)), math.Log(x), math.Log1p(-x)}
}

// plus returns the rate that is greater by x. It compares rates of arms that have different
// bonuses.
func (p point) plus(x float64) point {
	if x == 0 {
		return p
	}
	return rate(x + math.Exp(p.log))
}

// drawsFor returns how often each arm is drawn to count a propensity.
func drawsFor(arms int) int { return min(propensityDraws, propensityWork/arms) }

// count returns the share of draws in which an arm has the greatest sample. The generator is keyed
// by the choice's id, so the same choice has the same propensity each time. The share is kept half
// a draw from 0 and 1, because off-policy estimates divide by it.
func (c *Choice) count(draws []answer.Draw, chosen int) float64 {
	draws = slices.Clone(draws)
	rng := chance.Key{A: propensityDraws, B: uint64(len(draws))}.Rand(0, string(c.ID[:]))
	n := drawsFor(len(draws))
	wins := 0.
	for range n {
		if drawArms(draws, &rng) == chosen {
			wins++
		}
	}
	return min(max(wins, 0.5), float64(n)-0.5) / float64(n)
}
