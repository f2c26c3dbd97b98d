package best

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/winner"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
)

// Shares are computed again after a reset, and when the evidence has grown by a fiftieth.
func TestALookIsUsedAgain(t *testing.T) {
	l := look{seen: winner.Seen{Outcomes: 100}, resets: 1}
	assert.False(t, l.due(&state{seen: winner.Seen{Outcomes: 101}, resets: 1}))
	assert.True(t, l.due(&state{seen: winner.Seen{Outcomes: 102}, resets: 1}))
	assert.True(t, l.due(&state{seen: winner.Seen{Outcomes: 100}, resets: 2}))

	ctx, q := context.Background(), strategy.Query{}
	learner, err := strategy.New(ctx, strategy.Config{Store: &memstore.Store{},
		Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}}})
	require.NoError(t, err)
	r, err := New(ctx, Config{Learner: learner})
	require.NoError(t, err)
	c, err := learner.Record(ctx, q, "a", 0.5)
	require.NoError(t, err)
	_, err = learner.Observe(ctx, strategy.Outcome{Choice: c, Value: 1, Confidence: 1})
	require.NoError(t, err)
	s, err := r.stands(ctx, q)
	require.NoError(t, err)
	first := r.shares(&s, nil)
	assert.Same(t, &first[0], &r.shares(&s, nil)[0])
	assert.InDelta(t, 1, s.seen.Outcomes, 0, "their number is known")
}
