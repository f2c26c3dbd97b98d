package fair

import (
	"github.com/heedhq/heed/evidence"
)

// Counted limits what people have stated about one thing, for example a heuristic, and returns what
// each part counts for, in the order of the parts. Each person may have twice a fair share, or the
// allowance, like the limit for an arm: see [evidence.Trust]. So k people have at most f(k) of what
// counts.
//
// n is the number of people. The caller names it, because the few who have stated something about
// one thing may all be liars. Negative evidence of a part for which strict returns true has no
// allowance: of more than two people, it counts only as far as others have stated the same. strict
// may be nil.
func Counted(
	t evidence.Trust, n float64, parts []evidence.Part, now evidence.Instant,
	strict func(*evidence.Part) bool,
) []evidence.Sums {
	read := make([]evidence.Sums, len(parts))
	for i := range parts {
		read[i] = parts[i].Tally.At(now)
	}
	if n <= believed {
		return read
	}
	h := hold{read: read, of: sourcesOf(&t, parts)}
	h.masses = make([]float64, len(parts))
	if strict != nil {
		h.to(n, 0, func(i int) float64 {
			if !strict(&parts[i]) {
				return 0
			}
			return read[i].Mass - max(read[i].Reward, 0)
		}, scaleNegative)
	}
	h.to(n, floor(n), func(i int) float64 { return read[i].Mass }, Scale)
	return read
}

// sourcesOf numbers the people of parts from 0 on, with [instrument] for an instrument.
func sourcesOf(t *evidence.Trust, parts []evidence.Part) []int32 {
	of, known := make([]int32, len(parts)), people{trust: t}
	for i := range parts {
		of[i] = known.number(parts[i].Source)
	}
	return of
}

// A hold limits what the people of parts have.
type hold struct {
	read   []evidence.Sums // of each part
	of     []int32         // the number of its person
	masses []float64       // by person
}

// to limits each of n people to a fair share of what has is in all parts, or to the least mass.
func (h *hold) to(n, least float64, has func(int) float64,
	scale func(evidence.Sums, float64) evidence.Sums) {
	clear(h.masses)
	for i, person := range h.of {
		if person != instrument {
			h.masses[person] += has(i)
		}
	}
	most := limitFrom(n, least, h.masses, 0, 1)
	for i, person := range h.of {
		if person != instrument && h.masses[person] > most && has(i) > 0 {
			h.read[i] = scale(h.read[i], most/h.masses[person])
		}
	}
}

// scaleNegative scales what was lost, which is positive, and leaves what was gained.
func scaleNegative(s evidence.Sums, factor float64) evidence.Sums {
	kept := (s.Reward + (s.Mass-s.Reward)*factor) / s.Mass
	s.Mass, s.Squares = s.Mass*kept, s.Squares*kept
	return s
}

// scalePositive scales what was gained, which is positive, and leaves what was lost: rewards fade,
// and the mass by as much.
func scalePositive(s evidence.Sums, factor float64) evidence.Sums {
	lost := s.Mass - s.Reward
	kept := (lost + s.Reward*factor) / s.Mass
	return evidence.Sums{
		Mass: s.Mass * kept, Squares: s.Squares * kept,
		Reward: s.Reward * factor, RewardSquares: s.RewardSquares * factor,
		Limited: s.Limited * kept,
	}
}
