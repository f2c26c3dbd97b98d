package incidents

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
)

// played returns a study of outages.
func played(t *testing.T, seeds int, all ...outage) *study {
	t.Helper()
	s := &study{seeds: seeds, seed: 2026, outages: all, skip: [2]bool{false, true}}
	s.play(context.Background())
	return s
}

// While the best arm's model is down, its events go to the other arms, except for those that ask
// whether it is back: one in three at this pace. What is learned during the outage is a line of the
// scorecard: see [Line].
func TestTheBestModelIsDown(t *testing.T) {
	s := played(t, 2, outage{length: 100, how: dead})
	for i := range s.heed[0] {
		assert.Less(t, s.heed[0][i].unanswered, 45)
		assert.Greater(t, s.heed[0][i].unanswered, 10)
	}
}

// A life is the same each time.
func TestLivesRepeat(t *testing.T) {
	o := outage{length: 30, how: bursts}
	first, again := played(t, 1, o), played(t, 1, o)
	assert.Equal(t, first, again)
}
