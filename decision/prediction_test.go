package decision_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
)

func TestReplies(t *testing.T) {
	all := replies()
	require.Greater(t, len(all), 1000)
	recoverable, recovered := 0, 0
	for _, r := range all {
		got, err := decision.ParsePrediction(r.Text)
		require.True(t, got.Success >= 0 && got.Success <= 1 && got.Confidence >= 0 &&
			got.Confidence <= 1, r.Name)
		want := decision.Prediction{Success: 0.5, Confidence: 0.5}
		if r.Success {
			want.Success = 0.9
		}
		if r.Confidence {
			want.Confidence = 0.3
		}
		if r.Success && r.Confidence {
			recoverable++
			if got == want && err == nil {
				recovered++
			}
		}
		if !assert.Equal(t, want, got, "%s: %q: %v", r.Name, r.Text, err) {
			continue
		}
		assert.Equal(t, r.Success && r.Confidence, err == nil, r.Name)
	}
	t.Logf("%d replies, of which %d recoverable and %d recovered", len(all), recoverable, recovered)
	assert.GreaterOrEqual(t, float64(recovered), 0.98*float64(recoverable))
}

func FuzzParsePrediction(f *testing.F) {
	for i, r := range replies() {
		if i%10 == 0 && len(r.Text) < 1000 {
			f.Add(r.Text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := decision.ParsePrediction(text)
		for _, x := range []float64{got.Success, got.Confidence} {
			require.True(t, x >= 0 && x <= 1 && !math.Signbit(x), "%v", got)
			if x != 0.5 { // whatever is read stands there
				require.True(t, strings.ContainsAny(text, "0123456789"))
			}
		}
		again, err2 := decision.ParsePrediction(text)
		require.Equal(t, got, again)
		require.Equal(t, err == nil, err2 == nil)
	})
}

// A prediction is found in any text that has no other braces, quotes, backticks or tags.
func FuzzPredictionInProse(f *testing.F) {
	f.Add("So: ", uint16(900), uint16(300), " That's it.")
	f.Fuzz(func(t *testing.T, before string, success, confidence uint16, after string) {
		if strings.ContainsAny(before+after, "{}\"'`<>/") {
			t.Skip("the prose has what could be a part of a reply")
		}
		want := decision.Prediction{
			Success: float64(success) / math.MaxUint16, Confidence: float64(confidence) / math.MaxUint16,
		}
		got, err := decision.ParsePrediction(fmt.Sprintf(`%s{"success": %v, "confidence": %v}%s`,
			before, want.Success, want.Confidence, after))
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

func FuzzExtraction(f *testing.F) {
	f.Add(written(words(10), "warn", words(10)))
	f.Add(`{"condition": {"condition": "x"}, "action": {"type": "warn", "message": ["y"]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		x, err := extractor(t, decision.Config{}, text, praised).Extract(ctx, "r", nil)
		require.NoError(t, err)
		require.Equal(t, x.Condition == "", x.Refused != "")
		if x.Condition != "" {
			n := len(strings.Fields(x.Condition))
			require.True(t, n >= 10 && n <= 50)
		}
	})
}
