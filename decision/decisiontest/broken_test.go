package decisiontest_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/decisiontest"
)

// brokenStrategy is HeuristicFirst with something wrong about it.
type brokenStrategy struct {
	decision.Strategy
	before func(context.Context, *decision.Request) (context.Context, error)
	after  func(*decision.Result, *error)
}

func (b brokenStrategy) Decide(ctx context.Context, r decision.Request) (decision.Result, error) {
	if b.before != nil {
		var err error
		if ctx, err = b.before(ctx, &r); err != nil {
			return decision.Result{}, err
		}
	}
	res, err := b.Strategy.Decide(ctx, r)
	if b.after != nil {
		b.after(&res, &err)
	}
	return res, err
}

func TestStrategySuiteCatchesBrokenOnes(t *testing.T) {
	candidates := func(r *decision.Request) bool { return len(r.Candidates) > 0 }
	broken := map[string]struct {
		strategy brokenStrategy
		llm      func(decision.LLM) decision.LLM
		rule     string
	}{
		"no path": {brokenStrategy{after: func(r *decision.Result,
			_ *error) {
			r.Path = "maybe"
		}}, nil, "a result is whole"},
		"no reason": {brokenStrategy{after: func(r *decision.Result,
			_ *error) {
			r.Reason = ""
		}}, nil, "a result is whole"},
		"blames what it saw": {brokenStrategy{after: func(r *decision.Result,
			_ *error) {
			r.CreditID = r.MatchedID
		}}, nil, "a result is whole"},
		"believes too much": {brokenStrategy{after: func(r *decision.Result,
			_ *error) {
			r.Prediction = &decision.Prediction{Success: 1.2}
		}}, nil, "a result is whole"},
		"compares what it showed": {brokenStrategy{after: func(r *decision.Result, _ *error) {
			r.ShownIDs, r.Compared = []string{"h1"}, []answer.Comparison{{
				HeuristicID: "h1", Agrees: true,
			}}
		}}, nil, "a result is whole"},
		"thinks aloud": {brokenStrategy{after: func(r *decision.Result,
			_ *error) {
			r.Text += r.Thoughts
		}}, nil, "thoughts are in no answer"},
		"takes thoughts for answers": {brokenStrategy{}, func(llm decision.LLM) decision.LLM {
			return decision.LLMFunc(func(ctx context.Context,
				r decision.LLMRequest) (decision.LLMResponse, error) {
				reply, err := llm.Generate(ctx, r)
				reply.Text = strings.ReplaceAll(reply.Text, "<think>", "")
				return reply, err
			})
		}, "thoughts are in no answer"},
		"one id for all": {brokenStrategy{after: func(r *decision.Result,
			_ *error) {
			r.ResponseID = "id"
		}}, nil, "a result is whole"},
		"an id of no answer": {brokenStrategy{after: func(r *decision.Result,
			_ *error) {
			r.MatchedID = "h1"
		}}, nil, "a result is whole"},
		"answers without one": {brokenStrategy{after: func(r *decision.Result, _ *error) {
			r.Path,
				r.Reason, r.ResponseID = decision.Model, "", "x"
		}}, nil, "no candidates and no model"},
		"sorts the candidates": {brokenStrategy{before: func(ctx context.Context,
			r *decision.Request) (context.Context, error) {
			if candidates(r) {
				r.Candidates[0].Confidence = 0
			}
			return ctx, nil
		}}, nil, ": the request: "},
		"adds a bias": {brokenStrategy{before: func(ctx context.Context,
			r *decision.Request) (context.Context, error) {
			if r.Biases != nil {
				maps.Copy(r.Biases, map[string]float64{"new": 1})
			}
			return ctx, nil
		}}, nil, ": the request: "},
		"takes what is wrong": {brokenStrategy{before: func(ctx context.Context,
			r *decision.Request) (context.Context, error) {
			if r.Validate() != nil {
				*r = decision.Request{}
			}
			return ctx, nil
		}}, nil, "a request that is not valid"},
		"panics": {brokenStrategy{before: func(ctx context.Context,
			r *decision.Request) (context.Context, error) {
			if r.Urgency == 1 {
				panic("urgent")
			}
			return ctx, nil
		}}, nil, "decisions are concurrent: panic: urgent"},
		"has no ear for its context": {brokenStrategy{before: func(ctx context.Context,
			_ *decision.Request) (context.Context, error) {
			return context.WithoutCancel(ctx), nil
		}}, nil, "a context that is done"},
		"gives the model's error": {brokenStrategy{after: func(r *decision.Result,
			err *error) {
			*err = errors.Join(*err, r.Err)
		}}, nil, "a failing model is a path"},
		"takes errors for answers": {brokenStrategy{}, func(llm decision.LLM) decision.LLM {
			return decision.LLMFunc(func(ctx context.Context,
				r decision.LLMRequest) (decision.LLMResponse, error) {
				reply, err := llm.Generate(ctx, r)
				if err != nil {
					reply.Text = err.Error()
				}
				return reply, nil
			})
		}, "a failing model is a path"},
	}
	for name, b := range broken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := decisiontest.CheckStrategy(func(llm decision.LLM) (decision.Strategy, error) {
				if b.llm != nil && llm != nil {
					llm = b.llm(llm)
				}
				h, err := decision.New(context.Background(),
					decision.Config{LLM: llm, Timeout: 10 * time.Second})
				b.strategy.Strategy = h
				return b.strategy, err
			})
			assert.ErrorContains(t, err, b.rule)
		})
	}
	t.Run("hangs", func(t *testing.T) {
		t.Parallel()
		err := decisiontest.CheckStrategy(func(llm decision.LLM) (decision.Strategy, error) {
			h, err := decision.New(context.Background(), decision.Config{LLM: llm})
			return brokenStrategy{Strategy: h, before: func(ctx context.Context,
				r *decision.Request) (context.Context, error) {
				if _, ok := ctx.Deadline(); ok {
					time.Sleep(6 * time.Second)
				}
				return ctx, nil
			}}, err
		})
		assert.ErrorContains(t, err, "a model that hangs is left")
	})
	t.Run("can't be made", func(t *testing.T) {
		err := decisiontest.CheckStrategy(func(decision.LLM) (decision.Strategy, error) {
			return nil,
				errors.New("x")
		})
		assert.ErrorContains(t, err, "new: x")
	})
}
