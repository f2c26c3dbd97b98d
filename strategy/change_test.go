package strategy_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/strategy"
)

// TestAChangeRestartsAllArmsOfTheItem lets an arm that was good become bad.
func TestAChangeRestartsAllArmsOfTheItem(t *testing.T) {
	for _, pooling := range poolings {
		c := &clock{}
		store := newStore(t, c.Now)
		cfg := withFixtures(t, strategy.Config{
			Store: store, Now: c.Now, Arms: plain("good", "spare"), Pooling: pooling, Change: strategy.Change{FalseAlarms: 0.001},
		})
		l := newLearner(t, cfg)
		q, other := strategy.Query{Item: "changes"}, strategy.Query{Item: "stays"}
		for range 300 {
			c.Advance(time.Minute)
			try(t, l, q, "good", 1)
			try(t, l, q, "spare", -1)
			try(t, l, other, "good", 1)
		}
		stays := func() []evidence.Part {
			return slices.DeleteFunc(everything(t, store, other), func(p evidence.Part) bool { return p.Cell.Item != "stays" })
		}
		before := stays()
		changed := c.Now()
		for range 15 {
			c.Advance(time.Minute)
			try(t, l, q, "good", -1)
		}
		for _, p := range kept(t, store, q, "arm") {
			if p.Cell.Item == "changes" {
				assert.Equal(t, "good", p.Cell.Name, "what was before the change does not count, for no arm")
				assert.EqualValues(t, 15, p.Tally.N())
			}
		}
		assert.Equal(t, before, stays(), "another item has not changed")
		var entry evidence.AuditEntry
		for e, err := range store.Audit(ctx) {
			require.NoError(t, err)
			entry = e
		}
		assert.Equal(t, "strategy.restart", entry.Action)
		assert.Equal(t, "changes", entry.Subject)
		assert.Contains(t, entry.Reason, "from 1.00 to 0.00")
		assert.True(t, entry.At.After(changed))
	}
}
