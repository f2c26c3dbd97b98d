package openaicompat

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
)

// A Key is a secret. It can be converted to a string, and does not show itself otherwise: package fmt, log/slog,
// encoding/json and whoever asks for a text get "[redacted]".
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

// LogValue implements [slog.LogValuer].
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

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

// redact takes the key out of a text, also as URLs and JSON escape it; and, where the text was cut, the part of it at the
// end.
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
