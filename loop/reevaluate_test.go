package loop_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
)

// While nobody waits, the model is asked about heuristics that it is not shown: once for each period, however many agents run.
func TestHeuristicsAreReevaluated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := &mouth{says: rotate}
		wrong := learning.Heuristic{ID: "wrong", Condition: "the disk of a server is full", Action: "Buy a new house in the country."}
		kept := &memstore.Store{}
		cfg := loop.Config{
			Store: kept, Model: model, Reevaluate: time.Hour, Lessons: loop.Lessons{Heuristics: []learning.Heuristic{rotating, wrong}},
		}
		run, stop := context.WithCancel(t.Context())
		var agents [2]*loop.Agent
		done := make(chan error, len(agents))
		for i := range agents {
			var err error
			agents[i], err = loop.New(ctx, cfg)
			require.NoError(t, err)
			go func() { done <- agents[i].Run(run) }()
		}
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		assert.Equal(t, 2, model.calls(), "two heuristics, once")
		_, prompt := model.last()
		assert.NotContains(t, prompt, wrong.Action)
		standings, err := agents[0].Learning().Standings(ctx, "rotate", "wrong")
		require.NoError(t, err)
		assert.Greater(t, standings["rotate"].Confidence, 0.3)
		assert.InDelta(t, 0.3, standings["wrong"].Confidence, 1e-9, "it may be said in other words")
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, 4, model.calls())
		stop()
		for range agents {
			require.NoError(t, <-done)
		}
	})
}
