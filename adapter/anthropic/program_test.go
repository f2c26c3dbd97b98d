package anthropic_test

import (
	"context"
	"fmt"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/heedhq/heed/adapter/anthropic"
	"github.com/heedhq/heed/loop"
)

func df(ctx context.Context, input string) (string, error) { return "/var 97%", nil }

func show(ctx context.Context, text string, restart bool) {
	fmt.Printf("piece %q, restart %t\n", text, restart)
}

// program is the whole program of README.md.
func program(ctx context.Context, text string) error {
	model := &anthropic.Model{
		Client: sdk.NewClient(), Name: sdk.ModelClaudeHaiku4_5, System: "You look after servers.",
		Tools: []anthropic.Tool{{Name: "df", Description: "Shows how full the disks are.", Run: df}},
	}
	agent, err := loop.New(ctx, loop.Config{Model: model})
	if err != nil {
		return err
	}
	answer, err := model.Answer(ctx, agent, loop.Event{
		ID: "m1", Text: text, Person: "ann", OnChunk: show,
	})
	if err != nil {
		return err
	}
	fmt.Println(answer.Text)
	return agent.React(ctx, answer.ID, loop.Reaction{Person: "ann", Value: 1})
}
