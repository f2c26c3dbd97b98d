package fair_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/fair"
)

// total adds up what parts count for, all and of the liars alone, whose names begin with "m".
func total(counted []evidence.Sums, parts []evidence.Part) (all, lies evidence.Sums) {
	for i := range parts {
		all = all.Plus(counted[i])
		if parts[i].Source[0] == 'm' {
			lies = lies.Plus(counted[i])
		}
	}
	return all, lies
}

// TestFewNeverOutweighManyAboutOneThing: whatever k people state in however many cells, their part
// of what counts is at most f(k), and they move the mean by at most f(k) + k/n. The liars climb:
// each step changes what they state at random and is kept if it moves the mean further.
func TestFewNeverOutweighManyAboutOneThing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const cells = 3
		people, k := rapid.IntRange(3, 40).Draw(t, "people"), rapid.IntRange(1, 4).Draw(t, "k")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var honest []evidence.Part
		for i := range people {
			for range 1 + rng.IntN(cells) {
				name := fmt.Sprint("p", i)
				honest = append(honest, part("", name, 3*rng.ExpFloat64(), rng.ExpFloat64()))
			}
		}
		n := float64(people + k)
		trust := evidence.Trust{}
		whole, _ := total(fair.Counted(trust, float64(people), honest, origin, nil), honest)
		moved := func(lies []evidence.Part) (mean, share float64, honestMass float64) {
			parts := slices.Concat(honest, lies)
			all, of := total(fair.Counted(trust, n, parts, origin, nil), parts)
			return math.Abs(all.Mean() - whole.Mean()), of.Mass / all.Mass, all.Mass - of.Mass
		}
		sides := [2]float64{}
		sides[rng.IntN(2)] = 1
		lies := make([]evidence.Part, k*cells)
		for i := range lies {
			lies[i] = part("", fmt.Sprint("m", i%k), sides[0], sides[1])
		}
		best, _, _ := moved(lies)
		for range 60 {
			at := rng.IntN(len(lies))
			was := lies[at]
			lies[at] = part("", was.Source, math.Exp(20*rng.Float64()-8)*sides[0],
				math.Exp(20*rng.Float64()-8)*sides[1])
			if now, _, _ := moved(lies); now > best {
				best = now
			} else {
				lies[at] = was
			}
		}
		_, share, h := moved(lies)
		a := max(1, 20/(n-1))
		f := max(2*float64(k)/n, float64(k)*a/(float64(k)*a+h))
		assert.LessOrEqual(t, share, f+1e-9)
		assert.LessOrEqual(t, best, f+float64(k)/float64(people)+1e-9)
	})
}

// Negative evidence that is strict counts only as far as others have stated the same.
func TestStrictEvidenceNeedsOthers(t *testing.T) {
	trust := evidence.Trust{Instruments: []string{"ci"}}
	strict := func(p *evidence.Part) bool { return p.Channel == "strict" }
	lost := func(n float64, sources ...string) (lost float64) {
		var parts []evidence.Part
		for _, source := range sources {
			parts = append(parts, part("strict", source, 1, 0.25))
		}
		for _, s := range fair.Counted(trust, n, parts, origin, strict) {
			assert.InDelta(t, 1, s.Reward, 1e-12)
			lost += s.Mass - s.Reward
		}
		return lost
	}
	assert.Zero(t, lost(6, "a"))
	assert.Zero(t, lost(6, "a", "b"))
	assert.InDelta(t, 0.75, lost(6, "a", "b", "c"), 1e-9, "half of six")
	assert.InDelta(t, 0.5, lost(2, "a", "b"), 1e-9, "two are believed as they are")
	assert.InDelta(t, 0.25, lost(6, "ci"), 1e-9)

	// Of 16 people, each may have an eighth of what was lost: of 0.5 and 14 times 0.1, if what was
	// gained does not count.
	parts := []evidence.Part{part("strict", "a", 0.5, 0.5)}
	for i := range 14 {
		parts = append(parts, part("strict", fmt.Sprint("b", i), 0.5-float64(i)/28, 0.1))
	}
	free := part("free", "a", 0.05, 0.05) // of the same person
	counted := fair.Counted(trust, 16, append(parts, free), origin, strict)
	assert.Equal(t, free.Tally.At(origin), counted[len(parts)])
	kept := (0.5 + 0.2) / 1
	assert.InDelta(t, 0.5+0.2, counted[0].Mass, 1e-9)
	assert.InDelta(t, 0.5, counted[0].Reward, 1e-9)
	assert.InDelta(t, 0.5*kept, counted[0].Squares, 1e-9)
	assert.Equal(t, parts[3].Tally.At(origin), counted[3])
}

// What is not strict does not change what strict evidence counts for.
func TestStrictEvidenceIsCountedAlone(t *testing.T) {
	strict := func(p *evidence.Part) bool { return p.Channel == "strict" }
	var parts, mixed []evidence.Part
	for i := range 20 {
		who := fmt.Sprint("p", i)
		parts = append(parts, part("strict", who, 0, 0.1+float64(i)/100))
		for j := range i % 4 {
			mixed = append(mixed, part(fmt.Sprint("free", j), who, 1e-6, 1e-6))
		}
	}
	trust := evidence.Trust{}
	want := fair.Counted(trust, 20, parts, origin, strict)
	got := fair.Counted(trust, 20, append(parts, mixed...), origin, strict)
	for i := range want {
		assert.InDelta(t, want[i].Mass, got[i].Mass, 1e-9)
	}
	for i, p := range mixed {
		assert.Equal(t, p.Tally.At(origin), got[len(want)+i])
	}
}

// Rounding may leave a part without mass less than nothing of what was gained, once other evidence
// was taken back. It is no loss.
func TestWhatRoundingLeavesIsNoLoss(t *testing.T) {
	left := evidence.Part{Source: "loud", Tally: evidence.Tally{Reward: -1e-17}}
	parts := []evidence.Part{left, part("", "loud", 0, 30), part("", "ann", 0, 1)}
	counted := fair.Counted(evidence.Trust{}, 10, parts, origin,
		func(*evidence.Part) bool { return true })
	assert.Equal(t, left.Tally.At(origin), counted[0])
	parts[0].Tally.Mass = math.NaN() // of a damaged store; that it ends is enough
	assert.Len(t, fair.Counted(evidence.Trust{}, 10, parts, origin, nil), 3)
}

// Strict evidence of many people counts like other evidence, and does not change the other sums.
func TestStrictEvidenceOfManyCountsAsAnyOther(t *testing.T) {
	parts := []evidence.Part{part("", "loud", 30, 0)}
	for n := range 10 {
		parts = append(parts, part("strict", fmt.Sprint("p", n), 0, 1))
	}
	want := fair.Counted(evidence.Trust{}, 11, parts, origin, nil)
	assert.Less(t, want[0].Mass, 3.)
	assert.Equal(t, want, fair.Counted(evidence.Trust{}, 11, parts, origin,
		func(p *evidence.Part) bool { return p.Source != "loud" }))
}

// An instrument is believed as it is, in all of its parts.
func TestAnInstrumentCountsInFull(t *testing.T) {
	trust := evidence.Trust{Instruments: []string{"ci"}}
	parts := []evidence.Part{
		part("x", "ann", 100, 0), part("x", "ci", 0, 1000),
		part("y", "ann", 100, 0), part("y", "ci", 1, 0),
	}
	counted := fair.Counted(trust, 21, parts, origin, nil)
	assert.InDelta(t, 1, counted[0].Mass+counted[2].Mass, 1e-9, "ann has the allowance")
	assert.InDelta(t, 1001, counted[1].Mass+counted[3].Mass, 1e-9)
}
