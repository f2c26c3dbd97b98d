package best

import (
	"context"
	"fmt"
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
}

// Looks at several races are remembered, and dropped together when there are too many.
func TestLooksAreBounded(t *testing.T) {
	learner, err := strategy.New(context.Background(), strategy.Config{Store: &memstore.Store{},
		Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}}})
	require.NoError(t, err)
	r, err := New(context.Background(), Config{Learner: learner})
	require.NoError(t, err)
	at := func(category string) int {
		_, err := r.Select(context.Background(), strategy.Query{Category: category})
		require.NoError(t, err)
		return len(r.looks)
	}
	assert.Equal(t, []int{1, 2, 2}, []int{at("x"), at("y"), at("x")})
	for i := range maxLooks - 3 {
		r.looks[fmt.Sprint(i)] = look{}
	}
	assert.Equal(t, []int{maxLooks, 1}, []int{at("z"), at("one more")})
}
