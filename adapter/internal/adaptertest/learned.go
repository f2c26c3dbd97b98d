package adaptertest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/strategy"
)

// Guarded has a panic of a turn come out as an error, which the suite of adapters wants.
func Guarded(
	turn func(context.Context, looptest.Turn) (looptest.Said, error),
) func(context.Context, looptest.Turn) (looptest.Said, error) {
	return func(ctx context.Context, t looptest.Turn) (said looptest.Said, err error) {
		defer func() {
			if value := recover(); value != nil {
				said, err = looptest.Said{}, fmt.Errorf("panic: %v", value)
			}
		}()
		return turn(ctx, t)
	}
}

// Outcome returns the result of the agent's one choice, whose session must be "s1".
func Outcome(t *testing.T, agent *loop.Agent) (result strategy.Result) {
	t.Helper()
	choices := 0
	for record, err := range agent.Strategy().History(t.Context(), strategy.ChoiceFilter{}) {
		must(t, err)
		if choices++; record.Result == nil || record.Choice.Session != "s1" {
			t.Fatalf("a choice has no result, or another session: %+v", record)
		}
		result = *record.Result
	}
	if choices != 1 {
		t.Fatalf("there are %d choices", choices)
	}
	return result
}

// Outcomes returns how many outcomes the agent's arms have.
func Outcomes(t *testing.T, agent *loop.Agent) (n int) {
	t.Helper()
	for d, err := range agent.Strategy().Distributions(t.Context()) {
		must(t, err)
		n += int(d.Outcomes)
	}
	return n
}

// ToolErrors returns the errors of tools that the agent kept.
func ToolErrors(t *testing.T, agent *loop.Agent) []patterns.TaskError {
	t.Helper()
	report, err := agent.Patterns().Errors(t.Context(), patterns.HistoryQuery{})
	must(t, err)
	return report.Errors
}

// Faults checks that an error is about these fields of a configuration, in their order.
func Faults(t *testing.T, err error, fields ...string) {
	t.Helper()
	var found []string
	for fault := range heed.ConfigErrors(err) {
		found = append(found, fault.Field)
	}
	if !slices.Equal(found, fields) {
		t.Errorf("faults of %v and not of %v: %v", found, fields, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
