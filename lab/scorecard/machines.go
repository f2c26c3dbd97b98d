package scorecard

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/heedhq/heed/lab/internal/card"
)

// A machine is a state machine or an oracle of heed's tests, with a bug that it has to find.
type machine struct {
	name  string
	tests suite
	key   string // of the bug
	bug   string
}

var machines = []machine{
	{"the store beside a plain one", suite{"memstore", "TestStoreAgreesWithAPlainOne"}, "no revisions", "records are written over any revision"},
	{"tallies beside sums", suite{"evidence", "TestTallyIsTheSum"}, "zero", "a weight of zero means one"},
	{"fading evidence", suite{"evidence", "TestTallyNeverBoosts"}, "future", "evidence from the future counts for more"},
	{"a gate for rules, with many spellings of names", suite{"feedback", "TestGateStateMachine"}, "names", "names are compared as they are written"},
	{"the gate beside the table of its rules", suite{"feedback", "TestTheGateIsTheModel"}, "outsiders", "reviewers of the evidence approve alone"},
	{"who answers, reckoned in hundredths", suite{"decision", "TestHeuristicFirstOracle"}, "no clamp", "a threshold may be 0"},
}

const (
	broken = "machines that broke"
)

func stateMachines() []card.Line {
	form := func(checks int64, budget time.Duration) card.Form {
		return card.Form{Bars: []card.Bar{card.AtMost(broken, 0)}, Work: checks * int64(len(machines)), Budget: budget}
	}
	line := card.Line{
		Name:    "S12",
		Promise: "After any calls in any order, heed agrees with a simple model of itself.",
		Attack:  "Six state machines and oracles draw random steps, and compare after each.",
		Short:   form(1000, 15*time.Minute),
		Long:    form(20_000, 6*time.Hour),
		Run:     turned(machines, 1000, 20_000, false),
	}
	for _, m := range machines {
		line.Controls = append(line.Controls, card.Control{Name: m.bug, Run: turned([]machine{m}, 200, 200, true)})
	}
	return []card.Line{line}
}

var checked = regexp.MustCompile(`\[rapid\] OK, passed (\d+) tests`)

func turned(machines []machine, short, long int, withBug bool) card.Attempt {
	return func(ctx context.Context, s card.Settings) (r card.Result, err error) {
		r.Values = map[string]float64{broken: 0}
		for _, m := range machines {
			bug := ""
			if withBug {
				bug = m.key
			}
			v, err := heedTests.play(ctx, s.Root, m.tests, bug, fmt.Sprint("-rapid.checks=", card.Pick(s, short, long)), fmt.Sprint("-rapid.seed=", s.Seed))
			if err != nil {
				return r, err
			}
			r.Work += v.sum(checked)
			if v.unclear() {
				return r, fmt.Errorf("%s did not end: %s", m.name, tail(v.output))
			}
			if v.failed {
				r.Work++
				r.Values[broken]++
				r.Note("%s: %s", m.name, tail(v.output))
			}
		}
		return r, nil
	}
}

// hungCalls are how many calls have to hang in a run of the tests.
const hungCalls = 2000

var waited = regexp.MustCompile(`(\d+) decisions waited until their deadline`)

const lateReturns = "returns that were late, or goroutines left"

// hung runs heed's tests of models that hang, in which time is simulated: so deadlines can be exact, and a goroutine that is left fails them.
func hung() []card.Line {
	tests := suite{"decision", "TestModelThatHangs"}
	attempt := func(bug string, short, long int) card.Attempt {
		return func(ctx context.Context, s card.Settings) (r card.Result, err error) {
			times := card.Pick(s, short, long)
			v, err := heedTests.play(ctx, s.Root, tests, bug, fmt.Sprint("-test.count=", times))
			if err != nil {
				return r, err
			}
			r.Values = map[string]float64{lateReturns: 0}
			r.Work = v.sum(waited)
			r.Faults = r.Work
			if v.failed {
				r.Values[lateReturns], r.Work = 1, max(r.Work, 1)
				r.Note("%s", tail(v.output))
			}
			return r, nil
		}
	}
	return []card.Line{{
		Name:    "S8",
		Promise: "A decision returns at its deadline exactly, whatever the model does, and no late answer counts.",
		Attack: "1,000 decisions at a time wait for a model that hangs until its context ends, and 1,000 for one that does not heed its context. Time is " +
			"simulated, so that a deadline is exact to the nanosecond.",
		Short:    card.Form{Bars: []card.Bar{card.AtMost(lateReturns, 0)}, Work: hungCalls, Faults: hungCalls, Budget: 10 * time.Minute},
		Long:     card.Form{Bars: []card.Bar{card.AtMost(lateReturns, 0)}, Work: 10 * hungCalls, Faults: 10 * hungCalls, Budget: time.Hour},
		Run:      attempt("", 1, 10),
		Controls: []card.Control{{Name: "no deadline", Run: attempt("no deadline", 1, 1)}},
	}}
}
