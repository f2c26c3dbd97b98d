package main

import (
	"context"
	"errors"
	"os"

	"github.com/heedhq/heed/adapter/mcp"
	"github.com/heedhq/heed/loop"
)

type mcpCommand struct {
	New     bool
	As      string `placeholder:"NAME"`
	Lessons string `type:"existingfile" placeholder:"FILE"`
}

// Run serves until the client leaves, or a signal comes.
func (cmd *mcpCommand) Run(s *session) error {
	if !s.Now.IsZero() {
		return &usageError{"--now is for looking"}
	}
	s.begins = cmd.New
	return s.within(true, func() error {
		agent, err := newAgent(s, loop.Config{Observer: tellFailure}, cmd.Lessons, "mcp")
		if err != nil {
			return err
		}
		server, err := mcp.New(mcp.Config{Agent: agent, Person: actor(cmd.As)})
		if err != nil {
			return err
		}
		return alongside(s, agent.Run, func(s *session) error {
			err := server.Run(s.ctx, mcp.Stdio(os.Stdin, os.Stdout))
			if errors.Is(err, context.Canceled) {
				return nil // a signal is how clients end their servers
			}
			return err
		})
	})
}
