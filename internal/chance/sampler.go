package chance

import "math"

// A Sampler draws from one Beta distribution, with the constants that depend on its shapes kept:
// make it once for many draws. It is exact, and its numbers are in [0, 1] whatever the shapes;
// those beyond 1e-300 and 1e300 count as these.
//
// A draw is X/(X+Y) of two gamma variates (Devroye 1986, chapter IX.4), each by Marsaglia and Tsang
// (2000); a shape below 1 is raised by one and its variate multiplied by U^(1/shape), computed with
// logarithms where that would underflow. A shape of exactly 1 needs no gammas: Beta(a, 1) is
// U^(1/a).
//
// A Sampler is immutable; each goroutine draws with a separate [Rand].
type Sampler struct {
	method      method
	alpha, beta gamma
}

type method uint8

const (
	invalid     method = iota // the shapes make no distribution
	uniform                   // Beta(1, 1)
	powerAlpha                // Beta(a, 1)
	powerBeta                 // Beta(1, b)
	plain                     // both shapes at least 1
	boosted                   // a shape below 1
	logarithmic               // a shape so small that its gamma underflows
)

// gamma holds the constants of a shape for draws of its gamma variate.
type gamma struct {
	d, c  float64 // Marsaglia and Tsang's constants, of the raised shape where the shape is below 1
	boost float64 // 1/shape where the shape is below 1, else 0
}

const (
	leastShape, greatestShape = 1e-300, 1e300
	// leastBoosted is the least shape whose gamma variate cannot underflow: -log U is below 46, and
	// e^(-46·12) is a float64.
	leastBoosted = 1. / 12
	// sureShape is the shape from which the rejection step of Marsaglia and Tsang's method is left
	// out: it rejects with a probability of about 1/(36·shape), which is then below 1e-13.
	sureShape = 1e12
)

// Beta returns the sampler of the Beta distribution with these shapes. Unless both are positive and
// finite, it draws NaN.
func Beta(alpha, beta float64) Sampler {
	if !positive(alpha) || !positive(beta) {
		return Sampler{}
	}
	alpha = min(max(alpha, leastShape), greatestShape)
	beta = min(max(beta, leastShape), greatestShape)
	switch {
	case alpha == 1 && beta == 1:
		return Sampler{method: uniform}
	case beta == 1:
		return Sampler{method: powerAlpha, alpha: gamma{boost: 1 / alpha}}
	case alpha == 1:
		return Sampler{method: powerBeta, beta: gamma{boost: 1 / beta}}
	}
	s := Sampler{alpha: newGamma(alpha), beta: newGamma(beta)}
	switch least := min(alpha, beta); {
	case least >= 1:
		s.method = plain
	case least >= leastBoosted:
		s.method = boosted
	default:
		s.method = logarithmic
	}
	return s
}

func positive(x float64) bool { return x > 0 && x <= math.MaxFloat64 }

func newGamma(shape float64) gamma {
	var boost float64
	if shape < 1 {
		boost = 1 / shape
		shape++
	}
	d := shape - 1./3
	return gamma{d: d, c: 1 / (3 * math.Sqrt(d)), boost: boost}
}

// Draw draws one number, without allocating.
func (s *Sampler) Draw(r *Rand) float64 {
	switch s.method {
	case plain:
		x, y := s.alpha.drawRaised(r), s.beta.drawRaised(r)
		return x / (x + y)
	case uniform:
		return r.Float64()
	case powerAlpha:
		return math.Exp(-s.alpha.drawBoost(r))
	case powerBeta:
		return -math.Expm1(-s.beta.drawBoost(r))
	case boosted:
		x, y := s.alpha.drawRaised(r), s.beta.drawRaised(r)
		return x / (x + y*math.Exp(s.alpha.drawBoost(r)-s.beta.drawBoost(r)))
	case logarithmic:
		x := math.Log(s.alpha.drawRaised(r)) - s.alpha.drawBoost(r)
		y := math.Log(s.beta.drawRaised(r)) - s.beta.drawBoost(r)
		return 1 / (1 + math.Exp(y-x))
	default:
		return math.NaN()
	}
}

// drawBoost draws -log U/shape of a shape below 1, and 0 of a greater one: the logarithm, negated,
// of the factor between the variate of the raised shape and the variate of the shape itself.
func (g *gamma) drawBoost(r *Rand) float64 {
	if g.boost == 0 {
		return 0
	}
	return r.exp() * g.boost
}

// drawRaised draws a gamma variate of the shape, raised by one where it is below 1. It is the
// method of Marsaglia and Tsang, whose first test accepts more than nine in ten. The draw of a
// normal variate is written out, because a choice spends most of its time here.
func (g *gamma) drawRaised(r *Rand) float64 {
	for {
		u := r.Uint64()
		layer := &normal[u&255]
		x := float64(u>>11) * layer.width
		if x >= layer.inside {
			x = r.normEdge(u, x)
		} else {
			x = sign(x, u)
		}
		v := 1 + g.c*x
		if v <= 0 {
			continue
		}
		v *= v * v
		square := x * x
		w := r.Float64()
		if w < 1-0.0331*square*square || g.d > sureShape ||
			math.Log(w) < 0.5*square+g.d*(1-v+math.Log(v)) {
			return g.d * v
		}
	}
}

// Raised raises a sample to at most [Trace] below a floor. The result falls with the sample.
func Raised(x, floor float64) float64 {
	if x >= floor {
		return x
	}
	// The logarithm keeps very small draws apart. The least normal number keeps it finite.
	below := math.Log(floor / max(x, 0x1p-1022))
	return floor - Trace*floor*below/(1+below)
}

// Trace is how far below its floor a sample can be, as a fraction of the floor.
const Trace = 1e-9
