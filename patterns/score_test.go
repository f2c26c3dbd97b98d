package patterns_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
)

func TestScores(t *testing.T) {
	for _, v := range readJSON[[]struct {
		Name, Duration  string
		Errors, Retries int
		Success         bool
		Value           int
		Class           patterns.Class
	}](t, "testdata/scores.json") {
		t.Run(v.Name, func(t *testing.T) {
			o := patterns.Outcome{Errors: v.Errors, Retries: v.Retries, Success: v.Success}
			if v.Duration != "" {
				var err error
				o.Duration, err = time.ParseDuration(v.Duration)
				require.NoError(t, err)
			}
			got := patterns.Scoring{}.Score(o)
			assert.Equal(t, v.Value, got.Value)
			assert.Equal(t, v.Class, got.Class)
		})
	}
}

// TestScoresOfAllBands holds the integers to the design's formula in floating point, over all combinations of bands.
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
					got := patterns.Scoring{}.Score(patterns.Outcome{Duration: duration.d, Errors: errors, Retries: retries, Success: success})
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
		"helpful at 78: success, medium (15m0s), 1 error, 1 retry":                    {Duration: 15 * time.Minute, Errors: 1, Retries: 1, Success: true},
		"harmful at 14: failure, slow (1h0m0s), 5 errors (many), 3 retries (many)":    {Duration: time.Hour, Errors: 5, Retries: 3},
		"helpful at 84: success, slow (1h0m0s), no errors, no retries":                {Duration: time.Hour, Success: true},
		"neutral at 50: failure, duration unknown, no errors, no retries":             {},
		"helpful at 92: success, fast (1m0s), 2 errors, no retries":                   {Duration: time.Minute, Errors: 2, Success: true},
		"harmful at 30: failure, fast (1m0s), 3 errors (many), 2 retries (many)":      {Duration: time.Minute, Errors: 3, Retries: 2},
		"neutral at 68: success, slow (30m0.001s), 3 errors (many), no retries":       {Duration: 30*time.Minute + time.Millisecond, Errors: 3, Success: true},
		"helpful at 94: success, fast (90ms), no errors, 1 retry":                     {Duration: 90 * time.Millisecond, Retries: 1, Success: true},
		"neutral at 60: failure, fast (4m59.999s), no errors, no retries":             {Duration: 5*time.Minute - time.Millisecond},
		"helpful at 92: success, medium (5m0s), no errors, no retries":                {Duration: 5 * time.Minute, Success: true},
		"harmful at 38: failure, medium (30m0s), 2 errors, 1 retry":                   {Duration: 30 * time.Minute, Errors: 2, Retries: 1},
		"neutral at 63: success, duration unknown, 3 errors (many), 2 retries (many)": {Errors: 3, Retries: 2, Success: true},
	} {
		assert.Equal(t, want, patterns.Scoring{}.Score(o).Reason)
	}
}

func TestScoringIsConfigurable(t *testing.T) {
	outcome := patterns.Outcome{Duration: time.Minute, Errors: 1, Retries: 1, Success: true}
	for name, test := range map[string]struct {
		scoring patterns.Scoring
		value   int
		class   patterns.Class
	}{
		"defaults":          {patterns.Scoring{}, 86, patterns.Helpful},
		"weights":           {patterns.Scoring{Success: 70, Duration: 10, Errors: 10, Retries: 10}, 93, patterns.Helpful},
		"fast and slow":     {patterns.Scoring{Fast: time.Second, Slow: 10 * time.Second}, 70, patterns.Helpful},
		"a medium duration": {patterns.Scoring{Fast: time.Second}, 78, patterns.Helpful},
		"classes":           {patterns.Scoring{Helpful: 90, Harmful: 30}, 86, patterns.Neutral},
		"nothing harmful":   {patterns.Scoring{Helpful: 70}, 86, patterns.Helpful},
		"mostly duration":   {patterns.Scoring{Success: 40, Duration: 60}, 100, patterns.Helpful},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, valid(test.scoring))
			got := test.scoring.Score(outcome)
			assert.Equal(t, test.value, got.Value)
			assert.Equal(t, test.class, got.Class)
		})
	}
	many := patterns.Scoring{SomeErrors: 9}.Score(patterns.Outcome{Duration: time.Minute, Errors: 9, Success: true})
	assert.Equal(t, 92, many.Value, "up to Some is some")
}

// valid reports the faults of a scoring, as a host that opens a recorder sees them.
func valid(s patterns.Scoring) error {
	_, err := patterns.New(ctx, patterns.Config{Store: &memstore.Store{}, Scoring: s})
	return err
}

func TestScoringIsValidatedTogether(t *testing.T) {
	for name, test := range map[string]struct {
		scoring patterns.Scoring
		fields  []string
	}{
		"weights that do not add up":     {patterns.Scoring{Success: 50, Duration: 20, Errors: 20, Retries: 20}, []string{"Scoring.Success"}},
		"a negative weight":              {patterns.Scoring{Success: 120, Duration: -20}, []string{"Scoring.Success"}},
		"all weight on the duration":     {patterns.Scoring{Duration: 100}, []string{"Scoring.Success"}},
		"fast after slow":                {patterns.Scoring{Fast: time.Hour}, []string{"Scoring.Fast"}},
		"negative counts":                {patterns.Scoring{SomeErrors: -1, SomeRetries: -1}, []string{"Scoring.SomeErrors", "Scoring.SomeRetries"}},
		"helpful below harmful":          {patterns.Scoring{Helpful: 30, Harmful: 40}, []string{"Scoring.Helpful"}},
		"a success that is harmful":      {patterns.Scoring{Helpful: 70, Harmful: 54}, []string{"Scoring.Harmful"}},
		"a failure that is helpful":      {patterns.Scoring{Helpful: 60, Harmful: 40}, []string{"Scoring.Helpful"}},
		"success that weighs too little": {patterns.Scoring{Success: 10, Duration: 30, Errors: 30, Retries: 30}, []string{"Scoring.Harmful", "Scoring.Helpful"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.fields, fields(valid(test.scoring))) })
	}
}

// TestSuccessIsNeverHarmful holds for every scoring that is valid, and for every outcome; so does its counterpart.
func TestSuccessIsNeverHarmful(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		success := rapid.IntRange(30, 100).Draw(t, "success")
		duration := rapid.IntRange(0, 100-success).Draw(t, "duration")
		errors := rapid.IntRange(0, 100-success-duration).Draw(t, "errors")
		scoring := patterns.Scoring{
			Success: success, Duration: duration, Errors: errors, Retries: 100 - success - duration - errors,
			Helpful: rapid.IntRange(1, 100).Draw(t, "helpful"),
		}
		scoring.Harmful = rapid.IntRange(0, scoring.Helpful-1).Draw(t, "harmful")
		if valid(scoring) != nil {
			t.Skip("not valid")
		}
		o := patterns.Outcome{
			Duration: time.Duration(rapid.SampledFrom([]int64{0, 1, 10, 40}).Draw(t, "minutes")) * time.Minute,
			Errors:   rapid.IntRange(0, 4).Draw(t, "errors"), Retries: rapid.IntRange(0, 3).Draw(t, "retries"),
			Success: rapid.Bool().Draw(t, "succeeded"),
		}
		got := scoring.Score(o)
		assert.True(t, got.Value >= 0 && got.Value <= 100)
		if o.Success {
			assert.NotEqual(t, patterns.Harmful, got.Class)
		} else {
			assert.NotEqual(t, patterns.Helpful, got.Class)
		}
	})
}
