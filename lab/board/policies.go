package board

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// fixed is a router that does not learn.
type fixed func(r *request) int

func (f fixed) choose(r *request) (int, any) { return f(r), nil }
func (f fixed) learn(*outcome)               {}
func (f fixed) save() []byte                 { return nil }

// draws returns what a process draws from: other numbers than the process before it.
func draws(t *trial, now func() time.Time) *rand.Rand {
	return rand.New(rand.NewPCG(t.seed, uint64(now().Unix())))
}

// mostFixed is how many arms a world has at most whose arms are played each by itself.
const mostFixed = 9

// yardsticks returns the policies that do not learn: the oracle, which has the rates; each arm
// always; and chance.
func yardsticks(w *world) []policy {
	all := []policy{
		{"oracle", yardstick, func(t *trial, _ func() time.Time, _ []byte) router {
			return fixed(func(r *request) int {
				arm, _ := t.best(r)
				return arm
			})
		}},
		{"by chance", yardstick, func(t *trial, now func() time.Time, _ []byte) router {
			rng := draws(t, now)
			return fixed(func(r *request) int { return rng.IntN(len(r.rates)) })
		}},
	}
	if len(w.costs) > mostFixed {
		return all
	}
	for arm := range w.costs {
		name := fmt.Sprint("always arm ", arm+1)
		all = append(all, policy{name, yardstick, func(*trial, func() time.Time, []byte) router {
			return fixed(func(*request) int { return arm })
		}})
	}
	return all
}
