// Package decisiontest provides the contract of [decision.Strategy] as a test suite. Run it from a
// test of your own:
//
//	func TestStrategy(t *testing.T) {
//		decisiontest.RunStrategy(t, func(llm decision.LLM) (decision.Strategy, error) {
//			return mystrategy.New(llm)
//		})
//	}
//
// Later versions of the suite may test more of the contract.
package decisiontest

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/internal/conformance"
)

// NewStrategy returns a strategy that asks this model. nil: there is no model. A strategy may
// ignore the model.
type NewStrategy func(llm decision.LLM) (decision.Strategy, error)

// RunStrategy runs the suite: a subtest for each rule, with its own strategy.
func RunStrategy(t *testing.T, newStrategy NewStrategy) {
	conformance.Run(t, strategyRules, newStrategy)
}

type checker = conformance.Checker

var strategyRules = []conformance.Rule[NewStrategy]{
	conformance.Checked("a result is whole", resultWhole),
	conformance.Checked("no candidates and no model are a decision", nothingGiven),
	conformance.Checked("a request that is not valid is refused", requestRefused),
	conformance.Checked("a context that is done gives its error", doneRefused),
	conformance.Checked("a failing model is a path", modelFails),
	conformance.Checked("thoughts are in no answer", modelThinks),
	conformance.Checked("a model that hangs is left when the context is done", modelHangs),
	conformance.Checked("decisions are concurrent", decidesConcurrently),
}

// says returns a model that answers each prompt with a step.
func says(step llmtest.Step) *llmtest.Model {
	steps := []llmtest.Step{step}
	return &llmtest.Model{Answers: steps, Predictions: steps}
}

// talks returns a model that answers everything.
func talks() *llmtest.Model {
	return &llmtest.Model{
		Name: "talks", Answers: llmtest.Say("Open a window."),
		Predictions: llmtest.Say(`{"success": 0.9, "confidence": 0.9}`),
	}
}

func newStrategyOf(t *checker, newStrategy NewStrategy, llm decision.LLM) decision.Strategy {
	s, err := newStrategy(llm)
	t.Must("new", err)
	return s
}

// requests returns requests of many kinds.
func requests() []decision.Request {
	all := []decision.Request{{}, {CanWait: true}}
	candidates := []decision.Candidate{
		{HeuristicID: "h3", Confidence: 1, Similarity: -1},
		{HeuristicID: "h2", Condition: "it is cold", Action: "close the window", Confidence: 0.4,
			Similarity: 0.9},
		{HeuristicID: "h1", Condition: "it is hot", Action: "open a window", Confidence: 0.9,
			Similarity: 0.8},
	}
	for n := range len(candidates) + 1 {
		for _, canWait := range []bool{false, true} {
			for _, urgency := range []float64{0, 0.5, 1} {
				all = append(all, decision.Request{
					EventID: "e", Text: "it is 35 degrees\n\nin here", Source: "sensor", Domain: "home",
					Urgency: urgency, CanWait: canWait, Candidates: slices.Clone(candidates[n:]),
					Salience: map[string]float64{"threat": 0.2, "urgency": urgency},
					Goals:    []string{"comfort"},
					Biases:   map[string]float64{"confidence_threshold": -0.1, "unknown": 7},
				})
			}
		}
	}
	return all
}

// wantWhole checks the fields of a result against their contract.
func wantWhole(t *checker, r decision.Request, res decision.Result) {
	ids := []string{""}
	for _, c := range r.Candidates {
		ids = append(ids, c.HeuristicID)
	}
	answered := res.Path == decision.Heuristic || res.Path == decision.Model
	rate := func(x float64) bool { return x >= 0 && x <= 1 }
	for _, rule := range []struct {
		kept bool
		says string
	}{
		{answered || res.Path == decision.Fallback || res.Path == decision.Rejected,
			"the path must be one of the four"},
		{answered == (res.Reason == ""),
			"there must be a reason where there is no answer, and only there"},
		{answered || res.Text == "" && res.ResponseID == "" && res.MatchedID == "",
			"without an answer there is no text and no id"},
		{!answered || res.ResponseID != "", "an answer has an id"},
		{(res.Path == decision.Heuristic) == (res.CreditID != ""),
			"the heuristic that answered has the credit, and no other"},
		{slices.Contains(ids, res.CreditID) && slices.Contains(ids, res.MatchedID),
			"heuristics must be candidates"},
		{res.Prediction == nil || rate(res.Prediction.Success) && rate(res.Prediction.Confidence),
			"predictions must be in [0, 1]"},
		{answered || res.Prediction == nil, "without an answer nothing is predicted"},
		{!slices.ContainsFunc(res.Compared, func(c answer.Comparison) bool {
			return slices.Contains(res.ShownIDs, c.HeuristicID)
		}), "what was shown is not compared"},
		{!math.IsNaN(res.Threshold), "the threshold must be a number"},
	} {
		t.Check(rule.kept, "%s: %+v", rule.says, res)
	}
}

// decideAll has a strategy decide about all requests, and checks each result, and that the requests
// stay as they are.
func decideAll(t *checker, s decision.Strategy, check func(decision.Result)) {
	before := requests()
	for i, r := range requests() {
		res, err := s.Decide(context.Background(), r)
		t.Equal("the request", r, before[i])
		if err != nil {
			t.Errorf("decide: %v", err)
			continue
		}
		wantWhole(t, r, res)
		check(res)
	}
}

func resultWhole(t *checker, newStrategy NewStrategy) {
	seen := make(map[string]bool)
	decideAll(t, newStrategyOf(t, newStrategy, talks()), func(res decision.Result) {
		t.Check(res.ResponseID == "" || !seen[res.ResponseID], "two ResponseIDs are %q", res.ResponseID)
		seen[res.ResponseID] = true
	})
}

func nothingGiven(t *checker, newStrategy NewStrategy) {
	decideAll(t, newStrategyOf(t, newStrategy, nil), func(res decision.Result) {
		t.Check(res.Path != decision.Model, "no model could have said %q", res.Text)
	})
}

func requestRefused(t *checker, newStrategy NewStrategy) {
	s := newStrategyOf(t, newStrategy, talks())
	for _, r := range []decision.Request{
		{Urgency: 1.5},
		{Urgency: math.NaN()},
		{Biases: map[string]float64{"confidence_threshold": math.NaN()}},
		{Salience: map[string]float64{"threat": math.Inf(1)}},
		{Candidates: []decision.Candidate{{HeuristicID: "h", Confidence: math.NaN()}}},
		{Candidates: []decision.Candidate{{HeuristicID: "h", Confidence: 1.1}}},
		{Candidates: []decision.Candidate{{Confidence: 0.5}}},
	} {
		_, err := s.Decide(context.Background(), r)
		t.Check(errors.As(err, new(*heed.InputError)), "%v, want an InputError for %+v", err, r)
	}
}

func doneRefused(t *checker, newStrategy NewStrategy) {
	s := newStrategyOf(t, newStrategy, talks())
	done, cancel := context.WithCancel(context.Background())
	cancel()
	for _, r := range requests() {
		_, err := s.Decide(done, r)
		t.Check(errors.Is(err, context.Canceled), "error is %v, want %v", err, context.Canceled)
	}
}

func modelFails(t *checker, newStrategy NewStrategy) {
	for name, step := range map[string]llmtest.Step{
		"an error":      {Text: "not this", Err: errors.New("out of order")},
		"an empty text": {Text: " \n"},
		"a panic":       {Panic: "of the model, which a strategy has to contain"},
	} {
		decideAll(t, newStrategyOf(t, newStrategy, says(step)), func(res decision.Result) {
			t.Check(res.Path != decision.Model, "%s was taken for the answer %q", name, res.Text)
		})
	}
}

func modelThinks(t *checker, newStrategy NewStrategy) {
	for _, text := range []string{"<think>SECRET</think>Open a window.", "<think>SECRET"} {
		s := newStrategyOf(t, newStrategy, says(llmtest.Step{Text: text}))
		decideAll(t, s, func(res decision.Result) {
			t.Check(!strings.Contains(res.Text, "SECRET"), "thoughts are in the answer %q", res.Text)
			t.Check(res.Path != decision.Model || strings.Contains(text, "</think>"),
				"thoughts alone are the answer %q", res.Text)
		})
	}
}

func modelHangs(t *checker, newStrategy NewStrategy) {
	s := newStrategyOf(t, newStrategy, says(llmtest.Step{Hang: true}))
	_ = t.EndsInTime(func(ctx context.Context) error {
		_, err := s.Decide(ctx, decision.Request{EventID: "e"})
		return err
	})
}

func decidesConcurrently(t *checker, newStrategy NewStrategy) {
	s := newStrategyOf(t, newStrategy, talks())
	t.AtOnce(8, func(int) { decideAll(t, s, func(decision.Result) {}) })
}
