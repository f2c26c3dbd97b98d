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
	"strconv"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/names"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/llm/openaicompat"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/web"
)

// A listening says where to listen, and who may come in.
type listening struct {
	Listen    string   `default:"127.0.0.1:8377" placeholder:"ADDRESS" help:"Where to listen. Port 0 takes any free one."`
	As        []string `placeholder:"NAME" help:"The people who get a link, and a token for their programs, separated by commas. By default you."`
	Tokens    string   `env:"HEED_TOKENS" placeholder:"NAME=TOKEN,…" help:"Programs and their tokens. They have the API alone, and can't sign in."`
	Links     string   `env:"HEED_LINKS" placeholder:"NAME=TOKEN,…" help:"People and the tokens of links that outlive the process."`
	TLSCert   string   `name:"tls-cert" type:"existingfile" placeholder:"FILE" help:"The certificate for HTTPS, with --tls-key."`
	TLSKey    string   `name:"tls-key" type:"existingfile" placeholder:"FILE" help:"The key of the certificate."`
	AllowHTTP bool     `name:"allow-http" help:"Listen without HTTPS where other machines can read along."`
	URL       string   `name:"url" placeholder:"URL" help:"The https:// address of a proxy before this server. Links have it, and browsers send their cookie by HTTPS alone."`

	tokensIn string                          // the name of the variable with the tokens. "" means HEED_TOKENS
	greeted  func(context.Context, greeting) // is called once the server listens, if it is set
}

type serveCommand struct {
	listening `embed:""`
	Learner   string `placeholder:"NAME" help:"The learner whose arms to show and to choose from. Needed if the store has several."`
	Agent     string `placeholder:"NAME" help:"The agent, loop.Config.Name. Needed if the store has several."`
	Module    string `placeholder:"NAME" help:"Without --run: the module of heuristics to show, if it is not the agent's."`
	Recorder  string `placeholder:"NAME" help:"Without --run: the recorder of ways to show, if it is not the agent's."`

	Run_      bool          `name:"run" help:"Run the agent in this process, for applications in other languages: answer, count silence, tidy up."`
	Lessons   string        `type:"existingfile" placeholder:"FILE" help:"With --run: JSON lessons."`
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
	st, err := s.create()
	if err != nil {
		return err
	}
	defer st.close()
	return st.explain(serve(st))
}

// check refuses flags that do not go together.
func (cmd *serveCommand) check(s *session) error {
	switch {
	case cmd.Run_ && cmd.Module+cmd.Recorder != "":
		return &usageError{"--module and --recorder are for looking, and not for --run"}
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
func (cmd *serveCommand) look(s *session, st *opened, cfg *web.Config) error {
	agent, err := agents.one(s, st, cmd.Agent)
	if err != nil && !errors.Is(err, errNone) {
		return err
	}
	name := ""
	if agent != nil {
		name = agent.Name
	}
	cfg.Name = name
	if cfg.Strategy, err = perhaps(learners, s, st, cmd.Learner); err != nil {
		return err
	}
	cfg.Learning, err = partOf(modules, s, st, cmd.Module, cmd.Agent, name, "learning")
	if err != nil {
		return err
	}
	cfg.Patterns, err = partOf(recorders, s, st, cmd.Recorder, cmd.Agent, name, "patterns")
	if err != nil {
		return err
	}
	cfg.Feedback, err = perhaps(services, s, st, "")
	return err
}

// perhaps opens the one of a name, or the only one, or nothing if the store has none.
func perhaps[T *strategy.Learner | *learning.Module | *patterns.Recorder | *feedback.Service](t tool[T], s *session, st *opened, name string) (T, error) {
	one, err := t.one(s, st, name)
	if errors.Is(err, errNone) {
		return nil, nil
	}
	return one, err
}

// partOf opens the part that was named; or that of the agent, and nothing if an agent that was named was made without it; or the only one.
func partOf[T *learning.Module | *patterns.Recorder](t tool[T], s *session, st *opened, named, wanted, agent, part string) (T, error) {
	if named != "" {
		return t.one(s, st, named)
	}
	if agent != "" && agent != defaultAgent {
		part = agent + "." + part
	}
	names, err := t.names(s.ctx, st.store)
	switch {
	case err != nil, wanted != "" && !slices.Contains(names, part):
		return nil, err
	case agent != "" && slices.Contains(names, part):
		return perhaps(t, s, st, part)
	}
	return perhaps(t, s, st, "")
}

// defaultAgent is the name of agents whose hosts give them none.
const defaultAgent = "loop"

// toRun returns the agent that was named, or the only one of the store, or another name if it has none.
func toRun(s *session, st *opened, named, another string) (string, error) {
	if named != "" {
		return named, nil
	}
	agent, err := agents.one(s, st, "")
	if errors.Is(err, errNone) {
		return another, nil
	}
	if err != nil {
		return "", err
	}
	return agent.Name, nil
}

// run runs the agent in this process. stop ends it.
func (cmd *serveCommand) run(s *session, st *opened, cfg *web.Config) (stop func() error, err error) {
	live := cfg.Live
	name, err := toRun(s, st, cmd.Agent, defaultAgent)
	if err != nil {
		return nil, err
	}
	c := loop.Config{
		DB: st.handle, Keep: cmd.Keep, Name: name, LessonsFile: cmd.Lessons, System: cmd.System,
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
	cfg.Identify, cfg.Program = door.identify, isProgram
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
	d := &door{cookie: "heed-" + port, secure: l.TLSCert != "" || l.URL != ""}
	switch address := net.JoinHostPort(host, port); {
	case l.URL != "":
		d.url = l.URL
	case d.secure:
		d.url = "https://" + address
	default:
		d.url = "http://" + address
	}
	return d, d.admit(l)
}

// goodToken is what goes into a header and a cookie as it is.
var goodToken = regexp.MustCompile(`^[A-Za-z0-9._~-]{16,}$`)

var goodURL = regexp.MustCompile(`^https://[A-Za-z0-9.:\[\]-]+$`)

// admit lets programs in by tokens, and people by links. No secret is good for two.
func (d *door) admit(l *listening) (err error) {
	if d.programs, err = entrants(cmp.Or(l.tokensIn, "HEED_TOKENS"), l.Tokens); err != nil {
		return err
	}
	if d.people, err = entrants("HEED_LINKS", l.Links); err != nil {
		return err
	}
	seen := make(map[string]bool)
	for _, one := range slices.Concat(d.programs, d.people) {
		if seen[one.secret] {
			return &usageError{"no two of HEED_TOKENS, HEED_MCP_TOKENS and HEED_LINKS may have the same token: it says who somebody is"}
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
			return nil, &usageError{variable + " must be as kim=TOKEN,lee=TOKEN, with tokens of 16 or more letters and digits"}
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
		return &usageError{where + " must not name nobody"}
	case err == nil && strings.TrimSpace(name) != name:
		err = errors.New("must not begin or end with a blank")
	case err == nil:
		_, err = names.Canonical(name)
	}
	if err != nil {
		return &usageError{fmt.Sprintf("%s: nobody can decide by the name %s: %v", where, strconv.Quote(name), err)}
	}
	return nil
}
