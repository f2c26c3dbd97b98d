package patterns_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/patterns"
)

func TestScores(t *testing.T) {
	for _, v := range readJSON[[]struct {
		Name, Duration  string
		Errors, Retries int
		Success         bool
		Value           int
		Class           string
	}](t, "testdata/scores.json") {
		t.Run(v.Name, func(t *testing.T) {
			o := patterns.Outcome{Errors: v.Errors, Retries: v.Retries, Success: v.Success}
			if v.Duration != "" {
				var err error
				o.Duration, err = time.ParseDuration(v.Duration)
				require.NoError(t, err)
			}
			got := o.Score()
			assert.Equal(t, v.Value, got.Value)
			assert.Equal(t, v.Class, got.Class)
		})
	}
}

// TestScoresOfAllBands holds the integers to the design's formula in floating point, over all
// combinations of bands.
func TestScoresOfAllBands(t *testing.T) {
	n := 0
	for _, duration := range []struct {
		d     time.Duration
		level float64
	}{{time.Minute, 1}, {10 * time.Minute, 0.6}, {time.Hour, 0.2}} {
		for errors, errorLevel := range []float64{1, 0.6, 0.6, 0.2} {
			for retries, retryLevel := range []float64{1, 0.7, 0.3} {
				for _, success := range []bool{true, false} {
					want := duration.level*0.2 + errorLevel*0.2 + retryLevel*0.2
					if success {
						want += 0.4
					}
					got := patterns.Outcome{Duration: duration.d, Errors: errors, Retries: retries,
						Success: success}.Score()
					assert.Equal(t, int(math.Round(want*100)), got.Value)
					switch got.Class {
					case patterns.Helpful:
						assert.GreaterOrEqual(t, want, 0.7-1e-9)
					case patterns.Harmful:
						assert.LessOrEqual(t, want, 0.4+1e-9)
					default:
						assert.True(t, want > 0.4 && want < 0.7)
					}
					n++
				}
			}
		}
	}
	assert.Equal(t, 72, n)
}

func TestReasonsTellTheBands(t *testing.T) {
	for want, o := range map[string]patterns.Outcome{
		"helpful at 78: success, medium (15m0s), 1 error, 1 retry": {
			Duration: 15 * time.Minute, Errors: 1, Retries: 1, Success: true},
		"harmful at 14: failure, slow (1h0m0s), 5 errors (many), 3 retries (many)": {
			Duration: time.Hour, Errors: 5, Retries: 3},
		"helpful at 84: success, slow (1h0m0s), no errors, no retries": {
			Duration: time.Hour, Success: true},
		"neutral at 50: failure, duration unknown, no errors, no retries": {},
		"helpful at 92: success, fast (1m0s), 2 errors, no retries": {
			Duration: time.Minute, Errors: 2, Success: true},
		"harmful at 30: failure, fast (1m0s), 3 errors (many), 2 retries (many)": {
			Duration: time.Minute, Errors: 3, Retries: 2},
		"neutral at 68: success, slow (30m0.001s), 3 errors (many), no retries": {
			Duration: 30*time.Minute + time.Millisecond, Errors: 3, Success: true},
		"helpful at 94: success, fast (90ms), no errors, 1 retry": {
			Duration: 90 * time.Millisecond, Retries: 1, Success: true},
		"neutral at 60: failure, fast (4m59.999s), no errors, no retries": {
			Duration: 5*time.Minute - time.Millisecond},
		"helpful at 92: success, medium (5m0s), no errors, no retries": {
			Duration: 5 * time.Minute, Success: true},
		"harmful at 38: failure, medium (30m0s), 2 errors, 1 retry": {
			Duration: 30 * time.Minute, Errors: 2, Retries: 1},
		"neutral at 63: success, duration unknown, 3 errors (many), 2 retries (many)": {Errors: 3,
			Retries: 2, Success: true},
	} {
		assert.Equal(t, want, o.Score().Reason)
	}
}

// TestSuccessIsNeverHarmful holds for every outcome; so does its counterpart.
func TestSuccessIsNeverHarmful(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		minutes := rapid.SampledFrom([]int64{0, 1, 10, 40}).Draw(t, "minutes")
		o := patterns.Outcome{
			Duration: time.Duration(minutes) * time.Minute,
			Errors:   rapid.IntRange(0, 4).Draw(t, "errors"),
			Retries:  rapid.IntRange(0, 3).Draw(t, "retries"),
			Success:  rapid.Bool().Draw(t, "succeeded"),
		}
		got := o.Score()
		assert.True(t, got.Value >= 0 && got.Value <= 100)
		if o.Success {
			assert.NotEqual(t, patterns.Harmful, got.Class)
		} else {
			assert.NotEqual(t, patterns.Helpful, got.Class)
		}
	})
}
