// Package web shows what heed learned, and lets people decide about proposals, in pages that a host
// mounts:
//
//	agent, err := loop.New(ctx, loop.Config{DB: db, Model: model})
//	pages, err := web.New(web.Config{Agent: agent, Identify: whoIsThere})
//	mux.Handle("/", pages)
//
// The host identifies the person: see [Config].Identify. Without a person, the only page is one
// that explains this.
//
// Below /v1/ the same handler has an API in JSON for programs. Load balancers may ask /healthz,
// whether the process serves, and /readyz, whether its store answers.
package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/internal/watch"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/store"
)

// Config configures a Handler. Identify must be set, and Agent or Store. A page without its part is
// not shown.
type Config struct {
	// Store has the audit log and the answers. nil means the agent's. Set it for pages of a store
	// whose agent is in another process: they have no page of a part.
	Store store.Store
	// Identify returns who sent a request. The person is the actor of all that the request decides:
	// no form and no body can name another one. Without a person, or with an error, the answer is
	// 401, and the error is not shown. It is called before the body is read, which it must leave
	// alone, and by many goroutines at the same time.
	Identify func(*http.Request) (person string, err error)
	// Program reports whether a request comes from a program, for example one with a bearer token.
	// Programs have the API alone: pages, and with them decisions about rules, are 403. nil means
	// that no request does, so everybody whom Identify names decides. Set it if programs have tokens,
	// so that they can't decide about rules.
	Program func(*http.Request) bool

	// Agent is what the pages and the API are of.
	Agent *loop.Agent
	// Prefix is the path that the handler is mounted at, for example "/heed". "" is the root. The
	// handler takes it off by itself.
	Prefix string
	// AnswerTimeout bounds the time of a request of /v1/answer, which may ask a model. 0 means a
	// minute. Other requests have 10 seconds, from their header to their answer. Raise it if the
	// model needs longer.
	AnswerTimeout time.Duration
	// Rate is how many calls of the API a person may make in a second. They may come at once. 0 means
	// 500. Pages and forms are counted apart, with the same rate, or 20 if that is more. Files of
	// pages do not count. Each process counts for itself, so behind a load balancer n processes allow
	// n times as many. Limit the rate in the balancer if the sum matters. Raise it for a person that
	// is a service.
	Rate float64
	// Observer is called for failures that a page only calls a failure. nil switches it off.
	Observer heed.Observer
	// Now is the clock. nil means time.Now.
	Now func() time.Time

	maxBody int64         // of a request, in bytes: 1 MiB
	timeout time.Duration // of a request other than /v1/answer: 10 seconds
}

// A Handler serves the pages and the API. Make one with [New]. It is safe for concurrent use by
// multiple goroutines.
type Handler struct {
	cfg   Config
	over  *view.Source // what is shown if there is no Agent
	mux   *http.ServeMux
	cross *http.CrossOriginProtection
	watch *watch.Watch
	calls rate // below /v1/
	reads rate // of pages and forms
}

const (
	defaultBody          = 1 << 20
	defaultTimeout       = 10 * time.Second
	defaultAnswerTimeout = time.Minute
	defaultRate          = 500
	leastPages           = 20 // a second: people follow links and send forms in bursts
	defaultName          = "loop"
)

// New returns a handler; or all faults of its configuration, joined, each a [*heed.ConfigError].
func New(cfg Config) (*Handler, error) { return Over(&view.Source{}, cfg) }

// Over is [New] for heed's own command, which shows parts that it opened next to the program of
// their agent. They are shown if there is no Agent.
func Over(parts *view.Source, cfg Config) (*Handler, error) {
	cfg.Store = cmp.Or(cfg.Store, parts.Store)
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	h := &Handler{
		cfg: cfg, over: parts, mux: http.NewServeMux(), cross: http.NewCrossOriginProtection(),
		watch: watch.New(cfg.Observer, "web", cfg.Now),
		calls: rate{perSecond: cfg.Rate, now: cfg.Now, until: map[string]time.Time{}},
		reads: rate{perSecond: max(cfg.Rate, leastPages), now: cfg.Now, until: map[string]time.Time{}},
	}
	h.mux.Handle("/v1/", h.api())
	h.pages()
	return h, nil
}

func (c Config) withDefaults() Config {
	if c.Agent != nil {
		c.Store = cmp.Or(c.Store, c.Agent.Store())
	}
	c.maxBody, c.timeout = cmp.Or(c.maxBody, defaultBody), cmp.Or(c.timeout, defaultTimeout)
	c.AnswerTimeout, c.Rate = cmp.Or(c.AnswerTimeout, defaultAnswerTimeout),
		cmp.Or(c.Rate, defaultRate)
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the default clock
	}
	return c
}

// view returns what is shown. Lessons may bring an agent another learner.
func (h *Handler) view() *view.Source {
	v := *h.over
	if h.cfg.Agent != nil {
		v = *view.Of(h.cfg.Agent, h.cfg.Now)
	}
	v.Store, v.Now, v.Name = h.cfg.Store, h.cfg.Now, cmp.Or(v.Name, defaultName)
	return &v
}

func (c *Config) validate() error {
	var found valid.Faults
	found.Check(c.Store != nil, "Store", nil, "must be set where there is no Agent")
	found.Check(c.Identify != nil, "Identify", nil, "must be set")
	clean := c.Prefix == "" || c.Prefix != "/" && path.IsAbs(c.Prefix) &&
		path.Clean(c.Prefix) == c.Prefix && !strings.Contains(c.Prefix, ";") &&
		(&url.URL{Path: c.Prefix}).EscapedPath() == c.Prefix // requests are compared in their raw form
	found.Check(clean, "Prefix", c.Prefix,
		`must be empty, or a path as "/heed" without a slash at its end`)
	found.Check(c.AnswerTimeout > 0, "AnswerTimeout", c.AnswerTimeout, "must not be negative")
	found.Check(c.Rate > 0 && c.Rate <= 1e9, "Rate", c.Rate, "must be above 0 and at most 1e9")
	return found.Err()
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), h.cfg.Prefix)
	if !ok || !clean(rest) {
		h.turnAway(w, r, noCall, "There is no such page.")
		return
	}
	if rest == "" { // the prefix without its slash
		http.Redirect(w, r, h.cfg.Prefix+"/", http.StatusSeeOther)
		return
	}
	http.StripPrefix(h.cfg.Prefix, http.HandlerFunc(h.inside)).ServeHTTP(w, r)
}

// inside serves a request whose path has no prefix.
func (h *Handler) inside(w http.ResponseWriter, r *http.Request) {
	if asset(w, r) || h.probe(w, r) {
		return
	}
	person, ok := h.admit(w, r)
	if !ok || !h.readBody(w, r) {
		return
	}
	ctx := context.WithValue(r.Context(), personKey{}, person)
	limit := h.cfg.timeout
	if r.URL.Path == view.AnswerPath {
		limit = h.cfg.AnswerTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	h.mux.ServeHTTP(w, r.WithContext(ctx))
}

// admit returns who sent a request that may go on, or answers it. The body is not waited for.
func (h *Handler) admit(w http.ResponseWriter, r *http.Request) (person string, ok bool) {
	if err := h.cross.Check(r); err != nil {
		h.turnAway(w, r, otherSite, "This came from another site, so nothing was changed.")
		return "", false
	}
	person, err := h.cfg.Identify(r)
	if err != nil || person == "" || evidence.CheckText("person", person) != nil {
		h.turnAway(w, r, unidentified, stranger(r))
		return "", false
	}
	if !isCall(r) && h.cfg.Program != nil && h.cfg.Program(r) {
		h.turnAway(w, r, otherSite,
			"Programs have the API below /v1/ alone. The pages, and decisions about rules, are for "+
				"people who have signed in.")
		return "", false
	}
	of := &h.reads
	if isCall(r) {
		of = &h.calls
	}
	if wait := of.take(person); wait > 0 {
		retryAfter(w, wait)
		h.turnAway(w, r, tooMany, "You send too many requests. Try again after a while.")
		return "", false
	}
	return person, true
}

// stranger explains to an unknown visitor what to do.
func stranger(r *http.Request) string {
	if isCall(r) {
		return "A program sends the header Authorization, with Bearer and a token of this " +
			"server. A person signs in first: heed serve prints a link."
	}
	return "heed does not know who you are. Sign in first: if heed serve runs this, open the link " +
		"that it printed for you."
}

// isCall reports whether a request below the prefix is one of the API.
func isCall(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/v1/") }

// turnAway refuses a request without its body, and ends the connection. The HTTP server would wait
// for the body otherwise.
func (h *Handler) turnAway(w http.ResponseWriter, r *http.Request, sort, text string) {
	if r.Body != nil && r.Body != http.NoBody {
		leaveBody(w)
	}
	h.refuse(w, r, sort, text)
}

// leaveBody ends the wait for the rest of a body.
func leaveBody(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // tests' writers can't
	w.Header().Set("Connection", "close")
}

// readBody reads the whole body of a request within its time, so that no handler waits for it
// later. It reports whether it could, and answers if not. It then does not wait for the rest of the
// body.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request) bool {
	if r.Body == nil || r.Body == http.NoBody {
		return true
	}
	until := time.Now().Add(h.cfg.timeout) //nolint:forbidigo // connections have the machine's clock
	// The server ends this deadline with the body.
	_ = http.NewResponseController(w).SetReadDeadline(until)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.cfg.maxBody))
	if err == nil {
		r.Body = io.NopCloser(bytes.NewReader(body))
		return true
	}
	leaveBody(w)
	if long := (*http.MaxBytesError)(nil); errors.As(err, &long) {
		h.refuse(w, r, tooLarge,
			fmt.Sprintf("That is too long: at most %d bytes can be sent.", long.Limit))
	} else {
		h.refuse(w, r, tooSlow, "The request did not arrive in time.")
	}
	return false
}

// clean reports whether a path has no empty part, and no "." or "..". Its end may be a slash.
func clean(p string) bool {
	return p == "" || p == "/" || path.IsAbs(p) && !strings.HasSuffix(p, "//") &&
		path.Clean(p) == strings.TrimSuffix(p, "/")
}

type personKey struct{}

// personOf returns who sent a request.
func personOf(r *http.Request) string {
	person, _ := r.Context().Value(personKey{}).(string)
	return person
}

// policy is the content security policy: only files of this handler, no script or style within a
// page, and no frames.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; " +
	"connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// protect sets the headers that every answer has. The referrer is kept within the site: without
// one, a browser hides the origin of a form, too.
func protect(header http.Header) {
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
	header.Set("Cache-Control", "no-store")
}

// refuse answers with an error: as a problem to a program, as a page to a person.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, sort, text string) {
	f := &view.Fault{Sort: sort, Detail: text}
	if rest := strings.TrimPrefix(r.URL.Path, h.cfg.Prefix); strings.HasPrefix(rest, "/v1/") {
		write(w, f)
		return
	}
	h.failed(w, r, sorts[sort].Status, text)
}
