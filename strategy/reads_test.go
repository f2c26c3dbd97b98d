package strategy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/settings"
	"github.com/heedhq/heed/strategy"
)

// TestReadsOfTheDesign calls each read that the Adaptive Strategies design names: docs/specs.md
// says which is which.
func TestReadsOfTheDesign(t *testing.T) {
	cfg, c := recording(t, strategy.Config{})
	l := newLearner(t, cfg)
	q := strategy.Query{Session: "s", Item: "i", Category: "c", Context: "x"}
	choice := choose(t, l, q)
	credit(t, l, choice, 1)
	choose(t, l, strategy.Query{Session: "t", Item: "j", Category: "d"})

	for name, f := range map[string]strategy.ChoiceFilter{
		"by_learning": {Item: "i"}, "by_session": {Session: "s"}, "by_category": {Category: "c"},
		"by_context": {Context: "x"},
		"by_stage":   {Stage: strategy.Observed}, "by_time": {Since: start,
			Until: c.Now().Add(time.Second), Limit: 2},
	} {
		n := 0
		for record, err := range l.History(ctx, f) {
			require.NoError(t, err)
			if n++; name != "by_time" {
				assert.Equal(t, choice.ID, record.Choice.ID, name)
			}
		}
		assert.Positive(t, n, name)
	}
	outcomes, err := outcomes(l, q, 0)
	require.NoError(t, err)
	assert.Len(t, outcomes, 1, "strategy_event:by_learning")

	used, err := l.Find(ctx, "s", "i", c.Now())
	require.NoError(t, err)
	assert.Equal(t, choice.ID, used.Choice.ID, "get_used_strategy")
	for d, err := range l.Distributions(ctx) {
		require.NoError(t, err)
		assert.Equal(t, "c", d.Category, "strategy_distribution:by_category")
	}
	d, err := distribution(l, "c", "x")
	require.NoError(t, err)
	assert.Equal(t, "i", d.Standings[0].Item, "learning_strategy_override:by_category")
	item, ok := d.Item("i")
	assert.True(t, ok)
	assert.Len(t, item.Arms, 4, "strategy learning")
	weights, err := l.Beliefs(ctx, q)
	require.NoError(t, err)
	assert.Len(t, weights, 4, "get_effective_weights")
	assert.EqualValues(t, 1, d.Outcomes, "strategy status")
	names, err := settings.Names("strategy/")(ctx, cfg.Store)
	require.NoError(t, err)
	assert.Equal(t, []string{"strategy"}, names)
}
