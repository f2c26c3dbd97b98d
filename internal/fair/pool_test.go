package fair_test

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/fair"
)

// A given is what people have said about one arm of some items.
type given []map[string]evidence.Part

// parts returns what was said about an item, as a store lists it.
func (s given) parts(item int) (parts []evidence.Part) {
	for _, name := range sortedKeys(s[item]) {
		parts = append(parts, s[item][name])
	}
	return parts
}

func (s given) add(item int, source string, mass, reward float64) {
	p := s[item][source]
	p.Source = source
	p.Tally.Merge(part("", source, mass*reward, mass*(1-reward)).Tally)
	s[item][source] = p
}

// level returns the sums over all items, and the people who reported.
func (s given) level(t evidence.Trust) (sums evidence.Sums, crowd *fair.Crowd) {
	crowd = fair.New(t, 1)
	voices := make([][]fair.Voice, len(s))
	for i := range s {
		voices[i] = crowd.Hear(nil, 0, s.parts(i), origin)
	}
	crowd.Settle(itemsOf(voices))
	for _, v := range voices {
		sums = sums.Plus(crowd.ShareVoices(0, v))
	}
	return sums, crowd
}

// TestFewNeverOutweighMany: whatever k people send on whatever items, their part of what counts is
// at most f(k) in the level and in each cell, and they move the mean no further than the comment
// of [evidence.Trust] states.
func TestFewNeverOutweighMany(t *testing.T) {
	masses := rapid.OneOf(rapid.Float64Range(1e-6, 20),
		rapid.SampledFrom([]float64{1e-3, 1, 2, 1e4, 1e12}))
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.IntRange(1, 6).Draw(t, "items")
		honest, all, blame := make(given, items), make(given, items), make(given, items)
		for i := range items {
			honest[i], all[i], blame[i] = map[string]evidence.Part{}, map[string]evidence.Part{},
				map[string]evidence.Part{}
		}
		of := map[string]float64{}
		say := func(who string, item int, mass, reward float64, lies bool) {
			of[who] += mass
			all.add(item, who, mass, reward)
			if !lies {
				honest.add(item, who, mass, reward)
				reward = 0
			} else {
				reward = 1
			}
			blame.add(item, who, mass, reward) // the mean is the liars' part
		}
		for i := range rapid.IntRange(3, 60).Draw(t, "people") {
			for range rapid.IntRange(1, 3).Draw(t, "times") {
				say(fmt.Sprint("p", i), rapid.IntRange(0, items-1).Draw(t, "item"),
					masses.Draw(t, "mass"), rapid.Float64Range(0, 1).Draw(t, "reward"), false)
			}
		}
		k := rapid.IntRange(1, 6).Draw(t, "k")
		mind := rapid.SampledFrom([]float64{0, 1}).Draw(t, "mind")
		for i := range k {
			for range rapid.IntRange(1, 8).Draw(t, "lies") {
				say(fmt.Sprint("m", i), rapid.IntRange(0, items-1).Draw(t, "item"),
					masses.Draw(t, "mass"), mind, true)
			}
		}
		without, before := honest.level(evidence.Trust{})
		with, after := all.level(evidence.Trust{})
		parts, _ := blame.level(evidence.Trust{})
		n := after.People()
		f := func(h float64) float64 {
			a := max(1, 20/(n-1))
			return max(float64(k)*2/n, float64(k)*a/(float64(k)*a+h))
		}
		h := parts.Mass - parts.Reward
		assert.LessOrEqual(t, parts.Mean(), f(h)+1e-9)
		shift := 4. // with several items
		if items == 1 {
			shift = 1
		}
		if before.People() > 2 {
			assert.LessOrEqual(t, math.Abs(with.Mean()-without.Mean()),
				f(h)+shift*float64(k)/before.People()+1e-9)
		}
		for i := range items {
			n = 0
			for _, p := range all[i] {
				n += min(1, p.Tally.Mass)
			}
			cell := fair.Pool(evidence.Trust{}, [][]evidence.Part{blame.parts(i)}, origin)[0]
			if n > 2 {
				assert.LessOrEqual(t, cell.Mean(), f(cell.Mass-cell.Reward)+1e-9)
			}
		}
	})
}

// One or two people, and an instrument, are believed as they are.
func TestFewPeopleAreBelieved(t *testing.T) {
	trust := evidence.Trust{Instruments: []string{"ci"}}
	parts := []evidence.Part{part("", "ann", 3, 97), part("", "ben", 500, 0), part("", "ci", 1e4, 0)}
	whole := parts[0].Tally.At(origin).Plus(parts[1].Tally.At(origin)).Plus(parts[2].Tally.At(origin))
	assert.Equal(t, whole, fair.Pool(trust, [][]evidence.Part{parts}, origin)[0])
	crowd := fair.New(trust, 1)
	crowd.Hear(nil, 0, parts, origin)
	crowd.Settle(itemsOf(nil))
	assert.Equal(t, whole, crowd.Share(0, parts, origin))
	assert.InDelta(t, 2, crowd.People(), 0, "an instrument is no person")

	for i := range 38 {
		parts = append(parts, part("", fmt.Sprint("z", i), 0.25, 0.75))
	}
	limited := fair.Pool(trust, [][]evidence.Part{parts}, origin)[0]
	assert.InDelta(t, 1e4+38+2*4.0/1.9*0.95, limited.Mass, 1.5, "two have twice a fair share")
	crowd = fair.New(trust, 1)
	crowd.Hear(nil, 0, parts, origin)
	crowd.Settle(itemsOf(nil))
	assert.InDelta(t, limited.Mass, crowd.Share(0, parts, origin).Mass, 1e-9)
	assert.Equal(t, 1., crowd.Factor(0, "ci"))
	assert.Less(t, crowd.Factor(0, "ben"), 0.01)
	assert.Equal(t, 1., crowd.Factor(0, "z1"))
	assert.Equal(t, 1., crowd.Factor(0, "nobody"))
}

// An instrument counts in full where people are limited by items, too.
func TestAnInstrumentIsNotLimitedByItems(t *testing.T) {
	crowd := fair.New(evidence.Trust{Instruments: []string{"ci"}}, 1)
	voices := make([][]fair.Voice, 3)
	for i := range voices {
		parts := []evidence.Part{part("", "ci", 50, 0)}
		for p := range 20 {
			parts = append(parts, part("", fmt.Sprint("p", p), 1, 1))
		}
		voices[i] = crowd.Hear(nil, 0, parts, origin)
	}
	crowd.Settle(itemsOf(voices))
	assert.InDelta(t, 20, crowd.People(), 0)
	for _, v := range voices {
		assert.InDelta(t, 50+20*2, crowd.ShareVoices(0, v).Mass, 1e-9)
	}
}

// A crowd of four has a limit of 20/3 on each arm. What a source has in all channels counts.
func TestThePartsThatAreKept(t *testing.T) {
	trust := evidence.Trust{Instruments: []string{"ci"}, Silence: []string{"quiet"}}
	parts := []evidence.Part{
		part("x", "ann", 5, 5), part("x", "ben", 1, 0), part("x", "ci", 100, 0),
		part("x", "cleo", 1, 0),
		part("y", "ann", 4, 1), part("y", "dan", 1, 0), part("quiet", "ann", 0, 5),
	}
	arms := [][]evidence.Part{{part("x", "eve", 0.25, 0)}, parts}
	crowd := fair.New(trust, 3)
	for arm := range arms {
		crowd.Hear(nil, arm, arms[arm], origin)
	}
	crowd.Settle(itemsOf(nil))
	kept := fair.Kept(trust, arms, origin)
	limit := 20 / 3.25
	for source, want := range map[string]float64{
		"ann": limit / 20, "ben": 1, "ci": 1, "dan": 1, "eve": 1, "a stranger": 1,
	} {
		assert.InDelta(t, want, kept(1, source), 1e-9, source)
		assert.Equal(t, 1., kept(0, source), source)
		part, heard := crowd.Kept(1, source)
		assert.InDelta(t, want, part, 1e-9, source)
		assert.Equal(t, source != "a stranger", heard, source)
	}
	assert.InDelta(t, 1, crowd.Part(0), 1e-9)
	assert.InDelta(t, (3+limit)/23, crowd.Part(1), 1e-9)
	assert.InDelta(t, 1, crowd.Part(2), 1e-9, "nothing was given")
	assert.Nil(t, fair.Kept(trust, [][]evidence.Part{parts[:3]}, origin), "two people")
	first := []evidence.Part{part("w", "ann", 10, 0), part("x", "ann", 5, 5)}
	kept = fair.Kept(trust, [][]evidence.Part{append(first, parts[1:4]...), {parts[5]}}, origin)
	assert.InDelta(t, 20/3./20, kept(0, "ann"), 1e-9)

	pooled := fair.Pool(trust, arms, origin)[1]
	assert.InDelta(t, 103+limit, pooled.Mass, 1e-9)
	assert.InDelta(t, 103+limit*9/20, pooled.Reward, 1e-9)
	assert.InDelta(t, 3+100*100+(25+25+16+1+25)*limit/20, pooled.Squares, 1e-9)
	assert.InDelta(t, 103+limit*9/20, pooled.RewardSquares, 1e-9)
	assert.InDelta(t, limit*(1-limit/20), pooled.Limited, 1e-9)
	shared := crowd.Share(1, parts, origin)
	for _, of := range [][2]float64{
		{pooled.Mass, shared.Mass}, {pooled.Reward, shared.Reward}, {pooled.Squares, shared.Squares},
		{pooled.RewardSquares, shared.RewardSquares}, {pooled.Limited, shared.Limited},
	} {
		assert.InDelta(t, of[0], of[1], 1e-9)
	}
}

// TestOutcomesAreCollectedBySource, so that a source with many outcomes is one.
func TestOutcomesAreCollectedBySource(t *testing.T) {
	given := fair.NewGiven(2)
	for range 10 {
		given.Add(1, "ann", 1, 1, origin)
		given.Add(1, "ann", 1, 0, origin)
	}
	for _, source := range []string{"ben", "cleo", "dan"} {
		given.Add(1, source, 1, 1, origin)
	}
	given.Add(0, "ann", 1, 1, origin)
	require.Len(t, given.Arms[1], 4)
	assert.InDelta(t, 20, given.Arms[1][0].Tally.Mass, 1e-9)
	assert.InDelta(t, 10, given.Arms[1][0].Tally.Reward, 1e-9)
	kept := fair.Kept(evidence.Trust{}, given.Arms, origin)
	assert.InDelta(t, 20/3./20, kept(1, "ann"), 1e-9)
	assert.Equal(t, 1., kept(0, "ann"))
	assert.Equal(t, 1., kept(1, "ben"))
}

// Of an item that few of many people know, only these few are counted.
func TestAFewOfMany(t *testing.T) {
	crowd := fair.New(evidence.Trust{}, 1)
	for i := range 100 {
		crowd.Hear(nil, 0, []evidence.Part{part("", fmt.Sprint("p", i), 1, 0)}, origin)
	}
	parts := []evidence.Part{part("", "p95", 30, 0), part("", "p96", 0.5, 0), part("", "p97", 1, 0)}
	voices := crowd.Hear(nil, 0, parts, origin)
	assert.InDelta(t, 1.5+20/1.5, fair.PoolVoices([][]fair.Voice{voices})[0].Mass, 1e-9)
}

// The positive evidence of silence counts for at most one observation plus the positive evidence of
// the other channels. Its negative evidence stays.
func TestSilenceIsNoLouderThanTheRest(t *testing.T) {
	trust := evidence.Trust{Silence: []string{"quiet"}}
	pool := func(parts ...evidence.Part) evidence.Sums {
		return fair.Pool(trust, [][]evidence.Part{parts}, origin)[0]
	}
	quiet, loud := part("quiet", "ann", 8, 2), part("loud", "ann", 2, 1)
	alone, both := pool(quiet), pool(loud, quiet)
	assert.InDelta(t, 1, alone.Reward, 1e-9)
	assert.InDelta(t, 3, alone.Mass, 1e-9)
	assert.InDelta(t, (64+4)*3/10., alone.Squares, 1e-9)
	assert.InDelta(t, 8/8., alone.RewardSquares, 1e-9)
	assert.InDelta(t, 2+3, both.Reward, 1e-9)
	assert.InDelta(t, 3+5, both.Mass, 1e-9)
	assert.InDelta(t, 10, pool(quiet, part("loud", "ann", 90, 0)).Mass-90, 1e-9, "all of it counts")
}

// Silence that counts for less, because all silence is too loud, is limited as much as before.
func TestSilenceIsLimitedToo(t *testing.T) {
	parts := []evidence.Part{part("quiet", "ann", 80, 20)}
	loud := 0.
	for i := range 9 {
		parts = append(parts, part("loud", fmt.Sprint("p", i), 1, 0))
		loud++
	}
	limitedPart := func(trust evidence.Trust) (part, mass float64) {
		sums := fair.Pool(trust, [][]evidence.Part{parts}, origin)[0]
		return sums.Limited / (sums.Mass - loud), sums.Mass
	}
	want, whole := limitedPart(evidence.Trust{})
	got, less := limitedPart(evidence.Trust{Silence: []string{"quiet"}})
	assert.InDelta(t, whole, less, 1e-9, "below ten, silence counts in full")
	assert.InDelta(t, want, got, 1e-9)
	parts, loud = parts[:3], 2
	want, whole = limitedPart(evidence.Trust{})
	got, less = limitedPart(evidence.Trust{Silence: []string{"quiet"}})
	assert.Less(t, less, whole-1)
	assert.InDelta(t, want, got, 1e-9)
}

// What a source counts for is described if it is less than what it reported.
func TestLimited(t *testing.T) {
	assert.Empty(t, fair.Limited(3, 1, 2, 9))
	assert.Empty(t, fair.Limited(2, 1, 2, 9))
	assert.Empty(t, fair.Limited(0.3, 0.1, 0.2, 9), "rounding is no limit")
	assert.Equal(t, "1.00 for and 2.00 against, the most of one of 9 people",
		fair.Limited(3.001, 1, 2, 9))
}

// A person who makes up items for each lie has as much in all of them as in one.
func TestMadeUpItemsAreOne(t *testing.T) {
	trust, crowd := evidence.Trust{}, fair.New(evidence.Trust{}, 2)
	for i := range 40 {
		crowd.Hear(nil, i%3/2, []evidence.Part{part("", fmt.Sprint("p", i), 3, 2)}, origin)
	}
	lie := []evidence.Part{part("", "m", 1, 0)}
	for range 100 {
		crowd.Hear(nil, 1, lie, origin)
	}
	crowd.Settle(itemsOf(nil))
	assert.InDelta(t, 1, 100*crowd.Share(1, lie, origin).Mass, 1e-9,
		"fewer than half of the people reported on the arm")
	assert.Equal(t, 1., fair.Pool(trust, [][]evidence.Part{nil, lie}, origin)[1].Mass,
		"no other person reported on the item itself")
}

// Five liars who share an item of their own have at most f(5) of what counts by items, although the
// limit makes what is left of their item worth more.
func TestLimitsByItemsHoldAfterScaling(t *testing.T) {
	const people, liars = 150, 5
	crowd := fair.New(evidence.Trust{}, 1)
	cells := make([][]evidence.Part, 5)
	for i := range 4 {
		for p := range people {
			cells[i] = append(cells[i], part("", fmt.Sprint("p", p), 0, 1))
		}
	}
	for k := range liars {
		cells[4] = append(cells[4], part("", fmt.Sprint("liar ", k), 40, 0))
	}
	voices := make([][]fair.Voice, 5)
	for i := range cells {
		voices[i] = crowd.Hear(nil, 0, cells[i], origin)
	}
	rounds := 0
	crowd.Settle(func(yield func([][]fair.Voice) bool) {
		rounds++
		itemsOf(voices)(yield)
	})
	assert.Less(t, rounds, 12)
	byItems := func(i int) float64 { // of all people in a cell: a mass m of n is 2m/(1+n)
		n := crowd.ShareVoices(0, voices[i]).Mass
		return 2 * n / (1 + n)
	}
	all := 0.
	for i := range cells {
		all += byItems(i)
	}
	f := 2. * liars / (people + liars)
	assert.InDelta(t, f, byItems(4)/all, 0.01*f)
}

// Limits that hold are not applied again.
func TestLimitsThatHoldEndTheRounds(t *testing.T) {
	crowd := fair.New(evidence.Trust{}, 1)
	var parts []evidence.Part
	for p := range 30 {
		parts = append(parts, part("", fmt.Sprint("p", p), 1, 0))
	}
	voices, rounds := crowd.Hear(nil, 0, parts, origin), 0
	crowd.Settle(func(yield func([][]fair.Voice) bool) {
		rounds++
		yield([][]fair.Voice{voices})
	})
	assert.Equal(t, 1, rounds)
	empty := fair.New(evidence.Trust{}, 1)
	empty.Settle(itemsOf(nil))
	assert.Zero(t, empty.People())
}

// Sums that fade keep the part of them that is limited.
func TestScaledSumsAreLimitedAsMuch(t *testing.T) {
	s := evidence.Sums{Mass: 4, Squares: 3, Reward: 2, RewardSquares: 1, Limited: 0.5}
	assert.Equal(t, evidence.Sums{Mass: 2, Squares: 1.5, Reward: 1, RewardSquares: 0.5,
		Limited: 0.25}, fair.Scale(s, 0.5))
}

// On an arm that no one has reported on, one outcome is no drift.
func TestTheFirstOutcomeOfAnArmIsNoDrift(t *testing.T) {
	crowd := fair.New(evidence.Trust{}, 2)
	var parts []evidence.Part
	for p := range 40 {
		parts = append(parts, part("", fmt.Sprint("p", p), 1, 0))
	}
	voices := crowd.Hear(nil, 0, parts, origin)
	crowd.Settle(slices.Values([][][]fair.Voice{{voices, nil}}))
	assert.False(t, crowd.Add(1, "p0", 1, 1))
	assert.True(t, crowd.Add(1, "p0", 1, 1), "and the second is")
}

// What is added after a crowd has settled counts as before, until it has come too far.
// The rule holds for each of several arms.
func TestACrowdDrifts(t *testing.T) {
	for arms := 1; arms <= 3; arms++ {
		t.Run(fmt.Sprint(arms, " arms"), func(t *testing.T) { aCrowdDrifts(t, arms) })
	}
}

func aCrowdDrifts(t *testing.T, arms int) {
	mass := 1.
	addTo := func(people, each, more int, n float64, source func(n int) string) (first int) {
		crowd := fair.New(evidence.Trust{Instruments: []string{"ci"}}, arms)
		item := make([][]fair.Voice, arms)
		last := &item[arms-1]
		for i := range people {
			parts := []evidence.Part{part("", fmt.Sprint("p", i), float64(each), 0)}
			*last = crowd.Hear(*last, arms-1, parts, origin)
		}
		crowd.Settle(slices.Values([][][]fair.Voice{item}))
		for i := range more {
			if crowd.Add(arms-1, source(i), mass, n) {
				return i + 1
			}
		}
		return 0
	}
	add := func(people, each, more int, source func(n int) string) (first int) {
		return addTo(people, each, more, float64(people*each), source)
	}
	the := func(who string) func(int) string { return func(int) string { return who } }
	anew := func(n int) string { return fmt.Sprint("new ", n) }
	assert.Zero(t, add(1, 5, 1000, the("p0")), "one person alone")
	assert.Zero(t, add(2, 5, 1000, the("p0")))
	assert.Zero(t, add(40, 5, 10_000, the("ci")))
	assert.Equal(t, 1, add(2, 5, 10, anew), "the third person")
	assert.Equal(t, 11, add(40, 5, 100, anew), "a fourth more people")
	assert.Equal(t, 12, add(40, 5, 100, the("p0")), "five are there, ten may be, and 200/32")
	assert.Equal(t, 16, add(64, 5, 100, the("p0")), "five are there, ten may be, and 320/32")
	assert.Zero(t, add(4, 5, 1, the("p0")))
	assert.Equal(t, 65, add(64, 1, 100, func(n int) string { return fmt.Sprint("p", n%64) }),
		"twice as much")
	assert.Equal(t, 12, addTo(40, 5, 100, 1e9, the("p0")), "by mass alone")
	assert.Equal(t, 6, addTo(40, 5, 100, 100, the("p0")),
		"by items, 10/201 are there and 20/201 may be, and each step is 2/101")
	assert.Equal(t, 9, addTo(40, 5, 100, 100, the("new")), "nothing is there")
	assert.Equal(t, 15, addTo(62, 5, 100, 1e9, the("p0")), "by mass, over 310/32 and not 310/31")
	assert.Equal(t, 6, addTo(40, 5, 100, 105.2, the("p0")), "by items, one in 32 as well")
	mass = 2
	assert.Equal(t, 6, addTo(40, 5, 100, 1e9, the("p0")), "by mass, with steps of two")
	assert.Equal(t, 3, addTo(40, 5, 100, 100, the("p0")), "by items, too")
}

func BenchmarkTrust(b *testing.B) {
	for _, people := range []int{1, 40, 1000, 100_000} {
		var parts []evidence.Part
		crowd := fair.New(evidence.Trust{}, 1)
		for i := range people {
			parts = append(parts, part("", fmt.Sprintf("%06d", i), 1, 1))
		}
		crowd.Hear(nil, 0, parts, origin)
		crowd.Settle(itemsOf(nil))
		now := evidence.InstantOf(origin.Time().Add(time.Hour))
		b.Run(fmt.Sprint("item/", people), func(b *testing.B) {
			for b.Loop() {
				fair.Pool(evidence.Trust{}, [][]evidence.Part{parts}, now)
			}
		})
		b.Run(fmt.Sprint("share/", people), func(b *testing.B) {
			for b.Loop() {
				crowd.Share(0, parts, now)
			}
		})
		b.Run(fmt.Sprint("settle/", people), func(b *testing.B) {
			for b.Loop() {
				crowd := fair.New(evidence.Trust{}, 1)
				crowd.Hear(nil, 0, parts, origin)
				crowd.Settle(itemsOf(nil))
			}
		})
	}
}

// itemsOf yields items of one arm.
func itemsOf(voices [][]fair.Voice) iter.Seq[[][]fair.Voice] {
	return func(yield func([][]fair.Voice) bool) {
		for _, v := range voices {
			if !yield([][]fair.Voice{v}) {
				return
			}
		}
	}
}

func sortedKeys(m map[string]evidence.Part) []string { return slices.Sorted(maps.Keys(m)) }

var origin = evidence.InstantOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

func part(channel, source string, gained, lost float64) evidence.Part {
	var tally evidence.Tally
	tally.Add(gained, 0, 1, origin)
	tally.Add(lost, 0, 0, origin)
	return evidence.Part{Channel: channel, Source: source, Tally: tally}
}

// A person whose evidence is in several channels is one person.
func TestSeveralChannelsAreOnePerson(t *testing.T) {
	crowd := fair.New(evidence.Trust{}, 1)
	parts := []evidence.Part{
		part("a", "ann", 0.4, 0), part("a", "bob", 0.2, 0), part("b", "ann", 0, 0.3),
		part("b", "bob", 0.1, 0),
	}
	shifted := []evidence.Part{parts[0], parts[2], parts[1], parts[3]} // one channel of bob's is late
	require.Len(t, fair.New(evidence.Trust{}, 1).Hear(nil, 0, shifted, origin), 2)
	voices := crowd.Hear(nil, 0, parts, origin)
	require.Len(t, voices, 2)
	crowd.Settle(slices.Values([][][]fair.Voice{{voices}}))
	assert.InDelta(t, 1, crowd.People(), 1e-12)
	assert.InDelta(t, 1, crowd.ShareVoices(0, voices).Mass, 1e-12)
	assert.InDelta(t, 0.7, crowd.ShareVoices(0, voices).Reward, 1e-12)
}

// A crowd has no people if only instruments gave evidence, because an instrument is no person.
func TestACrowdOfNobody(t *testing.T) {
	crowd := fair.New(evidence.Trust{Instruments: []string{"ci"}}, 1)
	var tally evidence.Tally
	tally.Add(1, 0, 1, 1)
	voices := crowd.Hear(nil, 0, []evidence.Part{{Source: "ci", Tally: tally}}, 1)
	crowd.Settle(slices.Values([][][]fair.Voice{{voices}}))
	assert.Zero(t, crowd.People())
	assert.Equal(t, 1., crowd.ShareVoices(0, voices).Mass)
}
