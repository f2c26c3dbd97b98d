package board

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/heedhq/heed/internal/chance"
)

// numbers is the length of a vector unless the world sets another.
const numbers = 16

// A request is what an arm is chosen for.
type request struct {
	id     int
	item   string    // its subject or route; "": without a name
	vector []float32 // its embedding
	topic  string    // what it is about in truth, which a host seldom sees
	source string    // who asks, and reports how it went
	liar   bool      // who praises the worst arm, and blames all others
	at     time.Time

	rates   []float64 // how often each arm is right, which no policy sees
	grades  []float64 // what each arm's outcome is this time, if outcomes are graded
	right   []bool    // whether each arm is right this time: all policies have the same luck
	arrives []int     // after which requests its outcome is delivered
}

// A world is a kind of stream of requests.
type world struct {
	name  string
	price float64   // in right answers, of a unit of cost
	costs []float64 // of each arm, from 0 to 1
	draw  drawing
}

// A drawing draws the requests of a run, and vectors without outcomes that are seen before it.
type drawing func(rng *rand.Rand, requests int) (all []request, before [][]float32)

// reward is what a policy earns and learns from, in [0, 1]: a right answer, and what was saved of
// the dearest arm's price, over all that can be earned.
func (w *world) reward(quality, cost float64) float64 {
	return (quality + w.price*(1-cost)) / (1 + w.price)
}

// free is what four arms cost that are free.
func free() []float64 { return make([]float64, 4) }

// wide are the ranges of four arms' levels.
var wide = [][2]float64{{0.2, 0.8}, {0.2, 0.8}, {0.2, 0.8}, {0.2, 0.8}}

// routerWorlds are made up. They were fixed before any policy was run in them.
func routerWorlds() []world {
	costs := [][2]float64{{0.55, 0.65}, {0.68, 0.78}, {0.8, 0.9}}
	return []world{
		{"no context", 0, free(), drawItems(1, math.Inf(1), [][2]float64{{0.3, 0.9}, {0.3, 0.9}, {0.3,
			0.9}, {0.3, 0.9}}, 0)},
		{"by item", 0, free(), drawItems(40, 5, wide, 0)},
		{"by topic", 0, free(), drawVectors(numbers, 12, 0.5, byTopic(1))},
		{"linear", 0, free(), drawVectors(numbers, 0, 0, linearly(1))},
		{"dear is better", 0.2, []float64{0, 0.3, 1}, drawItems(20, 8, costs, 0)},
		{"one-off items", 0, free(), drawItems(20, 10, wide, 0.5)},
	}
}

// contextWorlds differ in how the best arm depends on a vector of 24 numbers near a topic's.
func contextWorlds(topics int) []world {
	near := func(name string, rates rating) world {
		return world{name, 0, free(), drawVectors(24, topics, 0.5, rates)}
	}
	return []world{
		near("arms differ by topic", byTopic(1)), near("for 30 % of topics", byTopic(0.3)),
		near("linearly", linearly(1.1)), near("not at all", byTopic(0)),
	}
}

// poolingWorlds have items that are more and less alike, and no items.
func poolingWorlds() []world {
	var all []world
	for _, strength := range []float64{2, 10, 100} {
		name := fmt.Sprintf("200 items, s=%v", strength)
		all = append(all, world{name, 0, free(), drawItems(200, strength, wide, 0)})
	}
	for _, rates := range [][]float64{{0.9, 0.8, 0.5, 0.1}, {0.6, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5,
		0.5, 0.5}} {
		var levels [][2]float64
		for _, rate := range rates {
			levels = append(levels, [2]float64{rate, rate})
		}
		name := fmt.Sprintf("%d arms", len(rates))
		all = append(all, world{name, 0, make([]float64, len(rates)), drawItems(1, math.Inf(1), levels,
			0)})
	}
	return all
}

// drawItems returns a world whose items have rates around common ones: the greater the
// strength, the closer. The rate of each arm for all lies in its range. A share of the requests
// have an item that never comes back. A single item has no name.
func drawItems(items int, strength float64, ranges [][2]float64, once float64) drawing {
	return func(rng *rand.Rand, requests int) ([]request, [][]float32) {
		levels := make([]float64, len(ranges))
		for arm, r := range ranges {
			levels[arm] = r[0] + (r[1]-r[0])*rng.Float64()
		}
		around := func() []float64 {
			rates := make([]float64, len(levels))
			for arm, level := range levels {
				if rates[arm] = level; !math.IsInf(strength, 1) {
					r := chance.Rand{State: rng.Uint64()}
					sampler := chance.Beta(strength*level, strength*(1-level))
					rates[arm] = sampler.Draw(&r)
				}
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
			all[i] = request{item: fmt.Sprint("item ", item), rates: rates[item], vector: direction(rng,
				numbers)}
			if items == 1 {
				all[i].item = ""
			}
			if rng.Float64() < once {
				all[i].item, all[i].rates = fmt.Sprint("once ", i), around()
			}
		}
		return all, nil
	}
}

// A rating draws how the rates of a world with vectors depend on a request.
type rating func(rng *rand.Rand, numbers, topics int) func(topic int, vector []float32) []float64

// byTopic draws other rates for a share of the topics. The rest are alike.
func byTopic(share float64) rating {
	return func(rng *rand.Rand, _, topics int) func(int, []float32) []float64 {
		draw := func() []float64 {
			rates := free()
			for arm := range rates {
				rates[arm] = 0.1 + 0.8*rng.Float64()
			}
			return rates
		}
		common, own := draw(), make([][]float64, topics)
		for topic := range own {
			if own[topic] = common; rng.Float64() < share {
				own[topic] = draw()
			}
		}
		return func(topic int, _ []float32) []float64 { return own[topic] }
	}
}

// linearly has each arm's rate grow along a direction.
func linearly(slope float64) rating {
	return func(rng *rand.Rand, numbers, _ int) func(int, []float32) []float64 {
		directions := make([][]float32, 4)
		for arm := range directions {
			directions[arm] = direction(rng, numbers)
		}
		return func(_ int, vector []float32) []float64 {
			rates := free()
			for arm, d := range directions {
				along := 0.
				for i, x := range vector {
					along += float64(x) * float64(d[i])
				}
				rates[arm] = min(max(0.5+slope*along, 0.02), 0.98)
			}
			return rates
		}
	}
}

// seenBefore is how many vectors are there before the first request of a world with topics.
const seenBefore = 1000

// drawVectors returns a world of requests without an item. Their vectors lie around topics, at the
// distance of the noise, or anywhere if there are no topics.
func drawVectors(numbers, topics int, noise float32, rates rating) drawing {
	return func(rng *rand.Rand, requests int) (all []request, before [][]float32) {
		centres := make([][]float32, topics)
		for topic := range centres {
			centres[topic] = direction(rng, numbers)
		}
		of := rates(rng, numbers, topics)
		draw := func() (topic int, vector []float32) {
			if topics == 0 {
				return 0, direction(rng, numbers)
			}
			topic = rng.IntN(topics)
			vector = direction(rng, numbers)
			for i := range vector {
				vector[i] = centres[topic][i] + noise*vector[i]
			}
			return topic, unit(vector)
		}
		for range seenBefore {
			_, vector := draw()
			before = append(before, vector)
		}
		for range requests {
			topic, vector := draw()
			all = append(all, request{vector: vector, topic: fmt.Sprint(topic), rates: of(topic, vector)})
		}
		return all, before
	}
}

// direction draws a unit vector.
func direction(rng *rand.Rand, numbers int) []float32 {
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
