package chance_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/internal/chance"
)

// TestShapesAreScaledDown, with their ratio, where their sum is more than a float64 is exact for.
func TestShapesAreScaledDown(t *testing.T) {
	for _, shapes := range [][2]float64{{3e12, 1e12}, {1.2e12, 0.3e12}, {1e308, 1e308}} {
		c := chance.Of(shapes[0], shapes[1])
		assert.InEpsilon(t, 1e12, c.Alpha+c.Beta, 1e-12)
		assert.InEpsilon(t, shapes[0]/shapes[1], c.Alpha/c.Beta, 1e-12)
	}
}

// Shapes that a float64 is exact for stay. All panels of a curve end within it, and a wide curve is
// cut where it bends.
func TestCuts(t *testing.T) {
	for _, shapes := range [][2]float64{{7e11, 1e11}, {0.01, 0.02}, {0.3, 5}, {40, 2}} {
		c := chance.Of(shapes[0], shapes[1])
		assert.Equal(t, [2]float64{c.Alpha, c.Beta}, shapes)
		cuts := c.AppendCuts(nil)
		assert.Equal(t, []float64{c.Left, c.Right},
			[]float64{slices.Min(cuts), slices.Max(cuts)}, shapes)
		assert.Equal(t, shapes[0] < 1, slices.Contains(cuts, 0.), shapes)
	}
}

// A curve ends where its density is e^-38 of that at its mode, on both sides.
func TestEnds(t *testing.T) {
	for _, shapes := range [][2]float64{
		{7e11, 1e11}, {3e5, 2}, {2, 3e5}, {0.01, 0.02}, {1e-6, 4}, {0.3, 5}, {1, 1}, {40, 2},
	} {
		c := chance.Of(shapes[0], shapes[1])
		c.AppendCuts(nil)
		for _, end := range []float64{c.Left, c.Right} {
			ratio := c.Density(chance.Logs(end)) / c.Density(chance.Logs(c.Mode))
			assert.InDelta(t, -38, math.Log(ratio), 0.1, "%v at %v", shapes, end)
		}
	}
}

func TestLogs(t *testing.T) {
	for _, logit := range []float64{-40, -2, 0, 0.5, 3, 700} {
		logX, logRest := chance.Logs(logit)
		assert.InDelta(t, -math.Log1p(math.Exp(-logit)), logX, 1e-12)
		assert.InDelta(t, logX-logit, logRest, 1e-12)
	}
}

// TestARuleIntegratesPolynomials, up to each node too.
func TestARuleIntegratesPolynomials(t *testing.T) {
	rule := chance.Legendre()
	var values [chance.Nodes]float64
	for i, x := range rule.At {
		values[i] = 5*math.Pow(x, 9) - 3*x*x + 1
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
