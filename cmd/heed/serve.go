package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/llm/openaicompat"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/web"
)

// A listening says where to listen, and who may come in.
type listening struct {
	Listen    string   `default:"127.0.0.1:8377" placeholder:"ADDRESS" help:"Where to listen. Port 0 takes any free one."`
	As        []string `placeholder:"NAME" help:"The people who get a link and a token, separated by commas. By default you."`
	Tokens    string   `env:"HEED_TOKENS" placeholder:"NAME=TOKEN,…" help:"People and their tokens, in place of --as and random tokens."`
	TLSCert   string   `name:"tls-cert" type:"existingfile" placeholder:"FILE" help:"The certificate for HTTPS, with --tls-key."`
	TLSKey    string   `name:"tls-key" type:"existingfile" placeholder:"FILE" help:"The key of the certificate."`
	AllowHTTP bool     `name:"allow-http" help:"Listen without HTTPS where other machines can read along."`

	greeted func(context.Context, greeting) // is called once the server listens, if it is set
}

type serveCommand struct {
	listening `embed:""`
	Learner   string `placeholder:"NAME" help:"The learner whose arms to show and to choose from. Needed if the store has several."`
	Agent     string `placeholder:"NAME" help:"The agent, loop.Config.Name. Needed if the store has several."`

	Run_      bool          `name:"run" help:"Run the agent in this process, for applications in other languages: answer, count silence, tidy up."`
	Lessons   string        `type:"existingfile" placeholder:"FILE" help:"With --run: the agent's heuristics, notes and arms, in TOML or JSON."`
	System    string        `placeholder:"TEXT" help:"With --run: what the model is told in every case."`
	Model     string        `placeholder:"URL" help:"With --run: a chat-completions endpoint, as http://localhost:11434/v1."`
	ModelName string        `placeholder:"NAME" help:"With --model: the model to ask for."`
	APIKey    string        `name:"api-key" env:"HEED_API_KEY" placeholder:"KEY" help:"With --model: the key for it."`
	Keep      time.Duration `default:"720h" help:"With --run: how long an answer can be spoken of."`
}

// Run serves the pages and the API until a signal ends it.
func (cmd *serveCommand) Run(s *session) error {
	if err := cmp.Or(cmd.check(s), cmd.listening.check()); err != nil {
		return err
	}
	serve := func(st *opened) error {
		live := &web.Live{}
		cfg := web.Config{Store: st.store, Live: live, Now: s.now, Observer: tellFailure}
		stop := func() error { return nil }
		var err error
		if cmd.Run_ {
			stop, err = cmd.run(s, st, &cfg)
		} else {
			err = cmd.look(s, st, &cfg)
		}
		if err != nil {
			return err
		}
		return errors.Join(cmd.serve(s, cfg, st.String()), stop())
	}
	if !cmd.Run_ {
		return s.with(serve)
	}
	at, err := s.where()
	if err != nil {
		return err
	}
	handle, err := at.handle(s.ctx, true)
	if err != nil {
		return err
	}
	st, err := at.make(s.ctx, handle, sqlstore.Config{})
	if err != nil {
		_ = handle.Close()
		return at.explain(err)
	}
	defer st.close()
	return st.explain(serve(st))
}

// check refuses flags that do not go together.
func (cmd *serveCommand) check(s *session) error {
	switch {
	case !cmd.Run_ && (cmd.Lessons != "" || cmd.Model != "" || cmd.System != ""):
		return &usageError{"--lessons, --system and --model are for --run"}
	case cmd.Model == "" && (cmd.ModelName != "" || cmd.APIKey != "" && os.Getenv("HEED_API_KEY") == ""):
		return &usageError{"--model-name and --api-key are for --model"}
	case cmd.Run_ && !s.Now.IsZero():
		return &usageError{"--now is for looking, and not for --run"}
	case cmd.Keep <= 0:
		return &usageError{"--keep must be above 0"}
	}
	return nil
}

// look has the pages show what an application beside this process has left in the store.
func (cmd *serveCommand) look(s *session, st *opened, cfg *web.Config) (err error) {
	if cfg.Strategy, err = perhaps(learners, s, st, cmd.Learner); err != nil {
		return err
	}
	if cfg.Learning, err = partOf(modules, s, st, cmd.part("learning")); err != nil {
		return err
	}
	if cfg.Patterns, err = partOf(recorders, s, st, cmd.part("patterns")); err != nil {
		return err
	}
	if cfg.Feedback, err = perhaps(services, s, st, ""); err != nil {
		return err
	}
	agent, err := agents.one(s, st, cmd.Agent)
	if err != nil && !errors.Is(err, errNone) {
		return err
	}
	cfg.Name = agent.name
	return nil
}

// part returns the name of a part of the agent that was named, or "" for the only one.
func (cmd *serveCommand) part(name string) string {
	switch cmd.Agent {
	case "":
		return ""
	case "loop":
		return name
	}
	return cmd.Agent + "." + name
}

// perhaps opens the one of a name, or the only one, or nothing if the store has none.
func perhaps[T *strategy.Learner | *learning.Module | *patterns.Recorder | *feedback.Service](t tool[T], s *session, st *opened, name string) (T, error) {
	one, err := t.one(s, st, name)
	if errors.Is(err, errNone) {
		return nil, nil
	}
	return one, err
}

// partOf opens the part of an agent that was named, or the only one, or nothing if the agent was made without it.
func partOf[T *learning.Module | *patterns.Recorder](t tool[T], s *session, st *opened, name string) (T, error) {
	names, err := t.names(s.ctx, st.store)
	if err != nil || name != "" && !slices.Contains(names, name) {
		return nil, err
	}
	return perhaps(t, s, st, name)
}

// run runs the agent in this process. stop ends it.
func (cmd *serveCommand) run(s *session, st *opened, cfg *web.Config) (stop func() error, err error) {
	live := cfg.Live
	c := loop.Config{
		DB: st.handle, Keep: cmd.Keep, Name: cmd.Agent, LessonsFile: cmd.Lessons, System: cmd.System,
		Observer: func(ctx context.Context, n heed.Notice) { live.Observe(ctx, n); tellFailure(ctx, n) },
	}
	c.Strategy.Name = cmd.Learner
	if c.Feedback, err = keptRules(s.ctx, st); err != nil {
		return nil, err
	}
	if cmd.Model != "" {
		c.Model, err = openaicompat.New(openaicompat.Config{
			BaseURL: cmd.Model, Model: cmd.ModelName, APIKey: openaicompat.APIKey(cmd.APIKey),
		})
		if err != nil {
			return nil, err
		}
	}
	if cfg.Agent, err = loop.New(s.ctx, c); err != nil {
		return nil, err
	}
	cfg.Name = cmd.Agent
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(s.ctx)
	go func() { ended <- cfg.Agent.Run(ctx) }()
	return func() error {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}, nil
}

const (
	headerTime   = 10 * time.Second
	idleTime     = 2 * time.Minute
	shutdownTime = 10 * time.Second
	headerBytes  = 64 << 10
)

// serve listens where check permits it, says where, and serves until the session's context ends.
func (l *listening) serve(s *session, cfg web.Config, what string) error {
	at, err := net.Listen("tcp", l.Listen)
	if err != nil {
		return err
	}
	defer at.Close()
	door, err := l.door(at.Addr())
	if err != nil {
		return err
	}
	cfg.Identify = door.identify
	pages, err := web.New(cfg)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", pages)
	mux.HandleFunc("GET "+signInPath, door.signIn)
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerBytes, ErrorLog: quiet,
	}
	server.RegisterOnShutdown(pages.Close)
	if err := s.answer(door.greeting(what), func(p *printer) { door.greet(p, what) }); err != nil {
		return err
	}
	if l.greeted != nil {
		go l.greeted(s.ctx, door.greeting(what))
	}
	return l.until(s.ctx, at, server)
}

// until serves until the context ends.
func (l *listening) until(ctx context.Context, at net.Listener, server *http.Server) error {
	ended := make(chan error, 1)
	go func() {
		if l.TLSCert != "" {
			ended <- server.ServeTLS(at, l.TLSCert, l.TLSKey)
		} else {
			ended <- server.Serve(at)
		}
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close() // whoever is still waiting has had their time
	}
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// check refuses an address at which others could read along.
func (l *listening) check() error {
	host, _, err := net.SplitHostPort(l.Listen)
	ip := net.ParseIP(host)
	local := host == "localhost" || ip != nil && ip.IsLoopback()
	switch secure := l.TLSCert != ""; {
	case err != nil:
		return &usageError{"--listen must be as 127.0.0.1:8377: " + err.Error()}
	case secure != (l.TLSKey != ""):
		return &usageError{"--tls-cert and --tls-key need each other"}
	case !local && !secure && !l.AllowHTTP:
		return &usageError{fmt.Sprintf("other machines can reach %s, and read the tokens: give --tls-cert and --tls-key, or --allow-http behind a proxy that has HTTPS", show(l.Listen))}
	}
	return new(door).admit(l.As, l.Tokens)
}

// door returns who may come in at an address.
func (l *listening) door(at net.Addr) (*door, error) {
	host, port, err := net.SplitHostPort(l.Listen)
	if err != nil {
		return nil, err
	}
	if tcp, ok := at.(*net.TCPAddr); ok {
		port = fmt.Sprint(tcp.Port)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	d := &door{cookie: "heed-" + port, secure: l.TLSCert != "", address: net.JoinHostPort(host, port)}
	return d, d.admit(l.As, l.Tokens)
}

// goodToken is what goes into a header and a cookie as it is.
var goodToken = regexp.MustCompile(`^[A-Za-z0-9._~-]{16,}$`)

// admit lets people in, each by a token.
func (d *door) admit(names []string, tokens string) error {
	if tokens != "" {
		for pair := range strings.SplitSeq(tokens, ",") {
			name, token, ok := strings.Cut(pair, "=")
			if !ok || name == "" || !goodToken.MatchString(token) {
				return &usageError{"HEED_TOKENS must be as kim=TOKEN,lee=TOKEN, with tokens of 16 or more letters and digits"}
			}
			d.people = append(d.people, entrantOf(name, token))
		}
		return nil
	}
	if len(names) == 0 {
		names = []string{actor("")}
	}
	for _, name := range names {
		if name == "" {
			return &usageError{"--as must not name nobody"}
		}
		d.people = append(d.people, entrantOf(name, newToken()))
	}
	return nil
}
