package loop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/store"
)

// Any person who judges an answer ends the silence about it, and what they state is theirs.
func TestAnyStatementEndsSilence(t *testing.T) {
	for _, judge := range []string{"", "ann", "mallory"} {
		m := newMarket(t, nil)
		a, err := m.Answer(ctx, loop.Event{Text: "Why?", Item: "i", Person: "ann"})
		require.NoError(t, err)
		if judge != "" {
			require.NoError(t, m.React(ctx, a.ID, loop.Reaction{Person: judge, Value: -1}))
		}
		m.clock.Advance(time.Hour)
		require.NoError(t, m.Sweep(ctx, time.Time{}))
		account, err := m.Explain(ctx, a.ID)
		require.NoError(t, err)
		require.Len(t, account.Statements, 1, judge)
		s := account.Statements[0]
		if judge == "" {
			assert.Positive(t, s.Value)
		} else {
			assert.Equal(t, judge, s.Source)
			assert.Negative(t, s.Value)
		}
	}
}

// If the person who asked is forgotten before the silence is counted, what they stated does not
// become approval. If it was somebody else, the asker is silent.
func TestForgettingTheAskerIsNoApproval(t *testing.T) {
	for forgotten, want := range map[string]int{"ann": 0, "mallory": 1} {
		for _, value := range []float64{-1, 1} {
			m := newMarket(t, nil)
			a, err := m.Answer(ctx, loop.Event{Text: "Why?", Item: "i", Person: "ann"})
			require.NoError(t, err)
			require.NoError(t, m.React(ctx, a.ID, loop.Reaction{Person: forgotten, Value: value}))
			require.NoError(t, store.Run(ctx, m.Store(), store.Job{Forget: []string{forgotten}}))
			m.clock.Advance(time.Hour)
			require.NoError(t, m.Sweep(ctx, time.Time{}))
			account, err := m.Explain(ctx, a.ID)
			require.NoError(t, err)
			assert.Len(t, account.Statements, want, "%s %v", forgotten, value)
			assert.Equal(t, want == 1, account.Known, "%s %v", forgotten, value)
		}
	}
}
