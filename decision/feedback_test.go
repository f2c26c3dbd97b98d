package decision_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/internal/answers"
)

// answered returns a decider with an answer "r1" of a heuristic, and one "r2" of the model.
func answered(t testing.TB, c *clock) *decision.Decider {
	t.Helper()
	h := newHeuristicFirst(t, decision.Config{
		Prediction: true, LLM: model("Do it.", `{"success": 0.6, "confidence": 0.4}`),
		Now: c.Now,
	})
	for _, confidence := range []float64{0.9, 0.5} {
		r := decision.Request{EventID: "e", Domain: "home", Candidates: candidates(confidence, 0.4)}
		_, err := h.Decide(ctx, r)
		require.NoError(t, err)
	}
	return h
}

func feedback(
	t testing.TB, d *decision.Decider, id string, s answer.Statement,
) (answer.Statement, decision.Trace) {
	t.Helper()
	s, trace, err := d.Feedback(ctx, id, s)
	require.NoError(t, err)
	return s, trace
}

func TestFeedback(t *testing.T) {
	c := &clock{}
	d := answered(t, c)
	c.Advance(time.Minute)
	r := answer.Statement{
		N: 7, Of: "h9", By: "Ann", Session: "s", Channel: "user_explicit", Target: answer.TargetRule,
		Value: -0.5, Weight: 0.25,
	}
	s, trace := feedback(t, d, "r1", r)
	assert.Equal(t, answer.Statement{
		Of: "h1", By: "Ann", Kind: "person", Session: "s", Channel: "user_explicit",
		Target: answer.TargetRule, Value: -0.5, Weight: 0.25, At: start.Add(time.Minute),
	}, s)
	assert.Equal(t, decision.Trace{
		ResponseID: "r1", EventID: "e", Domain: "home", Path: decision.Heuristic, At: start,
		MatchedID: "h1", CreditID: "h1", Text: trace.Text, Response: trace.Response,
		Prediction: &decision.Prediction{Success: 0.9, Confidence: 0.9},
	}, trace)
	again, _ := feedback(t, d, "r1", r)
	assert.Equal(t, s, again, "it only reads")

	var a answer.Answer
	on, _, effect := answers.Say(&a, s)
	assert.Equal(t, answers.Holds, effect)
	assert.Equal(t, "Ann", on.By)
}

// A bad answer of the model blames no heuristic: neither those that it was shown, nor the best
// match.
func TestWhatWasMerelyConsideredIsNeverBlamed(t *testing.T) {
	d := answered(t, &clock{})
	for _, value := range []float64{-1, 1, 0.3} {
		s, trace := feedback(t, d, "r2", answer.Statement{By: fmt.Sprint(value), Value: value})
		assert.Empty(t, s.Of)
		assert.Equal(t, decision.Model, trace.Path)
		assert.Equal(t, &decision.Prediction{Success: 0.6, Confidence: 0.4}, trace.Prediction)
	}
}

func TestFeedbackIsRefused(t *testing.T) {
	d := answered(t, &clock{})
	for field, s := range map[string]answer.Statement{
		"ResponseID": {Value: 1},
		"Value":      {Value: math.NaN()},
		"Person":     {By: "\xff"},
		"Channel":    {Channel: "a\x00"},
		"Target":     {Target: "author"},
		"Session":    {Session: "\xff"},
		"Weight":     {Weight: -1},
		"At":         {At: start.Add(time.Hour)},
	} {
		id := map[bool]string{true: "", false: "r1"}[field == "ResponseID"]
		_, _, err := d.Feedback(ctx, id, s)
		var fault *heed.InputError
		require.ErrorAs(t, err, &fault, field)
		assert.Equal(t, field, fault.Field)
	}
	_, _, err := d.Feedback(ctx, "r1", answer.Statement{At: time.Unix(-1, 0)})
	var fault *heed.InputError
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, "At", fault.Field)
	_, _, err = d.Feedback(ctx, "r3", answer.Statement{Value: -1})
	require.ErrorIs(t, err, heed.ErrNotFound)
	without, err := decision.New(ctx, decision.Config{})
	require.NoError(t, err)
	_, _, err = without.Feedback(ctx, "r1", answer.Statement{Value: -1})
	require.ErrorIs(t, err, heed.ErrNotFound)
}

func TestScore(t *testing.T) {
	for _, tt := range []struct {
		mark, points int
		want         float64
	}{{1, 2, -1}, {2, 2, 1}, {1, 3, -1}, {2, 3, 0}, {3, 3, 1}, {2, 5, -0.5}, {4, 5, 0.5}} {
		assert.Equal(t, tt.want, decision.Score(tt.mark, tt.points))
	}
	for _, bad := range [][2]int{{0, 5}, {6, 5}, {1, 1}, {0, 0}, {-1, -1}} {
		assert.True(t, math.IsNaN(decision.Score(bad[0], bad[1])))
	}
}
