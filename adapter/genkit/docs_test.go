package genkit_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/firebase/genkit/go/ai"
	sdk "github.com/firebase/genkit/go/genkit"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/adapter/genkit"
	"github.com/heedhq/heed/adapter/internal/adaptertest"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
	"github.com/heedhq/heed/strategy"
)

func TestDocs(t *testing.T) { adaptertest.Page(t, "README.md") }

// armed is as the page has it.
func armed(ctx context.Context, small ai.Model) (*genkit.Adapter, error) {
	learner, err := loop.New(ctx, loop.Config{
		Models: map[string]decision.LLM{"small": genkit.LLM(small, nil)},
		Arms: []loop.Arm{{ID: "careful"}, {ID: "quick", ModelName: "small",
			Tools: []string{"look_up"}}},
	})
	if err != nil {
		return nil, err
	}
	return genkit.New(genkit.Config{Agent: learner, Models: map[string]ai.Model{"small": small}})
}

// TestArms has the models of two arms answer.
func TestArms(t *testing.T) {
	large, small := &said{}, &said{}
	g := sdk.Init(t.Context())
	define(g, "main", large.generate)
	heeding, err := armed(t.Context(), define(g, "small", small.generate))
	require.NoError(t, err)
	for i := 0; i < 30 || len(large.requests) == 0 || len(small.requests) == 0; i++ {
		require.Less(t, i, 200, "an arm is never chosen")
		_, err := sdk.Generate(t.Context(), g, ai.WithModelName("test/main"),
			ai.WithPrompt("What now?"),
			ai.WithUse(heeding.For(loop.Event{Session: fmt.Sprint(i)})))
		require.NoError(t, err)
		assert.Equal(t, i+1, len(large.requests)+len(small.requests))
	}
}

// evaluated is as the page has it.
func evaluated(ctx context.Context, g *sdk.Genkit, heeding *genkit.Adapter, judge ai.EvaluatorFunc,
	response *ai.ModelResponse) error {
	helpful := sdk.DefineEvaluator(g, "test/helpful", nil, heeding.Evaluator("helpful", judge, nil))
	answer := &ai.Example{TestCaseId: genkit.ID(response), Output: response.Text()}
	_, err := sdk.Evaluate(ctx, g, ai.WithEvaluator(helpful), ai.WithDataset(answer))
	return err
}

// TestEvaluator has scores become outcomes of answers.
func TestEvaluator(t *testing.T) {
	learner, _ := looptest.New(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}})
	heeding, err := genkit.New(genkit.Config{Agent: learner})
	require.NoError(t, err)
	g := sdk.Init(t.Context())
	define(g, "main", (&said{}).generate)
	response, err := sdk.Generate(t.Context(), g, ai.WithModelName("test/main"),
		ai.WithPrompt("What now?"), ai.WithUse(heeding.For(loop.Event{})))
	require.NoError(t, err)
	judge := func(_ context.Context, r *ai.EvaluatorCallbackRequest) (*ai.EvaluatorCallbackResponse,
		error) {
		assert.Equal(t, "Look.", r.Input.Output)
		return &ai.EvaluationResult{TestCaseId: r.Input.TestCaseId, Evaluation: []ai.Score{
			{Score: 0.75}, {Score: true}, {Score: "good"}, {Score: 0., Error: "the judge is overloaded"},
		}}, nil
	}
	require.NoError(t, evaluated(t.Context(), g, heeding, judge, response))
	choices := 0
	for record, err := range learner.Strategy().History(t.Context(), strategy.ChoiceFilter{}) {
		choices++
		require.NoError(t, err)
		require.NotNil(t, record.Result)
		assert.Equal(t, 0.75, record.Result.Value)
		assert.Equal(t, "helpful", record.Result.Source)
	}
	assert.Equal(t, 1, choices)
	results, err := heeding.Evaluator("helpful", judge, nil)(t.Context(),
		&ai.EvaluatorCallbackRequest{
			Input: ai.Example{TestCaseId: "of a data set", Output: "Look."},
		})
	require.NoError(t, err, "an example that is no answer is evaluated all the same")
	assert.Len(t, results.Evaluation, 4)
}

// toldErrors is as the page has it.
func toldErrors() ai.Middleware {
	return ai.MiddlewareFunc(func(context.Context) (*ai.Hooks, error) {
		return &ai.Hooks{WrapTool: func(ctx context.Context, p *ai.ToolParams,
			next ai.ToolNext) (*ai.MultipartToolResponse, error) {
			result, err := next(ctx, p)
			if waits, _ := ai.IsToolInterruptError(err); err != nil && !waits {
				return &ai.MultipartToolResponse{Output: "Error: " + err.Error()}, nil
			}
			return result, err
		}}, nil
	})
}
