package fair

import (
	"iter"
	"math"

	"github.com/heedhq/heed/evidence"
)

// The constants of the rule: see [evidence.Trust].
const (
	believed   = 2  // as many people are believed as they are
	fairShares = 2  // of more, each may have as many fair shares of an arm
	allowance  = 20 // divided by the number of the others, is what each may have in any case,
	leastMass  = 1  // and this at the least

	silenceMass = 1 // what silence counts for where no other channel is positive
)

// floor returns the mass that one of n people may have in any case.
func floor(n float64) float64 { return max(leastMass, allowance/(n-1)) }

// limit returns the mass x that each of n people may have on an arm. The masses are of the people
// who reported on it. The difference of both sides of x = share·Σ min(mass, x) is concave in x, so
// Newton's method from above comes down to x without passing it, in fewer than 1/share steps.
func limit(n float64, masses []float64) float64 {
	return limitFrom(n, floor(n), masses, 0, 1)
}

// limitFrom does what limit does, with another mass that each may have in any case, for the masses
// of every step-th place from one on.
func limitFrom(n, least float64, masses []float64, first, step int) float64 {
	if n <= believed {
		return math.Inf(1)
	}
	share, x := fairShares/n, math.Inf(1)
	for {
		over, rest := 0., 0.
		for i := first; i < len(masses); i += step {
			if m := masses[i]; m > x {
				over++
			} else {
				rest += max(m, 0)
			}
		}
		slope := 1 - share*over
		next := share * rest / slope
		switch {
		case slope < 1e-12, !(next < x): // also if it is not a number
			return max(x, least)
		case next <= least: // also if fewer people gave evidence than can have such a share
			return least
		}
		x = next
	}
}

// Pool reads the parts of the arms of one item at a moment, limits them, and adds them up, by arm.
func Pool(t evidence.Trust, arms [][]evidence.Part, now evidence.Instant) []evidence.Sums {
	people := people{trust: &t}
	voices := make([][]Voice, len(arms))
	for i, parts := range arms {
		voices[i] = people.read(nil, parts, now, people.number)
	}
	return PoolVoices(voices)
}

// PoolVoices does what [Pool] does for what a crowd has heard of one item, by arm.
func PoolVoices(arms [][]Voice) []evidence.Sums {
	n := peopleIn(arms)
	sums := make([]evidence.Sums, len(arms))
	for i, voices := range arms {
		sums[i] = pool(n, voices)
	}
	return sums
}

// Kept returns the part of a source's evidence on an arm that counts, within the limits on the
// people of an item: see [Pool]. It returns nil if so few people gave evidence on the item
// that no limit applies.
func Kept(
	t evidence.Trust, arms [][]evidence.Part, now evidence.Instant,
) func(arm int, source string) float64 {
	people, voices := people{trust: &t}, make([][]Voice, len(arms))
	for i, parts := range arms {
		voices[i] = people.read(nil, parts, now, people.number)
	}
	n := peopleIn(voices)
	if n <= believed {
		return nil
	}
	kept := make([]map[int32]float64, len(arms))
	for arm := range voices {
		kept[arm] = make(map[int32]float64)
		most := limit(n, massesOf(voices[arm]))
		for i := range voices[arm] {
			if v := &voices[arm][i]; v.person != instrument && v.mass() > most {
				kept[arm][v.person] = most / v.mass()
			}
		}
	}
	return func(arm int, source string) float64 {
		if part, limited := kept[arm][people.find(source)]; limited {
			return part
		}
		return 1
	}
}

// Given collects outcomes of the arms of an item by their sources, as [Kept] needs them. All
// outcomes of a source on an arm are one part, because limits apply to a source and not to an
// outcome. Make one with [NewGiven].
type Given struct {
	Arms   [][]evidence.Part
	places map[given]int
}

// A given names a part.
type given struct {
	arm    int
	source string
}

// NewGiven returns one of n arms without outcomes.
func NewGiven(n int) *Given {
	return &Given{Arms: make([][]evidence.Part, n), places: make(map[given]int)}
}

// Add adds an outcome of a mass before it fades.
func (g *Given) Add(arm int, source string, mass, reward float64, at evidence.Instant) {
	place, ok := g.places[given{arm, source}]
	if !ok {
		place = len(g.Arms[arm])
		g.places[given{arm, source}] = place
		g.Arms[arm] = append(g.Arms[arm], evidence.Part{Source: source})
	}
	g.Arms[arm][place].Tally.Add(mass, 1, reward, at)
}

// pool limits the evidence of each source in one cell to the part of one of n people, and adds it
// up.
func pool(n float64, voices []Voice) evidence.Sums {
	most := limit(n, massesOf(voices))
	return addUp(voices, func(v *Voice) float64 {
		if m := v.mass(); m > most {
			return most / m
		}
		return 1
	})
}

// addUp scales the evidence of people, then limits silence, and adds up.
func addUp(voices []Voice, factor func(*Voice) float64) (all evidence.Sums) {
	var silence evidence.Sums
	for i := range voices {
		v, by := &voices[i], 1.
		if v.person != instrument {
			by = factor(v)
		}
		all, silence = all.Plus(limited(v.given, by)), silence.Plus(limited(v.silence, by))
	}
	if most := silenceMass + all.Reward; silence.Reward > most {
		silence = scalePositive(silence, most/silence.Reward)
	}
	return all.Plus(silence)
}

// massesOf returns the masses of people.
func massesOf(voices []Voice) []float64 {
	all := make([]float64, 0, len(voices))
	for i := range voices {
		if voices[i].person != instrument {
			all = append(all, voices[i].mass())
		}
	}
	return all
}

// peopleIn returns how many people gave evidence on an item.
func peopleIn(arms [][]Voice) (n float64) {
	all, last := 0, int32(0)
	for _, voices := range arms {
		all += len(voices)
		for i := range voices {
			last = max(last, voices[i].person)
		}
	}
	if int(last) > 2*all { // they are a few of many, whose numbers are far apart
		of := make(map[int32]float64, all)
		for person, m := range voicesOf(arms) {
			of[person] += m
		}
		for _, m := range of {
			n += min(1, m)
		}
		return n
	}
	of := make([]float64, last+1)
	for person, m := range voicesOf(arms) {
		of[person] += m
	}
	for _, m := range of {
		n += min(1, m)
	}
	return n
}

// voicesOf yields the people who gave evidence on an item, each with the mass of a voice.
func voicesOf(arms [][]Voice) iter.Seq2[int32, float64] {
	return func(yield func(int32, float64) bool) {
		for _, voices := range arms {
			for i := range voices {
				v := &voices[i]
				if v.person != instrument && !yield(v.person, v.mass()) {
					return
				}
			}
		}
	}
}

// limited returns the sums of observations, which were not limited before, if only a part of each
// counts.
func limited(s evidence.Sums, part float64) evidence.Sums {
	s = Scale(s, part)
	s.Limited = s.Mass * (1 - part)
	return s
}

// Scale returns the sums as if each observation had faded by the factor.
func Scale(s evidence.Sums, factor float64) evidence.Sums {
	return evidence.Sums{
		Mass: s.Mass * factor, Squares: s.Squares * factor, Reward: s.Reward * factor,
		RewardSquares: s.RewardSquares * factor, Limited: s.Limited * factor,
	}
}
