package openaicompat

import (
	"cmp"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/internal/faults"
)

// Config configures a [Client]. BaseURL must be set; every other field has a default.
type Config struct {
	// BaseURL is the address before "/chat/completions", of http or https. The package comment lists common endpoints. Its
	// query, if it has one, is sent with each request. Put no key there, as URLs are shown: use APIKey.
	BaseURL string
	// Model is the model to ask for. "" asks for none; some endpoints have only one.
	Model string
	// APIKey is sent to the host of BaseURL and to no other, as redirects are not followed. "": none is sent. It is sent as
	// plain text if BaseURL says http.
	APIKey Key
	// KeyHeader is the header of the bare key. "" means "Authorization: Bearer <key>".
	KeyHeader string

	// JSON is how an answer in JSON is asked for: "json_object" or "json_schema" (of any object) as response_format, or
	// "prompt", by nothing but the prompt. "" means "json_object". Each of them needs a prompt that asks for JSON too.
	JSON string
	// MaxCompletionTokens sends the bound of an answer as max_completion_tokens, as OpenAI's reasoning models require. They
	// count their thoughts in it. Otherwise it is sent as max_tokens, which all others know.
	MaxCompletionTokens bool

	// Timeout bounds a call as a whole, with its attempts and the waits between them. 0 means a minute.
	Timeout time.Duration
	// MaxAttempts is how often a call asks at most. 0 means 3.
	MaxAttempts int
	// Backoff is the wait before the second attempt, drawn between half of it and all of it. It doubles with each further
	// attempt, up to sixteen-fold. The wait is at least what the endpoint asks for. 0 means half a second.
	Backoff time.Duration
	// MaxRequest and MaxResponse bound what is sent and read, in bytes, the latter after decompression. 0 means 1 MiB.
	MaxRequest, MaxResponse int

	// HTTPClient sends the requests. nil means a client with http.DefaultTransport. Its CheckRedirect is not used.
	HTTPClient *http.Client
	// Seed gives the key of the waits. It is used by New only. nil means a random key.
	Seed rand.Source
}

const (
	defaultLimit = 1 << 20
	maxLimit     = 1 << 30
	maxDoublings = 4 // of the backoff
)

func (c Config) withDefaults() Config {
	c.JSON = cmp.Or(c.JSON, "json_object")
	c.Timeout = cmp.Or(c.Timeout, time.Minute)
	c.MaxAttempts = cmp.Or(c.MaxAttempts, 3)
	c.Backoff = cmp.Or(c.Backoff, time.Second/2)
	c.MaxRequest = cmp.Or(c.MaxRequest, defaultLimit)
	c.MaxResponse = cmp.Or(c.MaxResponse, defaultLimit)
	if c.HTTPClient == nil {
		c.HTTPClient = &http.Client{}
	}
	return c
}

// validate reports all faults of a configuration that has its defaults.
func (c Config) validate() error {
	var found faults.List
	shown, reason := checkURL(c.BaseURL)
	found.Check(reason == "", "BaseURL", shown, reason)
	found.Check(c.APIKey.valid(), "APIKey", c.APIKey, "must be printable ASCII without spaces")
	found.Check(!strings.ContainsFunc(c.KeyHeader, notToken), "KeyHeader", c.KeyHeader, "must be the name of a header")
	found.Check(slices.Contains([]string{"json_object", "json_schema", "prompt"}, c.JSON), "JSON", c.JSON, "must be json_object, json_schema or prompt")
	found.Check(c.Timeout > 0, "Timeout", c.Timeout, "must not be negative")
	found.Check(c.MaxAttempts > 0, "MaxAttempts", c.MaxAttempts, "must not be negative")
	found.Check(c.Backoff > 0 && c.Backoff <= time.Hour, "Backoff", c.Backoff, "must not be negative, nor more than an hour")
	found.Check(c.MaxRequest > 0 && c.MaxRequest <= maxLimit, "MaxRequest", c.MaxRequest, "must not be negative, nor more than 1 GiB")
	found.Check(c.MaxResponse > 0 && c.MaxResponse <= maxLimit, "MaxResponse", c.MaxResponse, "must not be negative, nor more than 1 GiB")
	return found.Err()
}

// checkURL returns what is wrong with a base URL, and what of it can be shown: a password may be anywhere in the rest.
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
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/chat/completions"):
		reason = "must be what stands before /chat/completions"
	}
	return shown, reason
}

// notToken reports whether a character can't be in the name of a header (RFC 9110, section 5.6.2).
func notToken(r rune) bool {
	return r <= ' ' || r > '~' || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", r)
}
