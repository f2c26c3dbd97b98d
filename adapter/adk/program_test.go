package adk_test

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"log"

	adkagent "google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/heedhq/heed/adapter/adk"
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

// fixedModel takes the place of gemini.NewModel.
type fixedModel struct{}

func (fixedModel) Name() string { return "scripted" }

func (fixedModel) GenerateContent(_ context.Context, r *model.LLMRequest,
	stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		for _, part := range r.Config.SystemInstruction.Parts {
			fmt.Printf("system: %q\n", part.Text)
		}
		if stream {
			for _, piece := range []string{"Ask the ", "billing team."} {
				if !yield(&model.LLMResponse{Content: genai.NewContentFromText(piece, genai.RoleModel),
					Partial: true}, nil) {
					return
				}
			}
		}
		yield(&model.LLMResponse{Content: genai.NewContentFromText("Ask the billing team.",
			genai.RoleModel)}, nil)
	}
}

func newRunner(ctx context.Context, root llmagent.Config) (*runner.Runner, error) {
	learner, err := loop.New(ctx, loop.Config{Lessons: lessons, DB: db})
	if err != nil {
		return nil, err
	}
	go learner.Run(ctx)
	heeding, err := adk.New(adk.Config{Agent: learner})
	if err != nil {
		return nil, err
	}
	root.Model, root.Mode = heeding.Model(root.Model, nil), llmagent.ModeChat
	plugins := runner.PluginConfig{Plugins: []*plugin.Plugin{heeding.Plugin()}}
	made, err := llmagent.New(root)
	if err != nil {
		return nil, err
	}
	return runner.New(runner.Config{
		AppName: "ops", Agent: made, SessionService: session.InMemoryService(), AutoCreateSession: true,
		PluginConfig: plugins,
	})
}

// Example is the program of README.md.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	run, err := newRunner(ctx, llmagent.Config{
		Name: "ops", Model: fixedModel{}, Instruction: "You help with our servers.",
	})
	if err != nil {
		log.Panic(err)
	}
	ask := func(id, text string, mode adkagent.StreamingMode) {
		message := genai.NewContentFromText(text, genai.RoleUser)
		for event, err := range run.Run(adk.WithEvent(ctx, loop.Event{ID: id}), "ann", "s1", message,
			adkagent.RunConfig{StreamingMode: mode}) {
			if err != nil {
				log.Panic(err)
			}
			fmt.Printf("partial %v: %q, id %q\n", event.Partial, event.Content.Parts[0].Text,
				adk.ID(event))
		}
	}
	ask("m1", "The disk of a server is full.",
		adkagent.StreamingModeNone) // a trusted heuristic answers
	ask("m2", "Whose database is db-1?", adkagent.StreamingModeSSE)
	ask("m2", "Whose database is db-1?", adkagent.StreamingModeNone) // delivered again
	// Output:
	// partial false: "Rotate its logs.", id "m1"
	// system: "You help with our servers.\n\nYou are an agent. Your internal name is \"ops\"."
	// system: "## Notes\n\n- db-1 is the billing database."
	// partial true: "Ask the ", id ""
	// partial true: "billing team.", id ""
	// partial false: "Ask the billing team.", id "m2"
	// partial false: "Ask the billing team.", id "m2"
}
