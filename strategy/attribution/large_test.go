//go:build !race

package attribution_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/attribution"
	"github.com/heedhq/heed/stream"
)

// An event of very many records and signals costs what each of them costs, and not their product.
func TestConsumerLargeEvent(t *testing.T) {
	d := newDesk(t, strategy.Config{})
	d.choose(t, 1)
	many := long(40_000, 100_000)
	a := attribution.Report{
		Session: "s0",
		Items:   slices.Repeat([]attribution.Worth{{Item: "other", Activated: true}}, many),
		Signals: slices.Repeat([]attribution.DirectSignal{{Kind: attribution.Retry},
			{Kind: attribution.Retry, Session: "elsewhere"}}, many/2),
	}
	known := long(500, 5000) // of one choice; each is another outcome
	a.Items = append(a.Items, slices.Repeat([]attribution.Worth{{Item: "i", Activated: true,
		Value: 1}}, known)...)
	d.tape.events = []stream.Event{d.report(t, "large", a)}
	c := d.consumer(t, attribution.Config{Attempts: 1}) // the product is ten billion
	require.NoError(t, c.Run(ctx))
	assert.Equal(t, attribution.Counts{
		RunnerCounts: stream.RunnerCounts{Received: 1, Applied: 1},
		Outcomes:     uint64(known), Unmatched: uint64(many),
	}, c.Counts())
}
