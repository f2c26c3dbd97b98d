package honest

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/strategy"
)

func silent(int, int) {}

func TestCommand(t *testing.T) {
	if os.Getenv("HEED_LONG") == "" {
		t.Skip("it takes long: set HEED_LONG=1")
	}
	for study, text := range map[string]string{"intervals": "Thompson", "confidence": "two arms unsure", "offpolicy": "equal shares", "winners": "mean ratio", "money": "saved a choice"} {
		var out bytes.Buffer
		require.NoError(t, Run(context.Background(), kit.NewCall("honest", &out, study)))
		assert.Contains(t, out.String(), text)
	}
}

func TestCommandFaults(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	for _, args := range [][]string{nil, {"nonsense"}, {"-nonsense", "intervals"}} {
		assert.ErrorIs(t, Run(ctx, kit.NewCall("honest", io.Discard, args...)), kit.ErrUsage, args)
	}
	cancel()
	for study := range studies {
		assert.ErrorIs(t, Run(ctx, kit.NewCall("honest", io.Discard, study)), context.Canceled, study)
	}
}

func TestHoldsAsksForFiveItems(t *testing.T) {
	for _, uniform := range []bool{true, false} {
		held, asked, err := holds(10, 10, uniform, rand.New(rand.NewPCG(1, 2)))
		require.NoError(t, err)
		assert.Equal(t, 20, asked)
		assert.Greater(t, held, 10)
		again, _, err := holds(10, 10, uniform, rand.New(rand.NewPCG(1, 2)))
		require.NoError(t, err)
		assert.Equal(t, held, again, "the same seed gives the same study")
	}
}

// Where all outcomes are sure they are one rule, and where all are equally unsure only counting
// by weight differs.
func TestTheRulesDifferInConfidenceAlone(t *testing.T) {
	for _, pooling := range []strategy.Pooling{strategy.TwoLevel{}, strategy.Alone{}} {
		regret := func(rule strategy.Pooling, sure float64) float64 {
			r, err := regretOf(rule, 3, 20, surely(sure), 1, 1)
			require.NoError(t, err)
			return r
		}
		scale, weight, effective := pooling, counting{pooling, byWeight}, counting{pooling, byEffective}
		assert.InDelta(t, regret(scale, 1), regret(weight, 1), 1e-9)
		assert.InDelta(t, regret(scale, 1), regret(effective, 1), 1e-9)
		assert.InDelta(t, regret(scale, 0.5), regret(effective, 0.5), 1e-9)
		assert.InDelta(t, regret(scale, 1), regret(scale, 0.5), 1e-9)
		assert.NotEqual(t, regret(scale, 0.5), regret(weight, 0.5))
	}
}

func TestJudge(t *testing.T) {
	log := make([]entry, 400) // both arms always have an even chance, and earn what they earn on average
	for i := range log {
		log[i] = entry{arm: i % 2, propensity: 0.5, reward: float64(i / 2 % 2)}
	}
	sum, err := judge([][]entry{log}, []float64{0.5, 0.5}, []float64{1, 0})
	require.NoError(t, err)
	assert.Equal(t, []float64{1, 1, 1, 1}, []float64{sum.held, sum.normal, sum.enough, sum.enoughHeld})
	assert.InDelta(t, 2*1.645*0.5/14.14, sum.normalWidth, 1e-3)
	assert.Greater(t, sum.width, sum.normalWidth)
	sum, err = judge([][]entry{log}, []float64{0.9, 0.5}, []float64{1, 0})
	require.NoError(t, err)
	assert.Zero(t, sum.held+sum.normal)
}

// TestTopTwoNeedsFewerOutcomes than equal shares, in a few races of one world, and finds the best arm.
func TestTopTwoNeedsFewerOutcomes(t *testing.T) {
	var samples [2]float64
	for run := range uint64(6) {
		for way := range 2 {
			r := runRace(races[3], way == 1, rand.New(rand.NewPCG(run, uint64(way))))
			assert.Zero(t, r.winner)
			samples[way] += r.samples
		}
	}
	assert.Less(t, samples[1], 0.8*samples[0])
}
