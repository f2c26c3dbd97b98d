package openaicompat

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/prompt"
)

// A StatusError is a failure of an endpoint. Its text contains the status and the code, and may go
// into a log.
type StatusError struct {
	// Status is the status of HTTP. If the endpoint failed after a status of success, it is the one
	// that the body names, or 502.
	Status int
	// Code is the endpoint's name for the failure, for example "context_length_exceeded": at most 64
	// ASCII letters, digits, and "_-./+". "" if it has no name.
	Code string
	// Excerpt is the beginning of the body as one line, without the key. It may repeat the prompt,
	// so it is not in the error's text.
	Excerpt string
	// RetryAfter is how long the endpoint asked to wait. 0: it did not, or not in a known form.
	RetryAfter time.Duration
}

// Unwrap returns the [llm.Failure] that the status means.
func (e *StatusError) Unwrap() error { return llm.FromStatus(e.Status, e.RetryAfter, nil) }

func (e *StatusError) Error() string {
	text := strings.TrimSpace(fmt.Sprintf("status %d %s", e.Status, http.StatusText(e.Status)))
	if e.Status/100 == 3 {
		text += " (redirects are not followed)"
	}
	if e.Code != "" {
		text += ": " + e.Code
	}
	return text
}

const (
	maxErrorBody = 8 << 10 // bytes that are read
	maxExcerpt   = 300     // characters
)

// statusError reads a response that is no success. Only the code is part of the error's text, since
// a body may repeat the prompt or the key.
func (c *Config) statusError(res *http.Response) *StatusError {
	body, more, err := read(res.Body, maxErrorBody)
	var got struct {
		Error maybe[failure] `json:"error"`
		failure
	}
	_ = json.Unmarshal(body, &got) // a body that is not JSON has an excerpt
	return &StatusError{
		Status:     res.StatusCode,
		Code:       c.APIKey.token(cmp.Or(got.Error.value.name(), got.name())),
		Excerpt:    c.APIKey.excerpt(body, more || err != nil),
		RetryAfter: retryAfter(res.Header),
	}
}

// failureInside is the error of an endpoint that failed after a status of success, for example in
// the middle of a stream, when the status was already sent.
func (c *Config) failureInside(f failure, body []byte) *StatusError {
	status := f.Code.number
	if status < 400 || status > 599 {
		status = http.StatusBadGateway
	}
	begin := body[:min(len(body), maxErrorBody)]
	return &StatusError{
		Status:  status,
		Code:    c.APIKey.token(f.name()),
		Excerpt: c.APIKey.excerpt(begin, len(begin) < len(body)),
	}
}

// A failure is how endpoints describe one.
type failure struct {
	// Code is the name of the failure, or the status. Type is a coarser name, for endpoints without a
	// code.
	Code codeOrStatus  `json:"code"`
	Type maybe[string] `json:"type"`
}

func (f failure) name() string { return cmp.Or(f.Code.name, f.Type.value) }

// A codeOrStatus is a name or a status, because endpoints differ.
type codeOrStatus struct {
	name   string
	number int
}

func (c *codeOrStatus) UnmarshalJSON(b []byte) error {
	*c = codeOrStatus{}
	if json.Unmarshal(b, &c.number) != nil {
		c.number = 0
		_ = json.Unmarshal(b, &c.name)
	}
	return nil
}

// excerpt returns the beginning of a body as a clean line, without the key. cut reports that the
// body goes on, so that a part of the key may be at the end.
func (k APIKey) excerpt(body []byte, cut bool) string {
	clean := prompt.Line(k.redact(string(body), cut), maxErrorBody)
	return prompt.Line(k.redact(clean, cut), maxExcerpt)
}

// token returns a code or a media type if it looks like one, and "" if not.
func (k APIKey) token(text string) string {
	const good = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+"
	odd := func(r rune) bool { return !strings.ContainsRune(good, r) }
	if len(text) > 64 || strings.ContainsFunc(text, odd) || k.redact(text, false) != text {
		return ""
	}
	return text
}

// A connectionError is a connection that failed. Its text is without the key, which a malformed
// response may repeat, and without the URL, which net/http puts before it.
type connectionError struct {
	err  error
	text string
}

func (k APIKey) connectionError(err error) *connectionError {
	if urlErr := (*url.Error)(nil); errors.As(err, &urlErr) {
		err = urlErr.Err
	}
	return &connectionError{err, prompt.Line(k.redact(err.Error(), false), maxExcerpt)}
}

func (e *connectionError) Error() string { return e.text }

// Unwrap returns the cause and the [llm.Failure]. A connection that failed in a way that is not
// known is one all the same.
func (e *connectionError) Unwrap() []error {
	return []error{e.err, cmp.Or(llm.FailureOf(e.err), llm.Unreachable)}
}
