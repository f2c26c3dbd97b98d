package board

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"hash/fnv"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"
)

// hashed is how many places of the features items are hashed into.
const hashed = 64

// features is the length of a request's: a constant, its vector, and its item, hashed.
const features = 1 + numbers + hashed

// A ridge is the linear regression of an arm: the inverse of 1 + Σ x xᵀ, and Σ reward x.
type ridge struct{ Inverse, Sum []float64 }

// linucb is the rule of Li, Chu, Langford and Schapire (2010) with disjoint models.
type linucb struct {
	arms      []ridge
	width     float64
	x, scaled *mat.VecDense
}

// ofLinUCB returns it with this width of its bounds.
func ofLinUCB(width float64) policy {
	return policy{fmt.Sprintf("LinUCB, α=%v", width), rule, func(t *trial, _ func() time.Time, state []byte) (router, error) {
		l := &linucb{width: width, x: mat.NewVecDense(features, nil), scaled: mat.NewVecDense(features, nil)}
		if state != nil {
			return l, gob.NewDecoder(bytes.NewReader(state)).Decode(&l.arms)
		}
		for range t.world.costs {
			r := ridge{make([]float64, features*features), make([]float64, features)}
			for i := range features {
				r.Inverse[i*features+i] = 1
			}
			l.arms = append(l.arms, r)
		}
		return l, nil
	}}
}

// look sets x to the request's features.
func (l *linucb) look(r *request) {
	l.x.Zero()
	l.x.SetVec(0, 1)
	for i, x := range r.vector {
		l.x.SetVec(1+i, float64(x))
	}
	if r.item != "" {
		h := fnv.New32a()
		_, _ = h.Write([]byte(r.item)) // a hash never fails
		l.x.SetVec(1+numbers+int(h.Sum32()%hashed), 1)
	}
}

func (l *linucb) choose(r *request) (int, any, error) {
	l.look(r)
	best, most := 0, math.Inf(-1)
	for arm, a := range l.arms {
		l.scaled.MulVec(mat.NewSymDense(features, a.Inverse), l.x)
		bound := mat.Dot(l.scaled, mat.NewVecDense(features, a.Sum)) + l.width*math.Sqrt(max(mat.Dot(l.scaled, l.x), 0))
		if bound > most {
			best, most = arm, bound
		}
	}
	return best, nil, nil
}

// learn adds an outcome, by the formula of Sherman and Morrison (1950).
func (l *linucb) learn(o *outcome) error {
	l.look(o.request)
	a := l.arms[o.arm]
	inverse, sum := mat.NewSymDense(features, a.Inverse), mat.NewVecDense(features, a.Sum)
	l.scaled.MulVec(inverse, l.x)
	inverse.SymRankOne(inverse, -1/(1+mat.Dot(l.x, l.scaled)), l.scaled)
	sum.AddScaledVec(sum, o.reward, l.x)
	return nil
}

func (l *linucb) save() ([]byte, error) { return encode(l.arms) }
