package loop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/loop"
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
