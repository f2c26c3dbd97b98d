package learning

import (
	"math"

	"github.com/heedhq/heed/evidence"
)

// weigh returns the weight of a signal as evidence: what it is worth times the feedback weight, and
// for a judgement times 1/(1 + k·n) with [Config.Diminish]. Observed signals do not diminish,
// because a user who undoes an answer again does so for a new reason.
func (m *Module) weigh(e *entry, c Constraints, parts []evidence.Part) float64 {
	if e.signal.Worth == 0 {
		return 0
	}
	if c.FeedbackWeight < 1 {
		e.limit(limitWeight)
	}
	weight := math.Abs(e.signal.Worth) * c.FeedbackWeight
	if e.explicit && m.cfg.Diminish > 0 {
		if n := alike(parts, e.replaces, e.signal.Worth > 0); n > 0 {
			e.limit(limitDiminished)
			weight /= 1 + m.cfg.Diminish*n
		}
	}
	return min(weight, evidence.MaxWeight)
}

// alike returns how many judgements of one sign there are. Judgements that are being replaced do
// not count.
func alike(parts []evidence.Part, replaced []evidence.Observation, positive bool) float64 {
	n := 0
	for i := range parts {
		if t := &parts[i].Tally; parts[i].Cell.Name != cellJudged {
			continue
		} else if positive {
			n += int(t.Positive.N)
		} else {
			n += int(t.Negative.N)
		}
	}
	for i := range replaced {
		if r := &replaced[i]; r.Reward != 0.5 && positive == (r.Reward > 0.5) {
			n--
		}
	}
	return float64(max(n, 0))
}
