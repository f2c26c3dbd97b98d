// Package winner finds out which of several ways is the best: what to draw from beliefs, how to
// share the next tries, and when there is enough to stop.
package winner

import (
	"math"
	"slices"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/chance"
)

// A Record is what one way showed: how much its outcomes weigh in all, and the sum of their
// rewards, each in [0, 1]. A weight is at most 1.
type Record struct {
	Mass   float64 `json:"mass"`
	Reward float64 `json:"reward"`
}

// Of returns the record of sums.
func Of(s evidence.Sums) Record {
	mass := max(s.Mass, 0)
	return Record{mass, min(max(s.Reward, 0), mass)}
}

// Mean returns the mean reward, and ½ without any.
func (r Record) Mean() float64 {
	if r.Mass <= 0 {
		return 0.5
	}
	return r.Reward / r.Mass
}

// most is the logarithm of the likelihood of the rewards, each mean weighed by Beta(½, ½)
// (Robbins 1970).
func (r Record) most() float64 {
	s, f := r.Reward, r.Mass-r.Reward
	return chance.LnBeta(s+0.5, f+0.5) - math.Log(math.Pi) // B(½, ½) is π
}

// loglik is the logarithm of the likelihood of the rewards for a mean of p.
func (r Record) loglik(p float64) (sum float64) {
	p = min(max(p, 1e-300), 1-1e-16) // at the ends, the likelihood of a tiny record is not 0
	if r.Reward > 0 {
		sum += r.Reward * math.Log(p)
	}
	if f := r.Mass - r.Reward; f > 0 {
		sum += f * math.Log1p(-p)
	}
	return sum
}

// slope is the derivative of loglik.
func (r Record) slope(p float64) (sum float64) {
	if r.Reward > 0 {
		sum += r.Reward / p
	}
	if f := r.Mass - r.Reward; f > 0 {
		sum -= f / (1 - p)
	}
	return sum
}

// against is the logarithm of the evidence against "the mean of r is by gap greater than the mean
// of other", at the two means that fit best.
//
// The evidence against a pair of means is the product of what most and loglik give of both. If the
// pair is right, it is above 1/δ at any time with a probability of at most δ, however the tries are
// shared (Ville 1939): it is a martingale for rewards of 0 or 1, and a supermartingale for others
// in [0, 1] and for weights below 1, because t ↦ a^t is convex and x ↦ x^w concave.
func against(r, other Record, gap float64) float64 {
	low, high := max(0, gap), min(1, 1+gap) // of the mean of r
	if !(low < high) {
		return math.Inf(1)
	}
	for range 60 {
		p := (low + high) / 2
		if r.slope(p)+other.slope(p-gap) > 0 {
			low = p
		} else {
			high = p
		}
	}
	p := (low + high) / 2
	return r.most() + other.most() - r.loglik(p) - other.loglik(p-gap)
}

// enough is how much must speak against each of the others.
func enough(ways int, miss float64) float64 { return math.Log(float64(max(ways-1, 1)) / miss) }

// Gap returns the least and the greatest difference of the two means that the records allow. The
// number of ways widens these bounds: over all pairs of the best way with another, and at all
// times, they are wrong with a probability of at most miss.
func Gap(r, other Record, ways int, miss float64) (low, high float64) {
	wanted, middle := enough(ways, miss), r.Mean()-other.Mean()
	return bound(r, other, middle, -1, wanted), bound(r, other, middle, 1, wanted)
}

// bound looks between middle and end for the gap that as much as wanted speaks against.
func bound(r, other Record, middle, end, wanted float64) float64 {
	for range 40 {
		if g := (middle + end) / 2; against(r, other, g) >= wanted {
			end = g
		} else {
			middle = g
		}
	}
	return end
}

// Stop returns the way that is surely the best, or at most by indifference worse than the best. -1:
// not yet decided. Over all times at which it is asked, it is wrong with a probability of at most
// miss.
func Stop(records []Record, miss, indifference float64) int {
	best, wanted := 0, enough(len(records), miss)
	for i, r := range records {
		if r.Mass > 0 && (records[best].Mass <= 0 || r.Mean() > records[best].Mean()) {
			best = i
		}
	}
	for i, r := range records {
		if i != best && (r.Mass <= 0 || against(records[best], r, -indifference) < wanted) {
			return -1
		}
	}
	return best
}

// Shares returns with which probability each way is tried next, by top-two Thompson sampling (Russo
// 2016): the greatest draw from the beliefs decides, or, with the same probability, the first other
// way which is the greatest in a further draw.
func Shares(records []Record) []float64 {
	n := len(records)
	if n == 1 {
		return []float64{1}
	}
	beliefs, shares := make([]evidence.Beta, n), make([]float64, n)
	for i, r := range records {
		beliefs[i] = evidence.Beta{Alpha: 1 + r.Reward, Beta: 1 + r.Mass - r.Reward}
	}
	best := ProbBest(beliefs)
	for i, p := range best {
		shares[i] += p / 2
		others := 0.
		for j, q := range best {
			if j != i {
				others += q
			}
		}
		if others < certain { // beyond the precision of the probabilities
			shares[challenger(records, i)] += p / 2
			continue
		}
		for j, q := range best {
			if j != i {
				shares[j] += p / 2 * q / others
			}
		}
	}
	return shares
}

// certain is the probability below which the other ways are distinguished by the evidence against
// them.
const certain = 1e-9

// challenger is the way that least speaks against being as good as the leader.
func challenger(records []Record, leader int) int {
	least, at := math.Inf(1), -1
	for i, r := range records {
		if i == leader {
			continue
		}
		if a := against(records[leader], r, 0); at < 0 || a < least {
			least, at = a, i
		}
	}
	return at
}

// Refuted reports whether it is sure that some way is better than the one of the lead by more than
// indifference. Over all times at which it is asked, it is wrong with a probability of at most
// miss.
func Refuted(records []Record, lead int, miss, indifference float64) bool {
	first, wanted := records[lead], enough(len(records), miss)
	return slices.ContainsFunc(records, func(r Record) bool {
		return r.Mass > 0 && r.Mean()-first.Mean() > indifference &&
			against(first, r, -indifference) >= wanted
	})
}

// Seen is what there was at a look: how many outcomes of all ways, and their sums, before any
// limits.
type Seen struct {
	Outcomes float64
	Sums     []Record
}

// Due reports whether another look may show more: outcomes have grown by a fiftieth, or some were
// taken back.
func (s Seen) Due(now Seen) bool {
	return now.Outcomes >= s.Outcomes*1.02 || now.Outcomes < s.Outcomes || Lost(s.Sums, now.Sums)
}

// Lost reports whether outcomes were taken back: further ones only add to what each way gained, and
// to what it missed.
func Lost(before, now []Record) bool {
	less := func(now, before float64) bool { return now < before-1e-9*max(1, before) }
	if len(before) != len(now) {
		return true
	}
	for i, b := range before {
		if n := now[i]; less(n.Reward, b.Reward) || less(n.Mass-n.Reward, b.Mass-b.Reward) {
			return true
		}
	}
	return false
}
