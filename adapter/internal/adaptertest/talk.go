package adaptertest

import (
	"context"
	"slices"
	"sync"

	"github.com/heedhq/heed/adapter/internal/turn"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
)

// talk drives a model that keeps no conversation: each event contains the turns before it.
func talk(agent *loop.Agent,
	answer func(context.Context, *loop.Agent, loop.Event) (loop.Answer, error)) looptest.Driver {
	var mu sync.Mutex
	sessions := make(map[string][]loop.Turn)
	return looptest.Driver{Turn: Guarded(func(
		ctx context.Context, t looptest.Turn,
	) (looptest.Said, error) {
		e := loop.Event{ID: t.ID, Session: t.Session, Person: t.Person, Text: t.Text}
		if t.Stream != nil {
			e.OnChunk = func(_ context.Context, text string, _ bool) { t.Stream(text) }
		}
		mu.Lock()
		e.History = slices.Clone(sessions[t.Session])
		mu.Unlock()
		got, err := answer(ctx, agent, e)
		if err != nil {
			return looptest.Said{}, err
		}
		mu.Lock()
		defer mu.Unlock()
		sessions[t.Session] = append(e.History, loop.Turn{Role: "user", Text: t.Text},
			loop.Turn{Role: "assistant", Text: got.Text})
		return looptest.Said{ID: got.ID, Text: got.Text}, nil
	})}
}

// toolsOf returns the suite's tools in the form that a model takes.
func toolsOf(s looptest.Script) (tools []turn.Tool) {
	for _, played := range s.Tools {
		tools = append(tools, turn.Tool{
			Name: played.Name, Description: played.Description, Run: played.Run,
			Schema: map[string]any{
				"type": "object", "required": []string{"host"},
				"properties": map[string]any{"host": map[string]any{"type": "string"}},
			},
		})
	}
	return tools
}
