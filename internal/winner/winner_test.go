package winner_test

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/chance"
	"github.com/heedhq/heed/internal/winner"
)

func record(t *rapid.T, name string) winner.Record {
	mass := rapid.Float64Range(0, 500).Draw(t, name)
	return winner.Record{Mass: mass, Reward: mass * rapid.Float64Range(0, 1).Draw(t, name+" mean")}
}

// TestAgainstIsTheLeastOfAGrid compares the evidence against a gap with a search of a grid of
// means.
func TestAgainstIsTheLeastOfAGrid(t *testing.T) {
	against := func(r winner.Record) func(p float64) float64 {
		s, f := r.Reward, r.Mass-r.Reward
		x, _ := math.Lgamma(s + 0.5)
		y, _ := math.Lgamma(f + 0.5)
		z, _ := math.Lgamma(r.Mass + 1)
		return func(p float64) float64 {
			return x + y - z - math.Log(math.Pi) - s*math.Log(
				p) - f*math.Log(1-p)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		r, other, gap := record(t, "r"), record(t, "other"),
			rapid.Float64Range(-0.9, 0.9).Draw(t, "gap")
		least, one, two := math.Inf(1), against(r), against(other)
		for n := 1; n < 4000; n++ { // closer together near the ends, where likelihoods are steep
			share := (1 - math.Cos(math.Pi*float64(n)/4000)) / 2
			p := max(0, gap) + (1-math.Abs(gap))*share
			least = min(least, one(p)+two(p-gap))
		}
		got := winner.Against(r, other, gap)
		if got > least+1e-6 || got < least-0.05*(1+math.Abs(least)) {
			t.Fatalf("%v against %v by %v: %v, the grid has %v", r, other, gap, got, least)
		}
	})
}

func TestTheGapIsAroundTheDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, other := record(t, "r"), record(t, "other")
		low, high := winner.Gap(r, other, 3, 0.05)
		middle := r.Mean() - other.Mean()
		if !(low >= -1 && low <= middle && middle <= high && high <= 1) {
			t.Fatalf("%v and %v: from %v to %v, around %v", r, other, low, high, middle)
		}
	})
}

// More ways to compare widen the bounds, from three on: of two there is one pair.
func TestMoreWaysWidenTheGap(t *testing.T) {
	a, b, before := winner.Record{100, 60}, winner.Record{100, 40}, 0.
	for ways := 1; ways < 6; ways++ {
		low, high := winner.Gap(a, b, ways, 0.05)
		if ways > 2 {
			assert.Greater(t, high-low, before+1e-6, ways)
		}
		before = high - low
	}
	one, _ := winner.Gap(a, b, 1, 0.05)
	two, _ := winner.Gap(a, b, 2, 0.05)
	assert.Equal(t, one, two)
}

func TestSharesAreProbabilities(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) winner.Record { return record(t, "") }),
			1, 6).Draw(t, "records")
		sum := 0.
		for _, share := range winner.Shares(records) {
			if !(share >= 0 && share <= 1) {
				t.Fatalf("a share of %v", share)
			}
			sum += share
		}
		if math.Abs(sum-1) > 1e-6 {
			t.Fatalf("the sum is %v", sum)
		}
	})
}

// TestSharesAreTopTwo compares them with draws.
func TestSharesAreTopTwo(t *testing.T) {
	records := []winner.Record{{30, 15}, {20, 12}, {40, 14}}
	rng := chance.Rand{State: 5}
	samplers := make([]chance.Sampler, len(records))
	for i, r := range records {
		samplers[i] = chance.Beta(1+r.Reward, 1+r.Mass-r.Reward)
	}
	first := func() (best int) {
		most := -1.
		for i := range samplers {
			if x := samplers[i].Draw(&rng); x > most {
				best, most = i, x
			}
		}
		return best
	}
	const times = 20_000
	counts := make([]float64, len(records))
	for range times {
		leader := first()
		if rng.Float64() < 0.5 {
			counts[leader]++
			continue
		}
		other := first()
		for other == leader {
			other = first()
		}
		counts[other]++
	}
	for i, share := range winner.Shares(records) {
		assert.InDelta(t, counts[i]/times, share, 0.015)
	}
}

// Where the beliefs leave nothing open, the runner-up gets the other half.
func TestABeatenArmIsStillCompared(t *testing.T) {
	assert.Equal(t, []float64{0.5, 0.5, 0}, winner.Shares([]winner.Record{{1e5, 9e4}, {1e5, 5e4},
		{1e5, 1e4}}))
	assert.Equal(t, []float64{0.5, 0, 0.5}, winner.Shares([]winner.Record{{1e5, 9e4}, {1e5, 1e4},
		{1e5, 5e4}}))
	assert.Equal(t, []float64{0.5, 0, 0.5}, winner.Shares([]winner.Record{{1e5, 5e4}, {1e5, 1e4},
		{1e5, 9e4}}))
	assert.Equal(t, []float64{0.5, 0.5, 0}, winner.Shares([]winner.Record{{1e5, 9e4}, {1e5, 5e4},
		{1e5, 5e4}}), "the first of equals")
}

// After one success, the belief is Beta(2, 1), which is the best of three with a probability of ½:
// ½·½ + 2·½·¼·(½ / ¾).
func TestSharesAfterOneSuccess(t *testing.T) {
	shares := winner.Shares([]winner.Record{{}, {1, 1}, {}})
	assert.InDelta(t, 5./12, shares[1], 1e-9)
	assert.InDelta(t, 7./24, shares[0], 1e-9)
}

// TestTheErrorHolds plays races of two arms whose looks never end before 2,000 tries, for rewards
// that are not only 0 and 1.
func TestTheErrorHolds(t *testing.T) {
	const miss = 0.2
	times, tries, wrong := 200, 600, 0
	if os.Getenv("HEED_LONG") != "" {
		times, tries = 2000, 5000
	}
	rng := rand.New(rand.NewPCG(7, 8))
	for range times {
		records := make([]winner.Record, 2)
		for n := range tries {
			at := n % 2
			if n > 20 && records[1].Mean() > records[0].Mean() {
				at = rng.IntN(2) // an adversary's allocation
			}
			weight := 1.
			if n%3 == 0 {
				weight = 0.5
			}
			reward := 0.
			if rng.Float64() < 0.52-0.04*float64(at) {
				reward = 1
			}
			records[at].Mass += weight
			records[at].Reward += weight * reward
			if best := winner.Stop(records, miss, 0.01); best == 1 {
				wrong++
				break
			} else if best == 0 {
				break
			}
		}
	}
	assert.LessOrEqual(t, float64(wrong)/float64(times), miss)
	t.Logf("%d wrong of %d", wrong, times)
}

func TestStopNeedsEveryArm(t *testing.T) {
	assert.Equal(t, -1, winner.Stop([]winner.Record{{}, {}}, 0.05, 0))
	assert.Equal(t, -1, winner.Stop([]winner.Record{{1000, 900}, {}}, 0.05, 0))
	assert.Equal(t, 1, winner.Stop([]winner.Record{{1000, 500}, {1000, 900}}, 0.05, 0))
	assert.Equal(t, -1, winner.Stop([]winner.Record{{1000, 900}, {1000, 900}}, 0.05, 0))
	assert.Equal(t, 0, winner.Stop([]winner.Record{{1000, 900}, {1000, 900}}, 0.05, 0.2))
	assert.Equal(t, 0, winner.Stop([]winner.Record{{1000, 999}, {1, 0}}, 0.3, 0), "one failure")
	assert.Equal(t, 1, winner.Stop([]winner.Record{{1000, 0}, {1, 1}}, 0.05, 0), "one success")
	assert.Equal(t, 0, winner.Stop([]winner.Record{{1, 1}, {1000, 0}}, 0.05, 0))
	assert.Equal(t, 0, winner.Stop([]winner.Record{{1000, 900}, {1000, 700}}, 0.05, 0.2))
}

// A way without outcomes has a mean of ½. Of sums that rounding has made negative, or greater than
// their mass, a record has what is possible.
func TestARecord(t *testing.T) {
	assert.InDelta(t, 0.5, winner.Record{}.Mean(), 0)
	assert.InDelta(t, 1, winner.Record{0.5, 0.5}.Mean(), 0)
	for sums, want := range map[evidence.Sums]winner.Record{
		{Mass: 0.5, Reward: 0.25}: {0.5, 0.25}, {Mass: -1e-9, Reward: -1e-9}: {},
		{Mass: 1, Reward: -1e-9}: {1, 0}, {Mass: 1, Reward: 1.5}: {1, 1},
	} {
		assert.Equal(t, want, winner.Of(sums))
	}
}

// A tiny record speaks against little, also where its likelihood is the least. No two means differ
// by more than 1.
func TestTheEndsOfTheEvidence(t *testing.T) {
	assert.Less(t, winner.Against(winner.Record{1e-30, 0}, winner.Record{10, 10}, 0), 1.)
	for _, gap := range []float64{1, 1.5, -1} {
		assert.True(t, math.IsInf(winner.Against(winner.Record{2, 1}, winner.Record{2, 1}, gap), 1))
	}
}

// TestAWinnerIsNotRefuted by the evidence that makes it the winner, and a way that is refuted is
// not.
func TestAWinnerIsNotRefuted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) winner.Record { return record(t, "") }),
			1, 4).Draw(t, "records")
		best := winner.Stop(records, 0.05, 0.01)
		for way := range records {
			if winner.Refuted(records, way, 0.05, 0.01) && way == best {
				t.Fatalf("%d is the best, and refuted", way)
			}
		}
	})
	assert.True(t, winner.Refuted([]winner.Record{{100, 10}, {100, 90}}, 0, 0.05, 0.01))
	assert.False(t, winner.Refuted([]winner.Record{{100, 48}, {100, 52}}, 0, 0.05, 0.01))
	assert.False(t, winner.Refuted([]winner.Record{{100, 10}, {100, 90}}, 0, 0.05, 0.9))
	assert.False(t, winner.Refuted([]winner.Record{{1e4, 5000}, {1e4, 5900}}, 0, 0.05, 0.08),
		"it is surely better, and not surely by more than 0.08")
	assert.True(t, winner.Refuted([]winner.Record{{1e4, 5000}, {1e4, 5900}}, 0, 0.05, 0.02))
	assert.True(t, winner.Refuted([]winner.Record{{1000, 0}, {1, 1}}, 0, 0.05, 0), "one success")
}

// TestALookIsDue when outcomes have grown by a fiftieth, or some were taken back.
func TestALookIsDue(t *testing.T) {
	before := winner.Seen{Outcomes: 100, Sums: []winner.Record{{50, 30}, {50, 20}}}
	for what, c := range map[string]struct {
		now winner.Seen
		due bool
	}{
		"nothing":       {before, false},
		"one more":      {winner.Seen{Outcomes: 101, Sums: []winner.Record{{51, 30}, {50, 20}}}, false},
		"two more":      {winner.Seen{Outcomes: 102, Sums: []winner.Record{{51, 30}, {51, 20}}}, true},
		"one less":      {winner.Seen{Outcomes: 99, Sums: []winner.Record{{49, 30}, {50, 20}}}, true},
		"one for worse": {winner.Seen{Outcomes: 100, Sums: []winner.Record{{50, 29}, {50, 20}}}, true},
		"one better":    {winner.Seen{Outcomes: 100, Sums: []winner.Record{{50, 31}, {50, 20}}}, true},
		"another way": {winner.Seen{Outcomes: 100, Sums: []winner.Record{{50, 30}, {50, 20}, {}}},
			true},
	} {
		assert.Equal(t, c.due, before.Due(c.now), what)
	}
	assert.False(t, winner.Lost([]winner.Record{{2e9, 1e9}}, []winner.Record{{2e9, 1e9 - 0.01}}),
		"rounding grows with the sums")
}
