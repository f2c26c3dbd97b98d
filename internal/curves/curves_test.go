package curves_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/internal/curves"
)

// TestARuleIntegratesPolynomials, up to each node too, and finds them again from their values.
func TestARuleIntegratesPolynomials(t *testing.T) {
	rule := curves.Legendre()
	var values [curves.Nodes]float64
	for i, x := range rule.At {
		values[i] = 5*math.Pow(x, 9) - 3*x*x + 1
	}
	p := rule.Through(&values)
	for _, x := range []float64{-1, -0.3, 0, 0.77, 1} {
		assert.InDelta(t, 5*math.Pow(x, 9)-3*x*x+1, p.At(x), 1e-12)
	}
	integral := func(x float64) float64 { return math.Pow(x, 10)/2 - x*x*x + x }
	whole := 0.
	for i, x := range rule.At {
		whole += rule.Weight[i] * values[i]
		upTo := 0.
		for j, y := range values {
			upTo += rule.UpTo[i][j] * y
		}
		assert.InDelta(t, integral(x)-integral(-1), upTo, 1e-12)
	}
	assert.InDelta(t, integral(1)-integral(-1), whole, 1e-12)
}
