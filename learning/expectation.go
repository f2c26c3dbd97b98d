package learning

import (
	"fmt"
	"strings"
	"time"

	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/valid"
)

// An Expectation describes the later message that shows how an answer turned out.
type Expectation struct {
	// Trigger is looked for in the condition of the heuristic that fires. Outcome is looked for in
	// the texts of later messages. Both match as a part of a text, in any case, and must not be
	// blank. The first expectation whose trigger matches counts.
	Trigger string
	Outcome string
	// Failure makes the outcome count against the heuristic. The default is false. Set it for
	// messages that show a failure, for example "alarm raised again".
	Failure bool
	// Timeout is how long heed waits for the outcome. After it, silence is interpreted. 0 means the
	// silence window of the domain. Set it if the outcome takes longer to show, for example an hour.
	Timeout time.Duration
}

// checkExpectations adds the faults of expectations. A blank trigger would match every condition,
// and a blank outcome every message.
func checkExpectations(found *valid.Faults, expectations []Expectation) {
	for i, e := range expectations {
		field := fmt.Sprintf("Expectations[%d]", i)
		found.Check(strings.TrimSpace(e.Trigger) != "", field+".Trigger", e.Trigger,
			"must not be blank")
		found.Check(strings.TrimSpace(e.Outcome) != "", field+".Outcome", e.Outcome,
			"must not be blank")
		found.Check(e.Timeout >= 0, field+".Timeout", e.Timeout, "must not be negative")
	}
}

// expectation returns the first one whose trigger is in a condition, or the zero value.
func (m *Module) expectation(condition string) Expectation {
	condition = strings.ToLower(condition)
	for _, e := range m.cfg.Expectations {
		if strings.Contains(condition, strings.ToLower(e.Trigger)) {
			return e
		}
	}
	return Expectation{}
}

// phrases returns the outcomes of all expectations in lower case, each once.
func phrases(expectations []Expectation) (all []string) {
	for _, e := range expectations {
		all = append(all, strings.ToLower(e.Outcome))
	}
	return text.Distinct(all)
}
