package web

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/heedhq/heed/internal/view"
)

// api returns the handler of all below /v1/.
func (h *Handler) api() http.Handler {
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
			h.handle(w, r, &call)
		})
	}
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, _ *http.Request) {
		write(w, &view.Fault{Sort: noCall, Detail: "GET /v1/openapi.json lists the calls."})
	})
	return mux
}

// handle answers one request.
func (h *Handler) handle(w http.ResponseWriter, r *http.Request, call *view.Operation) {
	ctx := r.Context()
	c := &view.Caller{Person: personOf(r), View: h.view()}
	var sent *pieces // nil: not wanted
	if call.Path == view.AnswerPath && strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		sent = &pieces{w: w, rc: http.NewResponseController(w), ctx: ctx}
		c.Pieces = sent.piece
	}
	var text []byte
	got, err := h.carryOut(r, call, c)
	if err == nil {
		text, err = json.Marshal(got)
	}
	if err != nil {
		f := view.FaultOf(err, call.In)
		h.watch.Failed(ctx, call.Method+" "+call.Path, f.Cause) // which the client does not see
		if !sent.problem(f) {
			write(w, f)
		}
		return
	}
	switch {
	case sent != nil:
		sent.send("answer", json.RawMessage(text))
	case got == any(view.Nothing{}):
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(append(text, '\n'))
	}
}

// carryOut carries a call out.
func (h *Handler) carryOut(r *http.Request, call *view.Operation, c *view.Caller) (any, error) {
	if call.Method == http.MethodGet {
		return call.Query(r.Context(), c, r.URL.RawQuery)
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return nil, &view.Fault{Sort: notJSONType, Detail: "The Content-Type must be application/json."}
	}
	if r.URL.RawQuery != "" {
		return nil, &view.Fault{Sort: view.Malformed, Detail: "This call has no parameters in the URL."}
	}
	given, _ := io.ReadAll(r.Body) // which is in memory
	return call.Do(r.Context(), c, given)
}

// problemsAt is where web/README.md explains each sort of problem.
const problemsAt = "https://github.com/heedhq/heed/blob/main/web/README.md#"

// A trouble is a fault as clients get it, in the format of RFC 9457.
type trouble struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	Field  string `json:"field,omitempty"` // of the body or of the query
}

func troubleOf(f *view.Fault) trouble {
	of := sorts[f.Sort]
	return trouble{problemsAt + f.Sort, of.Title, of.Status, f.Detail, f.Field}
}

// The sorts of problems that package view does not have. Each has a heading in web/README.md.
const (
	unidentified = "not-identified"
	otherSite    = "other-site"
	noCall       = "no-such-call"
	badMethod    = "method-not-allowed"
	tooLarge     = "too-large"
	tooSlow      = "too-slow"
	notJSONType  = "not-json"
	tooMany      = "too-many"
)

// sorts are the titles and statuses of problems.
var sorts = map[string]struct {
	Title  string
	Status int
}{
	view.Malformed:   {"The request is malformed", http.StatusBadRequest},
	view.BadField:    {"A field is wrong", http.StatusUnprocessableEntity},
	unidentified:     {"You are not identified", http.StatusUnauthorized},
	otherSite:        {"The request came from another site", http.StatusForbidden},
	view.Unknown:     {"Nothing has this name", http.StatusNotFound},
	noCall:           {"There is no such call", http.StatusNotFound},
	badMethod:        {"The call has another method", http.StatusMethodNotAllowed},
	view.Refused:     {"It is refused", http.StatusForbidden},
	view.Conflicting: {"Somebody else was quicker", http.StatusConflict},
	view.Forgotten:   {"The history that this needs is no longer kept", http.StatusGone},
	tooLarge:         {"The body is too large", http.StatusRequestEntityTooLarge},
	tooSlow:          {"The body came too slowly", http.StatusRequestTimeout},
	notJSONType:      {"The body must be JSON", http.StatusUnsupportedMediaType},
	tooMany:          {"Too many requests", http.StatusTooManyRequests},
	view.ModelFailed: {"The model has given no answer", http.StatusBadGateway},
	view.MissingPart: {"The server is not configured for this", http.StatusServiceUnavailable},
	view.OutOfTime:   {"The time is up", http.StatusGatewayTimeout},
	view.Failure:     {"The server has failed", http.StatusInternalServerError},
}

// retryAfter has a client wait, in whole seconds.
func retryAfter(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", fmt.Sprint(int((wait+time.Second-1)/time.Second)))
}

// write answers with a fault.
func write(w http.ResponseWriter, f *view.Fault) {
	if f.After > 0 {
		retryAfter(w, f.After)
	}
	p := troubleOf(f)
	text, _ := json.Marshal(p) // texts and a number
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(text, '\n'))
}
