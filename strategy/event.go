package strategy

import (
	"encoding/json"
	"time"

	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/stream"
)

// The types of events.
const (
	selected    = "selected"
	observed    = "observed"
	retracted   = "retracted"
	expired     = "expired"
	specialized = "specialized"
	restarted   = "restarted"
	wasReset    = "reset"
)

// A LearnerEvent records what happened to a learner. In a store's outbox it is the JSON payload of
// a [stream.Event] of the same id. It may be delivered more than once, each time with the same ID.
type LearnerEvent struct {
	// ID is derived from what happened, so that the same outcome or retraction has the same ID again.
	ID string `json:"id"`
	// Type is what happened. selected: a choice was made and recorded, which it is not with
	// [Config].Unrecorded. observed: an outcome was counted. retracted: one was taken back. expired:
	// no outcome came in time. specialized: an item took its copy of the segment's evidence.
	// restarted: a change was found, and the evidence from before it no longer counts. reset:
	// somebody had something forgotten.
	Type     string    `json:"type"`
	Learner  string    `json:"learner"`
	Category string    `json:"category,omitempty"`
	Context  string    `json:"context,omitempty"`
	Item     string    `json:"item,omitempty"`
	At       time.Time `json:"at"`

	// Choice is the choice that the event is about, if it is about one. Only events of the type
	// selected have what was drawn, because draws are most of a choice's size.
	Choice *Choice `json:"choice,omitempty"`
	// Result is the outcome of observed and retracted events. If the choice's record has lost the
	// outcome, it has the ID alone.
	Result *Result `json:"result,omitempty"`
	Actor  string  `json:"actor,omitempty"`  // of reset and retracted
	Reason string  `json:"reason,omitempty"` // of reset, retracted and restarted
}

// outbox is the kind of outgoing events, with the paths to the names of people in a [LearnerEvent],
// and in what package attribution sends: its reports, and dead letters of them. The paths let a
// store find and remove a person in events that wait to be sent.
var outbox = store.Kind{
	Name: stream.Outbox.Name, Limits: stream.Outbox.Limits,
	Caused: []string{
		"payload.~.result.source", "payload.~.source", "payload.~.event.payload.~.source",
	},
	Decided: []string{"payload.~.actor"},
}

// emit puts an event about a batch into the batch, if the learner has a topic. People who are named
// in the event are listed with its record, so that forgetting finds them without a look into each
// payload.
func (l *Learner) emit(b *store.Batch, e LearnerEvent) error {
	if l.cfg.Topic == "" {
		return nil
	}
	e.Learner = l.cfg.Name
	if e.Choice != nil {
		e.Category, e.Context, e.Item = e.Choice.Category, e.Choice.Context, e.Choice.Item
	}
	payload, err := json.Marshal(e)
	if err != nil {
		return err
	}
	people := []string{e.Actor}
	if e.Result != nil {
		people = append(people, e.Result.Source)
	}
	event := stream.Event{ID: e.ID, Topic: l.cfg.Topic, At: e.At, Payload: payload}
	b.Records = append(b.Records, event.Waiting(people...))
	return nil
}

// withoutDraws returns the choice as later events have it.
func (c Choice) withoutDraws() *Choice {
	r := c.Record()
	r.Draws, r.Linear = nil, nil
	c = ChoiceOf(r)
	return &c
}
