package evidence_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/fair"
	"github.com/heedhq/heed/internal/valid"
)

// seen is one observation as a tally takes it.
type seen struct {
	weight, reward float64
	at             evidence.Instant
}

var origin = evidence.InstantOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

func genSeen(halfLife time.Duration) *rapid.Generator[seen] {
	return rapid.Custom(func(t *rapid.T) seen {
		span := max(halfLife, time.Hour).Microseconds() * 20
		return seen{
			weight: rapid.OneOf(rapid.Just(0.), rapid.Just(1.), rapid.Float64Range(1e-3, 10)).Draw(t,
				"weight"),
			reward: rapid.OneOf(rapid.Just(0.), rapid.Just(0.5), rapid.Just(1.),
				rapid.Float64Range(0, 1)).Draw(t, "reward"),
			at: origin - evidence.Instant(rapid.Int64Range(0, span).Draw(t, "age")),
		}
	})
}

// naive adds up all that was seen at a moment.
func naive(all []seen, halfLife time.Duration, now evidence.Instant) (sums evidence.Sums) {
	for _, s := range all {
		w := s.weight
		if halfLife > 0 {
			w *= math.Exp2(-float64(now-s.at) / float64(halfLife.Microseconds()))
		}
		sums = sums.Plus(evidence.Sums{Mass: w, Squares: w * s.weight, Reward: w * s.reward,
			RewardSquares: w * s.reward * s.reward})
	}
	return sums
}

func assertNear(t assert.TestingT, want, got evidence.Sums) {
	for i, x := range [][2]float64{{want.Mass, got.Mass}, {want.Squares, got.Squares},
		{want.Reward, got.Reward}, {want.RewardSquares, got.RewardSquares}} {
		assert.InDelta(t, x[0], x[1], 1e-9*max(1e-2, x[0]), "sum %d", i)
	}
}

func tallyOf(halfLife time.Duration, all []seen) evidence.Tally {
	tally := evidence.Tally{HalfLife: halfLife}
	for _, s := range all {
		tally.Add(s.weight, 0, s.reward, s.at)
	}
	return tally
}

var halfLives = rapid.SampledFrom([]time.Duration{0, time.Second, time.Hour, 90 * 24 * time.Hour})

// TestTallyIsTheSum holds a tally to the sum over all that was seen: in any order, in parts that
// are merged, and after some of it was taken away again.
func TestTallyIsTheSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		halfLife := halfLives.Draw(t, "half-life")
		all := rapid.SliceOfN(genSeen(halfLife), 0, 60).Draw(t, "all")
		later := origin + evidence.Instant(rapid.Int64Range(0,
			30*max(halfLife, time.Second).Microseconds()).Draw(t, "later"))
		want := naive(all, halfLife, later)

		tally := tallyOf(halfLife, all)
		assertNear(t, want, tally.At(later))

		shuffled := rapid.Permutation(all).Draw(t, "shuffled")
		other := tallyOf(halfLife, shuffled)
		assertNear(t, want, other.At(later))
		assert.Equal(t, [3]evidence.Count{tally.Positive, tally.Negative, tally.Neutral},
			[3]evidence.Count{other.Positive, other.Negative, other.Neutral})

		cut := rapid.IntRange(0, len(shuffled)).Draw(t, "cut")
		merged := tallyOf(halfLife, shuffled[:cut])
		merged.Merge(tallyOf(halfLife, shuffled[cut:]))
		assertNear(t, want, merged.At(later))
		assert.Equal(t, tally.N(), merged.N())

		for _, s := range shuffled[cut:] {
			tally.Take(s.weight, 0, s.reward, s.at)
		}
		assertNear(t, naive(shuffled[:cut], halfLife, later), tally.At(later))
	})
}

// TestDyadicSumsAreExact adds weights that are multiples of 1/64 in two orders, with and without
// fading by whole half-lives: not a bit may differ.
func TestDyadicSumsAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, halfLife := range []time.Duration{0, time.Hour} {
		all := make([]seen, 10_000)
		for i := range all {
			all[i] = seen{float64(1+rng.IntN(64)) / 64, float64(rng.IntN(65)) / 64,
				origin - evidence.Instant(rng.Int64N(20)*time.Hour.Microseconds())}
		}
		one := tallyOf(halfLife, all)
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		assert.Equal(t, one, tallyOf(halfLife, all))
	}
}

func TestTallyNeverBoosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		instants := rapid.Int64Range(1, 250e15) // the years 1970 to 9890
		tally := evidence.Tally{HalfLife: time.Duration(rapid.Int64Range(1e6, 3e15).Draw(t,
			"half-life")) * time.Microsecond}
		at := evidence.Instant(instants.Draw(t, "at"))
		tally.Add(1, 0, 1, at)
		now := evidence.Instant(instants.Draw(t, "now"))
		mass := tally.At(now).Mass
		assert.True(t, mass >= 0 && mass <= 1+1e-12, mass)
		if now <= at {
			assert.InDelta(t, 1, mass, 1e-12)
		}
	})
}

// TestLongTally adds a million observations to one tally over 90 days and compares with the closed
// form.
func TestLongTally(t *testing.T) {
	const n, halfLife = 1_000_000, 24 * time.Hour
	step := (90 * 24 * time.Hour / n).Microseconds()
	tally := evidence.Tally{HalfLife: halfLife}
	for i := range n {
		tally.Add(1, 0, 0.75, origin+evidence.Instant(int64(i)*step))
	}
	q := math.Exp2(-float64(step) / float64(halfLife.Microseconds()))
	want := (1 - math.Pow(q, n)) / (1 - q)
	got := tally.At(tally.Last())
	assert.InEpsilon(t, want, got.Mass, 1e-10)
	assert.InEpsilon(t, want*0.75, got.Reward, 1e-10)
	assert.EqualValues(t, n, tally.N())
}

func TestInstant(t *testing.T) {
	for _, at := range []time.Time{
		time.Unix(0, 1000),
		time.Date(2026, 11, 21, 3, 4, 5, 6_000, time.FixedZone("", 3600)),
		time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
	} {
		assert.True(t, at.Equal(evidence.InstantOf(at).Time()), at)
	}
	assert.True(t, evidence.InstantOf(time.Time{}).Time().IsZero())
	assert.False(t, evidence.InstantOf(time.Unix(0, 0)).Time().IsZero(), "the epoch is a moment")
}

// Landmarks lie on one grid, in whichever order observations arrive.
func TestLandmarks(t *testing.T) {
	const step = valid.LandmarkStep * evidence.Instant(time.Hour/time.Microsecond)
	for _, at := range []evidence.Instant{10 * step, 10*step + 1, 11*step - 1} {
		tally := evidence.Tally{HalfLife: time.Hour}
		tally.Add(1, 0, 1, at)
		assert.Equal(t, 10*step, tally.Landmark)
		tally.Add(1, 0, 1, 9*step)
		assert.Equal(t, 10*step, tally.Landmark)
		tally.Add(1, 0, 1, 12*step)
		assert.Equal(t, 12*step, tally.Landmark)
	}
}

func TestTakingOneOfTwo(t *testing.T) {
	var tally evidence.Tally
	tally.Add(1, 0, 1, origin)
	tally.Add(1, 0, 1, origin)
	tally.Take(1, 0, 1, origin)
	assert.Equal(t, evidence.Count{N: 1, Last: origin}, tally.Positive)
	tally.Take(1, 0, 1, origin)
	assert.Equal(t, evidence.Count{}, tally.Positive)
}

// An observation is taken away with the share that it counted for, and from the count of its sign.
func TestTakingAShare(t *testing.T) {
	for reward, count := range map[float64]func(*evidence.Tally) *evidence.Count{
		0.75: func(t *evidence.Tally) *evidence.Count { return &t.Positive },
		0.5:  func(t *evidence.Tally) *evidence.Count { return &t.Neutral },
		0.25: func(t *evidence.Tally) *evidence.Count { return &t.Negative },
	} {
		var tally evidence.Tally
		tally.Add(2, 0.5, reward, origin)
		tally.Add(4, 0.25, reward, origin)
		assert.Equal(t, evidence.Count{N: 2, Last: origin}, *count(&tally), reward)
		tally.Take(4, 0.25, reward, origin)
		assert.Equal(t, evidence.Count{N: 1, Last: origin}, *count(&tally), reward)
		assert.EqualValues(t, 1, tally.N())
		assert.Equal(t, evidence.Sums{Mass: 1, Squares: 2, Reward: reward,
			RewardSquares: reward * reward}, tally.At(origin))
	}
}

// A tally from which all was taken away is empty: no rounding is left of it.
func TestTakingAllLeavesNothing(t *testing.T) {
	tally := evidence.Tally{HalfLife: time.Hour}
	weights := []float64{0.1, 0.2, 0.7}
	for _, w := range weights {
		tally.Add(w, 0, 1, origin)
	}
	for _, w := range weights {
		tally.Take(w, 0, 1, origin)
	}
	assert.Equal(t, evidence.Tally{HalfLife: time.Hour}, tally)
}

// A tally without observations becomes the other, with its half-life.
func TestAnEmptyTallyBecomesTheOther(t *testing.T) {
	other := evidence.Tally{HalfLife: time.Hour}
	other.Add(0.5, 0, 1, origin)
	var tally evidence.Tally
	tally.Merge(other)
	assert.Equal(t, other, tally)
	tally.Merge(evidence.Tally{HalfLife: time.Minute})
	assert.Equal(t, other, tally)
}

func TestEffectiveNumber(t *testing.T) {
	tally := func(weights ...float64) evidence.Sums {
		var tally evidence.Tally
		for _, w := range weights {
			tally.Add(w, 0, 1, origin)
		}
		return tally.At(origin)
	}
	assert.Zero(t, evidence.Sums{}.Effective(0.3))
	assert.Zero(t, evidence.Sums{Mass: 1e-300}.Effective(0.3), "squares that are too small")
	assert.Zero(t, evidence.Sums{Mass: -1e-17, Squares: 1}.Effective(0.3), "rounding has left it")
	assert.InDelta(t, 3, tally(1, 1, 1).Effective(0.3), 1e-12)
	assert.InDelta(t, 4, tally(0.5, 0.5, 0.5, 0.5).Effective(0.3), 1e-12,
		"equal weights of any size count one each")
	assert.InDelta(t, 1.8, tally(1, 0.5).Effective(0.3), 1e-12, "(1.5)²/1.25")
	assert.InDelta(t, 0.1, tally(0.01, 0.01, 0.01).Effective(0.3), 1e-12,
		"tiny weights are no full observations")
	faded := evidence.Tally{HalfLife: time.Hour}
	faded.Add(0.5, 0, 1, origin)
	assert.InDelta(t, 0.25, faded.At(origin+evidence.Instant(2*time.Hour/time.Microsecond)).Effective(
		0.1), 1e-12, "and old ones count for less")
}

// What is limited has the mean's precision of Kish's effective number.
func TestKept(t *testing.T) {
	assert.InDelta(t, 1, evidence.Sums{}.Kept(), 0)
	now := evidence.Instant(0)
	var parts []evidence.Part
	for person := range 40 {
		var tally evidence.Tally
		for range 1 + 99*(person/38) {
			tally.Add(1, 1, 1, now)
		}
		parts = append(parts, evidence.Part{Source: fmt.Sprintf("person %02d", person), Tally: tally})
	}
	sums := fair.Pool(evidence.Trust{}, [][]evidence.Part{parts}, now)[0]
	left := (sums.Mass - 38) / 200
	require.Less(t, left, 0.05, "what counts of two loud people")
	kish := sums.Mass * sums.Mass / (38 + 200*left*left)
	assert.InDelta(t, kish, sums.Mass/sums.Kept(), 1e-6)
	for sums, want := range map[evidence.Sums]float64{
		{Mass: 4, Limited: 1}: 0.75, {Mass: 4}: 1, {Mass: 4, Limited: -1}: 1,
		{Limited: 1}: 1, {Mass: -1, Limited: 1}: 1, {Mass: 1, Limited: 1}: 1e-9,
	} {
		assert.Equal(t, want, sums.Kept(), "%+v", sums)
	}
}

func TestPosteriorKeepsThePrior(t *testing.T) {
	prior := evidence.Beta{Alpha: 0.4, Beta: 1}
	assert.Equal(t, prior, evidence.Sums{}.Posterior(prior))
	assert.Equal(t, evidence.Beta{Alpha: 1.4, Beta: 2},
		evidence.Sums{Mass: 2, Reward: 1}.Posterior(prior))
	assert.LessOrEqual(t, evidence.Sums{Mass: 1, Reward: 1 + 1e-9}.Posterior(prior).Mean(), 1.,
		"whatever rounding has left")
	assert.Equal(t, evidence.Beta{Alpha: 0.4, Beta: 2.5},
		evidence.Sums{Mass: 1, Reward: -0.5}.Posterior(prior), "of rewards taken back")
	assert.InDelta(t, 0.5, evidence.Sums{}.Mean(), 0)
}
