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
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/names"
	"github.com/heedhq/heed/llm/openaicompat"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/web"
)

// A listening is where to listen, and who may come in.
type listening struct {
	Listen    string   `default:"127.0.0.1:8377" placeholder:"ADDRESS"`
	As        []string `placeholder:"NAME"`
	Tokens    string   `env:"HEED_TOKENS" placeholder:"NAME=TOKEN,…"`
	Links     string   `env:"HEED_LINKS" placeholder:"NAME=TOKEN,…"`
	TLSCert   string   `name:"tls-cert" and:"tls" type:"existingfile" placeholder:"FILE"`
	TLSKey    string   `name:"tls-key" and:"tls" type:"existingfile" placeholder:"FILE"`
	AllowHTTP bool     `name:"allow-http"`
	URL       string   `name:"url" placeholder:"URL"`
}

type serveCommand struct {
	listening `embed:""`
	Learner   string `placeholder:"NAME"`
	Agent     string `placeholder:"NAME"`
	Module    string `placeholder:"NAME"`
	Recorder  string `placeholder:"NAME"`

	Run_      bool          `name:"run"`
	Lessons   string        `type:"existingfile" placeholder:"FILE"`
	System    string        `placeholder:"TEXT"`
	Model     string        `placeholder:"URL"`
	ModelName string        `placeholder:"NAME"`
	APIKey    string        `name:"api-key" env:"HEED_API_KEY" placeholder:"KEY"`
	Keep      time.Duration `default:"720h"`
}

// Run serves the pages and the API until a signal ends it.
func (cmd *serveCommand) Run(s *session) error {
	if err := cmp.Or(cmd.check(s), cmd.listening.check()); err != nil {
		return err
	}
	return s.within(cmd.Run_, func() (err error) {
		live := &web.Live{}
		cfg := web.Config{Store: s.at.view, Live: live, Now: s.now, Observer: tellFailure}
		if !cmd.Run_ {
			if err := cmd.look(s, &cfg); err != nil {
				return err
			}
			return cmd.pages(s, cfg, s.at.String())
		}
		c := loop.Config{
			Keep: cmd.Keep, LessonsFile: cmd.Lessons, System: cmd.System,
			Observer: observing(live),
		}
		c.Tuning.Strategy.Name = cmd.Learner
		if cmd.Model != "" {
			if c.Model, err = openaicompat.New(openaicompat.Config{
				BaseURL: cmd.Model, Model: cmd.ModelName, APIKey: openaicompat.APIKey(cmd.APIKey),
			}); err != nil {
				return err
			}
		}
		if cfg.Agent, err = newAgent(s, c, cmd.Agent, defaultAgent); err != nil {
			return err
		}
		return alongside(s, cfg.Agent.Run, func(s *session) error {
			return cmd.pages(s, cfg, s.at.String())
		})
	})
}

// check refuses flags that do not go together.
func (cmd *serveCommand) check(s *session) error {
	switch {
	case cmd.Run_ && cmd.Module+cmd.Recorder != "":
		return &usageError{"--module and --recorder are for looking, and not for --run"}
	case !cmd.Run_ && cmd.Lessons+cmd.Model+cmd.System != "":
		return &usageError{"--lessons, --system and --model are for --run"}
	case cmd.Model == "" && (cmd.ModelName != "" || cmd.APIKey != os.Getenv("HEED_API_KEY")):
		return &usageError{"--model-name and --api-key are for --model"}
	case cmd.Run_ && !s.Now.IsZero():
		return &usageError{"--now is for looking, and not for --run"}
	case cmd.Keep <= 0:
		return &usageError{"--keep must be above 0"}
	}
	return nil
}

// look has the pages show what an application in another process left in the store.
func (cmd *serveCommand) look(s *session, cfg *web.Config) error {
	v := s.source()
	open := func(t part, name string) error {
		_, err := t.one(s, v, name)
		if name == "" && errors.Is(err, errNone) {
			return nil
		}
		return err
	}
	err := cmp.Or(open(agents, cmd.Agent), open(learners, cmd.Learner), open(services, ""))
	if err != nil {
		return err
	}
	for _, of := range []struct {
		part
		named, suffix string
	}{{modules, cmd.Module, "learning"}, {recorders, cmd.Recorder, "patterns"}} {
		name := of.suffix
		if v.Name != "" && v.Name != defaultAgent {
			name = v.Name + "." + of.suffix
		}
		names, err := of.names(s.ctx, v.Store)
		switch has := slices.Contains(names, name); {
		case err != nil:
			return err
		case of.named != "":
			name = of.named
		case cmd.Agent != "" && !has:
			continue // the agent was made without it
		case v.Name == "" || !has:
			name = ""
		}
		if err := open(of.part, name); err != nil {
			return err
		}
	}
	cfg.Name, cfg.Strategy, cfg.Learning = v.Name, v.Strategy, v.Learning
	cfg.Patterns, cfg.Feedback = v.Patterns, v.Feedback
	return nil
}

// defaultAgent is the name of agents whose hosts set no name.
const defaultAgent = "loop"

// newAgent opens the agent that was named, or the only one of the store, or another one if the
// store has no agent. The rules keep the gate that an application left.
func newAgent(s *session, c loop.Config, named, another string) (*loop.Agent, error) {
	c, err := agentConfig(s, c, named, another)
	if err != nil {
		return nil, err
	}
	c.DB = s.at.handle
	a, err := loop.New(s.ctx, c)
	if err != nil {
		return nil, err
	}
	return a.Tenant(s.ctx, s.Tenant)
}

// agentConfig returns the configuration of that agent, without its store.
func agentConfig(s *session, c loop.Config, named, another string) (loop.Config, error) {
	v := s.source()
	if c.Name = named; named == "" {
		if _, err := agents.one(s, v, ""); err != nil && !errors.Is(err, errNone) {
			return c, err
		}
		c.Name = cmp.Or(v.Name, another)
	}
	_, err := services.one(s, v, "")
	if err == nil {
		c.Tuning.Feedback = v.Feedback.Config()
		c.Tuning.Feedback.Store = nil // the agent's own, of the same database
	} else if errors.Is(err, errNone) {
		err = nil
	}
	return c, err
}

// alongside calls a function while another one runs in the background. The end of one ends both.
func alongside(s *session, run func(context.Context) error, do func(*session) error) error {
	here := *s
	ctx, stop := context.WithCancel(s.ctx)
	here.ctx = ctx
	ended := make(chan error, 1)
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

// observing reports changes to the pages, and failures to the operator.
func observing(live *web.Live) heed.Observer {
	return func(ctx context.Context, n heed.Notice) {
		live.Observe(ctx, n)
		tellFailure(ctx, n)
	}
}

// tellFailure reports to the operator the failures that the server has not reported to its clients.
// Work that was given up, at the end of the server or because a client left, is no failure.
func tellFailure(ctx context.Context, n heed.Notice) {
	failed, ok := n.(heed.Failed)
	if ok && ctx.Err() == nil && !errors.Is(failed.Err, context.Canceled) {
		warn("%s: %s: %w", failed.Component, failed.What, failed.Err)
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
func (l *listening) pages(s *session, cfg web.Config, what string) error {
	at, err := net.Listen("tcp", l.Listen)
	if err != nil {
		return err
	}
	defer at.Close()
	door, err := l.door(at.Addr())
	if err != nil {
		return err
	}
	cfg.Identify, cfg.Program = door.identify, isProgram
	pages, err := web.New(cfg)
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
	if err := s.answer(door.greeting(what), "serving"); err != nil {
		return err
	}
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
	late := time.AfterFunc(stopTime, cancel)
	defer late.Stop()
	ctx, stop := context.WithTimeout(context.Background(), stopTime+lastTime)
	defer stop()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close() // the clients that still wait have had their time
	}
	return err
}

// check refuses an address at which others could read along.
func (l *listening) check() error {
	host, _, err := net.SplitHostPort(l.Listen)
	ip := net.ParseIP(host)
	local := host == "localhost" || ip != nil && ip.IsLoopback()
	switch {
	case err != nil:
		return &usageError{"--listen must be as 127.0.0.1:8377: " + err.Error()}
	case !local && l.TLSCert == "" && !l.AllowHTTP:
		return &usageError{"other machines can reach " + show(l.Listen) + ", and read the tokens: " +
			"give --tls-cert and --tls-key, or --allow-http behind a proxy that has HTTPS"}
	case l.URL != "" && !goodURL.MatchString(l.URL):
		return &usageError{"--url must be as https://heed.example.org, without a path"}
	}
	return new(door).admit(l)
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
	d := &door{cookie: "heed-" + port, secure: l.TLSCert != "" || l.URL != "", url: l.URL}
	if d.url == "" {
		d.url = "http://" + net.JoinHostPort(host, port)
		if d.secure {
			d.url = "https" + strings.TrimPrefix(d.url, "http")
		}
	}
	return d, d.admit(l)
}

// goodToken is what goes into a header and a cookie as it is.
var goodToken = regexp.MustCompile(`^[A-Za-z0-9._~-]{16,}$`)

var goodURL = regexp.MustCompile(`^https://[A-Za-z0-9.:\[\]-]+$`)

// admit lets programs in by tokens, and people by links. No secret is good for two.
func (d *door) admit(l *listening) (err error) {
	if d.programs, err = entrants("HEED_TOKENS", l.Tokens); err != nil {
		return err
	}
	if d.people, err = entrants("HEED_LINKS", l.Links); err != nil {
		return err
	}
	seen := make(map[string]bool)
	for _, one := range slices.Concat(d.programs, d.people) {
		if seen[one.secret] {
			return &usageError{"two of HEED_TOKENS and HEED_LINKS have the same token: a token " +
				"identifies one person"}
		}
		seen[one.secret] = true
	}
	invited := l.As
	if len(invited) == 0 && l.Tokens == "" && l.Links == "" {
		invited = []string{actor("")}
	}
	for _, name := range invited {
		if err := checkName("--as", name); err != nil {
			return err
		}
		d.people = append(d.people, entrantOf(name, newToken(), false))
		d.programs = append(d.programs, entrantOf(name, newToken(), false))
	}
	return nil
}

// entrants reads names and their secrets from a variable.
func entrants(variable, pairs string) (all []entrant, err error) {
	if pairs == "" {
		return nil, nil
	}
	for pair := range strings.SplitSeq(pairs, ",") {
		name, secret, ok := strings.Cut(pair, "=")
		if !ok || name == "" || !goodToken.MatchString(secret) {
			return nil, &usageError{variable + " must be as kim=TOKEN,lee=TOKEN, with tokens of 16 or " +
				"more letters and digits"}
		}
		if err := checkName(variable, name); err != nil {
			return nil, err
		}
		all = append(all, entrantOf(name, secret, true))
	}
	return all, nil
}

// checkName refuses the name of somebody whose decisions package feedback would refuse.
func checkName(where, name string) error {
	err := evidence.CheckText("name", name)
	switch {
	case name == "":
		return &usageError{where + " must name a person"}
	case err == nil && strings.TrimSpace(name) != name:
		err = errors.New("must not begin or end with a blank")
	case err == nil:
		_, err = names.Canonical(name)
	}
	if err != nil {
		return &usageError{fmt.Sprintf("%s: nobody can decide by the name %q: %v", where, name, err)}
	}
	return nil
}
