package decision_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/memstore"
)

// BenchmarkDecide times a decision with its trace in the in-memory store: by a heuristic, and, less
// what a model takes itself, by the model, with both its prompts and the reading of its prediction.
func BenchmarkDecide(b *testing.B) {
	request := decision.Request{
		EventID: "event", Text: "The oven is still on, and there is nobody in the kitchen.",
		Source: "kitchen", Domain: "home",
		Salience:   map[string]float64{"threat": 0.7, "novelty": 0.1},
		Goals:      []string{"Nothing burns.", "Save energy."},
		Candidates: candidates(0.9, 0.5, 0.4),
	}
	for path, confidence := range map[decision.Path]float64{decision.Heuristic: 0.9,
		decision.Model: 0.5} {
		h, err := decision.New(ctx, decision.Config{LLM: quick{}, Store: &memstore.Store{}})
		require.NoError(b, err)
		b.Run("path="+string(path), func(b *testing.B) {
			r := request
			r.Candidates = append([]decision.Candidate(nil), r.Candidates...)
			r.Candidates[0].Confidence = confidence
			b.ReportAllocs()
			for b.Loop() {
				res, err := h.Decide(ctx, r)
				if err != nil || res.Path != path {
					b.Fatal(res.Path, err)
				}
			}
		})
	}
}

// quick is a model that takes no time.
type quick struct{}

func (quick) Generate(_ context.Context, r decision.LLMRequest) (decision.LLMResponse, error) {
	if r.JSON {
		return decision.LLMResponse{Text: `{"success": 0.9, "confidence": 0.3}`}, nil
	}
	return decision.LLMResponse{Text: "Turn it off."}, nil
}

func BenchmarkParsePrediction(b *testing.B) {
	text := "Here it is:\n```json\n{\"success\": 0.9, \"confidence\": 0.3, \"reason\": \"" + strings.Repeat("it is fine, ", 20) + "\"}\n```"
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := decision.ParsePrediction(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFeedback(b *testing.B) {
	st := &memstore.Store{}
	require.NoError(b, decision.PutTrace(ctx, st, decision.Trace{ResponseID: "r", At: time.Now()}))
	f, err := decision.New(ctx, decision.Config{Store: st})
	require.NoError(b, err)
	people := make([]string, 500)
	for i := range people {
		people[i] = fmt.Sprint("person ", i)
	}
	n := 0
	for b.Loop() {
		s := answer.Statement{By: people[n%len(people)], Value: 1}
		if _, _, err := f.Feedback(ctx, "r", s); err != nil {
			b.Fatal(err)
		}
		n++
	}
}
