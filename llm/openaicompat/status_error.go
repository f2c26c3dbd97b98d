package openaicompat

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/heedhq/heed/prompt"
)

// A StatusError is the failure of an endpoint. The text of the error has the status and the code; it may go into a log.
type StatusError struct {
	// Status is the status of HTTP. Where an endpoint fails behind a status of success, it is the one that it names in the
	// body, or 502.
	Status int
	// Code is the endpoint's name for the failure, such as "context_length_exceeded": at most 64 ASCII letters, digits, and
	// "_-./+". "" where it has none.
	Code string
	// Excerpt is the beginning of the body as one line, without the key. It may repeat what the prompt says, which is why
	// it is not in the text of the error.
	Excerpt string
	// RetryAfter is how long the endpoint asked to wait. 0 where it did not, or in a form that is not understood.
	RetryAfter time.Duration
}

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
	maxCode      = 64
)

// statusError reads a response that is no success.
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

// failureInside is the error of an endpoint that had begun with a status of success before it failed.
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

// A failure is what endpoints write about one.
type failure struct {
	Code codeOrStatus  `json:"code"`
	Type maybe[string] `json:"type"`
}

func (f failure) name() string { return cmp.Or(f.Code.name, f.Type.value) }

// A codeOrStatus is a name or a status; endpoints differ.
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

// excerpt returns the beginning of a body without the key, neither as it is nor as it reads when it is cleaned. cut says
// that there is more of the body, so that a part of the key may be at its end.
func (k Key) excerpt(body []byte, cut bool) string {
	clean := prompt.Line(k.redact(string(body), cut), maxErrorBody)
	return prompt.Line(k.redact(clean, cut), maxExcerpt)
}

// token returns a code or a media type if it looks like one, and "" if not.
func (k Key) token(text string) string {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-./+", r)
	}
	if len(text) > maxCode || strings.ContainsFunc(text, odd) || k.redact(text, false) != text {
		return ""
	}
	return text
}
