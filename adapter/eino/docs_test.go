package eino_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/adapter/eino"
	"github.com/heedhq/heed/adapter/internal/adaptertest"
	"github.com/heedhq/heed/loop"
)

func TestDocs(t *testing.T) { adaptertest.Page(t, "README.md") }

// before and after are loops as the page has them.
func before(ctx context.Context, runner *adk.Runner, text string,
	show func(*adk.AgentEvent)) error {
	events := runner.Query(ctx, text)
	for event, ok := events.Next(); ok; event, ok = events.Next() {
		if event.Err != nil {
			return event.Err
		}
		show(event)
	}
	return nil
}

func after(ctx context.Context, heeding *eino.Adapter, runner *adk.Runner, id, session, person,
	text string, show func(*adk.AgentEvent)) error {
	said := loop.Event{ID: id, Session: session, Person: person}
	for event, err := range heeding.Run(ctx, runner, said, []adk.Message{schema.UserMessage(text)}) {
		if err != nil {
			return err
		}
		show(event)
	}
	return nil
}

// TestLoops has both of the page's loops show the model's answer.
func TestLoops(t *testing.T) {
	r := newRig(t, eino.Config{}, loop.Config{}, &said{messages: []*schema.Message{text("Look.")}},
		false)
	shown := 0
	show := func(e *adk.AgentEvent) {
		assert.Equal(t, "Look.", e.Output.MessageOutput.Message.Content)
		shown++
	}
	require.NoError(t, before(t.Context(), r.runner, "What now?", show))
	require.NoError(t, after(t.Context(), r.adapter, r.runner, "m1", "s1", "ann", "What now?", show))
	assert.Equal(t, 2, shown)
}

// armed is as the page has it.
func armed(ctx context.Context, small model.BaseChatModel) (*eino.Adapter, error) {
	learner, err := loop.New(ctx, loop.Config{
		Arms: []loop.Arm{{ID: "careful"}, {ID: "quick", ModelName: "small",
			Tools: []string{"look_up"}}},
	})
	if err != nil {
		return nil, err
	}
	return eino.New(eino.Config{Agent: learner,
		Models: map[string]model.BaseChatModel{"small": small}})
}

// TestArms has the models of two arms answer.
func TestArms(t *testing.T) {
	large, small := &said{messages: []*schema.Message{text("Look.")}},
		&said{messages: []*schema.Message{text("Wait.")}}
	heeding, err := armed(t.Context(), small)
	require.NoError(t, err)
	agent, err := adk.NewChatModelAgent(t.Context(), &adk.ChatModelAgentConfig{
		Name: "ops", Description: "Helps.", Model: large,
		Handlers: []adk.ChatModelAgentMiddleware{heeding.Middleware()},
	})
	require.NoError(t, err)
	r := &rig{T: t, adapter: heeding, runner: adk.NewRunner(t.Context(),
		adk.RunnerConfig{Agent: agent})}
	for i := 0; i < 30 || len(large.requests) == 0 || len(small.requests) == 0; i++ {
		require.Less(t, i, 200, "an arm is never chosen")
		_, err := r.ask(loop.Event{Session: fmt.Sprint(i)}, schema.UserMessage("What now?"))
		require.NoError(t, err)
		assert.Equal(t, i+1, len(large.requests)+len(small.requests))
	}
}
