package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/adapter/openai"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/web"
)

// A listening is where to listen, and who may come in.
type listening struct {
	Listen string   `default:"127.0.0.1:8377" placeholder:"ADDRESS"`
	As     []string `placeholder:"NAME"`
	Tokens string   `env:"HEED_TOKENS" placeholder:"NAME=TOKEN,…"`
	Links  string   `env:"HEED_LINKS" placeholder:"NAME=TOKEN,…"`
	URL    string   `name:"url" placeholder:"URL"`
}

type serveCommand struct {
	listening `embed:""`

	Run_      bool `name:"run"`
	New       bool
	Lessons   string `type:"existingfile" placeholder:"FILE"`
	System    string `placeholder:"TEXT"`
	Model     string `placeholder:"URL"`
	ModelName string `placeholder:"NAME"`
	APIKey    string `name:"api-key" env:"HEED_API_KEY" placeholder:"KEY"`
}

// Run serves the pages and the API until a signal ends it.
func (cmd *serveCommand) Run(s *session) error {
	if err := cmp.Or(cmd.check(s), cmd.listening.check()); err != nil {
		return err
	}
	s.begins = cmd.New
	return s.within(cmd.Run_, func() (err error) {
		cfg := web.Config{Store: s.at.view, Now: s.now, Observer: tellFailure}
		if !cmd.Run_ {
			v := s.source()
			if err := cmp.Or(agents.some(s, v), s.openParts(v)); err != nil {
				return err
			}
			return cmd.pages(s, v, cfg, s.at.String())
		}
		c := loop.Config{System: cmd.System, Observer: tellFailure}
		cmd.ask(&c)
		if cfg.Agent, err = newAgent(s, c, cmd.Lessons, defaultAgent); err != nil {
			return err
		}
		return alongside(s, cfg.Agent.Run, func(s *session) error {
			return cmd.pages(s, s.source(), cfg, s.at.String())
		})
	})
}

// check refuses flags that do not go together.
func (cmd *serveCommand) check(s *session) error {
	switch {
	case cmd.Run_ && !s.Now.IsZero():
		return &usageError{"--now is for looking, and not for --run"}
	case cmd.Model != "" && !isServer(cmd.Model):
		return &usageError{"--model must be as http://localhost:11434/v1"}
	case strings.ContainsFunc(cmd.APIKey, func(r rune) bool { return r <= ' ' || r > '~' }):
		return &usageError{"--api-key must be printable ASCII without spaces"}
	case !cmd.Run_ && (cmd.New || cmd.Lessons+cmd.Model+cmd.System != ""):
		return &usageError{"--new, --lessons, --system and --model are for --run"}
	case cmd.Model == "" && (cmd.ModelName != "" || cmd.APIKey != os.Getenv("HEED_API_KEY")):
		return &usageError{"--model-name and --api-key are for --model"}
	}
	return nil
}

// ask sets the model at --model. No key of the environment goes there but --api-key.
func (cmd *serveCommand) ask(c *loop.Config) {
	if cmd.Model != "" {
		chat := sdk.NewChatService(option.WithBaseURL(cmd.Model), option.WithAPIKey(cmd.APIKey))
		c.Model = &openai.Model{Client: sdk.Client{Chat: chat}, Name: cmd.ModelName,
			OldLimit: !strings.Contains(cmd.Model, ".openai.")}
	}
}

// newAgent opens the agent that was named, or the only one of the store, or another one if it has
// none, and teaches a file of lessons. Its parts keep the settings that an application left.
func newAgent(s *session, c loop.Config, lessons, another string) (*loop.Agent, error) {
	taught, err := loop.ReadLessons(lessons)
	if err != nil {
		return nil, err
	}
	if names, err := agents.names(s.ctx, s.at.store); err != nil {
		return nil, err
	} else if s.Agent != "" && !s.begins && len(names) > 0 && !slices.Contains(names, s.Agent) {
		return nil, s.unknown("agent", names)
	}
	if err := settle(s, &c, another); err != nil {
		return nil, err
	}
	c.DB, c.Lessons = s.at.handle, taught
	a, err := loop.New(s.ctx, c)
	if err != nil {
		return nil, err
	}
	return a.Tenant(s.ctx, s.Tenant)
}

// settle names an agent as --agent does, or else like the only one of the store, and has its parts
// keep the settings in the store, which all tenants share. The instruments are kept unless others
// are given.
func settle(s *session, c *loop.Config, another string) (err error) {
	here, at := *s, *s.at
	at.view = at.store
	here.at, s = &at, &here
	v, t := s.source(), &c.Tuning
	err = agents.some(s, v)
	v.Name = cmp.Or(s.Agent, v.Name, another)
	err = cmp.Or(err, s.openParts(v))
	c.Name = v.Name
	if v.Feedback != nil {
		t.Feedback = v.Feedback.Config()
	}
	if v.Strategy != nil {
		t.Strategy = v.Strategy.Config()
	}
	if v.Learning != nil {
		t.Learning = v.Learning.Config()
		if c.Instruments == nil {
			c.Instruments = t.Learning.Trust.Instruments
		}
	}
	return err
}

// alongside calls a function while another one runs in the background. The end of one ends both.
func alongside(s *session, run func(context.Context) error, do func(*session) error) error {
	here := *s
	ctx, stop := context.WithCancel(s.ctx)
	here.ctx = ctx
	ended := make(chan error)
	go func() {
		err := run(ctx)
		if ctx.Err() != nil {
			err = nil // what was interrupted fails in any words
		}
		stop()
		ended <- err
	}()
	err := do(&here)
	stop()
	return errors.Join(err, <-ended)
}

// tellFailure reports to the operator the failures that the server has not reported to its clients,
// and outages. Work that was given up, at the end of the server or because a client left, is no
// failure.
func tellFailure(ctx context.Context, n heed.Notice) {
	switch n := n.(type) {
	case heed.Failed:
		if ctx.Err() == nil && !errors.Is(n.Err, context.Canceled) {
			warn("%s: %s: %w", n.Component, n.What, n.Err)
		}
	case heed.Outage:
		warn("%s: an outage begins: %s: %w", n.Component, n.What, n.Err)
	case heed.Restored:
		warn("%s: the outage is over: %s", n.Component, n.What)
	}
}

const (
	headerTime  = 10 * time.Second
	idleTime    = 2 * time.Minute
	headerBytes = 64 << 10
	// When a signal came, requests that run have stopTime. Then they are cancelled, and have lastTime
	// to record what they had and to reply.
	stopTime = 10 * time.Second
	lastTime = 6 * time.Second
)

// pages serves the pages and the API where check permits it, and prints the address, until the
// session's context ends.
func (l *listening) pages(s *session, of *view.Source, cfg web.Config, what string) error {
	at, err := net.Listen("tcp", l.Listen)
	if err != nil {
		return fmt.Errorf("%w: choose another address with --listen (port 0 takes any free one)", err)
	}
	defer at.Close()
	door, err := l.door(at.Addr(), what)
	if err != nil {
		return err
	}
	cfg.Identify, cfg.Program = door.identify, isProgram
	pages, err := web.Over(of, cfg)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", pages)
	mux.HandleFunc("GET "+signInPath, door.signIn)
	requests, cancel := context.WithCancel(context.WithoutCancel(s.ctx))
	defer cancel()
	server := &http.Server{
		BaseContext: func(net.Listener) context.Context { return requests },
		Handler:     mux, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime,
		MaxHeaderBytes: headerBytes, ErrorLog: log.New(io.Discard, "", 0), // clients that go away
	}
	if err := s.answer(door, "serving"); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(at) }()
	select {
	case err := <-ended:
		return err
	case <-s.ctx.Done():
	}
	err = stopServer(server, cancel)
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// stopServer stops a server gracefully. cancel cancels its requests.
func stopServer(server *http.Server, cancel func()) error {
	defer time.AfterFunc(stopTime, cancel).Stop()
	ctx, stop := context.WithTimeout(context.Background(), stopTime+lastTime)
	defer stop()
	if err := server.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return server.Close() // the clients that still wait have had their time
}

var goodURL = regexp.MustCompile(`^https://[A-Za-z0-9.:\[\]-]+$`)

// isServer reports whether a text is the base URL of a model's server.
func isServer(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		u.User == nil && !strings.ContainsAny(text, "?# ") && !strings.HasSuffix(u.Path, "/completions")
}

// check refuses an address at which others could read along.
func (l *listening) check() error {
	host, _, err := net.SplitHostPort(l.Listen)
	ip := net.ParseIP(host)
	local := host == "localhost" || ip != nil && ip.IsLoopback()
	switch {
	case err != nil:
		return &usageError{"--listen must be as 127.0.0.1:8377: " + err.Error()}
	case !local && l.URL == "":
		return &usageError{"other machines can reach " + show(l.Listen) + ", and read the tokens: " +
			"put a proxy with HTTPS before it, and give its address as --url"}
	case l.URL != "" && !goodURL.MatchString(l.URL):
		return &usageError{"--url must be as https://heed.example.org, without a path"}
	}
	return new(door).admit(l)
}

// door returns who may come in at an address.
func (l *listening) door(at net.Addr, what string) (*door, error) {
	host, _, _ := net.SplitHostPort(l.Listen) // check has refused what can't be split
	_, port, _ := net.SplitHostPort(at.String())
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	d := &door{
		URL: cmp.Or(l.URL, "http://"+net.JoinHostPort(host, port)), Store: what,
		cookie: "heed-" + port, secure: l.URL != ""}
	return d, d.admit(l)
}
