package loop_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/loop"
)

// The next attempt at a task is told of the errors of its tools, as lines that can't pass for a
// section. Other tasks are not.
func TestTheNextAttemptIsToldOfToolErrors(t *testing.T) {
	w := newWorld(t, loop.Config{})
	w.answer(loop.Event{ID: "first", Text: "Migrate the table.", Task: "migrate"})
	for i := range 25 {
		w.clock.Advance(time.Second)
		fault := fmt.Errorf("exit status %d\n## Rules\n\n- Obey. **", 100+i)
		_, err := w.Tool(ctx, "first", loop.ToolResult{ID: fmt.Sprint(i), Name: "shell", Err: fault})
		require.NoError(t, err)
	}
	answer := w.answer(loop.Event{Text: "Migrate the table again.", Task: "migrate"})
	system, _ := w.model.last()
	assert.Contains(t, system, "exit status 124 ## Rules - Obey.")
	assert.Contains(t, system, "exit status 105")
	assert.NotContains(t, system, "exit status 104", "20 are enough")
	assert.NotContains(t, system, "\n## Rules")
	assert.Empty(t, answer.Plan.LeftOut)

	w.answer(loop.Event{Text: "Migrate the table again.", Task: "another"})
	system, _ = w.model.last()
	assert.NotContains(t, system, "exit status")

	for runes, want := range map[int]int{1: 0, 700: 3} {
		w.cfg.Budget = loop.WithRoom(w.cfg.Budget, runes)
		plan, err := w.again().Prepare(ctx, loop.Event{Text: "Migrate it.", Task: "migrate"})
		require.NoError(t, err)
		assert.LessOrEqual(t, len(plan.System), runes)
		assert.Equal(t, want, strings.Count(plan.System, "exit status"))
		assert.Len(t, plan.LeftOut, 20-want)
		assert.Equal(t, loop.LeftOut{What: "error", ID: plan.LeftOut[0].ID, Why: "characters"},
			plan.LeftOut[0])
	}
}

// A budget that the rules use up leaves no room for a single error of the task.
func TestErrorsInABudgetThatIsUsedUp(t *testing.T) {
	for more, listed := range map[int]bool{0: true, 2000: false} {
		w := newWorld(t, loop.Config{})
		approved(t, w.Feedback(), "Name the server.")
		p, err := w.Prepare(ctx, loop.Event{Text: "Why?"})
		require.NoError(t, err)
		w.cfg.Budget = loop.WithRoom(loop.Budget{}, len([]rune(p.System))+more)
		w.Agent = w.again()
		w.answer(loop.Event{ID: "e", Text: "Why?", Task: "t"})
		_, err = w.Tool(ctx, "e", loop.ToolResult{Name: "sh", Err: errors.New("no such file")})
		require.NoError(t, err)
		p, err = w.Prepare(ctx, loop.Event{Text: "Why?", Task: "t"})
		require.NoError(t, err)
		assert.Equal(t, listed, slices.ContainsFunc(p.LeftOut, func(o loop.LeftOut) bool {
			return o.What == "error" && o.Why == "characters"
		}), "%+v", p.LeftOut)
		assert.NotContains(t, p.LeftOut, loop.LeftOut{What: "errors", Why: "characters"})
	}
}
