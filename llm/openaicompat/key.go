package openaicompat

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// A Key is a secret. Convert it to a string to read it. Packages fmt, log/slog and encoding/json show "[redacted]".
type Key string

const redacted = "[redacted]"

// String returns "[redacted]", or "" for no key.
func (k Key) String() string {
	if k == "" {
		return ""
	}
	return redacted
}

// Format implements [fmt.Formatter], for every verb.
func (k Key) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(k.String())) }

// MarshalText implements [encoding.TextMarshaler].
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// valid reports whether the key can stand in a header.
func (k Key) valid() bool {
	return !strings.ContainsFunc(string(k), func(r rune) bool { return r <= ' ' || r > '~' })
}

// authorize puts the key into the header.
func (c *Config) authorize(h http.Header) {
	switch {
	case c.APIKey == "":
	case c.KeyHeader == "":
		h.Set("Authorization", "Bearer "+string(c.APIKey))
	default:
		h.Set(c.KeyHeader, string(c.APIKey))
	}
}

// redact takes the key out of a text, also as URLs and JSON escape it. If the text was cut, it takes out a part of the key at
// the end too.
func (k Key) redact(text string, cut bool) string {
	if k == "" {
		return text
	}
	for _, spelling := range []string{
		string(k), url.QueryEscape(string(k)), url.PathEscape(string(k)), strings.ReplaceAll(string(k), "/", `\/`),
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
