package eino_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"

	"github.com/heedhq/heed/adapter/eino"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
)

var (
	db      *sql.DB // nil: in memory
	lessons = loop.Lessons{
		Heuristics: []learning.Heuristic{{ID: "rotate", Condition: "the disk of a server is full",
			Action: "Rotate its logs.", Initial: 0.8}},
		Notes: []loop.Note{{ID: "db-1", Text: "db-1 is the billing database."}},
	}
)

// fixedModel takes the place of a model of eino-ext.
type fixedModel struct{}

func (fixedModel) Generate(_ context.Context, in []*schema.Message,
	_ ...model.Option) (*schema.Message, error) {
	fmt.Printf("system: %q\n", in[0].Content)
	return schema.AssistantMessage("Ask the billing team.", nil), nil
}

func (fixedModel) Stream(_ context.Context, in []*schema.Message,
	_ ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	fmt.Printf("system: %q\n", in[0].Content)
	return schema.StreamReaderFromArray([]*schema.Message{
		schema.AssistantMessage("Ask the ", nil), schema.AssistantMessage("billing team.", nil),
	}), nil
}

func newAgent(ctx context.Context, ops adk.ChatModelAgentConfig) (*eino.Adapter, adk.Agent, error) {
	learner, err := loop.New(ctx, loop.Config{Lessons: lessons, DB: db})
	if err != nil {
		return nil, nil, err
	}
	go learner.Run(ctx)
	heeding, err := eino.New(eino.Config{Agent: learner})
	if err != nil {
		return nil, nil, err
	}
	ops.Handlers = append(ops.Handlers, heeding.Middleware())
	made, err := adk.NewChatModelAgent(ctx, &ops)
	return heeding, made, err
}

// Example is the program of README.md.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	heeding, agent, err := newAgent(ctx, adk.ChatModelAgentConfig{
		Name: "ops", Description: "Helps with servers.",
		Instruction: "You help with our servers.", Model: fixedModel{},
	})
	if err != nil {
		log.Panic(err)
	}
	ask := func(id, text string, streaming bool) {
		runner := adk.NewRunner(ctx, adk.RunnerConfig{Agent: agent, EnableStreaming: streaming})
		event := loop.Event{ID: id, Session: "s1", Person: "ann"}
		for out, err := range heeding.Run(ctx, runner, event, []adk.Message{schema.UserMessage(text)}) {
			if err != nil {
				log.Panic(err)
			}
			said := out.Output.MessageOutput
			if !said.IsStreaming {
				fmt.Printf("%q, id %q\n", said.Message.Content, eino.ID(said.Message))
				continue
			}
			for {
				piece, err := said.MessageStream.Recv()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					log.Panic(err)
				}
				fmt.Printf("piece %q, id %q\n", piece.Content, eino.ID(piece))
			}
		}
	}
	ask("m1", "The disk of a server is full.", false) // a trusted heuristic answers
	ask("m2", "Whose database is db-1?", true)
	ask("m2", "Whose database is db-1?", false) // delivered again
	// Output:
	// "Rotate its logs.", id "m1"
	// system: "You help with our servers.\n\n## Notes\n\n- db-1 is the billing database."
	// piece "Ask the ", id ""
	// piece "billing team.", id ""
	// piece "", id "m2"
	// "Ask the billing team.", id "m2"
}
