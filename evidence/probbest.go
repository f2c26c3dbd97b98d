package evidence

import (
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/integrate/quad"
)

// ProbBest returns, for each belief, the probability that its rate is the highest of all: the propensity with which
// Thompson sampling chooses it. The probabilities sum to 1. If a belief is not valid, all are NaN.
//
// It is the integral of each density times the other distribution functions, by Gauss–Legendre quadrature over the
// logits, where all densities are smooth, on panels that all beliefs share. The error is at most 1e-8 for shapes in
// [1e-3, 1e6]; shapes below 1e-6 count as that, and where two shapes sum to more than 1e12 they are scaled down to it.
func ProbBest(beliefs []Beta) []float64 {
	best := make([]float64, len(beliefs))
	curves := make([]curve, len(beliefs))
	cuts := make([]float64, 0, (2*len(drops)+1)*len(beliefs))
	for i, b := range beliefs {
		if !b.valid() {
			fill(best, math.NaN())
			return best
		}
		curves[i] = newCurve(b)
		cuts = curves[i].appendCuts(cuts)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	p := newPanels(len(curves))
	for i := 1; i < len(cuts); i++ {
		p.add(best, curves, cuts[i-1], cuts[i])
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

// A curve is the density of a belief's logit t = log(x/(1-x)): log-concave, with its mode at log(alpha/beta).
type curve struct {
	alpha, beta float64
	mode        float64
	peak        float64 // the logarithm of the unnormalised density at the mode
	left, right float64 // beyond them the density counts as 0
	scale       float64 // the density at the mode
	below       float64 // the integral of the density up to the panel at hand
}

// drops are how far below its peak the logarithm of a density lies at the cuts between panels, on either side. The last
// is where it ends: e^-38 is 3e-17.
var drops = [...]float64{1, 5, 15, 38}

// bends are further cuts for a density of small shapes, which is wider than the places where it bends: around the logit
// 0, where log x and log(1-x) do, and around its mode.
var bends = [...]float64{-16, -7, -2.5, 0, 2.5, 7, 16}

func newCurve(b Beta) curve {
	const least, most = 1e-6, 1e12
	if total := b.Alpha/2 + b.Beta/2; total > most/2 { // halves, as the sum may be too large for a float64
		b.Alpha, b.Beta = b.Alpha/total*(most/2), b.Beta/total*(most/2)
	}
	c := curve{alpha: max(b.Alpha, least), beta: max(b.Beta, least)}
	c.mode = math.Log(c.alpha / c.beta)
	c.peak = c.logDensity(logs(c.mode))
	c.scale = math.Exp(c.peak - lnBeta(c.alpha, c.beta))
	return c
}

// logs returns the logarithms of x and 1-x at the logit t, to full precision at either end.
func logs(t float64) (logX, logRest float64) {
	tail := math.Log1p(math.Exp(-math.Abs(t)))
	return min(t, 0) - tail, min(-t, 0) - tail
}

func (c *curve) logDensity(logX, logRest float64) float64 { return c.alpha*logX + c.beta*logRest }

func lnBeta(a, b float64) float64 {
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	return la + lb - lab
}

// appendCuts appends where the curve wants panels to end, and sets its own ends.
func (c *curve) appendCuts(cuts []float64) []float64 {
	cuts = append(cuts, c.mode)
	width := math.Sqrt(1/c.alpha + 1/c.beta)
	c.left, c.right = c.mode, c.mode
	for _, drop := range drops {
		c.left = c.descend(c.left, -width, drop)
		c.right = c.descend(c.right, width, drop)
		cuts = append(cuts, c.left, c.right)
	}
	if width > 1 {
		for _, bend := range bends {
			for _, t := range [...]float64{bend, c.mode + bend} {
				if c.left < t && t < c.right {
					cuts = append(cuts, t)
				}
			}
		}
	}
	return cuts
}

// descend finds where the log density has fallen by drop, on the side that step points to. It walks out in growing steps
// until it is past that place; from there Newton's method comes back without overshooting, as the function is concave.
func (c *curve) descend(t, step, drop float64) float64 {
	fall := func(t float64) float64 { return c.peak - c.logDensity(logs(t)) - drop }
	for fall(t) < 0 {
		t += step
		step *= 2
	}
	for range 50 {
		slope := c.beta/(1+math.Exp(-t)) - c.alpha/(1+math.Exp(t))
		move := fall(t) / slope
		t -= move
		if math.Abs(move) <= 1e-3*math.Abs(step) {
			break
		}
	}
	return t
}

// panels integrates over one panel after the other, from the left. Its tables are one row a curve.
type panels struct {
	rule           *rule
	density, below [][nodes]float64
	upTo, from     []float64 // products of the distribution functions of the curves before, and behind, each curve
}

func newPanels(curves int) panels {
	return panels{
		rule:    legendre(),
		density: make([][nodes]float64, curves), below: make([][nodes]float64, curves),
		upTo: make([]float64, curves+1), from: make([]float64, curves+1),
	}
}

// add adds to best what the panel from left to right contributes.
func (p *panels) add(best []float64, curves []curve, left, right float64) {
	half := (right - left) / 2
	var logX, logRest [nodes]float64
	for j, at := range p.rule.at {
		logX[j], logRest[j] = logs(left + half*(1+at))
	}
	for i := range curves {
		c := &curves[i]
		density, below := &p.density[i], &p.below[i]
		if right <= c.left || left >= c.right {
			*density = [nodes]float64{}
			fill(below[:], c.below)
			continue
		}
		for j := range density {
			density[j] = half * c.scale * math.Exp(c.logDensity(logX[j], logRest[j])-c.peak)
		}
		for j := range below {
			below[j] = c.below + dot(&p.rule.upTo[j], density)
		}
		c.below += dot(&p.rule.weight, density)
	}
	for j, weight := range p.rule.weight {
		p.upTo[0], p.from[len(curves)] = 1, 1
		for i := range curves {
			p.upTo[i+1] = p.upTo[i] * p.below[i][j]
		}
		for i := len(curves) - 1; i >= 0; i-- {
			p.from[i] = p.from[i+1] * p.below[i][j]
		}
		for i := range best {
			best[i] += weight * p.density[i][j] * p.upTo[i] * p.from[i+1]
		}
	}
}

func dot(a, b *[nodes]float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// nodes is the number of nodes a panel.
const nodes = 12

// A rule is Gauss–Legendre quadrature on [-1, 1], which also integrates from -1 up to each of its nodes.
type rule struct {
	at, weight [nodes]float64
	upTo       [nodes][nodes]float64
}

// legendre returns the rule. The integrals up to a node are those of the interpolating polynomial, written in Legendre
// polynomials: the integral of P_m from -1 to x is (P_(m+1)(x) - P_(m-1)(x))/(2m+1).
var legendre = sync.OnceValue(func() *rule {
	r := &rule{}
	quad.Legendre{}.FixedLocations(r.at[:], r.weight[:], -1, 1)
	var p [nodes][nodes + 1]float64 // p[i][m] is P_m at node i
	for i, x := range r.at {
		p[i][0], p[i][1] = 1, x
		for m := 1; m < nodes; m++ {
			p[i][m+1] = (float64(2*m+1)*x*p[i][m] - float64(m)*p[i][m-1]) / float64(m+1)
		}
	}
	for i, x := range r.at {
		for j := range r.at {
			sum := (1 + x) / 2
			for m := 1; m < nodes; m++ {
				sum += p[j][m] * (p[i][m+1] - p[i][m-1]) / 2
			}
			r.upTo[i][j] = r.weight[j] * sum
		}
	}
	return r
})
