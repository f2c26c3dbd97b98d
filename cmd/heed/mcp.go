package main

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/adapter/mcp"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/sqlstore"
)

type mcpCommand struct {
	As      []string      `placeholder:"NAME" help:"Who speaks. With --http, the people who get a token, separated by commas. By default you."`
	Agent   string        `default:"mcp" placeholder:"NAME" help:"The agent's name."`
	Lessons string        `type:"existingfile" placeholder:"FILE" help:"The agent's heuristics, notes and arms, in TOML or JSON."`
	Keep    time.Duration `default:"720h" help:"How long an answer can be spoken of."`
	HTTP    string        `name:"http" placeholder:"ADDRESS" help:"Serve over HTTP at an address of this machine, as 127.0.0.1:8378, and not over standard input and output."`
	Tokens  string        `env:"HEED_TOKENS" placeholder:"NAME=TOKEN,…" help:"With --http: people and their tokens, in place of --as and random tokens."`
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
	case cmd.HTTP == "" && (len(cmd.As) > 1 || cmd.Tokens != "" && os.Getenv("HEED_TOKENS") == ""):
		return &usageError{"--tokens, and several people in --as, are for --http"}
	case cmd.HTTP == "":
		return nil
	}
	host, _, err := net.SplitHostPort(cmd.HTTP)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return &usageError{"--http must be an address of this machine, as 127.0.0.1:8378"}
	}
	return new(door).admit(cmd.As, cmd.Tokens)
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
	if cmd.HTTP != "" {
		return cmd.overHTTP(s, agent, st.String())
	}
	server, err := mcp.New(mcp.Config{Agent: agent, Person: actor(strings.Join(cmd.As, ""))})
	if err != nil {
		return err
	}
	if err := server.Run(ctx, &sdk.StdioTransport{}); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil // a signal is how clients end their servers
}

// overHTTP serves those who have a token.
func (cmd *mcpCommand) overHTTP(s *session, agent *loop.Agent, what string) error {
	l := listening{Listen: cmd.HTTP, As: cmd.As, Tokens: cmd.Tokens}
	at, err := net.Listen("tcp", l.Listen)
	if err != nil {
		return err
	}
	defer at.Close()
	door, err := l.door(at.Addr())
	if err != nil {
		return err
	}
	served, err := mcp.New(mcp.Config{Agent: agent})
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: mcp.Handler(served, func(token string) (string, bool) {
			person, err := door.whose(token)
			return person, err == nil
		}),
		ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerBytes, ErrorLog: quiet,
	}
	server.RegisterOnShutdown(func() { // clients wait for news in requests without an end
		for session := range served.Sessions() {
			_ = session.Close()
		}
	})
	g := door.greeting(what)
	for i := range g.People {
		g.People[i].Link = ""
	}
	if err := s.answer(g, func(p *printer) {
		p.line("heed serves %s to MCP clients at %s. Ctrl-C ends it.", show(what), g.URL)
		for _, one := range g.People {
			p.printf("\nThe client of %s sends the header:\n  Authorization: Bearer %s\n", show(one.Person), show(one.Token))
		}
	}); err != nil {
		return err
	}
	return l.until(s.ctx, at, server)
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
