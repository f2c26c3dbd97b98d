package web

import (
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed/internal/view"
)

// An api answers the calls below /v1/. It is safe for concurrent use.
type api struct {
	cfg      *Config
	tell     func(ctx context.Context, what string, err error)
	server   *view.Server
	rate     rate
	declared atomic.Bool // the kind of keyed calls
}

const answerPath = view.AnswerPath

// The problems that every call may end in, and calls with a body may end in further ones.
var (
	ofAll = []string{
		view.Malformed, view.BadField, unidentified, badMethod, tooMany, view.OutOfTime, view.Failure,
	}
	ofBodies = []string{otherSite, tooLarge, tooSlow, notJSONType, keyReused, view.Conflicting}
)

// api returns the handler of all below /v1/.
func (h *Handler) api() http.Handler {
	a := &api{
		cfg: &h.cfg, tell: h.tell, rate: rate{perSecond: h.cfg.Rate, now: h.cfg.Now},
		server: view.NewServer(h.view),
	}
	mux := http.NewServeMux()
	add := func(method, path string, serve http.HandlerFunc) {
		mux.HandleFunc(method+" "+path, serve)
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Allow", method)
			write(w, &view.Fault{Sort: badMethod, Detail: "This call has the method " + method + "."})
		})
	}
	add(http.MethodGet, "/v1/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(view.OpenAPI)
	})
	for _, call := range view.Operations() {
		add(call.Method, call.Path, func(w http.ResponseWriter, r *http.Request) {
			a.handle(w, r, &call)
		})
	}
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, _ *http.Request) {
		write(w, &view.Fault{Sort: noCall, Detail: "GET /v1/openapi.json lists the calls."})
	})
	return mux
}

// A reply is the answer of a call.
type reply struct {
	status int
	text   []byte // JSON
}

// handle answers one request.
func (a *api) handle(w http.ResponseWriter, r *http.Request, call *view.Operation) {
	ctx := r.Context()
	c := &view.Caller{Person: personOf(r)}
	var pieces *pieces
	if call.Path == answerPath && strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		pieces = newPieces(ctx, w)
		c.Pieces = pieces.piece
	}
	got, err := a.carryOut(ctx, r, call, c)
	if err != nil {
		f := view.FaultOf(err, call.In)
		a.failed(ctx, call.Method+" "+call.Path, f.Cause)
		if !pieces.problem(f) {
			write(w, f)
		}
		return
	}
	switch {
	case pieces != nil:
		pieces.end(got.text)
	case got.status == http.StatusNoContent:
		w.WriteHeader(got.status)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(got.status)
		_, _ = w.Write(got.text)
	}
}

// carryOut carries a call out, or finds the answer that it had before.
func (a *api) carryOut(
	ctx context.Context, r *http.Request, call *view.Operation, c *view.Caller,
) (none reply, _ error) {
	if wait := a.rate.take(c.Person); wait > 0 {
		return none, &view.Fault{Sort: tooMany, Detail: "Send the request again after a while.",
			After: wait}
	}
	if call.Method == http.MethodGet {
		return replyOf(a.server.Query(ctx, call, c, r.URL.RawQuery))
	}
	given, err := bodyOf(r)
	if err != nil {
		return none, err
	}
	keys := r.Header.Values("Idempotency-Key")
	switch {
	case len(keys) == 0:
		return replyOf(a.server.Do(ctx, call, c, given))
	case len(keys) > 1 || keys[0] == "" || len(keys[0]) > maxKey:
		return none, &view.Fault{Sort: view.BadField, Field: "Idempotency-Key",
			Detail: "Idempotency-Key must be one text of 1 to 255 bytes."}
	}
	claim, before, err := a.claimKey(ctx, c.Person, keys[0], []byte(call.Path), given)
	if err != nil {
		return none, err
	}
	if before != nil {
		return *before, nil
	}
	c.Event = claim.event()
	stop := claim.hold(ctx, a.cfg.Now)
	defer stop() // if the call panics
	got, err := replyOf(a.server.Do(ctx, call, c, given))
	stop()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	if err != nil {
		a.failed(ctx, "give back an idempotency key", claim.release(last))
		return none, err
	}
	if err := claim.keep(last, got); err != nil {
		a.failed(ctx, "keep an answer under its idempotency key", err)
		return none, &view.Fault{Sort: view.Failure, Detail: "The call was carried out, and its answer " +
			"could not be kept under its idempotency key. Send it again."}
	}
	return got, nil
}

// failed reports to the observer what the client does not see.
func (a *api) failed(ctx context.Context, what string, err error) {
	if err != nil {
		a.tell(ctx, what, err)
	}
}

// lastWords is how long the store must keep what became of a call whose client went.
const lastWords = 5 * time.Second

// bodyOf returns the body of a request.
func bodyOf(r *http.Request) ([]byte, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return nil, &view.Fault{Sort: notJSONType,
			Detail: "The Content-Type must be application/json."}
	}
	if r.URL.RawQuery != "" {
		return nil, &view.Fault{Sort: view.Malformed,
			Detail: "This call has no parameters in the URL."}
	}
	return io.ReadAll(r.Body)
}

// replyOf writes what a call gave.
func replyOf(value any, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	if reflect.TypeOf(value) == reflect.TypeFor[view.Nothing]() {
		return reply{status: http.StatusNoContent}, nil
	}
	text, err := json.Marshal(value)
	return reply{http.StatusOK, append(text, '\n')}, err
}
