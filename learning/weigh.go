package learning

import (
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
		if n := alike(parts, e.replaces, e.signal.Type == Positive); n > 0 {
			e.limit(limitDiminished)
			weight /= 1 + m.cfg.Diminish*float64(n)
		}
	}
	return min(weight, evidence.MaxWeight)
}

// alike returns how often the heuristic was judged the same way. Judgements that are being replaced do not count.
func alike(parts []evidence.Part, replaced []evidence.Observation, positive bool) (n int) {
	for i := range parts {
		switch {
		case !strings.HasPrefix(parts[i].Cell.Name, cellSaid):
		case positive:
			n += int(parts[i].Tally.Positive.N)
		default:
			n += int(parts[i].Tally.Negative.N)
		}
	}
	for i := range replaced {
		if r := replaced[i].Reward; positive && r > 0.5 || !positive && r < 0.5 {
			n--
		}
	}
	return max(n, 0)
}
