package evidence

import (
	"iter"
	"math"
	"slices"

	"github.com/heedhq/heed/internal/valid"
)

// Trust limits how much each source counts. One rule sets the limit from the number of people. The
// zero Trust is ready to use. The limit applies when beliefs are read and never changes what is
// stored, so Trust can be changed at any time, and the order of arrival does not matter. It needs a
// policy that keeps origins apart: see [Policy].
//
// A source is a person, unless it is named as an instrument. All that has no source is one person.
// The rule is about a group of cells that are alternatives: the arms of one item ([Trust.Pool]), or
// the arms of all items of a segment together ([Crowd]), each with the number of its people,
//
//	N = Σ min(1, m)
//
// for the mass m that each person has in the group. It fades as evidence does. One or two people
// are believed as they are. Of more, each may have twice a fair share of an arm: the mass x that
// solves
//
//	x = 2/N · Σ min(m, x), or a = max(1, 20/(N-1)) if that is more
//
// for the mass m that each person has on the arm. The evidence of a person who has more is scaled
// down to x. So k people, whatever they send, have at most this part of what counts for an arm:
//
//	f(k) = max(2k/N, k·a/(k·a + h))
//
// where h is the mass of all others within their limits, and N counts all people, these included.
// As the limits go by N, k people who join n others also shift what each of the others weighs. With
// that, they move a mean by at most f(k) + k/n.
type Trust struct {
	// Instruments names the sources that are no people: CI, a test suite, payments. Each is
	// believed as it is, and counts for no one's limit. Choose names that no user can take.
	Instruments []string
	// Silence names the channels of silence: "implicit_timeout". Their positive evidence counts for
	// at most SilenceMass plus the positive evidence of all other channels. So a complaint never
	// makes silence louder. From an even prior, with a SilenceMass of 1, silence alone brings a
	// belief to 2/3 at most. Empty means no limit. Set it if most answers get no reaction at all.
	Silence     []string
	SilenceMass float64
}

// Validate reports all faults, joined.
func (t Trust) Validate() error {
	var found valid.Faults
	for _, name := range t.Instruments {
		found.Check(name != "" && CheckText("", name) == nil, "Instruments", name,
			"must be text that a store can keep, and not empty, because that means no source")
	}
	found.Check(t.SilenceMass >= 0 && t.SilenceMass <= MaxWeight, "SilenceMass", t.SilenceMass,
		"must be in [0, 1e6]")
	found.Check(t.SilenceMass == 0 || len(t.Silence) > 0, "SilenceMass", t.SilenceMass,
		"needs the channels in Silence")
	return found.Err()
}

// Clone returns an independent copy.
func (t Trust) Clone() Trust {
	t.Instruments, t.Silence = slices.Clone(t.Instruments), slices.Clone(t.Silence)
	return t
}

// The constants of the rule: see [Trust].
const (
	believed   = 2  // as many people are believed as they are
	fairShares = 2  // of more, each may have as many fair shares of an arm
	allowance  = 20 // divided by the number of the others, is what each may have in any case,
	leastMass  = 1  // and this at the least
)

// floor returns the mass that one of n people may have in any case.
func floor(n float64) float64 { return max(leastMass, allowance/(n-1)) }

// limit returns the mass x that each of n people may have on an arm of which some have spoken. The
// difference of the two sides of x = share·Σ min(mass, x) is concave in x. From above it,
// Newton's method comes down to it without passing it, in fewer than 1/share steps.
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
		case slope < 1e-12, next >= x:
			return max(x, least)
		case next <= least: // also if fewer people gave evidence than can have such a share
			return least
		}
		x = next
	}
}

// Pool reads the parts of the arms of one item at a moment, limits them, and adds them up, by arm.
func (t Trust) Pool(arms [][]Part, now Instant) []Sums {
	if len(t.Silence) == 0 && t.few(arms) {
		sums := make([]Sums, len(arms))
		for i, parts := range arms {
			for j := range parts {
				sums[i] = sums[i].Plus(parts[j].Tally.At(now))
			}
		}
		return sums
	}
	people := people{trust: &t}
	voices := make([][]Voice, len(arms))
	for i, parts := range arms {
		voices[i] = people.read(nil, parts, now, people.number)
	}
	return t.PoolVoices(voices)
}

// few reports whether so few people gave evidence that no limit applies.
func (t *Trust) few(arms [][]Part) bool {
	var known [believed]string
	n := 0
	for _, parts := range arms {
		for i := range parts {
			source := parts[i].Source
			if slices.Contains(known[:n], source) || slices.Contains(t.Instruments, source) {
				continue
			}
			if n == believed {
				return false
			}
			known[n] = source
			n++
		}
	}
	return true
}

// PoolVoices does what [Trust.Pool] does for what a crowd has heard of one item, by arm.
func (t Trust) PoolVoices(arms [][]Voice) []Sums {
	n := peopleIn(arms)
	sums := make([]Sums, len(arms))
	for i, voices := range arms {
		sums[i] = t.pool(n, voices)
	}
	return sums
}

// Kept returns the part of a source's evidence on one arm that counts, within the limits on the
// people of an item: see [Trust.Pool]. It returns nil if so few people gave evidence on the item
// that no limit applies.
func (t Trust) Kept(arms [][]Part, arm int, now Instant) func(source string) float64 {
	people := people{trust: &t}
	voices := make([][]Voice, len(arms))
	for i, parts := range arms {
		voices[i] = people.read(nil, parts, now, people.number)
	}
	n := peopleIn(voices)
	if n <= believed {
		return nil
	}
	most, kept := limit(n, massesOf(voices[arm])), make(map[int32]float64)
	for i := range voices[arm] {
		if v := &voices[arm][i]; v.person != instrument && v.mass() > most {
			kept[v.person] = most / v.mass()
		}
	}
	return func(source string) float64 {
		if part, limited := kept[people.find(source)]; limited {
			return part
		}
		return 1
	}
}

// pool limits the evidence of each source in one cell to the part of one of n people, and adds it
// up.
func (t *Trust) pool(n float64, voices []Voice) Sums {
	most := limit(n, massesOf(voices))
	return t.addUp(voices, func(v *Voice) float64 {
		if m := v.mass(); m > most {
			return most / m
		}
		return 1
	})
}

// addUp scales the evidence of people, then limits silence, and adds up.
func (t *Trust) addUp(voices []Voice, factor func(*Voice) float64) (all Sums) {
	var silence Sums
	for i := range voices {
		v, by := &voices[i], 1.
		if v.person != instrument {
			by = factor(v)
		}
		all, silence = all.Plus(v.given.limit(by)), silence.Plus(v.silence.limit(by))
	}
	if most := t.SilenceMass + all.Reward; silence.Reward > most {
		silence = silence.scalePositive(most / silence.Reward)
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
