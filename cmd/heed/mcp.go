package main

import (
	"context"
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
)

type mcpCommand struct {
	As      []string      `placeholder:"NAME" help:"Who speaks. With --http, the people who get a token, separated by commas. By default you."`
	Agent   string        `placeholder:"NAME" help:"The agent's name. Needed if the store has several. By default the only one, or mcp in a store without any."`
	Lessons string        `type:"existingfile" placeholder:"FILE" help:"The lessons, in JSON."`
	Keep    time.Duration `default:"720h" help:"How long an answer can be spoken of."`
	HTTP    string        `name:"http" placeholder:"ADDRESS" help:"Serve over HTTP at an address of this machine, as 127.0.0.1:8378, and not over standard input and output."`
	Tokens  string        `env:"HEED_MCP_TOKENS" placeholder:"NAME=TOKEN,…" help:"With --http: people and their tokens. Their clients decide about rules in their names."`
}

// Run serves until the client leaves, or a signal comes.
func (cmd *mcpCommand) Run(s *session) error {
	if err := cmd.check(s); err != nil {
		return err
	}
	st, err := s.create()
	if err != nil {
		return err
	}
	defer st.close()
	return st.explain(cmd.serve(s, st))
}

func (cmd *mcpCommand) check(s *session) error {
	switch {
	case !s.Now.IsZero():
		return &usageError{"--now is for looking"}
	case cmd.Keep <= 0:
		return &usageError{"--keep must be above 0"}
	case cmd.HTTP == "" && (len(cmd.As) > 1 || cmd.Tokens != "" && os.Getenv("HEED_MCP_TOKENS") == ""):
		return &usageError{"--tokens, and several people in --as, are for --http"}
	case cmd.HTTP == "":
		return nil
	}
	host, _, err := net.SplitHostPort(cmd.HTTP)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return &usageError{"--http must be an address of this machine, as 127.0.0.1:8378"}
	}
	return new(door).admit(cmd.listening())
}

func (cmd *mcpCommand) listening() *listening {
	return &listening{Listen: cmd.HTTP, As: cmd.As, Tokens: cmd.Tokens, tokensIn: "HEED_MCP_TOKENS"}
}

// serve runs the agent, and its server.
func (cmd *mcpCommand) serve(s *session, st *opened) (err error) {
	agent, err := cmd.agent(s, st)
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
	l := cmd.listening()
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
			person, err := whose(token, door.programs)
			return person, err == nil
		}),
		ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerBytes, ErrorLog: quiet,
	}
	server.RegisterOnShutdown(func() { // clients wait for news in requests without an end
		for session := range served.Sessions() {
			_ = session.Close()
		}
	})
	door.people = nil // there are no pages
	g := door.greeting(what)
	if err := s.answer(g, func(p *printer) {
		p.line("heed serves %s to MCP clients at %s. Ctrl-C ends it.", show(what), g.URL)
		for _, one := range g.People {
			if one.Token != "" {
				p.printf("\nThe client of %s sends the header:\n  Authorization: Bearer %s\n", show(one.Person), show(one.Token))
			}
		}
		door.greetGiven(p, door.programs, "Clients of people, with their token of HEED_MCP_TOKENS")
	}); err != nil {
		return err
	}
	return l.until(s.ctx, at, server)
}

func (cmd *mcpCommand) agent(s *session, st *opened) (*loop.Agent, error) {
	name, err := toRun(s, st, cmd.Agent, "mcp")
	if err != nil {
		return nil, err
	}
	c := loop.Config{DB: st.handle, Keep: cmd.Keep, Name: name, LessonsFile: cmd.Lessons, Observer: tellFailure}
	if c.Feedback, err = keptRules(s.ctx, st); err != nil {
		return nil, err
	}
	return loop.New(s.ctx, c)
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

// tellFailure tells whoever runs the server what it has not told its clients. Work that was given up, at the end of the server or because a
// client has left, is no failure.
func tellFailure(ctx context.Context, n heed.Notice) {
	if failed, ok := n.(heed.Failed); ok && ctx.Err() == nil && !errors.Is(failed.Err, context.Canceled) {
		warn("%s: %s: %w", failed.Component, failed.What, failed.Err)
	}
}
