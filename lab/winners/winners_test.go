package winners

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/lab/internal/kit"
)

// TestTopTwoNeedsFewerOutcomes than equal shares, in a few races of one world, and finds the best
// arm.
func TestTopTwoNeedsFewerOutcomes(t *testing.T) {
	var samples [2]float64
	for n := range uint64(6) {
		for way := range 2 {
			r := run(worlds[3], way == 1, rand.New(rand.NewPCG(n, uint64(way))))
			assert.Zero(t, r.winner)
			samples[way] += r.samples
		}
	}
	assert.Less(t, samples[1], 0.8*samples[0])
}

func TestRun(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, Run(context.Background(), kit.NewCall("winners", &out, "-races", "1")))
	assert.Contains(t, out.String(), "[0.5 0.6]")
	assert.ErrorIs(t, Run(context.Background(), kit.NewCall("winners", io.Discard, "more")),
		kit.ErrUsage)
}
