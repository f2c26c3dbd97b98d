package web

import (
	"context"
	_ "embed"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/loop"
)

// openAPI describes the API. A test compares it with the handlers.
//
//go:embed openapi.json
var openAPI []byte

// An api answers the calls below /v1/. It is safe for concurrent use.
type api struct {
	cfg      *Config
	tell     func(ctx context.Context, what string, err error)
	view     func() *view.Source
	rate     rate
	plans    loop.Plans // that /v1/answered may be about
	reports  memo[view.Page, view.List[view.Segment]]
	declared atomic.Bool // the kind of keyed calls
}

// A caller is who sent a request, and what comes with it beside the body.
type caller struct {
	person string
	event  string  // the id of an event whose body has none; "" means a new one
	pieces *pieces // nil: nobody wants the answer as it comes
}

// A route is one call of the API.
type route struct {
	method, path string
	in, out      reflect.Type // of the body or the query, and of the answer
	streams      bool         // the answer may be had as it comes
	sorts        []string     // the problems that it may end in, beside those of all calls
	serve        func(ctx context.Context, a *api, c *caller, given []byte) (any, error)
}

const answerPath = "/v1/answer"

// none is the answer of a call that answers nothing.
type none struct{}

func routeOf[In, Out any](method, path string, do func(*api, context.Context, *caller, *In) (Out, error), sorts ...string) route {
	return route{
		method: method, path: path, in: reflect.TypeFor[In](), out: reflect.TypeFor[Out](), sorts: sorts,
		serve: func(ctx context.Context, a *api, c *caller, given []byte) (any, error) {
			in, read := new(In), decode
			if method == http.MethodGet {
				read = fromQuery
			}
			if err := read(given, in); err != nil {
				return nil, err
			}
			return do(a, ctx, c, in)
		},
	}
}

// routes returns all calls of the API but that for openapi.json.
func routes() []route {
	const get, post = http.MethodGet, http.MethodPost
	answer := routeOf(post, answerPath, (*api).answer, modelFailed, missingPart)
	answer.streams = true
	return []route{
		routeOf(post, "/v1/select", (*api).choose, missingPart),
		routeOf(post, "/v1/observe", (*api).observe, unknown, missingPart),
		answer,
		routeOf(post, "/v1/prepare", (*api).prepare, missingPart),
		routeOf(post, "/v1/answered", (*api).answered, unknown, missingPart),
		routeOf(post, "/v1/react", (*api).react, unknown, forgotten, missingPart),
		routeOf(post, "/v1/undo", (*api).undo, unknown, forgotten, missingPart),
		routeOf(post, "/v1/outcome", (*api).outcome, unknown, forgotten, missingPart),
		routeOf(post, "/v1/correct", (*api).correct, unknown, missingPart),
		routeOf(get, "/v1/explanation", (*api).explanation, unknown),
		routeOf(get, "/v1/find", (*api).find, unknown, missingPart),
		routeOf(get, "/v1/segments", (*api).segments, missingPart),
		routeOf(get, "/v1/heuristics", (*api).heuristics, missingPart),
		routeOf(get, "/v1/rules", (*api).rules, missingPart),
		routeOf(get, "/v1/warnings", (*api).warnings, missingPart),
	}
}

// The problems that every call may end in, and those of calls with a body beside them.
var (
	ofAll    = []string{malformed, badField, unidentified, badMethod, tooMany, outOfTime, failure}
	ofBodies = []string{otherSite, tooLarge, tooSlow, notJSONType, keyReused, conflicting}
)

// api returns the handler of all below /v1/.
func (h *Handler) api() http.Handler {
	a := &api{
		cfg: &h.cfg, tell: h.tell, view: h.view, rate: rate{perSecond: h.cfg.Rate, now: h.cfg.Now},
		reports: newMemo[view.Page, view.List[view.Segment]](),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(openAPI)
	})
	mux.HandleFunc("/v1/openapi.json", onlyBy(http.MethodGet))
	for _, call := range routes() {
		mux.HandleFunc(call.method+" "+call.path, func(w http.ResponseWriter, r *http.Request) { a.handle(w, r, &call) })
		mux.HandleFunc(call.path, onlyBy(call.method))
	}
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, _ *http.Request) {
		problemOf(noCall, "GET /v1/openapi.json lists the calls.").write(w)
	})
	return mux
}

// onlyBy refuses other methods than one.
func onlyBy(method string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", method)
		problemOf(badMethod, "This call has the method "+method+".").write(w)
	}
}

// A reply is the answer of a call.
type reply struct {
	status int
	text   []byte // JSON
}

// handle answers one request.
func (a *api) handle(w http.ResponseWriter, r *http.Request, call *route) {
	ctx := r.Context()
	c := &caller{person: personOf(r)}
	if call.streams && strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		c.pieces = newPieces(ctx, w)
	}
	got, err := a.carryOut(ctx, r, call, c)
	if err != nil {
		p := explainError(err, call.in)
		a.failed(ctx, call.method+" "+call.path, p.cause)
		if !c.pieces.problem(p) {
			p.write(w)
		}
		return
	}
	switch {
	case c.pieces != nil:
		c.pieces.end(got.text)
	case got.status == http.StatusNoContent:
		w.WriteHeader(got.status)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(got.status)
		_, _ = w.Write(got.text)
	}
}

// carryOut carries a call out, or finds the answer that it had before.
func (a *api) carryOut(ctx context.Context, r *http.Request, call *route, c *caller) (reply, error) {
	if wait := a.rate.take(c.person); wait > 0 {
		p := problemOf(tooMany, "Send the request again after a while.")
		p.after = wait
		return reply{}, p
	}
	given, err := given(r, call.method)
	if err != nil {
		return reply{}, err
	}
	keys := r.Header.Values("Idempotency-Key")
	switch {
	case call.method == http.MethodGet || len(keys) == 0:
		return a.once(ctx, call, c, given)
	case len(keys) > 1 || keys[0] == "" || len(keys[0]) > maxKey:
		return reply{}, &fieldFault{"Idempotency-Key", "must be one text of 1 to 255 bytes"}
	}
	claim, before, err := a.claimKey(ctx, c.person, keys[0], []byte(call.path), given)
	if err != nil || before != nil {
		return deref(before), err
	}
	c.event = claim.event()
	got, err := a.once(ctx, call, c, given)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	if err != nil {
		a.failed(ctx, "give back an idempotency key", claim.release(last))
		return reply{}, err
	}
	if err := claim.keep(last, got); err != nil {
		a.failed(ctx, "keep an answer under its idempotency key", err)
		return reply{}, problemOf(failure, "The call was carried out, and its answer could not be kept under its idempotency key. Send it again.")
	}
	return got, nil
}

// failed tells the observer of what the client is not told.
func (a *api) failed(ctx context.Context, what string, err error) {
	if err != nil {
		a.tell(ctx, what, err)
	}
}

// lastWords is how long the store has to keep what became of a call whose client has gone.
const lastWords = 5 * time.Second

func deref(r *reply) reply {
	if r == nil {
		return reply{}
	}
	return *r
}

// given returns the body of a request, or its query where the call has no body.
func given(r *http.Request, method string) ([]byte, error) {
	if method == http.MethodGet {
		return []byte(r.URL.RawQuery), nil
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return nil, problemOf(notJSONType, "The Content-Type must be application/json.")
	}
	if r.URL.RawQuery != "" {
		return nil, &syntaxFault{"This call has no parameters in the URL."}
	}
	return io.ReadAll(r.Body)
}

// once carries a call out.
func (a *api) once(ctx context.Context, call *route, c *caller, given []byte) (reply, error) {
	value, err := call.serve(ctx, a, c, given)
	if err != nil {
		return reply{}, err
	}
	if _, nothing := value.(none); nothing {
		return reply{status: http.StatusNoContent}, nil
	}
	text, err := json.Marshal(value)
	return reply{http.StatusOK, append(text, '\n')}, err
}
