package best

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/internal/winner"
)

// Shares are computed again after a reset, and when the evidence has grown by a fiftieth.
func TestALookIsUsedAgain(t *testing.T) {
	l := look{seen: winner.Seen{Outcomes: 100}, resets: 1}
	assert.False(t, l.due(&state{seen: winner.Seen{Outcomes: 101}, resets: 1}))
	assert.True(t, l.due(&state{seen: winner.Seen{Outcomes: 102}, resets: 1}))
	assert.True(t, l.due(&state{seen: winner.Seen{Outcomes: 100}, resets: 2}))
}
