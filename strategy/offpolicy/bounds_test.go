package offpolicy

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The capital that speaks against a mean is reached with the stated probability: that a Brownian
// motion which ends with a variance of twice the capital's logarithm L ever comes to L.
func TestEnoughSpeaksAgainst(t *testing.T) {
	normal := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	for _, miss := range []float64{0.2, 0.05, 0.005, 1e-6} {
		l := against(miss)
		assert.InEpsilon(t, miss, normal(-math.Sqrt(2*l))+math.Exp(-l)/2, 1e-9)
	}
}

// Less is enough if weights differ, down to seven tenths.
func TestDifferentWeightsNeedLess(t *testing.T) {
	for effective, want := range map[float64]float64{0: 0.7, 0.7: 0.7, 0.8: 0.8, 1: 1, 2: 1} {
		assert.InDelta(t, want, unlikely(effective), 1e-12, effective)
	}
	assert.InDelta(t, 0.7, unlikely(math.NaN()), 1e-12)
}
