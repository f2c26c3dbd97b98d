package genkit_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	"github.com/firebase/genkit/go/ai"
	sdk "github.com/firebase/genkit/go/genkit"

	"github.com/heedhq/heed/adapter/genkit"
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

// fixedModel takes the place of a model of a plugin.
func fixedModel(ctx context.Context, r *ai.ModelRequest,
	stream ai.ModelStreamCallback) (*ai.ModelResponse, error) {
	fmt.Printf("system: %q\n", r.Messages[0].Text())
	if stream != nil {
		for _, piece := range []string{"Ask the ", "billing team."} {
			if err := stream(ctx,
				&ai.ModelResponseChunk{Content: []*ai.Part{ai.NewTextPart(piece)}}); err != nil {
				return nil, err
			}
		}
	}
	return &ai.ModelResponse{Request: r, Message: ai.NewModelTextMessage("Ask the billing team.")},
		nil
}

func newHeed(ctx context.Context) (*genkit.Adapter, error) {
	learner, err := loop.New(ctx, loop.Config{Lessons: lessons, DB: db})
	if err != nil {
		return nil, err
	}
	go learner.Run(ctx)
	heeding, err := genkit.New(genkit.Config{Agent: learner})
	if err != nil {
		return nil, err
	}
	return heeding, nil
}

// Example is the program of README.md.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	heeding, err := newHeed(ctx)
	if err != nil {
		log.Panic(err)
	}
	g := sdk.Init(ctx)
	sdk.DefineModel(g, "ops/scripted", &ai.ModelOptions{Supports: &ai.ModelSupports{Multiturn: true,
		SystemRole: true}}, fixedModel)
	ask := func(id, text string, more ...ai.GenerateOption) {
		response, err := sdk.Generate(ctx, g, append(more,
			ai.WithModelName("ops/scripted"), ai.WithSystem("You help with our servers."),
			ai.WithPrompt("%s", text),
			ai.WithUse(heeding.For(loop.Event{ID: id, Session: "s1", Person: "ann"})),
		)...)
		if err != nil {
			log.Panic(err)
		}
		fmt.Printf("%q, id %q\n", response.Text(), genkit.ID(response))
	}
	ask("m1", "The disk of a server is full.") // a trusted heuristic answers
	ask("m2", "Whose database is db-1?", ai.WithStreaming(func(_ context.Context,
		c *ai.ModelResponseChunk) error {
		fmt.Printf("piece %q\n", c.Text())
		return nil
	}))
	ask("m2", "Whose database is db-1?") // delivered again
	// Output:
	// "Rotate its logs.", id "m1"
	// system: "You help with our servers.\n\n## Notes\n\n- db-1 is the billing database."
	// piece "Ask the "
	// piece "billing team."
	// "Ask the billing team.", id "m2"
	// "Ask the billing team.", id "m2"
}
