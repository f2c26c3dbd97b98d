package web

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/heedhq/heed/internal/view"
)

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

// write answers with a fault.
func write(w http.ResponseWriter, f *view.Fault) {
	if f.After > 0 {
		seconds := max(1, int((f.After+time.Second-1)/time.Second))
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	p := troubleOf(f)
	text, _ := json.Marshal(p) // texts and a number
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(text, '\n'))
}
