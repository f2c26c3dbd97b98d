package past

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// text returns a value as text, and what was asked or answered of a conversation: of messages the
// last one of a role, else the last one.
func text(v any, role string) string {
	switch t := v.(type) {
	case nil:
		return ""
	case string:
		return quoted(t, role)
	case json.Number: // an id keeps all its digits
		x, err := t.Float64()
		if err != nil || !strings.ContainsAny(t.String(), ".eE") {
			return t.String()
		}
		return strconv.FormatFloat(x, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(t)
	case []any:
		if role != "" && len(t) > 0 {
			return spoken(t, role)
		}
	case map[string]any:
		for _, name := range [...]string{
			"messages", "choices", "generations", "message", "content", "text", "question", "query",
			"prompt", "input", "output", "answer", "response", "result", "kwargs", "data",
		} {
			if part, ok := t[name]; ok && part != nil && role != "" {
				return text(part, role)
			}
		}
	}
	written, _ := json.Marshal(v) // it was JSON
	return string(written)
}

// quoted returns what a text is that holds JSON, as in cells of CSV.
func quoted(s, role string) string {
	trimmed := strings.TrimSpace(s)
	if role == "" || trimmed == "" || trimmed[0] != '{' && trimmed[0] != '[' && trimmed[0] != '"' {
		return s
	}
	var v any
	if json.Unmarshal([]byte(trimmed), &v) != nil {
		return s
	}
	if inner, ok := v.(string); ok {
		return inner
	}
	return text(v, role)
}

func spoken(list []any, role string) string {
	for i := len(list) - 1; i >= 0; i-- {
		m, _ := list[i].(map[string]any)
		for _, name := range [...]string{"role", "type"} {
			if is, _ := m[name].(string); is == role || role == "user" && is == "human" ||
				role == "assistant" && is == "ai" {
				return text(m, role)
			}
		}
	}
	return text(list[len(list)-1], role)
}

// number reads a number.
func number(v any) (float64, error) {
	s := strings.TrimSpace(text(v, ""))
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, fmt.Errorf("is %.40q, must be a number", s)
	}
	return x, nil
}

// words are what people call good and bad.
var words = map[string]float64{
	"up": 1, "good": 1, "positive": 1, "true": 1, "yes": 1, "like": 1, "liked": 1, "helpful": 1,
	"thumbsup": 1, "thumbup": 1, "👍": 1, "success": 1, "resolved": 1, "correct": 1, "accepted": 1,
	"down": -1, "bad": -1, "negative": -1, "false": -1, "no": -1, "dislike": -1, "disliked": -1,
	"unhelpful": -1, "nothelpful": -1, "thumbsdown": -1, "thumbdown": -1, "👎": -1, "failure": -1,
	"error": -1, "unresolved": -1, "incorrect": -1, "wrong": -1, "rejected": -1, "neutral": 0,
	"t": 1, "f": -1, // as PostgreSQL writes a boolean
}

// value reads how good something was, in [-1, 1].
func (m *Mapping) value(v any) (float64, error) {
	s := text(v, "")
	known, ok := m.Values[s]
	if !ok {
		known, ok = words[normal(s)]
	}
	if ok {
		return known, nil
	}
	x, err := number(v)
	if err != nil {
		return 0, fmt.Errorf("%w, or a word such as up or down, or be among \"values\"", err)
	}
	low, high := m.Scale[0], m.Scale[1]
	if low == high {
		low, high = -1, 1
	}
	if x < low || x > high {
		return 0, fmt.Errorf("is %v, must be in [%v, %v], which is \"scale\"", x, low, high)
	}
	return 2*(x-low)/(high-low) - 1, nil
}

var layouts = [...]string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00",
	"2006-01-02 15:04:05.999999999-07", "2006-01-02 15:04:05.999999999",
	"2006-01-02 15:04:05.999999999 -0700 MST", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly,
	time.RFC1123Z, time.RFC1123}

// moment reads a time: as text, of UTC where it names no zone, or as seconds, milliseconds,
// microseconds or nanoseconds since 1970.
func moment(v any) (time.Time, error) {
	s := strings.TrimSpace(text(v, ""))
	for _, layout := range layouts {
		if at, err := time.Parse(layout, s); err == nil {
			if at.Unix() < 0 && !at.IsZero() { // some write the zero time for none
				return at, fmt.Errorf("is %.40q, must be in 1970 or later", s)
			}
			return at, nil
		}
	}
	x, err := number(v)
	if err != nil || x < 0 || x >= 253402300800e9 {
		return time.Time{}, fmt.Errorf("is %.40q, must be a time such as 2026-01-31T15:04:05Z", s)
	}
	for x >= 253402300800 { // the year 10000 in seconds
		x /= 1000
	}
	whole, part := math.Modf(x)
	return time.Unix(int64(whole), int64(part*1e9)).UTC(), nil
}

// normal returns a name without case and signs.
func normal(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" _-.:/\t'\"", r) {
			return -1
		}
		return r
	}, strings.ToLower(strings.TrimSpace(name)))
}
