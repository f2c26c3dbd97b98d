package storetest

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// The kinds of cells in the suite, by their policies.
const (
	plain  = "suite.plain"
	fading = "suite.fading"
	origin = "suite.origin" // fades, and keeps origins apart
)

const halfLife = 36 * time.Hour

var policies = map[string]evidence.Policy{
	fading: {HalfLife: halfLife},
	origin: {HalfLife: halfLife, ByOrigin: true},
}

type (
	observation  = evidence.Observation
	observations = []evidence.Observation
)

func cell(kind, item, name string) evidence.Cell {
	return evidence.Cell{Kind: kind, Scope: "scope", Item: item, Name: name}
}

// The cells that most rules use.
var (
	plainCell  = cell(plain, "i", "n")
	otherCell  = cell(plain, "i", "other")
	fadingCell = cell(fading, "i", "n")
	originCell = cell(origin, "i", "n")
)

func seen(id string, c evidence.Cell, reward float64) observation {
	return observation{ID: id, Cell: c, Reward: reward, Weight: 1, At: start}
}

// from returns the observation with a source.
func from(source string, o observation) observation {
	o.Source = source
	return o
}

// dated returns the observation with a time after the start.
func dated(after time.Duration, o observation) observation {
	o.At = start.Add(after)
	return o
}

// crowd returns more observations of a source than a bounded history may keep. They begin at a time
// after the start, a millisecond apart, and their ids are the source with a number.
func crowd(source string, c evidence.Cell, after time.Duration) observations {
	return repeat(300, func(i int) observation {
		o := seen(fmt.Sprint(source, i), c, 1)
		return from(source, dated(after+time.Duration(i)*time.Millisecond, o))
	})
}

// under returns a batch of observations under the suite's policies.
func under(all ...observation) store.Batch {
	return store.Batch{Policies: policies, Observations: all}
}

func (f *fixture) add(all ...observation) store.Receipt { return f.commit(under(all...)) }

func (f *fixture) read(cells ...evidence.Cell) []evidence.Part {
	return f.snapshot(cells, nil).Parts
}

// sums reads one cell, all its parts together.
func (f *fixture) sums(c evidence.Cell) evidence.Sums {
	var all evidence.Sums
	for _, part := range f.read(c) {
		all = all.Plus(part.Tally.At(evidence.InstantOf(f.time())))
	}
	return all
}

func (f *fixture) history(c evidence.Cell) observations { return all(f, f.store.History(ctx, c)) }

// expect compares cells with what the observations add up to, one by one. A failure shows only the
// parts that differ, with their sums as they are now, because those at a landmark say little.
func (f *fixture) expect(all observations, cells ...evidence.Cell) {
	f.Helper()
	now := evidence.InstantOf(f.time())
	for _, c := range cells {
		want := naive(all, c, f.time())
		for _, part := range f.read(c) {
			from := [2]string{part.Channel, part.Source}
			t, w := part.Tally, want[from]
			delete(want, from)
			same := part.Cell == c && near(t.At(now), w.At(now)) &&
				t.Positive == w.Positive && t.Negative == w.Negative && t.Neutral == w.Neutral
			f.Check(same, "%+v, channel %q, source %q:\n has %s\nwant %s", part.Cell, from[0], from[1],
				sumsOf(t, now), sumsOf(w, now))
		}
		f.Check(len(want) == 0, "%+v lacks the parts, by channel and source, %+v", c, want)
	}
}

// sumsOf returns a tally as failures show it. N are the numbers of positive, negative and neutral
// observations.
func sumsOf(t evidence.Tally, now evidence.Instant) string {
	return fmt.Sprintf("N %d %d %d, last %d %d %d, %+v", t.Positive.N, t.Negative.N, t.Neutral.N,
		t.Positive.Last, t.Negative.Last, t.Neutral.Last, t.At(now))
}

// naive adds up the observations of a cell, by channel and source if its kind keeps them apart. The
// sums have faded until now.
func naive(all observations, c evidence.Cell, now time.Time) map[[2]string]evidence.Tally {
	policy := policies[c.Kind]
	parts := make(map[[2]string]evidence.Tally)
	for _, o := range all {
		if o.Cell != c || o.Weight == 0 {
			continue
		}
		var key [2]string
		if policy.ByOrigin {
			key = [2]string{o.Channel, o.Source}
		}
		fade := 1.
		if policy.HalfLife > 0 {
			fade = math.Exp2(-float64(now.Sub(o.At)) / float64(policy.HalfLife))
		}
		part := parts[key]
		w := o.Weight * cmp.Or(o.Share, 1) * fade
		part.Mass += w
		part.Squares += w * o.Weight
		part.Reward += w * o.Reward
		part.RewardSquares += w * o.Reward * o.Reward
		count := &part.Neutral
		switch {
		case o.Reward > 0.5:
			count = &part.Positive
		case o.Reward < 0.5:
			count = &part.Negative
		}
		count.N++
		count.Last = max(count.Last, evidence.InstantOf(o.At))
		parts[key] = part
	}
	return parts
}

// near compares sums within a relative error of 1e-9.
func near(a, b evidence.Sums) bool {
	closeTo := func(x, y float64) bool {
		return math.Abs(x-y) <= 1e-9*max(1e-3, math.Abs(x), math.Abs(y))
	}
	return closeTo(a.Mass, b.Mass) && closeTo(a.Squares, b.Squares) &&
		closeTo(a.Reward, b.Reward) && closeTo(a.RewardSquares, b.RewardSquares)
}

// some returns random observations of cells of all kinds, from five sources on two channels. Some
// rewards are whole, some half and some between, and some weights are 0.
func some(rng *rand.Rand, n int) observations {
	var cells []evidence.Cell
	for _, kind := range []string{plain, fading, origin} {
		cells = append(cells, cell(kind, "i", "a"), cell(kind, "i", "b"), cell(kind, "j", "a"),
			evidence.Cell{Kind: kind, Scope: "other scope", Item: "i", Name: "a"})
	}
	return repeat(n, func(i int) observation {
		return observation{
			ID:      fmt.Sprintf("some-%d", i),
			Cell:    cells[rng.IntN(len(cells))],
			Reward:  []float64{0, 1, 0.5, rng.Float64()}[rng.IntN(4)],
			Weight:  []float64{0, 1, rng.Float64(), 10 * rng.Float64()}[rng.IntN(4)],
			Share:   []float64{0, 1, 0.25}[rng.IntN(3)],
			Channel: []string{"", "spoken"}[rng.IntN(2)],
			Source:  []string{"", "ann", "bob", "Ann", "anna"}[rng.IntN(5)],
			Session: fmt.Sprint(rng.IntN(5)),
			At: start.Add(-time.Duration(rng.Int64N(int64(100 * 24 * time.Hour)))).
				Truncate(time.Microsecond),
		}
	})
}
