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

// TestGuardedHoldsThreeFalseAccounts among 200 honest outcomes below 5 % of the choices. Without
// limits they win.
func TestGuardedHoldsThreeFalseAccounts(t *testing.T) {
	s := study{runs: 10, seed: 2026, honest: []int{200}, rates: worlds[0], attacks: []attack{{}, {3,
		10}}}
	each, err := s.play(context.Background(), func(int, int) {})
	require.NoError(t, err)
	worst := func(runs []played, attack int) float64 {
		return kit.MeanOf(runs, func(p *played) float64 { return p.worst[0][attack] }).Mean
	}
	lost := func(runs []played) float64 {
		return kit.MeanOf(runs, func(p *played) float64 { return p.lost[0] }).Mean
	}
	free, guarded := each[0], each[len(each)-1]
	assert.Less(t, worst(guarded, 1), 0.05)
	assert.Greater(t, worst(free, 1), 0.8)
	assert.Less(t, worst(free, 0), 0.03)
	assert.Less(t, worst(guarded, 0), 0.03)
	assert.Less(t, lost(guarded), 2*lost(free))
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
	for _, setting := range settings {
		assert.Contains(t, out.String(), setting.name)
	}
	for _, args := range [][]string{{"more"}, {"-runs", "0"}} {
		require.ErrorIs(t, Run(context.Background(), kit.NewCall("poison", &out, args...)),
			kit.ErrUsage)
	}
}
