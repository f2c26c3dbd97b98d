package heed_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
)

func TestEmbedder(t *testing.T) {
	vectors := map[string][]float32{"up": {0, 1}, "north": {0, 2}, "right": {1, 0}, "down": {0, -1},
		"nowhere": {0, 0}, "high": {0, 1, 0}}
	calls := 0
	e := heed.Embedder(func(_ context.Context, texts []string) (all [][]float32, _ error) {
		calls++
		for _, text := range texts {
			all = append(all, vectors[text])
		}
		return all, nil
	})
	got, err := e.Similar(t.Context(), "up", []string{"north", "right", "down", "nowhere"})
	require.NoError(t, err)
	assert.Equal(t, []float64{1, 0, 0, 0}, got)
	assert.Equal(t, 1, calls)
	// a similarity of 0 would hide that the model was exchanged
	for _, other := range []string{"high", "unheard of"} {
		_, err = e.Similar(t.Context(), "up", []string{"north", other})
		assert.ErrorContains(t, err, "vectors of different lengths")
	}
	_, err = heed.Embedder(func(context.Context, []string) ([][]float32,
		error) {
		return [][]float32{{1}}, nil
	}).Similar(t.Context(), "up", []string{"north"})
	assert.ErrorContains(t, err, "another number of vectors")
}

func TestTrigrams(t *testing.T) {
	for _, tt := range []struct {
		a, b      string
		low, high float64
	}{
		{"Turn the oven off.", "turn the OVEN off", 1, 1},
		{"Turn the oven off.", "Turn off the oven.", 0.99, 1},
		{"Turn the oven off.", "Turn the ovens off, please.", 0.5, 0.8},
		{"Turn the oven off.", "Water the plants.", 0, 0.25},
		{"Übermäßig", "übermäßig", 1, 1},
		{"", "", 0, 0},
		{"!?", "x", 0, 0},
	} {
		got, err := heed.Trigrams{}.Similar(t.Context(), tt.a, []string{tt.b})
		require.NoError(t, err)
		assert.True(t, got[0] >= tt.low && got[0] <= tt.high, "%q and %q: %v", tt.a, tt.b, got[0])
	}
}

func TestTrigramsHeedTheContext(t *testing.T) {
	done, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := heed.Trigrams{}.Similar(done, "a", []string{"b"})
	assert.ErrorIs(t, err, context.Canceled)
}
