package openaicompat

import (
	"cmp"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/heedhq/heed/internal/faults"
)

// Config configures a [Client]. BaseURL must be set; every other field has a default.
type Config struct {
	// BaseURL is the address before "/chat/completions", of http or https. The package comment has those of common
	// endpoints. Its query, if it has one, is sent with each request. A key in it would be shown by whatever shows URLs: it
	// belongs into APIKey.
	BaseURL string
	// Model is the model to ask for. "" asks for none: some endpoints have only one.
	Model string
	// APIKey is sent to the host of BaseURL and to no other: redirects are not followed. "": none is sent. It is sent as
	// plain text where BaseURL says http.
	APIKey Key
	// KeyHeader is the header that the key is sent in, as it is. "" means "Authorization: Bearer <key>".
	KeyHeader string

	// JSON is how an answer in JSON is asked for.
	JSON JSONMode
	// MaxCompletionTokens sends the bound of an answer under the name max_completion_tokens, as OpenAI's reasoning models
	// want it. They count their thoughts in it. Otherwise it is sent as max_tokens, which everybody else knows.
	MaxCompletionTokens bool

	// Timeout bounds a call as a whole, with its attempts and the waits between them. The caller's context may be done
	// sooner. 0 means a minute.
	Timeout time.Duration
	// MaxAttempts is how often a call asks at most. 0 means 3; 1 asks once.
	MaxAttempts int
	// Backoff is the wait before the second attempt, drawn between half of it and all of it. It doubles with each further
	// attempt, up to sixteen-fold. Where the endpoint says how long to wait, it is not less than that. 0 means half a second.
	Backoff time.Duration
	// MaxRequest and MaxResponse bound what is sent and read, in bytes, the latter after decompression. 0 means 1 MiB.
	MaxRequest, MaxResponse int

	// HTTPClient sends the requests. nil means a client with http.DefaultTransport. Its CheckRedirect is not used.
	HTTPClient *http.Client
	// Source gives the key from which the waits are drawn; it is used by New only. nil means a random key.
	Source rand.Source
}

// A JSONMode is how an answer in JSON is asked for.
type JSONMode string

// The modes. Each needs a prompt that asks for JSON too.
const (
	JSONObject JSONMode = ""            // response_format is json_object
	JSONSchema JSONMode = "json_schema" // response_format is a json_schema that takes any object
	JSONPrompt JSONMode = "prompt"      // nothing but the prompt asks for it
)

// Valid reports whether it is one of the modes.
func (m JSONMode) Valid() bool { return m == JSONObject || m == JSONSchema || m == JSONPrompt }

const (
	defaultLimit = 1 << 20
	maxLimit     = 1 << 30
	maxDoublings = 4 // of the backoff
)

func (c Config) withDefaults() Config {
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
	found.Check(c.JSON.Valid(), "JSON", c.JSON, "must be JSONObject, JSONSchema or JSONPrompt")
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
