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
	"github.com/heedhq/heed/loop"
)

func TestDocs(t *testing.T) { adaptertest.Page(t, "README.md") }

// armed is as the page has it.
func armed(ctx context.Context, small ai.Model) (*genkit.Adapter, error) {
	learner, err := loop.New(ctx, loop.Config{
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
