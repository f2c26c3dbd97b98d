package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
)

// problemsAt is where docs/http.md explains each sort of problem.
const problemsAt = "https://github.com/heedhq/heed/blob/main/docs/http.md#"

// A trouble says why a call has failed, as RFC 9457 has it.
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

// The sorts of problems. Each has a heading in docs/http.md.
const (
	malformed    = "malformed"
	badField     = "bad-field"
	keyReused    = "key-reused"
	unidentified = "not-identified"
	otherSite    = "other-site"
	unknown      = "unknown"
	noCall       = "no-such-call"
	badMethod    = "method-not-allowed"
	conflicting  = "conflict"
	forgotten    = "forgotten"
	tooLarge     = "too-large"
	tooSlow      = "too-slow"
	notJSONType  = "not-json"
	tooMany      = "too-many"
	modelFailed  = "model-failed"
	missingPart  = "not-configured"
	outOfTime    = "out-of-time"
	failure      = "failure"
)

// sorts are the titles and statuses of problems.
var sorts = map[string]trouble{
	malformed:    {Title: "The request is malformed", Status: http.StatusBadRequest},
	badField:     {Title: "A field is wrong", Status: http.StatusUnprocessableEntity},
	keyReused:    {Title: "The idempotency key belongs to another request", Status: http.StatusUnprocessableEntity},
	unidentified: {Title: "You are not identified", Status: http.StatusUnauthorized},
	otherSite:    {Title: "The request came from another site", Status: http.StatusForbidden},
	unknown:      {Title: "Nothing has this name", Status: http.StatusNotFound},
	noCall:       {Title: "There is no such call", Status: http.StatusNotFound},
	badMethod:    {Title: "The call has another method", Status: http.StatusMethodNotAllowed},
	conflicting:  {Title: "Somebody else was quicker", Status: http.StatusConflict},
	forgotten:    {Title: "The history that this needs is no longer kept", Status: http.StatusConflict},
	tooLarge:     {Title: "The body is too large", Status: http.StatusRequestEntityTooLarge},
	tooSlow:      {Title: "The body came too slowly", Status: http.StatusRequestTimeout},
	notJSONType:  {Title: "The body must be JSON", Status: http.StatusUnsupportedMediaType},
	tooMany:      {Title: "Too many requests", Status: http.StatusTooManyRequests},
	modelFailed:  {Title: "The model has given no answer", Status: http.StatusBadGateway},
	missingPart:  {Title: "The server is not configured for this", Status: http.StatusServiceUnavailable},
	outOfTime:    {Title: "The time is up", Status: http.StatusGatewayTimeout},
	failure:      {Title: "The server has failed", Status: http.StatusInternalServerError},
}

// problemOf returns a problem of a sort.
func problemOf(sort, detail string) *trouble {
	p := sorts[sort]
	p.Type, p.Detail = problemsAt+sort, detail
	return &p
}

// explainError makes a problem of an error that a call of the body has returned. Errors of the server's tell the client nothing but that.
func explainError(err error, body reflect.Type) *trouble {
	var known *trouble
	var input *heed.InputError
	var field *fieldFault
	var syntax *syntaxFault
	var large *http.MaxBytesError
	var refused *feedback.RefusedError
	var missing *heed.ConfigError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &syntax):
		return problemOf(malformed, syntax.reason)
	case errors.As(err, &field):
		return atField(field.field, field.reason)
	case errors.As(err, &large):
		return problemOf(tooLarge, "The body may have "+strconv.FormatInt(large.Limit, 10)+" bytes.")
	case errors.As(err, &input):
		return atField(nameIn(body, input.Field), input.Reason)
	case errors.As(err, &refused):
		return problemOf(conflicting, refused.Reason+".")
	case errors.As(err, &missing):
		return problemOf(missingPart, missing.Field+" "+missing.Reason+".")
	case errors.Is(err, evidence.ErrForgotten):
		return problemOf(forgotten, "What the arm was told before goes on counting. All else of the call counts.")
	case errors.Is(err, heed.ErrNotFound):
		return problemOf(unknown, "No "+kindOf(body)+" of this id is known, or no longer.")
	case errors.Is(err, heed.ErrConflict):
		return problemOf(conflicting, "Send the request again.")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return problemOf(outOfTime, "The server has not finished in time. Send the request again.")
	}
	p := problemOf(failure, "Nothing is wrong with the request. Send it again later.")
	p.cause = err
	return p
}

// kindOf returns what the id in a body is of.
func kindOf(body reflect.Type) string {
	if body != nil {
		for _, f := range fieldsOf(body) {
			if f.name == "answer" || f.name == "choice" {
				return f.name
			}
		}
	}
	return "element"
}

func atField(name, reason string) *trouble {
	p := problemOf(badField, strings.TrimPrefix(name+" ", " ")+reason+".")
	p.Field = name
	return p
}

// nameIn returns what a body calls a field that heed has found a fault in.
func nameIn(body reflect.Type, name string) string {
	if body == nil {
		return name
	}
	head, rest, _ := strings.Cut(name, ".")
	head, index, _ := strings.Cut(head, "[")
	if index != "" {
		index = "[" + index
	}
	for _, f := range fieldsOf(body) {
		if f.in != head {
			continue
		}
		of := f.of
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if rest != "" && of.Kind() == reflect.Struct {
			return f.name + index + "." + nameIn(of, rest)
		}
		return f.name + index
	}
	return strings.ToLower(name)
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
		text, _ = json.Marshal(problemOf(failure, "The answer has no form in JSON."))
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}

// problem answers with the problem of a status, for what is refused before a call is known.
func problem(w http.ResponseWriter, status int, detail string) {
	for _, sort := range []string{noCall, otherSite, unidentified, tooLarge, tooSlow, failure} {
		if sorts[sort].Status == status || sort == failure {
			problemOf(sort, detail).write(w)
			return
		}
	}
}
