package view_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
)

// An answer that took back another one has the arm that gave it, though it is no evidence about it.
func TestTheArmOfAnAnswerThatTookBackAnother(t *testing.T) {
	agent, world := looptest.New(t, loop.Config{Lessons: loop.Lessons{
		Arms: []loop.Arm{{ID: "brief", System: "Be brief."}},
	}}, "Rotate its logs.", "Sorry.")
	for _, text := range []string{"The disk is full.", "undo that"} {
		got, err := agent.Answer(t.Context(), loop.Event{Text: text, Person: "ann", Session: "s"})
		require.NoError(t, err)
		assert.Equal(t, text == "undo that", len(got.Plan.Undone) > 0)
	}
	all, err := view.Of(agent, world.Now).Answers(t.Context(),
		view.AnswerQuery{Arm: "brief", Page: view.Page{Limit: 9}})
	require.NoError(t, err)
	require.Len(t, all.Items, 2)
	for _, a := range all.Items {
		assert.Equal(t, "brief", a.Arm)
		assert.False(t, a.Control)
	}
}
