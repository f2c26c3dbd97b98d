package board

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/heedhq/heed/lab/internal/kit"
)

// A trouble is what happens to the outcomes, to the world, or to the policy's process.
type trouble struct {
	name  string
	apply func(rng *rand.Rand, requests []request)
	// restarts is how often the process ends in a run, and another goes on with the state that it
	// saved.
	restarts int
}

// troubles returns what policies are tried under. They were fixed before any policy was run under
// them.
func troubles() []trouble {
	return []trouble{
		{"plain", func(*rand.Rand, []request) {}, 0},
		{"late", late, 0},
		{"missing", missing, 0},
		{"repeated", repeated, 0},
		{"poisoned", poisoned, 0},
		{"drift", drift, 0},
		{"restarts", func(*rand.Rand, []request) {}, 9},
		{"all", func(rng *rand.Rand, requests []request) {
			late(rng, requests)
			repeated(rng, requests)
			missing(rng, requests)
			poisoned(rng, requests)
			drift(rng, requests)
		}, 9},
	}
}

// late delivers each outcome after 100 further requests in the mean, exponentially distributed. So
// they come out of order.
func late(rng *rand.Rand, requests []request) {
	for i := range requests {
		requests[i].arrives = []int{i + int(rng.ExpFloat64()*100)}
	}
}

// missing loses four outcomes of five.
func missing(rng *rand.Rand, requests []request) {
	for i := range requests {
		if rng.Float64() < 0.8 {
			requests[i].arrives = nil
		}
	}
}

// repeated delivers each tenth outcome thirty times in a row, like a sender without a receipt.
func repeated(rng *rand.Rand, requests []request) {
	for i := range requests {
		if rng.Float64() >= 0.1 {
			continue
		}
		for range 29 {
			requests[i].arrives = append(requests[i].arrives, requests[i].arrives[0])
		}
	}
}

// poisoned lets three accounts write a fifth of the outcomes. They report that the arm with the
// lowest rate was right, and that all others were wrong.
func poisoned(rng *rand.Rand, requests []request) {
	for i := range requests {
		if rng.Float64() < 0.2 {
			requests[i].source, requests[i].liar = fmt.Sprint("liar ", rng.IntN(3)), true
		}
	}
}

// drift reverses the order of the arms' qualities at the half. Their costs stay.
func drift(_ *rand.Rand, requests []request) {
	for i := len(requests) / 2; i < len(requests); i++ {
		r := &requests[i]
		rates, right, last := make([]float64, len(r.rates)), make([]bool, len(r.rates)), len(r.rates)-1
		for arm := range rates {
			rates[arm], right[arm] = r.rates[last-arm], r.right[last-arm]
		}
		r.rates, r.right = rates, right
	}
}

// beginning is when a stream begins.
var beginning = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A trial is one run of a world under a trouble.
type trial struct {
	world    *world
	trouble  *trouble
	requests []request
	before   [][]float32 // vectors that are seen before the first request
	seed     uint64      // of a policy's own draws
}

// trial draws a run. Under every trouble the same run has the same requests.
func (w *world) trial(t *trouble, requests, run int, seed uint64) *trial {
	rng := rand.New(rand.NewPCG(seed, uint64(run)))
	all, before := w.draw(rng, requests)
	for i := range all {
		r := &all[i]
		u := rng.Float64()
		r.id, r.source, r.at = i, fmt.Sprint("user ", int(100*u*u)),
			beginning.Add(time.Duration(i)*time.Minute)
		r.arrives = []int{i}
		if r.right == nil {
			luck := rng.Float64()
			for _, rate := range r.rates {
				r.right = append(r.right, luck < rate)
			}
		}
	}
	own := rng.Uint64()
	t.apply(rng, all)
	return &trial{w, t, all, before, own}
}

// best returns the arm with the greatest expected reward, and that reward.
func (t *trial) best(r *request) (arm int, reward float64) {
	return kit.Best(len(r.rates), func(arm int) float64 {
		return t.world.reward(r.rates[arm], t.world.costs[arm])
	})
}
