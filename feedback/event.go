package feedback

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// maxEvent is how many bytes an event may have.
const maxEvent = 256 << 10

// DecodeEvent reads a decision event of the Adaptive Feedback Learning design: a JSON object with its fields. Beyond them it
// knows "agent", "correction_summary", "severity" (also "trivial", "minor" and "major"), "consider_for_improvement" (true if
// it is missing) and "injected_rules". It ignores fields that it does not know. A timestamp without a zone is UTC. An event
// has at most 256 KiB. A fault is a [*heed.InputError]. [Service.Record] then checks the feedback itself.
func DecodeEvent(payload []byte) (Feedback, error) {
	if len(payload) > maxEvent {
		return Feedback{}, invalid("event", fmt.Sprintf("is %d bytes long, may be %d", len(payload), maxEvent))
	}
	var event struct {
		Feedback
		Timestamp string  `json:"timestamp"`
		Seconds   float64 `json:"review_duration_seconds"`
		Consider  *bool   `json:"consider_for_improvement"`
		Nanos     any     `json:"review_duration"` // not of the design, nor is what follows
		Private   any     `json:"private"`
	}
	decoder := json.NewDecoder(bytes.NewReader(payload))
	if err := decoder.Decode(&event); err != nil {
		return Feedback{}, invalid("event", "is not the JSON of a decision")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Feedback{}, invalid("event", "has something behind it")
	}
	at, err := parseTime(event.Timestamp)
	if err != nil {
		return Feedback{}, err
	}
	const longest = 1e9 // seconds, some 31 years
	if !(event.Seconds >= 0 && event.Seconds <= longest) {
		return Feedback{}, invalid("review_duration_seconds", "must not be negative, nor more than 1e9")
	}
	f := event.Feedback
	f.At, f.Duration, f.Private = at, time.Duration(event.Seconds*float64(time.Second)), event.Consider != nil && !*event.Consider
	f.Evaluation, f.Recorded, f.Erased = Evaluation{}, time.Time{}, time.Time{}
	f.Severity = strings.ToLower(f.Severity)
	if own, ok := map[string]string{"trivial": "low", "minor": "medium", "major": "high"}[f.Severity]; ok {
		f.Severity = own
	}
	return f, nil
}

func parseTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, invalid("timestamp", "must be a time as of RFC 3339")
}
