package incidents

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/lab/internal/raced"
)

// played returns a study of outages.
func played(t *testing.T, seeds int, all ...outage) *study {
	t.Helper()
	s := &study{seeds: seeds, seed: 2026, outages: all}
	require.NoError(t, s.play(context.Background(), func(int, int) {}))
	return s
}

// While the database is away every event is answered, and nothing is unlearned. The control, which
// requires the store, answers no event.
func TestTheDatabaseIsAway(t *testing.T) {
	raced.Skip(t)
	s := played(t, 3, outage{length: 100, how: database})
	for _, f := range figures {
		assert.LessOrEqual(t, worst(s.heed[0], s.without[100], f.of).Mean, mostWorse, f.name)
	}
	for _, l := range s.heed[0] {
		assert.Zero(t, l.unanswered)
	}
	for _, l := range s.control[0] {
		assert.Equal(t, 100, l.unanswered)
	}
}

// An outage of the best arm's model is not learned of the arm. Its events go to the other arms, but
// for those that ask whether it is back: one in three at this pace. The control unlearns the arm.
func TestTheBestModelIsDown(t *testing.T) {
	raced.Skip(t)
	s := played(t, 6, outage{length: 100, how: dead})
	got := worst(s.heed[0], s.without[100], figures[0].of)
	assert.LessOrEqual(t, got.Mean, mostWorse)
	assert.Greater(t, worst(s.control[0], s.without[100], figures[0].of).Mean, 5*mostWorse)
	for i := range s.heed[0] {
		assert.Less(t, s.heed[0][i].unanswered, 45)
		assert.Greater(t, s.heed[0][i].unanswered, 10)
	}
}

// A life is the same each time.
func TestLivesRepeat(t *testing.T) {
	raced.Skip(t)
	o := outage{length: 30, how: bursts}
	first, again := played(t, 1, o), played(t, 1, o)
	assert.Equal(t, first, again)
}
