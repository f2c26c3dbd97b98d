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

func feedback(t testing.TB, d *decision.Decider, r decision.Reaction) decision.Credit {
	t.Helper()
	credit, err := d.Feedback(ctx, r)
	require.NoError(t, err)
	return credit
}

func TestFeedback(t *testing.T) {
	c := &clock{}
	d := answered(t, c)
	c.Advance(time.Minute)
	r := decision.Reaction{
		ResponseID: "r1", Person: "Ann", Session: "s", Channel: "user_explicit",
		Target: answer.TargetRule, Value: -0.5, Weight: 0.25,
	}
	credit := feedback(t, d, r)
	assert.Equal(t, decision.Credit{
		Statement: answer.Statement{
			Of: "h1", By: "Ann", Kind: "person", Session: "s", Channel: "user_explicit",
			Target: answer.TargetRule, Value: -0.5, Weight: 0.25, At: start.Add(time.Minute),
		},
		HeuristicID: "h1", EventID: "e", Domain: "home", Path: decision.Heuristic, Answered: start,
		Prediction: &decision.Prediction{Success: 0.9, Confidence: 0.9},
	}, credit)
	assert.Equal(t, credit, feedback(t, d, r), "it only reads")

	var a answer.Answer
	on, _, effect := answers.Say(&a, credit.Statement)
	assert.Equal(t, answers.Holds, effect)
	assert.Equal(t, "Ann", on.By)
}

// A bad answer of the model blames no heuristic: neither those that it was shown, nor the best
// match.
func TestWhatWasMerelyConsideredIsNeverBlamed(t *testing.T) {
	d := answered(t, &clock{})
	for _, value := range []float64{-1, 1, 0.3} {
		credit := feedback(t, d, decision.Reaction{
			ResponseID: "r2", Person: fmt.Sprint(value), Value: value,
		})
		assert.Empty(t, credit.HeuristicID)
		assert.Empty(t, credit.Statement.Of)
		assert.Equal(t, decision.Model, credit.Path)
		assert.Equal(t, &decision.Prediction{Success: 0.6, Confidence: 0.4}, credit.Prediction)
	}
}

func TestFeedbackIsRefused(t *testing.T) {
	d := answered(t, &clock{})
	for field, r := range map[string]decision.Reaction{
		"ResponseID": {Value: 1},
		"Value":      {ResponseID: "r1", Value: math.NaN()},
		"Person":     {ResponseID: "r1", Person: "\xff"},
		"Channel":    {ResponseID: "r1", Channel: "a\x00"},
		"Target":     {ResponseID: "r1", Target: "author"},
		"Session":    {ResponseID: "r1", Session: "\xff"},
		"Weight":     {ResponseID: "r1", Weight: -1},
		"At":         {ResponseID: "r1", At: start.Add(time.Hour)},
	} {
		_, err := d.Feedback(ctx, r)
		var fault *heed.InputError
		require.ErrorAs(t, err, &fault, field)
		assert.Equal(t, field, fault.Field)
	}
	_, err := d.Feedback(ctx, decision.Reaction{ResponseID: "r1", At: time.Unix(-1, 0)})
	var fault *heed.InputError
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, "At", fault.Field)
	_, err = d.Feedback(ctx, decision.Reaction{ResponseID: "r3", Value: -1})
	require.ErrorIs(t, err, heed.ErrNotFound)
	without, err := decision.New(ctx, decision.Config{})
	require.NoError(t, err)
	_, err = without.Feedback(ctx, decision.Reaction{ResponseID: "r1", Value: -1})
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
