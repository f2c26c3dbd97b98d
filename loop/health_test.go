package loop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/llm"
)

// A model that goes on failing is asked again after a second, and then after twice the time before,
// up to fifteen seconds.
func TestTheWaitForAModelIsBounded(t *testing.T) {
	h, now := &health{}, time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	var waits []time.Duration
	for range leftOut + 6 {
		h.probe(now)
		if h.fail(now, llm.RateLimited, 0) {
			waits = append(waits, h.Wait/time.Second)
			now = h.Again
		}
	}
	assert.Equal(t, []time.Duration{1, 2, 4, 8, 15, 15, 15}, waits)
}

// A probe is of a model that is unavailable, at a time when it is to be asked. No other call of a
// model keeps other callers from it.
func TestOnlyAModelThatIsDownIsProbed(t *testing.T) {
	h, now := &health{}, time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	h.probe(now)
	assert.Equal(t, &health{}, h, "it is up")
	for range leftOut {
		h.fail(now, llm.RateLimited, 0)
	}
	down := *h
	h.probe(now)
	assert.Equal(t, &down, h, "it is too early")
	h.probe(h.Again)
	assert.True(t, h.probed)
}
