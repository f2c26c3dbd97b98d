package learning

import (
	"math"
	"strings"

	"github.com/heedhq/heed/evidence"
)

// weigh returns the weight of a signal as evidence.
func (m *Module) weigh(e *entry, c Constraints, parts []evidence.Part) float64 {
	if e.signal.neutral() {
		return 0
	}
	if c.FeedbackWeight < 1 {
		e.limit(limitWeight)
	}
	weight := e.signal.Magnitude * c.FeedbackWeight
	if e.explicit && m.cfg.Diminish > 0 {
		count, mass := alike(parts, e.replaces, e.signal.Type == Positive, evidence.InstantOf(e.at))
		if n := min(count, judgements(mass/(e.full*c.FeedbackWeight), m.cfg.Diminish)); n > 1e-12 {
			e.limit(limitDiminished)
			weight /= 1 + m.cfg.Diminish*n
		}
	}
	return min(weight, evidence.MaxWeight)
}

// alike returns how many judgements of one sign there are, and their mass. Judgements that are
// being replaced do not count.
func alike(parts []evidence.Part, replaced []evidence.Observation, positive bool,
	now evidence.Instant) (count, mass float64) {
	of := func(all, reward float64) float64 {
		if positive {
			return reward
		}
		return all - reward
	}
	for i := range parts {
		if strings.HasPrefix(parts[i].Cell.Name, cellJudged) {
			t := &parts[i].Tally
			sums, good := t.At(now), float64(t.Positive.N)
			mass, count = mass+of(sums.Mass, sums.Reward), count+of(good+float64(t.Negative.N), good)
		}
	}
	for i := range replaced {
		r := &replaced[i]
		mass -= of(r.Weight, r.Weight*r.Reward)
		if positive && r.Reward > 0.5 || !positive && r.Reward < 0.5 {
			count--
		}
	}
	return max(count, 0), max(mass, 0)
}

// judgements returns how many full judgements of mass 1 have a mass in all, if the judgement after
// n others counts 1/(1 + k·n). Parts of one count in proportion. From the hundredth on the sum is
// approximated by its integral, to less than a millionth of the result.
func judgements(mass, k float64) (n float64) {
	const exact = 100
	for ; n < exact; n++ {
		next := 1 / (1 + k*n)
		if mass <= next {
			return n + mass/next
		}
		mass -= next
	}
	return (1+k*(exact-0.5))*math.Exp(k*mass)/k - 1/k + 0.5
}
