// Package chance draws Beta variates from streams of random numbers that a seed determines, and
// integrates their densities over the logits, where they are smooth and log-concave.
package chance

import (
	"math"
	"sync"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/mathext"
)

// A Curve is the density of the logit t = log(x/(1-x)) of a Beta variate x: log-concave, with its
// mode at log(alpha/beta).
type Curve struct {
	Alpha, Beta float64
	Mode        float64
	peak        float64 // the logarithm of the unnormalised density at the mode
	Left, Right float64 // beyond them the density counts as 0
	scale       float64 // the density at the mode
}

// drops are how far below its peak the logarithm of a density lies at the cuts between panels, on
// either side. The last is where it ends: e^-38 is 3e-17.
var drops = [...]float64{1, 5, 15, 38}

// bends are further cuts for a density of small shapes, which is wider than the places where it
// bends: around the logit 0, where log x and log(1-x) do, and around its mode.
var bends = [...]float64{-16, -7, -2.5, 0, 2.5, 7, 16}

// Of returns the curve of two positive shapes, those below 1e-6 as that, and those that sum to more
// than 1e12 scaled down to it. AppendCuts sets its ends.
func Of(alpha, beta float64) Curve {
	const least, most = 1e-6, 1e12
	// halves, because the sum may be too large for a float64
	if total := alpha/2 + beta/2; total > most/2 {
		alpha, beta = alpha/total*(most/2), beta/total*(most/2)
	}
	c := Curve{Alpha: max(alpha, least), Beta: max(beta, least)}
	c.Mode = math.Log(c.Alpha / c.Beta)
	c.peak = c.logDensity(Logs(c.Mode))
	c.scale = math.Exp(c.peak - LnBeta(c.Alpha, c.Beta))
	return c
}

// Logs returns the logarithms of x and 1-x at the logit t, to full precision at either end.
func Logs(t float64) (logX, logRest float64) {
	tail := math.Log1p(math.Exp(-math.Abs(t)))
	return min(t, 0) - tail, min(-t, 0) - tail
}

// Density returns the density at a logit, given as [Logs] does.
func (c *Curve) Density(logX, logRest float64) float64 {
	return c.scale * math.Exp(c.logDensity(logX, logRest)-c.peak)
}

func (c *Curve) logDensity(logX, logRest float64) float64 { return c.Alpha*logX + c.Beta*logRest }

// LnBeta returns the logarithm of the beta function.
func LnBeta(a, b float64) float64 { return mathext.Lbeta(a, b) }

// AppendCuts appends where the curve wants panels to end, and sets its own ends.
func (c *Curve) AppendCuts(cuts []float64) []float64 {
	cuts = append(cuts, c.Mode)
	width := math.Sqrt(1/c.Alpha + 1/c.Beta)
	c.Left, c.Right = c.Mode, c.Mode
	for _, drop := range drops {
		c.Left = c.descend(c.Left, -width, drop)
		c.Right = c.descend(c.Right, width, drop)
		cuts = append(cuts, c.Left, c.Right)
	}
	if width > 1 {
		for _, bend := range bends {
			for _, t := range [...]float64{bend, c.Mode + bend} {
				if c.Left < t && t < c.Right {
					cuts = append(cuts, t)
				}
			}
		}
	}
	return cuts
}

// descend finds where the log density fell by drop, on the side that step points to. It walks out
// in growing steps until it is past that place; from there Newton's method comes back without
// overshooting, because the function is concave.
func (c *Curve) descend(t, step, drop float64) float64 {
	fall := func(t float64) float64 { return c.peak - c.logDensity(Logs(t)) - drop }
	for fall(t) < 0 {
		t += step
		step *= 2
	}
	for range 50 {
		slope := c.Beta/(1+math.Exp(-t)) - c.Alpha/(1+math.Exp(t))
		move := fall(t) / slope
		t -= move
		if math.Abs(move) <= 1e-3*math.Abs(step) {
			break
		}
	}
	return t
}

// Nodes is the number of nodes a panel.
const Nodes = 12

// A Rule is Gauss–Legendre quadrature on [-1, 1], which also integrates from -1 up to each of its
// nodes.
type Rule struct {
	At, Weight [Nodes]float64
	UpTo       [Nodes][Nodes]float64
}

// Legendre returns the rule. The integrals up to a node are taken of the interpolating polynomial,
// written in Legendre polynomials: the integral of P_m from -1 to x is (P_(m+1)(x) -
// P_(m-1)(x))/(2m+1).
var Legendre = sync.OnceValue(func() *Rule {
	r := &Rule{}
	quad.Legendre{}.FixedLocations(r.At[:], r.Weight[:], -1, 1)
	var p [Nodes][Nodes + 1]float64 // p[i][m] is P_m at node i
	for i, x := range r.At {
		p[i][0], p[i][1] = 1, x
		for m := 1; m < Nodes; m++ {
			p[i][m+1] = (float64(2*m+1)*x*p[i][m] - float64(m)*p[i][m-1]) / float64(m+1)
		}
	}
	for i, x := range r.At {
		for j := range r.At {
			sum := (1 + x) / 2
			for m := 1; m < Nodes; m++ {
				sum += p[j][m] * (p[i][m+1] - p[i][m-1]) / 2
			}
			r.UpTo[i][j] = r.Weight[j] * sum
		}
	}
	return r
})
