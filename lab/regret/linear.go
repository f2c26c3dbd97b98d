package regret

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
)

// linear is Thompson sampling with a linear model of each arm (Agrawal and Goyal 2013): ridge 1, and draws of this standard deviation. Its
// features are the vector and a constant.
func linear(exploration float64) contextual {
	return contextual{fmt.Sprintf("linear Thompson, v=%v", exploration), func(t *trial) (chooser, error) {
		rng := rand.New(rand.NewPCG(t.seed, 3))
		models := make([]*model, arms)
		for arm := range models {
			models[arm] = newModel(numbers + 1)
		}
		x := mat.NewVecDense(numbers+1, nil)
		return func(r *request) (int, func(float64) error, error) {
			x.SetVec(numbers, 1)
			for i, value := range r.vector {
				x.SetVec(i, float64(value))
			}
			best, most := 0, math.Inf(-1)
			for arm, m := range models {
				if drawn := m.draw(x, exploration, rng); drawn > most {
					best, most = arm, drawn
				}
			}
			return best, func(reward float64) error {
				models[best].learn(x, reward)
				return nil
			}, nil
		}, nil
	}}
}

// A model is a Bayesian linear regression: the covariance C is the inverse of 1 + Σ x xᵀ, b = Σ reward x, and the mean is C b.
type model struct {
	covariance      *mat.SymDense
	b, mean, scaled *mat.VecDense
}

func newModel(n int) *model {
	m := &model{mat.NewSymDense(n, nil), mat.NewVecDense(n, nil), mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)}
	for i := range n {
		m.covariance.SetSym(i, i, 1)
	}
	return m
}

// learn adds an observation, by the formula of Sherman and Morrison (1950).
func (m *model) learn(x *mat.VecDense, reward float64) {
	m.scaled.MulVec(m.covariance, x)
	m.covariance.SymRankOne(m.covariance, -1/(1+mat.Dot(x, m.scaled)), m.scaled)
	m.b.AddScaledVec(m.b, reward, x)
	m.mean.MulVec(m.covariance, m.b)
}

// draw draws the arm's reward for x. It is normal with the variance v² xᵀCx, as the weights are normal.
func (m *model) draw(x *mat.VecDense, v float64, rng *rand.Rand) float64 {
	m.scaled.MulVec(m.covariance, x)
	return mat.Dot(x, m.mean) + v*math.Sqrt(max(mat.Dot(x, m.scaled), 0))*rng.NormFloat64()
}
