package loop_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/patterns"
)

// What heed learned is in no prompt of the control group: neither heuristics, nor ways of working,
// nor the errors of tools. Rules and notes are.
func TestWhatTheControlGroupIsNotShown(t *testing.T) {
	for _, control := range []float64{0, 1} {
		w := newWorld(t, loop.Config{
			Control: control, Tuning: loop.Tuning{Decision: decision.Config{Withhold: new(float64)}},
			Lessons: loop.Lessons{
				Heuristics: []learning.Heuristic{rotating},
				Notes:      []loop.Note{{ID: "n", Topic: full, Text: "See room 3."}},
			},
		})
		for i := range 8 {
			w.clock.Advance(time.Hour)
			_, err := w.Patterns().Record(ctx, patterns.Outcome{
				ID: string(rune('a' + i)), Task: string(rune('a' + i)), Description: full, Success: true,
				Strategy: "Split by feature.", Duration: time.Minute, At: w.clock.Now(),
			})
			require.NoError(t, err)
		}
		rule := approved(t, w.Feedback(), "Name the ticket.")
		failed := loop.ToolResult{Name: "imap", Err: errors.New("login refused"), Task: "t"}
		require.NoError(t, second(w.Tool(ctx, "e", failed)))
		p, err := w.Prepare(ctx, loop.Event{Text: full, Task: "t"})
		require.NoError(t, err)
		assert.Equal(t, []string{rule}, p.Rules)
		assert.Len(t, p.Notes, 1)
		shown := control == 0
		assert.Equal(t, shown, len(p.Ways) > 0)
		for text, in := range map[string]string{
			"login refused": p.System, rotate: p.Prompt, "feature": p.System,
		} {
			if shown {
				assert.Contains(t, in, text)
			} else {
				assert.NotContains(t, in, text)
			}
		}
	}
}

// An answer without a task follows no ways of working. With a task, its text shows the ways.
func TestWaysAreOfTasks(t *testing.T) {
	w := newWorld(t, loop.Config{})
	w.model.says = "Split by feature: the shop first."
	for task, follows := range map[string]bool{"": false, "t": true} {
		id := w.answer(loop.Event{Text: "Build a shop.", Task: task}).ID
		account, err := w.Explain(ctx, id)
		require.NoError(t, err)
		assert.Equal(t, follows, len(account.Followed) > 0)
		p, err := w.Prepare(ctx, loop.Event{Text: "Build a shop.", Task: task})
		require.NoError(t, err)
		require.NoError(t, second(w.Answered(ctx, p, loop.Reply{Text: w.model.says})))
		account, err = w.Explain(ctx, p.Event.ID)
		require.NoError(t, err)
		assert.Equal(t, follows, len(account.Followed) > 0)
	}
}

// If each arm is for notes, an event without a note has no arm, in the control group as well.
func TestTheControlGroupWithoutNotes(t *testing.T) {
	w := newWorld(t, loop.Config{
		Control: 1, Arms: []loop.Arm{{ID: "a", ForNotes: true}, {ID: "b", ForNotes: true}},
		Lessons: loop.Lessons{Notes: []loop.Note{{ID: "n", Topic: full, Text: "See room 3."}}},
	})
	for text, arm := range map[string]string{"What is the weather?": "", full: "a"} {
		p, err := w.Prepare(ctx, loop.Event{Text: text})
		require.NoError(t, err)
		assert.Equal(t, arm, p.Arm.ID, text)
		assert.Nil(t, p.Choice)
	}
}

// Sessions of the control group are drawn into 64 groups.
func TestGroupsOfSessions(t *testing.T) {
	w := newWorld(t, loop.Config{Control: 1})
	groups := make(map[int]bool)
	for n := range 40 {
		id := w.answer(loop.Event{Text: "Why?", Session: fmt.Sprint(n)}).ID
		account, err := w.Explain(ctx, id)
		require.NoError(t, err)
		require.NotNil(t, account.Control)
		groups[account.Control.Group] = true
		assert.Less(t, account.Control.Group, 64)
	}
	assert.Greater(t, len(groups), 20)
}

// Without a control group no session is drawn into a group.
func TestWithoutControlThereAreNoGroups(t *testing.T) {
	w := newWorld(t, loop.Config{})
	w.sessions(5)
	for _, r := range w.records() {
		assert.Equal(t, answer.Side{}, answer.Side{
			Control: r.Reply.Side.Control, Share: r.Reply.Side.Share, Group: r.Reply.Side.Group,
		})
	}
}
