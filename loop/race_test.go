package loop_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
)

// Many goroutines and two agents use one store. Nothing is lost: each reaction counts once.
func TestManyAtOnce(t *testing.T) {
	kept := &memstore.Store{}
	cfg := loop.Config{
		Store: kept, Model: &mouth{says: "Look at the logs."}, Arms: []loop.Arm{{ID: "only"}},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}},
	}
	var agents [2]*loop.Agent
	for i := range agents {
		var err error
		agents[i], err = loop.New(ctx, cfg)
		require.NoError(t, err)
	}
	const goroutines, rounds = 4, 5
	var all sync.WaitGroup
	var chosen atomic.Int64
	for g := range goroutines {
		all.Go(func() {
			a, other := agents[g%2], agents[(g+1)%2]
			for n := range rounds {
				for _, text := range []string{full, "Why?"} {
					id := fmt.Sprint(text, g, n)
					answer, err := a.Answer(ctx, loop.Event{ID: id, Text: text, Domain: "d", Session: id})
					assert.NoError(t, err)
					if answer.Plan.Choice != nil {
						chosen.Add(1)
					}
					assert.NoError(t, other.React(ctx, answer.ID,
						loop.Reaction{Person: fmt.Sprint(g), Value: -1}))
					_, err = other.Hear(ctx, learning.Message{Session: id, Text: "thanks"})
					assert.NoError(t, err)
				}
				_, err := a.Teach(ctx, loop.Lessons{Notes: []loop.Note{{ID: fmt.Sprint(n), Text: "Note"}}})
				assert.NoError(t, err)
				assert.NoError(t, a.Freeze(ctx, false))
				assert.NoError(t, a.Sweep(ctx, time.Time{}))
			}
		})
	}
	all.Wait()
	assert.EqualValues(t, chosen.Load(), distribution(t, agents[0].Strategy(), "d").Outcomes)
	s, err := agents[0].Learning().Standing(ctx, "rotate")
	require.NoError(t, err)
	assert.Less(t, s.Confidence, 0.7, "the model answers by now")
}
