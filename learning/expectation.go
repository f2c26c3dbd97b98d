package learning

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/internal/faults"
)

// A Pattern says by which later event it shows how an answer turned out.
type Expectation struct {
	// Trigger is looked for in the condition of the heuristic that fires, Outcome in the texts of later events: as a part
	// of them, in whatever case. Neither may be blank. Of several patterns whose trigger is there, the first counts.
	Trigger string
	Outcome string
	// Failure makes the outcome speak against the heuristic.
	Failure bool
	// Timeout is how long the outcome is waited for; if it has not come by then, silence is interpreted. 0 means the
	// silence window of the domain.
	Timeout time.Duration
}

func checkExpectations(found *faults.List, patterns []Expectation) {
	for i, p := range patterns {
		field := fmt.Sprintf("Expectations[%d]", i)
		found.Check(strings.TrimSpace(p.Trigger) != "", field+".Trigger", p.Trigger, "must not be blank")
		found.Check(strings.TrimSpace(p.Outcome) != "", field+".Outcome", p.Outcome, "must not be blank")
		found.Check(p.Timeout >= 0, field+".Timeout", p.Timeout, "must not be negative")
	}
}

// pattern returns the first pattern whose trigger is in a condition.
func (m *Module) expectation(condition string) *Expectation {
	condition = strings.ToLower(condition)
	for i := range m.cfg.Expectations {
		if strings.Contains(condition, strings.ToLower(m.cfg.Expectations[i].Trigger)) {
			return &m.cfg.Expectations[i]
		}
	}
	return nil
}

// phrases returns what the outcomes of all patterns are looked for by, each once.
func phrases(patterns []Expectation) (all []string) {
	for _, p := range patterns {
		all = append(all, strings.ToLower(p.Outcome))
	}
	slices.Sort(all)
	return slices.Compact(all)
}
