package main

import (
	"context"
	"database/sql"
	"errors"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/adapter/mcp"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/sqlstore"
)

type mcpCommand struct {
	As      string        `placeholder:"NAME" help:"Who speaks. By default you."`
	Agent   string        `default:"mcp" placeholder:"NAME" help:"The agent's name."`
	Lessons string        `type:"existingfile" placeholder:"FILE" help:"The agent's heuristics, notes and arms, in TOML or JSON."`
	Keep    time.Duration `default:"720h" help:"How long an answer can be spoken of."`
}

// Run serves until the client leaves, or a signal comes.
func (cmd *mcpCommand) Run(s *session) error {
	if err := cmd.check(s); err != nil {
		return err
	}
	at, err := s.where()
	if err != nil {
		return err
	}
	handle, err := at.handle(s.ctx, true)
	if err != nil {
		return err
	}
	defer handle.Close()
	st, err := at.make(s.ctx, handle, sqlstore.Config{})
	if err != nil {
		return at.explain(err)
	}
	return at.explain(cmd.serve(s, st))
}

func (cmd *mcpCommand) check(s *session) error {
	switch {
	case !s.Now.IsZero():
		return &usageError{"--now is for looking"}
	case cmd.Keep <= 0:
		return &usageError{"--keep must be above 0"}
	case cmd.Agent == "":
		return &usageError{"--agent must not be empty"}
	}
	return nil
}

// serve runs the agent, and its server.
func (cmd *mcpCommand) serve(s *session, st *opened) (err error) {
	agent, err := cmd.agent(s.ctx, st.handle, st)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(s.ctx)
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx) }()
	defer func() {
		stop()
		if swept := <-ended; !errors.Is(swept, context.Canceled) {
			err = errors.Join(err, swept)
		}
	}()
	server, err := mcp.New(mcp.Config{Agent: agent, Person: actor(cmd.As)})
	if err != nil {
		return err
	}
	if err := server.Run(ctx, &sdk.StdioTransport{}); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil // a signal is how clients end their servers
}

func (cmd *mcpCommand) agent(ctx context.Context, handle *sql.DB, st *opened) (*loop.Agent, error) {
	c := loop.Config{DB: handle, Keep: cmd.Keep, Name: cmd.Agent, LessonsFile: cmd.Lessons, Observer: tellFailure}
	var err error
	if c.Feedback, err = keptRules(ctx, st); err != nil {
		return nil, err
	}
	return loop.New(ctx, c)
}

// keptRules returns the configuration of the rules as an application has left it, so that their gate stays.
func keptRules(ctx context.Context, st *opened) (feedback.Config, error) {
	rules, err := feedback.Open(ctx, feedback.Config{Store: st.store})
	if errors.Is(err, heed.ErrNotFound) {
		return feedback.Config{}, nil
	}
	if err != nil {
		return feedback.Config{}, err
	}
	cfg := rules.Config()
	cfg.Store = nil // the agent's own, of the same database
	return cfg, nil
}

// tellFailure tells whoever runs the server what it has not told its clients.
func tellFailure(_ context.Context, n heed.Notice) {
	if failed, ok := n.(heed.Failed); ok {
		warn("%s: %s: %w", failed.Component, failed.What, failed.Err)
	}
}
