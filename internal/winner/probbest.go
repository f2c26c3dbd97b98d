package winner

import (
	"math"
	"slices"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/chance"
)

// ProbBest returns, for each belief, the probability that its rate is the highest of all: the
// propensity with which Thompson sampling chooses it. The probabilities sum to 1. If a belief is
// not valid, all are NaN.
//
// It is the integral of each density times the other distribution functions, by Gauss–Legendre
// quadrature over the logits, where all densities are smooth, on panels that all beliefs share. The
// error is at most 1e-8 for shapes in [1e-3, 1e6]; shapes below 1e-6 count as that, and where two
// shapes sum to more than 1e12 they are scaled down to it.
func ProbBest(beliefs []evidence.Beta) []float64 {
	best := make([]float64, len(beliefs))
	all := make([]curve, len(beliefs))
	cuts := make([]float64, 0, 9*len(beliefs))
	for i, b := range beliefs {
		if math.IsNaN(b.Mean()) {
			fill(best, math.NaN())
			return best
		}
		all[i].Curve = chance.Of(b.Alpha, b.Beta)
		cuts = all[i].AppendCuts(cuts)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	p := newPanels(len(all))
	for i := 1; i < len(cuts); i++ {
		p.add(best, all, cuts[i-1], cuts[i])
	}
	var sum float64
	for _, x := range best {
		sum += x
	}
	for i := range best {
		best[i] /= sum
	}
	return best
}

func fill(xs []float64, x float64) {
	for i := range xs {
		xs[i] = x
	}
}

// A curve is the density of a belief's logit.
type curve struct {
	chance.Curve
	below float64 // the integral of the density up to the panel at hand
}

// panels integrates over one panel after the other, from the left. Its tables are one row a curve.
type panels struct {
	rule           *chance.Rule
	density, below [][chance.Nodes]float64
	// products of the distribution functions of the curves before, and behind, each curve
	upTo, from []float64
}

func newPanels(n int) panels {
	return panels{
		rule:    chance.Legendre(),
		density: make([][chance.Nodes]float64, n), below: make([][chance.Nodes]float64, n),
		upTo: make([]float64, n+1), from: make([]float64, n+1),
	}
}

// add adds to best what the panel from left to right contributes.
func (p *panels) add(best []float64, all []curve, left, right float64) {
	half := (right - left) / 2
	var logX, logRest [chance.Nodes]float64
	for j, at := range p.rule.At {
		logX[j], logRest[j] = chance.Logs(left + half*(1+at))
	}
	for i := range all {
		c := &all[i]
		density, below := &p.density[i], &p.below[i]
		if right <= c.Left || left >= c.Right {
			*density = [chance.Nodes]float64{}
			fill(below[:], c.below)
			continue
		}
		for j := range density {
			density[j] = half * c.Density(logX[j], logRest[j])
		}
		for j := range below {
			below[j] = c.below + dot(&p.rule.UpTo[j], density)
		}
		c.below += dot(&p.rule.Weight, density)
	}
	for j, weight := range p.rule.Weight {
		p.upTo[0], p.from[len(all)] = 1, 1
		for i := range all {
			p.upTo[i+1] = p.upTo[i] * p.below[i][j]
		}
		for i := len(all) - 1; i >= 0; i-- {
			p.from[i] = p.from[i+1] * p.below[i][j]
		}
		for i := range best {
			best[i] += weight * p.density[i][j] * p.upTo[i] * p.from[i+1]
		}
	}
}

func dot(a, b *[chance.Nodes]float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
