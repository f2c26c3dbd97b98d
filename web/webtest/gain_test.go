package webtest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/strategy"
)

// compared is a world of seven weeks in which one session in twenty was answered as without
// learning.
func compared(t *testing.T) *world {
	t.Helper()
	good := map[string]float64{"careful": 0.5, "steps": 0.65, "brief": 0.85}
	w := worldOf(t, func(c *loop.Config) {
		c.Arms = []loop.Arm{{ID: "careful"}, {ID: "steps"}, {ID: "brief"}}
		c.Control = 0.05
		c.Tuning.Strategy = strategy.Config{Default: "careful"}
	})
	dice := rand.New(rand.NewPCG(3, 4))
	for i := range 2400 {
		w.pass(30 * time.Minute)
		who := fmt.Sprint("p", i%40)
		a, err := w.agent.Answer(t.Context(), loop.Event{
			Text: "The certificate of mail-3 ends next week.", Session: fmt.Sprint("s", i), Person: who,
			Domain: "servers",
		})
		require.NoError(t, err)
		value := -1.
		if dice.Float64() < good[a.Plan.Arm.ID] {
			value = 1
		}
		require.NoError(t, w.agent.React(t.Context(), a.ID, loop.Reaction{Person: who, Value: value}))
	}
	return w
}
