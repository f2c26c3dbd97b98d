package board

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/heedhq/heed/lab/internal/kit"
)

// hashed is how many places of the features items are hashed into.
const hashed = 64

// A ridge is the linear regression of an arm: the inverse of 1 + Σ x xᵀ, and Σ reward x.
type ridge struct{ Inverse, Sum []float64 }

// A linearRouter has a ridge for each arm, over a constant, the request's vector, and its item,
// hashed. It takes the arm with the greatest bound (LinUCB with disjoint models: Li, Chu, Langford
// and Schapire 2010), or with the greatest draw (Agrawal and Goyal 2013).
type linearRouter struct {
	arms      []ridge
	numbers   int
	width     float64    // of the bounds, or the standard deviation of the draws
	rng       *rand.Rand // nil: bounds
	x, scaled *mat.VecDense
}

func linear(name string, width float64, thompson bool) policy {
	return policy{name, rule, func(t *trial, now func() time.Time, state []byte) router {
		numbers := len(t.requests[0].vector)
		features := 1 + numbers + hashed
		l := &linearRouter{
			numbers: numbers, width: width, x: mat.NewVecDense(features, nil),
			scaled: mat.NewVecDense(features, nil),
		}
		if thompson {
			l.rng = draws(t, now)
		}
		for range t.world.costs {
			r := ridge{make([]float64, features*features), make([]float64, features)}
			for i := range features {
				r.Inverse[i*features+i] = 1
			}
			l.arms = append(l.arms, r)
		}
		return resumed(l, &l.arms, state)
	}}
}

// look sets x to the request's features, and returns their number.
func (l *linearRouter) look(r *request) int {
	l.x.Zero()
	l.x.SetVec(0, 1)
	for i, x := range r.vector {
		l.x.SetVec(1+i, float64(x))
	}
	if r.item != "" {
		h := fnv.New32a()
		_, _ = h.Write([]byte(r.item)) // a hash never fails
		l.x.SetVec(1+l.numbers+int(h.Sum32()%hashed), 1)
	}
	return l.x.Len()
}

func (l *linearRouter) choose(r *request) (int, any) {
	n := l.look(r)
	best, _ := kit.Best(len(l.arms), func(arm int) float64 {
		l.scaled.MulVec(mat.NewSymDense(n, l.arms[arm].Inverse), l.x)
		off := l.width * math.Sqrt(max(mat.Dot(l.scaled, l.x), 0))
		if l.rng != nil {
			off *= l.rng.NormFloat64()
		}
		return mat.Dot(l.scaled, mat.NewVecDense(n, l.arms[arm].Sum)) + off
	})
	return best, nil
}

// learn adds an outcome, by the formula of Sherman and Morrison (1950).
func (l *linearRouter) learn(o *outcome) {
	n := l.look(o.request)
	a := l.arms[o.arm]
	inverse, sum := mat.NewSymDense(n, a.Inverse), mat.NewVecDense(n, a.Sum)
	l.scaled.MulVec(inverse, l.x)
	inverse.SymRankOne(inverse, -1/(1+mat.Dot(l.x, l.scaled)), l.scaled)
	sum.AddScaledVec(sum, o.reward, l.x)
}

func (l *linearRouter) save() []byte { return encode(l.arms) }
