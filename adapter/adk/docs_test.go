package adk_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkagent "google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/heedhq/heed/adapter/adk"
	"github.com/heedhq/heed/adapter/internal/adaptertest"
	"github.com/heedhq/heed/loop"
)

func TestDocs(t *testing.T) { adaptertest.Page(t, "README.md") }

// armed is as the page has it.
func armed(ctx context.Context, pro, flash model.LLM) (*adk.Adapter, model.LLM, error) {
	learner, err := loop.New(ctx, loop.Config{
		Arms: []loop.Arm{{ID: "careful"}, {ID: "quick", ModelName: "flash",
			Tools: []string{"look_up"}}},
	})
	if err != nil {
		return nil, nil, err
	}
	heeding, err := adk.New(adk.Config{Agent: learner})
	if err != nil {
		return nil, nil, err
	}
	return heeding, heeding.Model(pro, map[string]model.LLM{"flash": flash}), nil
}

// TestArms has the models of two arms answer.
func TestArms(t *testing.T) {
	pro, flash := &said{responses: []*model.LLMResponse{text("Look.")}},
		&said{responses: []*model.LLMResponse{text("Wait.")}}
	heeding, routed, err := armed(t.Context(), pro, flash)
	require.NoError(t, err)
	root, err := llmagent.New(llmagent.Config{Name: "ops", Mode: llmagent.ModeChat, Model: routed})
	require.NoError(t, err)
	run, err := runner.New(runner.Config{
		AppName: "test", Agent: root, SessionService: session.InMemoryService(),
		AutoCreateSession: true,
		PluginConfig:      runner.PluginConfig{Plugins: []*plugin.Plugin{heeding.Plugin()}},
	})
	require.NoError(t, err)
	message := genai.NewContentFromText("What now?", genai.RoleUser)
	for i := 0; i < 30 || len(pro.requests) == 0 || len(flash.requests) == 0; i++ {
		require.Less(t, i, 200, "an arm is never chosen")
		for _, err := range run.Run(t.Context(), "ann", fmt.Sprint(i), message, sdkagent.RunConfig{}) {
			require.NoError(t, err)
		}
		assert.Equal(t, i+1, len(pro.requests)+len(flash.requests))
	}
}
