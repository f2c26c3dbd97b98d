package genkit

import (
	"context"
	"errors"
	"math"

	"github.com/firebase/genkit/go/ai"

	"github.com/heedhq/heed/loop"
)

// Evaluator returns a function for genkit.DefineEvaluator, whose scores become outcomes of answers:
// see [loop.Agent.Outcome]. An example's TestCaseId is the id of the answer. Examples that are not
// answers of heed's are evaluated, too, but have no effect on heed. name is the evaluator. A later
// evaluation of an answer by one name replaces the earlier one.
//
// reward returns how good a score is, in [-1, 1], or false if the score does not count. nil means
// [Reward]. Of several scores, the mean counts.
func (a *Adapter) Evaluator(name string, evaluate ai.EvaluatorFunc,
	reward func(ai.Score) (float64, bool)) ai.EvaluatorFunc {
	if reward == nil {
		reward = Reward
	}
	return func(ctx context.Context, r *ai.EvaluatorCallbackRequest) (*ai.EvaluatorCallbackResponse,
		error) {
		result, err := evaluate(ctx, r)
		if err != nil || result == nil {
			return result, err
		}
		sum, n := 0., 0
		for _, score := range result.Evaluation {
			if worth, ok := reward(score); ok {
				sum += worth
				n++
			}
		}
		if n == 0 {
			return result, nil
		}
		mean := sum / float64(n)
		err = a.cfg.Agent.Outcome(ctx, r.Input.TestCaseId, loop.Outcome{Reward: &mean, Source: name})
		if err != nil && !errors.Is(err, loop.ErrNoAnswer) {
			return nil, err
		}
		return result, nil
	}
}

// Reward returns how good a score is: a number from 0 to 1 goes from -1 to 1, and true or PASS is
// 1, false or FAIL -1. A score with an error does not count, nor does a number outside of [0, 1] or
// another value.
func Reward(s ai.Score) (reward float64, ok bool) {
	if s.Error != "" {
		return 0, false
	}
	switch score := s.Score.(type) {
	case bool:
		if score {
			return 1, true
		}
		return -1, true
	case float64:
		return share(score)
	case float32:
		return share(float64(score))
	case int:
		return share(float64(score))
	case nil:
		switch s.Status {
		case ai.ScoreStatusPass.String():
			return 1, true
		case ai.ScoreStatusFail.String():
			return -1, true
		}
	}
	return 0, false
}

func share(score float64) (float64, bool) {
	if math.IsNaN(score) || score < 0 || score > 1 {
		return 0, false
	}
	return 2*score - 1, true
}
