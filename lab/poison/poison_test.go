package poison

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/strategy"
)

// TestGuardedHoldsThreeFalseAccounts among 200 honest outcomes below 5 % of the choices; without limits they win, and nobody else does.
func TestGuardedHoldsThreeFalseAccounts(t *testing.T) {
	s := study{
		runs: 10, seed: 2026, honest: []int{200}, rates: worlds[0],
		settings: []setting{{"no limits", strategy.Config{}}, {"Guarded", strategy.Config{Guarded: true}}}, attacks: []attack{{}, {3, 10}},
	}
	results, err := s.play(context.Background(), func(int, int) {})
	require.NoError(t, err)
	free, guarded := results[0], results[1]
	assert.Less(t, guarded.Worst[1].Mean, 0.05)
	assert.Greater(t, free.Worst[1].Mean, 0.8)
	assert.Less(t, free.Worst[0].Mean, 0.03)
	assert.Less(t, guarded.Worst[0].Mean, 0.03)
	assert.Less(t, guarded.Lost, 2*free.Lost)
}

// Each attack is taken back before the next one.
func TestAnAttackLeavesNothing(t *testing.T) {
	ctx := context.Background()
	w, err := newWorld(ctx, []float64{0.7, 0.3}, strategy.Config{}, 1)
	require.NoError(t, err)
	for range 30 {
		_, err := w.honest(ctx)
		require.NoError(t, err)
	}
	before, err := w.learner.Beliefs(ctx, strategy.Query{})
	require.NoError(t, err)
	poisoned, err := w.under(ctx, attack{2, 50})
	require.NoError(t, err)
	assert.Greater(t, poisoned, 0.5)
	after, err := w.learner.Beliefs(ctx, strategy.Query{})
	require.NoError(t, err)
	for i := range before {
		assert.InDelta(t, before[i].Mean(), after[i].Mean(), 0.01)
	}
}

func TestReport(t *testing.T) {
	was := worlds
	defer func() { worlds = was }()
	worlds = [][]float64{{0.9, 0.1}}
	var out bytes.Buffer
	require.NoError(t, Run(context.Background(), kit.NewCall("poison", &out, "-runs", "1")))
	for _, setting := range settings() {
		assert.Contains(t, out.String(), setting.name)
	}
	for _, args := range [][]string{{"more"}, {"-runs", "0"}} {
		require.ErrorIs(t, Run(context.Background(), kit.NewCall("poison", &out, args...)),
			kit.ErrUsage)
	}
}
