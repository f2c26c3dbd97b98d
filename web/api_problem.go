package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/heedhq/heed/internal/view"
)

// problemsAt is where web/README.md explains each sort of problem.
const problemsAt = "https://github.com/heedhq/heed/blob/main/web/README.md#"

// A trouble is why a call failed, in the format of RFC 9457.
type trouble struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	Field  string `json:"field,omitempty"` // of the body or of the query

	after time.Duration // when to try again
	cause error         // for the observer
}

func (p *trouble) Error() string { return p.Title + ": " + p.Detail }

// The sorts of problems that package view does not have. Each has a heading in web/README.md.
const (
	keyReused    = "key-reused"
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
	keyReused:        {"The idempotency key is of another request", http.StatusUnprocessableEntity},
	unidentified:     {"You are not identified", http.StatusUnauthorized},
	otherSite:        {"The request came from another site", http.StatusForbidden},
	view.Unknown:     {"Nothing has this name", http.StatusNotFound},
	noCall:           {"There is no such call", http.StatusNotFound},
	badMethod:        {"The call has another method", http.StatusMethodNotAllowed},
	view.Conflicting: {"Somebody else was quicker", http.StatusConflict},
	view.Forgotten:   {"The history that this needs is no longer kept", http.StatusConflict},
	tooLarge:         {"The body is too large", http.StatusRequestEntityTooLarge},
	tooSlow:          {"The body came too slowly", http.StatusRequestTimeout},
	notJSONType:      {"The body must be JSON", http.StatusUnsupportedMediaType},
	tooMany:          {"Too many requests", http.StatusTooManyRequests},
	view.ModelFailed: {"The model has given no answer", http.StatusBadGateway},
	view.MissingPart: {"The server is not configured for this", http.StatusServiceUnavailable},
	view.OutOfTime:   {"The time is up", http.StatusGatewayTimeout},
	view.Failure:     {"The server has failed", http.StatusInternalServerError},
}

// problemOf returns a problem of a sort.
func problemOf(sort, detail string) *trouble {
	of := sorts[sort]
	return &trouble{Type: problemsAt + sort, Title: of.Title, Status: of.Status, Detail: detail}
}

// problemAt returns a problem of a field.
func problemAt(field, reason string) *trouble {
	p := problemOf(view.BadField, field+" "+reason+".")
	p.Field = field
	return p
}

// explainError makes a problem of an error that a call with an input returned. For an error of the
// server's, the client learns only that it is one.
func explainError(err error, in reflect.Type) *trouble {
	var known *trouble
	if errors.As(err, &known) {
		return known
	}
	f := view.FaultOf(err, in)
	p := problemOf(f.Sort, f.Detail)
	p.Field, p.cause, p.after = f.Field, f.Cause, f.After
	return p
}

// write answers with the problem.
func (p *trouble) write(w http.ResponseWriter) {
	if p.after > 0 {
		seconds := max(1, int((p.after+time.Second-1)/time.Second))
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	writeJSON(w, p.Status, "application/problem+json", p)
}

// writeJSON answers with a value.
func writeJSON(w http.ResponseWriter, status int, kind string, value any) {
	text, err := json.Marshal(value)
	if err != nil { // a number that JSON has not
		status, kind = http.StatusInternalServerError, "application/problem+json"
		text, _ = json.Marshal(problemOf(view.Failure, "The answer has no form in JSON."))
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}
