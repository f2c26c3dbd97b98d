package mcp_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/heedhq/heed/adapter/mcp"
	"github.com/heedhq/heed/loop"
)

var (
	db      *sql.DB // nil: in memory
	lessons = loop.Lessons{Notes: []loop.Note{{
		ID: "db-1", Text: "db-1 is the billing database, and its disk is small.",
	}}}
)

func serveNotes(ctx context.Context, transport sdk.Transport) error {
	agent, err := loop.New(ctx, loop.Config{Lessons: lessons, DB: db})
	if err != nil {
		return err
	}
	go agent.Run(ctx)
	server, err := mcp.New(mcp.Config{Agent: agent, Person: "ann"})
	if err != nil {
		return err
	}
	return server.Run(ctx, transport) // mcp.Stdio(os.Stdin, os.Stdout)
}

func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	there, here := sdk.NewInMemoryTransports()
	go func() {
		if err := serveNotes(ctx, there); err != nil && ctx.Err() == nil {
			log.Panic(err)
		}
	}()
	client, err := sdk.NewClient(&sdk.Implementation{Name: "desk", Version: "1"}, nil).
		Connect(ctx, here, nil)
	if err != nil {
		log.Panic(err)
	}
	call := func(tool string, in map[string]any) map[string]any {
		result, err := client.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: in})
		if err != nil || result.IsError {
			log.Panic(err, result)
		}
		return result.StructuredContent.(map[string]any)
	}
	plan := call("prepare", map[string]any{"text": "The disk of db-1 is full."})
	fmt.Println(plan["system"])
	// The client's model answers.
	call("answered", map[string]any{"id": plan["id"], "text": "Rotate its logs."})
	call("react", map[string]any{"answer": plan["id"], "value": 1})
	fmt.Println(call("explain", map[string]any{"answer": plan["id"]})["worth"])
	// Output:
	// ## Notes
	//
	// - db-1 is the billing database, and its disk is small.
	// 1
}
