package regret

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/lab/internal/kit"
)

// With six topics and 600 choices, clusters lose at most three quarters of what is lost without the context, and
// little more than the true topics. Where arms do not differ by topic, they lose about the same.
func TestClustersTellTopicsApart(t *testing.T) {
	worlds := settings(6, 0.5)
	worlds = []setting{worlds[0], worlds[3]}
	for i := range worlds {
		worlds[i].choices = 600
	}
	policies := contextuals(false)[:3]
	results, err := studyContext(context.Background(), worlds, policies, 2, 7, silent)
	require.NoError(t, err)
	for i, most := range []float64{0.75, 1.6} {
		require.Len(t, results[i].Policies, 3)
		none, clusters := results[i].Policies[0], results[i].Policies[2]
		assert.Equal(t, "clusters", clusters.Name)
		assert.Less(t, clusters.Ratio, most, results[i].World)
		assert.InDelta(t, clusters.Ratio, clusters.Mean/none.Mean, 1e-12)
		assert.Positive(t, clusters.RatioCI95)
		assert.Zero(t, none.RatioCI95)
	}
	var out bytes.Buffer
	require.NoError(t, reportContext(&out, results))
	for _, text := range []string{"no context", "true topic", "1.00 ±0.00", "2 runs"} {
		assert.Contains(t, out.String(), text)
	}
}

// TestTheLinearLearnerLearns where arms differ linearly: it loses less than half of what is lost without the context.
func TestTheLinearLearnerLearns(t *testing.T) {
	world := settings(6, 0.5)[2]
	world.choices = 1000
	policies := contextuals(true)
	results, err := studyContext(context.Background(), []setting{world}, []contextual{policies[0], linear(0.25)}, 2, 7, silent)
	require.NoError(t, err)
	assert.Less(t, results[0].Policies[1].Ratio, 0.5)
}

// Policies are compared on the same requests, with the same luck.
func TestRequestsAreTheSameForAll(t *testing.T) {
	for _, w := range settings(5, 0.5) {
		one, again, other := w.trial(3, 7), w.trial(3, 7), w.trial(4, 7)
		assert.Equal(t, one, again)
		assert.NotEqual(t, one, other)
		require.Len(t, one.requests, 3000)
		for i, r := range one.requests {
			for _, rate := range r.rates {
				assert.True(t, rate > 0 && rate < 1)
			}
			if w.name == "not at all" {
				assert.Equal(t, one.requests[0].rates, r.rates)
			}
			if i == 100 {
				break
			}
		}
	}
}

func TestContextFaults(t *testing.T) {
	for _, args := range [][]string{{"-context", "-runs", "0"}, {"-context", "-topics", "0"}, {"-context", "-noise", "-1"}} {
		assert.ErrorIs(t, Run(context.Background(), kit.NewCall("regret", io.Discard, args...)),
			kit.ErrUsage)
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	assert.ErrorIs(t, Run(over, kit.NewCall("regret", io.Discard, "-context")), context.Canceled)
}
