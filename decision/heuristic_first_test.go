package decision_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/decisiontest"
	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/memstore"
)

func TestStrategiesKeepTheContract(t *testing.T) {
	t.Run("HeuristicFirst", func(t *testing.T) {
		decisiontest.RunStrategy(t, func(llm decision.LLM) (decision.Strategy, error) {
			return decision.New(ctx, decision.Config{LLM: llm, Store: &memstore.Store{}})
		})
	})
	t.Run("HeuristicFirst with tiers", func(t *testing.T) {
		decisiontest.RunStrategy(t, func(llm decision.LLM) (decision.Strategy, error) {
			return decision.New(ctx, decision.Config{LLM: llm, UrgencyTiers: true,
				Similarity: heed.Trigrams{}})
		})
	})
	t.Run("AlwaysLLM", func(t *testing.T) {
		decisiontest.RunStrategy(t, func(llm decision.LLM) (decision.Strategy, error) {
			return decision.New(ctx, decision.Config{Strategy: "always_llm", LLM: llm})
		})
	})
	t.Run("Experiment", func(t *testing.T) {
		decisiontest.RunStrategy(t, func(llm decision.LLM) (decision.Strategy, error) {
			key := func(r decision.Request) string { return "key " + r.EventID }
			return decision.NewExperiment("", key, bothStrategies(llm)...)
		})
	})
}

func bothStrategies(llm decision.LLM) []decision.Variant {
	h, err := decision.New(ctx, decision.Config{LLM: llm})
	a, err2 := decision.New(ctx, decision.Config{Strategy: "always_llm", LLM: llm})
	if err := errors.Join(err, err2); err != nil {
		panic(err)
	}
	return []decision.Variant{{Name: "heuristics", Strategy: h}, {Name: "model", Strategy: a}}
}

func TestDecisions(t *testing.T) {
	var vectors []struct {
		Name                                 string
		Confidences                          []float64
		LLM, Immediate                       bool
		Bias, Configured, Urgency, Reduction float64
		Path                                 decision.Path
		Reason                               string
		Matched, Credit, Text                string
		Success, Confidence, Threshold       float64
		Calls                                int
	}
	readJSON(t, "testdata/decisions.json", &vectors)
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			m := model("  the model's answer \n", `{"success": 0.6, "confidence": 0.4}`)
			cfg := decision.SpecConfig()
			cfg.Threshold, cfg.UrgencyReduction = v.Configured, v.Reduction
			if v.LLM {
				cfg.LLM = m
			}
			r := decision.Request{EventID: "e", Text: "text", Candidates: candidates(v.Confidences...),
				CanWait: !v.Immediate, Urgency: v.Urgency}
			if v.Bias != 0 {
				r.Biases = map[string]float64{"confidence_threshold": v.Bias, "mood": 9}
			}
			res := decide(t, cfg, r)
			assert.Equal(t, v.Path, res.Path)
			assert.Equal(t, v.Reason, res.Reason)
			assert.Equal(t, v.Matched, res.MatchedID)
			assert.Equal(t, v.Credit, res.CreditID)
			assert.Equal(t, v.Text, res.Text)
			if v.Path == decision.Heuristic || v.Path == decision.Model {
				assert.Equal(t, &decision.Prediction{Success: v.Success, Confidence: v.Confidence},
					res.Prediction)
			} else {
				assert.Nil(t, res.Prediction)
			}
			assert.Equal(t, v.Calls, res.Calls)
			assert.Len(t, m.Requests(), v.Calls)
			assert.Equal(t, v.Path == decision.Rejected, res.ResponseID == "")
			assert.Equal(t, v.Path == decision.Model, res.Prompt != "",
				"only the model is shown a prompt")
			if v.Threshold != 0 {
				assert.Equal(t, v.Threshold, res.Threshold)
			}
		})
	}
}

func TestFallback(t *testing.T) {
	outOfOrder := errors.New("out of order")
	for name, tt := range map[string]struct {
		step   llmtest.Step
		reason string
	}{
		"an empty answer":     {llmtest.Step{}, "llm_no_response"},
		"nothing but space":   {llmtest.Step{Text: " \n\t"}, "llm_no_response"},
		"an error":            {llmtest.Step{Err: outOfOrder}, "llm_error"},
		"an error and a text": {llmtest.Step{Text: "half an ans", Err: outOfOrder}, "llm_error"},
		"a panic":             {llmtest.Step{Panic: outOfOrder}, "llm_error"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &llmtest.Model{Answers: []llmtest.Step{tt.step}}
			h := newHeuristicFirst(t, decision.Config{LLM: m})
			res, err := h.Decide(ctx, decision.Request{Candidates: candidates(0.5)})
			require.NoError(t, err)
			assert.Equal(t, decision.Fallback, res.Path)
			assert.Equal(t, tt.reason, res.Reason)
			assert.NotEmpty(t, res.Prompt)
			assert.Empty(t, res.Text+res.ResponseID+res.MatchedID+res.CreditID)
			assert.Nil(t, res.Prediction)
			assert.Empty(t, traces(t, h), "there is no trace of no answer")
			assert.Len(t, m.Requests(), 1, "nothing is predicted of no answer")
			assert.Equal(t, tt.reason != "llm_no_response", res.Err != nil)
		})
	}
}

func TestAFailedPredictionCostsOnlyThePrediction(t *testing.T) {
	for name, step := range map[string]llmtest.Step{
		"an error":        {Err: errors.New("out of order")},
		"a panic":         {Panic: "out of order"},
		"an empty answer": {},
		"nonsense":        {Text: "I feel good about it."},
	} {
		t.Run(name, func(t *testing.T) {
			m := &llmtest.Model{Answers: llmtest.Say("Do it."), Predictions: []llmtest.Step{step}}
			res := decide(t, decision.Config{LLM: m, Prediction: true}, decision.Request{})
			assert.Equal(t, decision.Model, res.Path)
			assert.Equal(t, "Do it.", res.Text)
			assert.NotEmpty(t, res.ResponseID)
			assert.Equal(t, [2]float64{0.5, 0.5}, [2]float64{res.Prediction.Success,
				res.Prediction.Confidence})
			assert.NotEmpty(t, res.PredictionFault)
		})
	}
}

func TestPredictions(t *testing.T) {
	var vectors []struct {
		Name, Reply         string
		Fault               bool
		Success, Confidence float64
	}
	readJSON(t, "testdata/predictions.json", &vectors)
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			res := decide(t, decision.Config{Prediction: true,
				LLM: model("Do it.", v.Reply)}, decision.Request{})
			assert.Equal(t, [2]float64{v.Success, v.Confidence},
				[2]float64{res.Prediction.Success, res.Prediction.Confidence})
			assert.Equal(t, v.Fault, res.PredictionFault != "", res.PredictionFault)
		})
	}
}

func TestCeiling(t *testing.T) {
	cfg := decision.Config{Prediction: true, LLM: model("Do it.", `{"success": 1, "confidence": 0.65}`)}
	res := decide(t, cfg, decision.Request{})
	assert.Equal(t, [2]float64{0.8, 0.65}, [2]float64{res.Prediction.Success,
		res.Prediction.Confidence})
	res = decide(t, cfg, decision.Request{Candidates: candidates(0.99)})
	assert.Equal(t, 0.99, res.Prediction.Success, "it is for what a model says of itself")
}

// Confidences come with the request. Nothing is kept from one request to the next.
func TestConfidenceIsNotRemembered(t *testing.T) {
	h := newHeuristicFirst(t, decision.Config{})
	for _, confidence := range []float64{0.9, 0.2, 0.9, 0.69} {
		res, err := h.Decide(ctx, decision.Request{EventID: "the same",
			Candidates: candidates(confidence)})
		require.NoError(t, err)
		assert.Equal(t, confidence >= 0.7, res.Path == decision.Heuristic)
	}
}

func TestUrgencyComesFromSalience(t *testing.T) {
	for name, tt := range map[string]struct {
		urgency   float64
		salience  float64
		want      float64
		wantWhich string
	}{
		"none is said":                 {0, 0, 0, "not_urgent"},
		"it is said":                   {0.5, 0.9, 0.5, "soon"},
		"salience beyond its range":    {0, 7, 1, "immediate"},
		"salience below its range":     {0, -7, 0, "not_urgent"},
		"by its salience":              {0, 0.9, 0.9, "immediate"},
		"the edge belongs to the tier": {0.8, 0, 0.8, "immediate"},
		"and so does the other":        {0.4, 0, 0.4, "soon"},
	} {
		t.Run(name, func(t *testing.T) {
			r := decision.Request{Urgency: tt.urgency,
				Salience: map[string]float64{"urgency": tt.salience, "threat": 0.95}}
			h := newHeuristicFirst(t, decision.Config{UrgencyTiers: true})
			res, err := h.Decide(ctx, r)
			require.NoError(t, err)
			assert.Equal(t, tt.want, res.Urgency)
			assert.Equal(t, tt.wantWhich, res.Tier)
		})
	}
}

func TestTiers(t *testing.T) {
	with := func(similarity, confidence float64) decision.Candidate {
		return decision.Candidate{HeuristicID: fmt.Sprint(similarity, "/", confidence),
			Similarity: similarity, Confidence: confidence, Action: "act"}
	}
	urgency := decision.Config{UrgencyTiers: true, UrgencyReduction: 0.2}
	asking := urgency
	asking.LLM = model("the model")
	for name, tt := range map[string]struct {
		urgency    float64
		candidates []decision.Candidate
		want       string // the heuristic that answers, or none
	}{
		"immediate: the first that reaches the lowered bar": {1,
			[]decision.Candidate{with(0.9, 0.49), with(0.8, 0.5), with(0.7, 0.9)}, "0.8/0.5"},
		"immediate: none does": {1,
			[]decision.Candidate{with(0.9, 0.49)}, ""},
		"soon: one that reaches it": {0.5,
			[]decision.Candidate{with(0.9, 0.5), with(0.8, 0.6)}, "0.8/0.6"},
		"soon: none does": {0.5,
			[]decision.Candidate{with(0.9, 0.59)}, ""},
		"not urgent: a single one of high match and confidence": {0,
			[]decision.Candidate{with(0.9, 0.9), with(0.8, 0.99)}, "0.9/0.9"},
		"not urgent: also if it is not the first": {0,
			[]decision.Candidate{with(0.8, 0.99), with(0.9, 0.9)}, "0.9/0.9"},
		"not urgent: two of them are for the model": {0,
			[]decision.Candidate{with(0.95, 0.9), with(0.9, 0.9)}, ""},
		"not urgent: one that matches and is not trusted so far": {0,
			[]decision.Candidate{with(0.99, 0.85)}, ""},
		"not urgent: one that is trusted and does not match": {0,
			[]decision.Candidate{with(0.85, 0.99)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			res := decide(t, asking,
				decision.Request{Candidates: tt.candidates, Urgency: tt.urgency})
			assert.Equal(t, tt.want, res.CreditID)
			if tt.want == "" {
				assert.Equal(t, decision.Model, res.Path)
			} else {
				assert.Equal(t, tt.want, res.MatchedID)
			}
		})
	}
	shown := with(0.95, 0.9)
	shown.ShowOnly = true
	for _, u := range []float64{0, 0.5, 1} {
		r := decision.Request{Candidates: []decision.Candidate{shown}, Urgency: u}
		res := decide(t, asking, r)
		assert.Equal(t, decision.Model, res.Path, u)
		assert.Equal(t, []string{"0.95/0.9"}, res.ShownIDs)
		r.Candidates = append(r.Candidates, with(0.92, 0.91))
		assert.Equal(t, "0.92/0.91", decide(t, urgency, r).CreditID)
		assert.Equal(t, "0.92/0.91", decide(t, decision.Config{}, r).CreditID, "without tiers")
	}
}

// Over 4,000 requests, each share has a standard error below 0.008.
func TestSoonDrawsBySimilarity(t *testing.T) {
	h := newHeuristicFirst(t, decision.Config{UrgencyTiers: true})
	all := []decision.Candidate{
		{HeuristicID: "a", Similarity: 0.9, Confidence: 0.8},
		{HeuristicID: "low", Similarity: 0.9, Confidence: 0.6},
		{HeuristicID: "b", Similarity: 0.6, Confidence: 0.9},
		{HeuristicID: "c", Similarity: -0.3, Confidence: 0.9},
	}
	shares := func(similarity bool) map[string]float64 {
		shares := make(map[string]float64)
		for i := range 4000 {
			r := decision.Request{EventID: fmt.Sprint(i),
				Candidates: append([]decision.Candidate(nil), all...), Urgency: 0.5}
			if !similarity {
				for i := range r.Candidates {
					r.Candidates[i].Similarity = 0
				}
			}
			res, err := h.Decide(ctx, r)
			require.NoError(t, err)
			again, err := h.Decide(ctx, r)
			require.NoError(t, err)
			require.Equal(t, res.CreditID, again.CreditID, "a request is always decided alike")
			shares[res.CreditID] += 1. / 4000
		}
		return shares
	}
	bySimilarity := shares(true)
	assert.InDelta(t, 0.6, bySimilarity["a"], 0.03)
	assert.InDelta(t, 0.4, bySimilarity["b"], 0.03)
	assert.Zero(t, bySimilarity["low"]+bySimilarity["c"])
	byConfidence := shares(false)
	assert.InDelta(t, 0.8/2.6, byConfidence["a"], 0.03)
	assert.InDelta(t, 0.9/2.6, byConfidence["c"], 0.03)
}

func TestAlwaysLLM(t *testing.T) {
	m := model("Do it.", `{"success": 0.6, "confidence": 0.4}`)
	a, err := decision.New(ctx, withFixtures(decision.Config{Strategy: "always_llm", LLM: m}))
	require.NoError(t, err)
	res, err := a.Decide(ctx, decision.Request{Candidates: candidates(0.99), Urgency: 0.3})
	require.NoError(t, err)
	assert.Equal(t, decision.Model, res.Path)
	assert.Equal(t, "h1", res.MatchedID)
	assert.Empty(t, res.CreditID)
	assert.Equal(t, "always_llm", res.Strategy)
	assert.Equal(t, 0.3, res.Urgency)
	assert.Contains(t, m.Requests()[0].Prompt, `"condition 1"`)
	res, err = a.Decide(ctx, decision.Request{Candidates: candidates(0.99), CanWait: true})
	require.NoError(t, err)
	assert.Equal(t, "not_immediate", res.Reason)
}

func TestRequestsAreRefused(t *testing.T) {
	h := newHeuristicFirst(t, decision.Config{})
	for field, r := range map[string]decision.Request{
		"EventID": {EventID: strings.Repeat("x", 2000)},
		"Source":  {Source: "a\x00b"},
		"Domain":  {Domain: "\xff"},
		"Variant": {Variant: "\xff"},
		"Urgency": {Urgency: math.NaN()},
		"Candidates[1].Confidence": {Candidates: append(candidates(0.5),
			decision.Candidate{HeuristicID: "h", Confidence: math.Inf(1)})},
		"Candidates[0].HeuristicID": {Candidates: []decision.Candidate{{}}},
		"Candidates[0].Similarity": {Candidates: []decision.Candidate{{HeuristicID: "h",
			Similarity: -1.1}}},
		`Salience["a"]`: {Salience: map[string]float64{"a": math.NaN(), "b": math.NaN(), "": 1}},
		`Biases["x"]`:   {Biases: map[string]float64{"x": math.Inf(-1)}},
	} {
		_, err := h.Decide(ctx, r)
		var fault *heed.InputError
		require.ErrorAs(t, err, &fault, field)
		assert.Equal(t, field, fault.Field)
	}
}

func TestAnAnswerWithoutATrace(t *testing.T) {
	full := brokenStore{&memstore.Store{}, errors.New("full")}
	h := newHeuristicFirst(t, decision.Config{Store: full})
	res, err := h.Decide(ctx, decision.Request{Candidates: candidates(0.9)})
	require.ErrorIs(t, err, full.err)
	assert.Equal(t, "action 1", res.Text, "the answer is there all the same")
	assert.Empty(t, res.ResponseID)
}

func TestConcurrentDecisions(t *testing.T) {
	h := newHeuristicFirst(t, decision.Config{LLM: model("Do it.")})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 100 {
				r := decision.Request{EventID: fmt.Sprint(i, "/", n),
					Candidates: candidates(float64(n%10) / 10)}
				res, err := h.Decide(ctx, r)
				assert.NoError(t, err)
				trace, err := h.Trace(ctx, res.ResponseID)
				assert.NoError(t, err)
				assert.Equal(t, r.EventID, trace.EventID)
			}
		})
	}
	all.Wait()
	assert.Len(t, traces(t, h), 800)
}
