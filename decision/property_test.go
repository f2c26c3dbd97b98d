package decision_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/decision"
)

func drawCandidates(t *rapid.T) (all []decision.Candidate) {
	hundredths := rapid.IntRange(0, 100)
	for i := range rapid.IntRange(0, 8).Draw(t, "candidates") {
		all = append(all, decision.Candidate{
			HeuristicID: fmt.Sprint("h", i),
			Confidence:  float64(hundredths.Draw(t, "confidence")) / 100,
			Similarity:  float64(hundredths.Draw(t, "similarity"))/50 - 1,
		})
	}
	return all
}

// Against a dumb oracle, which reckons in hundredths.
func TestHeuristicFirstOracle(t *testing.T) {
	llm := model("the model")
	rapid.Check(t, func(t *rapid.T) {
		threshold, reduction := rapid.IntRange(1, 100).Draw(t, "threshold"),
			rapid.IntRange(0, 100).Draw(t, "reduction")
		bias, urgent := rapid.IntRange(-100, 100).Draw(t, "bias"), rapid.Bool().Draw(t, "urgent")
		cfg := decision.Config{Threshold: float64(threshold) / 100,
			UrgencyReduction: float64(reduction) / 100}
		r := decision.Request{
			Candidates: drawCandidates(t), CanWait: rapid.Bool().Draw(t, "can wait"),
			Biases: map[string]float64{"confidence_threshold": float64(bias) / 100},
		}
		need := threshold + bias
		if urgent {
			r.Urgency = 1
			need -= reduction
		}
		need = min(max(need, 30), 95)
		want := decision.Rejected
		if rapid.Bool().Draw(t, "model") {
			cfg.LLM = llm
			if !r.CanWait {
				want = decision.Model
			}
		}
		if len(r.Candidates) > 0 && int(r.Candidates[0].Confidence*100+0.5) >= need {
			want = decision.Heuristic
		}
		h, err := decision.New(ctx, withFixtures(cfg))
		require.NoError(t, err)
		res, err := h.Decide(ctx, r)
		require.NoError(t, err)
		require.Equal(t, want, res.Path)
		require.InDelta(t, float64(need)/100, res.Threshold, 1e-12)
		require.Equal(t, want == decision.Heuristic, res.CreditID != "")
	})
}

func TestRankProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given := drawCandidates(t)
		closeness := float64(rapid.IntRange(0, 50).Draw(t, "closeness")) / 100
		ranked := decision.Rank(given, closeness)
		require.ElementsMatch(t, given, ranked)
		for i := range ranked {
			for j := i + 1; j < len(ranked); j++ {
				first, later := ranked[i], ranked[j]
				require.LessOrEqual(t, later.Similarity-first.Similarity, closeness,
					"who is more than close behind is never in front")
				if first.Similarity == later.Similarity {
					require.GreaterOrEqual(t, first.Confidence, later.Confidence)
				}
			}
		}
	})
}
