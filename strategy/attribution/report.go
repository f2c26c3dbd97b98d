package attribution

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/stream"
)

// The topics of this package.
const (
	Topic     = "heed.attribution"      // of reports
	DeadTopic = "heed.attribution.dead" // of dead letters
)

// A Report states what a session was worth: values that were attributed to items, and signals that
// were seen. It is the JSON payload of an event that a [Consumer] reads. The event's id counts
// once.
type Report struct {
	Session string  `json:"session"`
	Items   []Worth `json:"attribution_records,omitempty"`
	// Signals are those that were seen in the session. Signals of other sessions are ignored. A
	// signal without a session is of this one.
	Signals []DirectSignal `json:"signals,omitempty"`
	// Source is who caused it all, an opaque name: see [evidence.Observation].
	Source string `json:"source,omitempty"`
	// Ended reports that the session is over. The learner then forgets its choices, and the hook is
	// called.
	Ended bool `json:"session_ended,omitempty"`
}

// A Worth is what one item was worth in a session. The choice that was made for the item in the
// session is credited.
type Worth struct {
	Item    string `json:"item"`
	Session string `json:"session,omitempty"` // empty: the report's
	// Answer is the id of the answer that is meant, where a *loop.Agent gave it. Empty: the last
	// one of the session.
	Answer string `json:"answer_id,omitempty"`
	// Activated reports whether the item was used at all. If not, the value is ignored.
	Activated bool `json:"was_activated"`
	// Value is what the item was worth in this session, in [-1, 1]. It must not be an average over
	// the item's life. That would count old sessions again with each new one.
	Value float64 `json:"attributed_value"`
}

// Event returns the event that carries the report, on [Topic]. A report that no consumer would
// accept is a [*heed.InputError].
func (r Report) Event(id string, at time.Time) (stream.Event, error) {
	payload, err := json.Marshal(r)
	if err != nil {
		return stream.Event{}, fmt.Errorf("attribution: %w",
			&heed.InputError{Field: "Payload", Reason: err.Error()})
	}
	event := stream.Event{ID: id, Topic: Topic, At: at, Payload: payload}
	if _, err := decode(event); err != nil {
		return stream.Event{}, fmt.Errorf("attribution: %w", err)
	}
	return event, nil
}

// decode reads the report of an event. It refuses what no attempt can make right.
func decode(event stream.Event) (r Report, err error) {
	switch {
	case event.ID == "":
		return r, &heed.InputError{Field: "ID", Reason: "must not be empty"}
	case event.At.IsZero():
		return r, &heed.InputError{Field: "At", Reason: "must be set"}
	}
	decoder := json.NewDecoder(bytes.NewReader(event.Payload))
	if err := decoder.Decode(&r); err != nil {
		return r, &heed.InputError{Field: "Payload", Reason: "must be a report: " + err.Error()}
	}
	if _, err := decoder.Token(); err != io.EOF {
		return r, &heed.InputError{Field: "Payload", Reason: "must be one JSON value"}
	}
	if r.Session == "" && (r.Ended || len(r.Items) == 0) {
		return r, &heed.InputError{Field: "session", Reason: "must not be empty"}
	}
	texts := [][2]string{{"session", r.Session}, {"source", r.Source}}
	for i := range r.Items {
		w, field := &r.Items[i], fmt.Sprintf("attribution_records[%d].", i)
		if w.Session = cmp.Or(w.Session, r.Session); w.Session == "" {
			return r, &heed.InputError{Field: field + "session", Reason: "must not be empty"}
		}
		if w.Activated && !(w.Value >= -1 && w.Value <= 1) {
			return r, &heed.InputError{Field: field + "attributed_value",
				Reason: fmt.Sprintf("is %v, must be in [-1, 1]", w.Value)}
		}
		texts = append(texts, [2]string{field + "session", w.Session},
			[2]string{field + "item", w.Item}, [2]string{field + "answer_id", w.Answer})
	}
	for _, text := range texts {
		if err := evidence.CheckText(text[0], text[1]); err != nil {
			return r, err
		}
	}
	for i := range r.Signals {
		r.Signals[i].Session = cmp.Or(r.Signals[i].Session, r.Session)
	}
	return r, nil
}
