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
)

func silent(int, int) {}

func TestCommand(t *testing.T) {
	if os.Getenv("HEED_LONG") == "" {
		t.Skip("it takes long: set HEED_LONG=1")
	}
	for study, text := range map[string]string{"intervals": "Thompson", "winners": "mean ratio",
		"money": "saved a choice"} {
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
