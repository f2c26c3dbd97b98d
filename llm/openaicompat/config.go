package openaicompat

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/internal/valid"
)

// Config configures a [Client]. BaseURL must be set. Every other field has a default.
type Config struct {
	// BaseURL is the address before "/chat/completions" and "/embeddings", of http or https. The
	// package comment has the URLs of common endpoints. Its query is sent with each request. Do not
	// put a key into it, because errors and logs may show URLs.
	BaseURL string
	// Model is the model to ask for, in the endpoint's own spelling. "" leaves it out, for endpoints
	// that serve only one.
	Model string
	// APIKey is sent to the host of BaseURL and to no other. "" sends no key, which is right for most
	// servers on your own machine. If BaseURL begins with http:, the key is sent in plain text. It is
	// sent as "Authorization: Bearer <key>", and to hosts of Azure as "api-key".
	APIKey APIKey

	// JSON selects how to ask for an answer in JSON: by the response_format "json_object" or
	// "json_schema" (of any object), or by the "prompt" alone. The prompt must ask for JSON in any
	// case. "" means "json_object". Set "prompt" if the endpoint refuses response_format.
	JSON string
	// MaxCompletionTokens is for models that refuse max_tokens. It sends the limit of an answer as
	// max_completion_tokens, which OpenAI's reasoning models want. They count their thoughts in it.
	// Otherwise it is sent as max_tokens. The default is false.
	MaxCompletionTokens bool

	// Timeout bounds a whole call, with its attempts and the waits between them. 0 means a minute.
	// Raise it for models that think for long.
	Timeout time.Duration
	// HTTPClient sends the requests. nil means a client with http.DefaultTransport. Its CheckRedirect
	// is not used. Set it for a proxy or a certificate of your own.
	HTTPClient *http.Client

	tuning tuning
}

// tuning has the values that a host cannot set. Tests of the package set others.
type tuning struct {
	// MaxAttempts is how often a call asks at most: 3.
	MaxAttempts int
	// Backoff is the wait before the second attempt, at random between half of it and all of it: half
	// a second. It doubles with each attempt, up to sixteen-fold, and is at least as long as the
	// endpoint asks for.
	Backoff time.Duration
	// MaxResponse bounds the body of a response in bytes, after decompression: 1 MiB. Of a streamed
	// answer it bounds each event, and text and thoughts together, and of embeddings the part of each
	// text.
	MaxResponse int
}

func (c Config) withDefaults() Config {
	c.JSON = cmp.Or(c.JSON, "json_object")
	c.Timeout = cmp.Or(c.Timeout, time.Minute)
	t := &c.tuning
	t.MaxAttempts, t.Backoff = cmp.Or(t.MaxAttempts, 3), cmp.Or(t.Backoff, time.Second/2)
	t.MaxResponse = cmp.Or(t.MaxResponse, 1<<20)
	if c.HTTPClient == nil {
		c.HTTPClient = &http.Client{}
	}
	return c
}

// validate reports all faults of a configuration that has its defaults.
func (c Config) validate() error {
	var found valid.Faults
	shown, reason := checkURL(c.BaseURL)
	found.Check(reason == "", "BaseURL", shown, reason)
	found.Check(!strings.ContainsFunc(string(c.APIKey), notVisible), "APIKey", c.APIKey,
		"must be printable ASCII without spaces")
	found.Check(slices.Contains([]string{"json_object", "json_schema", "prompt"}, c.JSON), "JSON",
		c.JSON, "must be json_object, json_schema or prompt")
	found.Check(c.Timeout > 0, "Timeout", c.Timeout, "must not be negative")
	return found.Err()
}

// checkURL returns a fault of a base URL, and the part of the URL that is safe to show.
func checkURL(base string) (shown, reason string) {
	u, err := url.Parse(base)
	if err != nil {
		return "no URL", "must be a URL"
	}
	shown = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		reason = "must begin with http:// or https:// and a host"
	case u.User != nil:
		reason = "must be without user and password: see APIKey"
	case u.Fragment != "":
		reason = "must be without a fragment"
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/chat/completions"),
		strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/embeddings"):
		reason = "must be the address before /chat/completions or /embeddings"
	}
	return shown, reason
}

func notVisible(r rune) bool { return r <= ' ' || r > '~' }

// An APIKey is a secret. Only a conversion to string shows it. Packages fmt, log/slog and
// encoding/json print "[redacted]".
type APIKey string

const redacted = "[redacted]"

// masked returns "[redacted]", or "" for no key.
func (k APIKey) masked() string {
	if k == "" {
		return ""
	}
	return redacted
}

// Format implements [fmt.Formatter], for every verb.
func (k APIKey) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(k.masked())) }

// MarshalText implements [encoding.TextMarshaler], which log/slog uses, too.
func (k APIKey) MarshalText() ([]byte, error) { return []byte(k.masked()), nil }

// authorize puts the key into the headers of a request. Azure's older addresses take a key in a
// header of Azure's own only.
func (c *Config) authorize(r *http.Request) {
	switch {
	case c.APIKey == "":
	case strings.HasSuffix(r.URL.Hostname(), ".azure.com"):
		r.Header.Set("api-key", string(c.APIKey))
	default:
		r.Header.Set("Authorization", "Bearer "+string(c.APIKey))
	}
}

// redact removes the key from a text, also as URLs and JSON escape it. If the text was cut, it
// removes a part of the key at the end, too.
func (k APIKey) redact(text string, cut bool) string {
	if k == "" {
		return text
	}
	for _, spelling := range []string{
		string(k), url.QueryEscape(string(k)), url.PathEscape(string(k)),
		strings.ReplaceAll(string(k), "/", `\/`),
	} {
		text = strings.ReplaceAll(text, spelling, redacted)
		for n := min(len(spelling)-1, len(text)); cut && n > 0; n-- {
			if strings.HasSuffix(text, spelling[:n]) {
				text = text[:len(text)-n]
				break
			}
		}
	}
	return text
}
