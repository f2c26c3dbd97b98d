package evidence_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/evidence"
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
			weight: rapid.OneOf(rapid.Just(0.), rapid.Just(1.), rapid.Float64Range(1e-3, 10)).Draw(t, "weight"),
			reward: rapid.OneOf(rapid.Just(0.), rapid.Just(0.5), rapid.Just(1.), rapid.Float64Range(0, 1)).Draw(t, "reward"),
			at:     origin - evidence.Instant(rapid.Int64Range(0, span).Draw(t, "age")),
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
		sums = sums.Plus(evidence.Sums{Mass: w, Squares: w * s.weight, Reward: w * s.reward, RewardSquares: w * s.reward * s.reward})
	}
	return sums
}

func assertNear(t assert.TestingT, want, got evidence.Sums) {
	for i, x := range [][2]float64{{want.Mass, got.Mass}, {want.Squares, got.Squares}, {want.Reward, got.Reward}, {want.RewardSquares, got.RewardSquares}} {
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

// TestTallyIsTheSum holds a tally to the sum over all that was seen: in any order, in parts that are merged, and after
// some of it was taken away again.
func TestTallyIsTheSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		halfLife := halfLives.Draw(t, "half-life")
		all := rapid.SliceOfN(genSeen(halfLife), 0, 60).Draw(t, "all")
		later := origin + evidence.Instant(rapid.Int64Range(0, 30*max(halfLife, time.Second).Microseconds()).Draw(t, "later"))
		want := naive(all, halfLife, later)

		tally := tallyOf(halfLife, all)
		assertNear(t, want, tally.At(later))

		shuffled := rapid.Permutation(all).Draw(t, "shuffled")
		other := tallyOf(halfLife, shuffled)
		assertNear(t, want, other.At(later))
		assert.Equal(t, [3]evidence.Count{tally.Positive, tally.Negative, tally.Neutral}, [3]evidence.Count{other.Positive, other.Negative, other.Neutral})

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

// TestDyadicSumsAreExact adds weights that are multiples of 1/64 in two orders, with and without fading by whole
// half-lives: not a bit may differ.
func TestDyadicSumsAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, halfLife := range []time.Duration{0, time.Hour} {
		all := make([]seen, 10_000)
		for i := range all {
			all[i] = seen{float64(1+rng.IntN(64)) / 64, float64(rng.IntN(65)) / 64, origin - evidence.Instant(rng.Int64N(20)*time.Hour.Microseconds())}
		}
		one := tallyOf(halfLife, all)
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		assert.Equal(t, one, tallyOf(halfLife, all))
	}
}

func TestTallyNeverBoosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		instants := rapid.Int64Range(1, 250e15) // the years 1970 to 9890
		tally := evidence.Tally{HalfLife: time.Duration(rapid.Int64Range(1e6, 3e15).Draw(t, "half-life")) * time.Microsecond}
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

// TestLongTally adds a million observations to one tally over 90 days and compares with the closed form.
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
		time.Date(2026, 11, 21, 3, 4, 5, 6_000, time.FixedZone("", 3600)), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
	} {
		assert.True(t, at.Equal(evidence.InstantOf(at).Time()), at)
	}
	assert.True(t, evidence.InstantOf(time.Time{}).Time().IsZero())
	assert.False(t, evidence.InstantOf(time.Unix(0, 0)).Time().IsZero(), "the epoch is a moment")
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

func TestEffectiveNumber(t *testing.T) {
	tally := func(weights ...float64) evidence.Sums {
		var tally evidence.Tally
		for _, w := range weights {
			tally.Add(w, 0, 1, origin)
		}
		return tally.At(origin)
	}
	assert.Zero(t, evidence.Sums{}.Effective(0.3))
	assert.InDelta(t, 3, tally(1, 1, 1).Effective(0.3), 1e-12)
	assert.InDelta(t, 4, tally(0.5, 0.5, 0.5, 0.5).Effective(0.3), 1e-12, "equal weights of any size count one each")
	assert.InDelta(t, 1.8, tally(1, 0.5).Effective(0.3), 1e-12, "(1.5)²/1.25")
	assert.InDelta(t, 0.1, tally(0.01, 0.01, 0.01).Effective(0.3), 1e-12, "tiny weights are no full observations")
	faded := evidence.Tally{HalfLife: time.Hour}
	faded.Add(0.5, 0, 1, origin)
	assert.InDelta(t, 0.25, faded.At(origin+evidence.Instant(2*time.Hour/time.Microsecond)).Effective(0.1), 1e-12, "and old ones count for less")
}

func TestPosteriorKeepsThePrior(t *testing.T) {
	prior := evidence.Beta{Alpha: 0.4, Beta: 1}
	assert.Equal(t, prior, evidence.Sums{}.Posterior(prior))
	assert.Equal(t, evidence.Beta{Alpha: 1.4, Beta: 2}, evidence.Sums{Mass: 2, Reward: 1}.Posterior(prior))
	assert.LessOrEqual(t, evidence.Sums{Mass: 1, Reward: 1 + 1e-9}.Posterior(prior).Mean(), 1., "whatever rounding has left")
	assert.Equal(t, evidence.Beta{Alpha: 0.4, Beta: 2.5}, evidence.Sums{Mass: 1, Reward: -0.5}.Posterior(prior), "of rewards taken back")
	assert.InDelta(t, 0.5, evidence.Sums{}.Mean(), 0)
}

func part(channel, source string, gained, lost float64) evidence.Part {
	var tally evidence.Tally
	for weight, reward := range map[float64]float64{gained: 1, lost: 0} {
		tally.Add(weight, 0, reward, origin)
	}
	return evidence.Part{Channel: channel, Source: source, Tally: tally}
}

func TestCaps(t *testing.T) {
	honest := part("explicit", "ann", 60, 40.5)
	flood := part("explicit", "mallory", 50, 0)
	silence := part("implicit_timeout", "", 30, 2)
	for _, test := range []struct {
		name           string
		caps           evidence.Caps
		parts          []evidence.Part
		gained, weight float64
	}{
		{"no caps", evidence.Caps{}, []evidence.Part{honest, flood, silence}, 140, 182.5},
		{"one part needs no cap", evidence.Caps{}, []evidence.Part{honest}, 60, 100.5},
		{"a source by mass", evidence.Caps{SourceMass: 2}, []evidence.Part{flood, part("explicit", "bob", 1, 0)}, 3, 3},
		{"sources that are too few for the share", evidence.Caps{SourceMass: 2, SourceShare: 0.4}, []evidence.Part{honest, flood}, 60*2/100.5 + 2, 4},
		{"a source by share", evidence.Caps{SourceMass: 2, SourceShare: 0.5}, []evidence.Part{flood, part("", "ann", 4, 6), part("", "bob", 0, 5)}, 15 + 4, 30},
		{"two sources by share", evidence.Caps{SourceMass: 1, SourceShare: 0.4}, []evidence.Part{flood, honest, part("", "bob", 0, 5)}, 10 + 10*60/100.5, 25},
		{"a source in two channels", evidence.Caps{SourceMass: 2, SourceShare: 0.5}, []evidence.Part{part("", "ann", 4, 6), flood, part("silence", "mallory", 0, 50), part("", "bob", 0, 5)}, 4 + 7.5, 30},
		{"sources of the share exactly", evidence.Caps{SourceMass: 1, SourceShare: 0.2}, []evidence.Part{part("", "a", 7, 0), part("", "b", 0, 7), part("", "c", 0, 7), part("", "d", 0, 7), part("", "e", 0, 7)}, 7, 35},
		{"silence by what was said", evidence.Caps{Silence: []string{"implicit_timeout"}, SilenceMass: 1}, []evidence.Part{silence, part("explicit", "ann", 3, 1)}, 3 + 4, 4 + 4 + 2},
		{"silence alone", evidence.Caps{Silence: []string{"implicit_timeout"}, SilenceMass: 1}, []evidence.Part{part("implicit_timeout", "", 1000, 0)}, 1, 1},
		{"nothing at all", evidence.Caps{SourceMass: 1}, nil, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.NoError(t, test.caps.Validate())
			before := slices.Clone(test.parts)
			for range 2 {
				got := test.caps.Pool(test.parts, origin)
				assert.InDelta(t, test.gained, got.Reward, 1e-9)
				assert.InDelta(t, test.weight, got.Mass, 1e-9)
				slices.Reverse(test.parts)
			}
			assert.Equal(t, before, test.parts, "the parts are only read")
		})
	}
	quiet := evidence.Caps{Silence: []string{"implicit_timeout"}, SilenceMass: 1}
	before := quiet.Pool([]evidence.Part{silence}, origin)
	after := quiet.Pool([]evidence.Part{silence, part("explicit", "ann", 0, 5)}, origin)
	assert.Equal(t, before.Reward, after.Reward, "a complaint leaves silence as loud as it was")
	even := evidence.Beta{Alpha: 1, Beta: 1}
	alone := evidence.Caps{Silence: []string{"implicit_timeout"}, SilenceMass: 1}.Pool([]evidence.Part{part("implicit_timeout", "", 1e5, 0)}, origin)
	assert.InDelta(t, 2./3, alone.Posterior(even).Mean(), 1e-12)
}

// TestNoCoalitionMovesTheMeanFurther than the comment of [evidence.Caps] says: any honest sources, and a few others that send whatever they like
// in as many channels as they like. Half of the coalitions are made to hurt: all of one mind, with masses about the limit.
func TestNoCoalitionMovesTheMeanFurther(t *testing.T) {
	masses := rapid.OneOf(rapid.Float64Range(1e-6, 20), rapid.SampledFrom([]float64{1e-3, 1, 2, 1e4, 1e12}))
	rapid.Check(t, func(t *rapid.T) {
		caps := evidence.Caps{
			SourceMass:  rapid.SampledFrom([]float64{1e-3, 0.5, 1, 1, 4, 100}).Draw(t, "mass"),
			SourceShare: rapid.SampledFrom([]float64{0, 0.01, 0.05, 0.1, 0.2, 1. / 3, 0.5, 0.9}).Draw(t, "share"),
		}
		var honest, all []evidence.Part
		h := 0.
		heavy := rapid.SampledFrom([]float64{1, 1, 100, 1e4}).Draw(t, "heavy")
		for i := range rapid.IntRange(1, 60).Draw(t, "honest") {
			mass, reward := masses.Draw(t, "mass"), rapid.Float64Range(0, 1).Draw(t, "reward")
			if i%3 == 0 {
				mass *= heavy
			}
			honest = append(honest, part("explicit", fmt.Sprint("h", i), mass*reward, mass*(1-reward)))
			h += min(honest[i].Tally.Mass, caps.SourceMass)
		}
		all = slices.Clone(honest)
		k := rapid.IntRange(1, 6).Draw(t, "k")
		mind := rapid.SampledFrom([]float64{0, 1, -1, -1}).Draw(t, "of one mind")
		for i := range k {
			for c := range rapid.IntRange(0, 2).Draw(t, "channels") {
				mass, reward := masses.Draw(t, "mass"), mind
				if mind < 0 {
					reward = rapid.Float64Range(0, 1).Draw(t, "reward")
				}
				all = append(all, part(fmt.Sprint(c), fmt.Sprint("mallory", i), mass*reward, mass*(1-reward)))
			}
		}
		without := caps.Pool(honest, origin).Mean()
		with := caps.Pool(rapid.Permutation(all).Draw(t, "all"), origin).Mean()
		flood := float64(k) * caps.SourceMass
		bound := max(float64(k)*caps.SourceShare, flood/(flood+h))
		assert.LessOrEqual(t, math.Abs(with-without), bound+1e-9)
	})
}

// Two sources send ten thousand outcomes each, beside fifty honest ones.
func TestTwoAccountsDoNotLiftEachOther(t *testing.T) {
	var parts []evidence.Part
	for i := range 50 {
		parts = append(parts, part("", fmt.Sprint("h", i), 0.2, 1.8))
	}
	parts = append(parts, part("", "mallory", 1e4, 0), part("", "trudy", 1e4, 0))
	caps := evidence.Caps{SourceMass: 1, SourceShare: 0.05}
	assert.InDelta(t, 0.1+2*0.05*0.9, caps.Pool(parts, origin).Mean(), 1e-9)
}

// Some coalition moves the mean by as much as the bound says.
func TestTheBoundIsReached(t *testing.T) {
	for _, caps := range []evidence.Caps{{SourceMass: 1}, {SourceMass: 1, SourceShare: 0.05}} {
		var parts []evidence.Part
		for i := range 50 {
			parts = append(parts, part("", fmt.Sprint("h", i), 0, 2))
		}
		for i := range 3 {
			parts = append(parts, part("", fmt.Sprint("m", i), 1e6, 0))
		}
		assert.InDelta(t, max(3*caps.SourceShare, 3./53), caps.Pool(parts, origin).Mean(), 1e-9)
	}
}

func TestCapsAreValidated(t *testing.T) {
	for field, caps := range map[string]evidence.Caps{
		"SourceMass":             {SourceMass: math.NaN()},
		"SourceShare":            {SourceMass: 1, SourceShare: 1},
		"SourceShare of no mass": {SourceShare: 0.05},
		"SilenceMass":            {SilenceMass: 3},
	} {
		field, _, _ = strings.Cut(field, " ")
		assert.ErrorContains(t, caps.Validate(), field)
	}
}

// BenchmarkTally times adding to and reading a tally beside adding up all observations again.
func BenchmarkTally(b *testing.B) {
	const halfLife = 90 * 24 * time.Hour
	for _, n := range []int{10, 10_000} {
		all := make([]seen, n)
		for i := range all {
			all[i] = seen{1, 0.5, origin + evidence.Instant(i)*1e6}
		}
		now := origin + evidence.Instant(n)*1e6
		b.Run(fmt.Sprintf("events=%d/add/by=heed", n), func(b *testing.B) {
			tally := tallyOf(halfLife, all)
			for b.Loop() {
				tally.Add(1, 0, 0.5, now)
			}
		})
		b.Run(fmt.Sprintf("events=%d/read/by=heed", n), func(b *testing.B) {
			tally := tallyOf(halfLife, all)
			for b.Loop() {
				tally.At(now)
			}
		})
		b.Run(fmt.Sprintf("events=%d/read/by=aggregation", n), func(b *testing.B) {
			for b.Loop() {
				naive(all, halfLife, now)
			}
		})
	}
}
