package openai_test

import (
	"context"
	"fmt"

	sdk "github.com/openai/openai-go/v3"

	"github.com/heedhq/heed/adapter/openai"
	"github.com/heedhq/heed/loop"
)

func df(ctx context.Context, input string) (string, error) { return "/var 97%", nil }

func show(ctx context.Context, text string, restart bool) {
	fmt.Printf("piece %q, restart %t\n", text, restart)
}

// program is the whole program of README.md.
func program(ctx context.Context, text string) error {
	model := &openai.Model{
		Client: sdk.NewClient(), Name: sdk.ChatModelGPT5_4Mini, System: "You look after servers.",
		Tools: []openai.Tool{{Name: "df", Description: "Shows how full the disks are.", Run: df}},
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
