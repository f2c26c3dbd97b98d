package strategy

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

// An AttributionEvent tells what a session was worth: values that were attributed to items, and signals that were seen. It
// is the JSON payload of an event that a [Consumer] reads, whose id is the event's.
type AttributionEvent struct {
	Session string              `json:"session"`
	Records []AttributionRecord `json:"attribution_records,omitempty"`
	// Signals are those that were seen in the session. Those of another session are left out; one without a session is of
	// this one.
	Signals []Signal `json:"signals,omitempty"`
	// Source is who caused it all, an opaque name: see [evidence.Observation].
	Source string `json:"source,omitempty"`
	// Ended tells that the session is over: its choices are let go, and the hook is told.
	Ended bool `json:"session_ended,omitempty"`
}

// An AttributionRecord tells what one item was worth. The choice that is credited is the one that was made for the item in
// the session.
type AttributionRecord struct {
	Item      string `json:"item"`
	Session   string `json:"session,omitempty"` // empty: the event's
	Activated bool   `json:"was_activated"`
	// Value is what the item was worth in this session, from -1 to 1; beyond, it counts as that. An average over the item's
	// life would count old sessions again with each new one, and hardly show that another arm was chosen.
	Value float64 `json:"attributed_value"`
}

// decodeAttribution reads a payload and refuses what no attempt can make right.
func decodeAttribution(payload []byte) (e AttributionEvent, err error) {
	decoder := json.NewDecoder(bytes.NewReader(payload))
	if err := decoder.Decode(&e); err != nil {
		return e, &heed.InputError{Field: "Payload", Reason: "is no attribution event: " + err.Error()}
	}
	if _, err := decoder.Token(); err != io.EOF {
		return e, &heed.InputError{Field: "Payload", Reason: "has more than one JSON value"}
	}
	if e.Session == "" && (e.Ended || len(e.Records) == 0) {
		return e, &heed.InputError{Field: "session", Reason: "must not be empty"}
	}
	if err := checkTexts("", "session", e.Session, "source", e.Source); err != nil {
		return e, err
	}
	for i := range e.Records {
		r := &e.Records[i]
		if r.Session = cmp.Or(r.Session, e.Session); r.Session == "" {
			return e, &heed.InputError{Field: fmt.Sprintf("attribution_records[%d].session", i), Reason: "must not be empty"}
		}
		if err := checkTexts(fmt.Sprintf("attribution_records[%d].", i), "session", r.Session, "item", r.Item); err != nil {
			return e, err
		}
	}
	for i := range e.Signals {
		e.Signals[i].Session = cmp.Or(e.Signals[i].Session, e.Session)
	}
	return e, nil
}

// checkTexts reports the first text that a store can't keep, of pairs of a name and a text.
func checkTexts(prefix string, pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if err := evidence.CheckText(prefix+pairs[i], pairs[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// NewAttribution returns the event that carries an attribution, on the topic of the Adaptive Strategies design. What a
// consumer would refuse at any time is a [*heed.InputError].
func NewAttribution(id string, at time.Time, e AttributionEvent) (stream.Event, error) {
	payload, err := json.Marshal(e)
	if err != nil {
		return stream.Event{}, fmt.Errorf("strategy: attribution: %w", &heed.InputError{Field: "Payload", Reason: err.Error()})
	}
	event := stream.Event{ID: id, Topic: AttributionTopic, At: at, Payload: payload}
	if _, err := checkAttribution(event); err != nil {
		return stream.Event{}, fmt.Errorf("strategy: attribution: %w", err)
	}
	return event, nil
}
