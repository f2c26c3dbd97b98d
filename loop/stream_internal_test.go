package loop

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The timer of a model may run late, when the next model writes already. Then the timer has no
// effect.
func TestATimerThatIsLateGivesUpNoModel(t *testing.T) {
	var heard string
	p := &pipe{to: func(_ context.Context, text string, _ bool) { heard += text }}
	first, cancel := context.WithCancel(t.Context())
	p.begin(first, cancel)
	cancel()
	write := p.begin(t.Context(), func() {})
	var slow atomic.Bool
	assert.False(t, p.giveUp(first, &slow))
	write("Look.")
	assert.NoError(t, p.end(t.Context()))
	assert.Equal(t, "Look.", heard)
}
