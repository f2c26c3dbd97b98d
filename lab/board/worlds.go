package board

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/heedhq/heed/evidence"
)

// numbers is the length of a request's vector.
const numbers = 16

// A request is what an arm is chosen for.
type request struct {
	id     int
	item   string    // its subject or route; "": nothing names it
	vector []float32 // its embedding
	source string    // who asks, and says how it went
	liar   bool      // who praises the worst arm, and blames all others
	at     time.Time

	rates   []float64 // how often each arm is right, which no policy knows
	right   []bool    // whether each arm is right this time, so that all policies have the same luck
	arrives []int     // after which requests its outcome is delivered
}

// A world is a kind of stream of requests.
type world struct {
	name  string
	price float64   // in right answers, of a unit of cost
	costs []float64 // of each arm, from 0 to 1
	draw  func(rng *rand.Rand, requests int) []request
}

// reward is what a policy earns and learns from, in [0, 1]: a right answer, and what was saved of the dearest arm's price, over all that can be
// earned.
func (w *world) reward(quality, cost float64) float64 {
	return (quality + w.price*(1-cost)) / (1 + w.price)
}

// worlds returns those that are made up. They were fixed before any policy was run in them.
func worlds() []world {
	free := make([]float64, 4)
	return []world{
		{"no context", 0, free, drawFlat},
		{"by item", 0, free, drawItems(40, 5, [][2]float64{{0.2, 0.8}, {0.2, 0.8}, {0.2, 0.8}, {0.2, 0.8}}, 0)},
		{"by topic", 0, free, drawTopics},
		{"linear", 0, free, drawLinear},
		{"dear is better", 0.2, []float64{0, 0.3, 1}, drawItems(20, 8, [][2]float64{{0.55, 0.65}, {0.68, 0.78}, {0.8, 0.9}}, 0)},
		{"one-off items", 0, free, drawItems(20, 10, [][2]float64{{0.2, 0.8}, {0.2, 0.8}, {0.2, 0.8}, {0.2, 0.8}}, 0.5)},
	}
}

// drawFlat draws requests that are all alike.
func drawFlat(rng *rand.Rand, requests int) []request {
	rates := make([]float64, 4)
	for arm := range rates {
		rates[arm] = 0.3 + 0.6*rng.Float64()
	}
	all := make([]request, requests)
	for i := range all {
		all[i].rates, all[i].vector = rates, direction(rng)
	}
	return all
}

// drawItems returns a world whose items have rates around those of all items: the greater the strength, the closer. The rate of each arm for all lies
// in its range. A share of the requests have an item that never comes back.
func drawItems(items int, strength float64, ranges [][2]float64, once float64) func(rng *rand.Rand, requests int) []request {
	return func(rng *rand.Rand, requests int) []request {
		levels := make([]float64, len(ranges))
		for arm, r := range ranges {
			levels[arm] = r[0] + (r[1]-r[0])*rng.Float64()
		}
		around := func() []float64 {
			rates := make([]float64, len(levels))
			for arm, level := range levels {
				sampler, r := (evidence.Beta{Alpha: strength * level, Beta: strength * (1 - level)}).Sampler(), evidence.Rand{State: rng.Uint64()}
				rates[arm] = sampler.Draw(&r)
			}
			return rates
		}
		rates := make([][]float64, items)
		for item := range rates {
			rates[item] = around()
		}
		all := make([]request, requests)
		for i := range all {
			item := rng.IntN(items)
			all[i].item, all[i].rates, all[i].vector = fmt.Sprint("item ", item), rates[item], direction(rng)
			if rng.Float64() < once {
				all[i].item, all[i].rates = fmt.Sprint("once ", i), around()
			}
		}
		return all
	}
}

// drawTopics draws requests without an item, each near the vector of one of 12 topics, which have rates of their own.
func drawTopics(rng *rand.Rand, requests int) []request {
	const topics, noise = 12, 0.5
	centres, rates := make([][]float32, topics), make([][]float64, topics)
	for topic := range topics {
		centres[topic], rates[topic] = direction(rng), make([]float64, 4)
		for arm := range rates[topic] {
			rates[topic][arm] = 0.1 + 0.8*rng.Float64()
		}
	}
	all := make([]request, requests)
	for i := range all {
		topic, away := rng.IntN(topics), direction(rng)
		vector := make([]float32, numbers)
		for j := range vector {
			vector[j] = centres[topic][j] + noise*away[j]
		}
		all[i].rates, all[i].vector = rates[topic], unit(vector)
	}
	return all
}

// drawLinear draws requests without an item. An arm's rate grows along a direction of its own.
func drawLinear(rng *rand.Rand, requests int) []request {
	directions := make([][]float32, 4)
	for arm := range directions {
		directions[arm] = direction(rng)
	}
	all := make([]request, requests)
	for i := range all {
		all[i].vector, all[i].rates = direction(rng), make([]float64, len(directions))
		for arm, d := range directions {
			along := 0.
			for j, x := range all[i].vector {
				along += float64(x) * float64(d[j])
			}
			all[i].rates[arm] = min(max(0.5+along, 0.02), 0.98)
		}
	}
	return all
}

// direction draws a unit vector.
func direction(rng *rand.Rand) []float32 {
	v := make([]float32, numbers)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return unit(v)
}

// unit scales a vector to the length 1.
func unit(v []float32) []float32 {
	squares := 0.
	for _, x := range v {
		squares += float64(x) * float64(x)
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(squares))
	}
	return v
}
