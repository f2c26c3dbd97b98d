package chance

import (
	"math"
	"math/bits"
)

// Rand is a small deterministic generator of random numbers: one word of state, a multiplication a
// number (wyrand, by Wang Yi, which passes BigCrush and PractRand). Draws that share a Rand are
// draws of one stream; draws that must not depend on each other's order take a Rand each, derived
// with [Key.Rand].
//
// A Rand is a [math/rand/v2.Source]. It is not for secrets. It must not be used concurrently.
type Rand struct{ State uint64 }

// The two odd constants of wyrand; they have 32 bits set each.
const (
	wy0 = 0xa0761d6478bd642f
	wy1 = 0xe7037ed1a0b428db
)

// Uint64 returns the next 64 random bits.
func (r *Rand) Uint64() uint64 {
	r.State += wy0
	hi, lo := bits.Mul64(r.State, r.State^wy1)
	return hi ^ lo
}

// Float64 returns a number in the open interval (0, 1), on a grid of 2⁻⁵³.
func (r *Rand) Float64() float64 { return unit(r.Uint64()) }

// unit maps 64 random bits to the open interval (0, 1); the ends are left out so that a logarithm
// is always finite.
func unit(u uint64) float64 { return (float64(u>>11) + 0.5) * 0x1p-53 }

// A Key derives generators: the same key and the same parts give the same stream, in any order of
// draws. A Key is immutable.
//
// A and B come from the caller's seed.
type Key struct{ A, B uint64 }

// Rand returns the generator of these parts and a number. Parts are kept apart: ("ab", "c") and
// ("a", "bc") differ.
func (k Key) Rand(number uint64, parts ...string) Rand {
	h := k.A
	for _, part := range parts {
		h = k.absorb(h, uint64(len(part)))
		for len(part) >= 8 {
			h = k.absorb(h, word(part))
			part = part[8:]
		}
		var last uint64
		for i := range len(part) {
			last |= uint64(part[i]) << (8 * i)
		}
		h = k.absorb(h, last)
	}
	return Rand{k.absorb(h, number)}
}

// absorb mixes a word into a hash: a folded multiplication like wyrand's.
func (k Key) absorb(h, word uint64) uint64 {
	hi, lo := bits.Mul64(h^word^wy1, wy0)
	return (hi ^ lo) + k.B
}

func word(s string) uint64 {
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// Normal variates are drawn by the ziggurat of Marsaglia and Tsang (2000) with 256 layers, in the
// form of Doornik (2005): layer, sign and place come from bits that do not overlap. The common
// case, 99 draws in 100, is written out in the sampler of gamma variates, which needs it to be
// fast: take 64 bits u, the layer u&255, and x = u>>11 times its width; if x is inside, sign(x, u)
// is the variate.

// normEdge finishes a draw of a normal variate whose x may lie outside of the density.
func (r *Rand) normEdge(u uint64, x float64) float64 {
	for {
		layer := &normal[u&255]
		switch {
		case x < layer.inside:
			return sign(x, u)
		case u&255 == 0:
			return sign(r.normTail(), u)
		case layer.low+r.Float64()*(layer.high-layer.low) < normalDensity(x):
			return sign(x, u)
		}
		u = r.Uint64()
		x = float64(u>>11) * normal[u&255].width
	}
}

// sign gives x the sign that bit 8 of u holds.
func sign(x float64, u uint64) float64 {
	return math.Float64frombits(math.Float64bits(x) | u&256<<55)
}

// normTail draws |x| beyond the last layer, by Marsaglia's method (1964).
func (r *Rand) normTail() float64 {
	for {
		x := r.exp() / normalEnd
		if 2*r.exp() > x*x {
			return normalEnd + x
		}
	}
}

// exp draws from the standard exponential distribution in the same way: it is -log of a uniform
// number.
func (r *Rand) exp() float64 {
	u := r.Uint64()
	layer := &exponential[u&255]
	x := float64(u>>11) * layer.width
	if x < layer.inside {
		return x
	}
	return r.expEdge(u, x)
}

func (r *Rand) expEdge(u uint64, x float64) float64 {
	layer := &exponential[u&255]
	switch {
	case u&255 == 0: // beyond its end the distribution is the same again
		return exponentialEnd - math.Log(r.Float64())
	case layer.low+r.Float64()*(layer.high-layer.low) < exponentialDensity(x):
		return x
	}
	return r.exp()
}

// A layer of a ziggurat. Layers have the same area and are sorted, the widest first.
type layer struct {
	width     float64 // its right edge over 2⁵³, which maps 53 random bits into the layer
	inside    float64 // below this it is wholly under the density: the next layer's right edge
	low, high float64 // the density at its right edge, and at the next one's
}

// Where the last layer ends, and the area of each of 256 layers (Marsaglia and Tsang 2000, sections
// 3 and 4).
const (
	normalEnd       = 3.6541528853610088
	normalArea      = 0.00492867323399
	exponentialEnd  = 7.69711747013104972
	exponentialArea = 0.0039496598225815571993
)

var (
	normal = ziggurat(normalEnd, normalArea, normalDensity,
		func(density float64) float64 { return math.Sqrt(-2 * math.Log(density)) })
	exponential = ziggurat(exponentialEnd, exponentialArea, exponentialDensity,
		func(density float64) float64 { return -math.Log(density) })
)

// The densities, up to their constant factors.
func normalDensity(x float64) float64      { return math.Exp(-x * x / 2) }
func exponentialDensity(x float64) float64 { return math.Exp(-x) }

func ziggurat(end, area float64, density, inverse func(float64) float64) (layers [256]layer) {
	edge := [257]float64{area / density(end), end}
	for i := 1; i < 255; i++ {
		edge[i+1] = inverse(area/edge[i] + density(edge[i]))
	}
	for i := range layers {
		layers[i] = layer{edge[i] * 0x1p-53, edge[i+1], density(edge[i]), density(edge[i+1])}
	}
	return layers
}
