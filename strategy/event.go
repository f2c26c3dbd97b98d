package strategy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// The topics of the Adaptive Strategies design.
const (
	DefaultTopic     = "groove.strategy"    // of a learner's events: see Config.Topic
	AttributionTopic = "groove.attribution" // of what a [Consumer] reads
)

// EventType says what happened.
type EventType string

// What happens to a learner.
const (
	EventSelected    EventType = "selected"    // a choice was made
	EventObserved    EventType = "observed"    // an outcome was counted
	EventExpired     EventType = "expired"     // no outcome came in time
	EventRetracted   EventType = "retracted"   // silence that was counted was taken back, as an outcome came after all
	EventSpecialized EventType = "specialized" // an item took its copy of the segment's evidence
	EventRestarted   EventType = "restarted"   // a change was found, and the evidence from before it left out
	EventReset       EventType = "reset"       // somebody had something forgotten
)

// An Event tells what happened to a learner, and has all that is needed to let it happen again: see [Learner.Replay]. In a
// store's outbox it is the JSON payload of an [evidence.Event] of the same id.
type Event struct {
	ID       string    `json:"id"`
	Type     EventType `json:"type"`
	Learner  string    `json:"learner"`
	Category string    `json:"category,omitempty"`
	Context  string    `json:"context,omitempty"`
	Item     string    `json:"item,omitempty"`
	At       time.Time `json:"at"`

	Choice *Choice `json:"choice,omitempty"` // where it is about one; what was drawn is in selected alone
	Result *Result `json:"result,omitempty"` // of observed
	Actor  string  `json:"actor,omitempty"`  // of reset
	Reason string  `json:"reason,omitempty"` // of reset and restarted
	Effect *Effect `json:"effect,omitempty"`
}

// An Effect is what an event did to a store's evidence.
type Effect struct {
	ID           string                 `json:"id"` // of the batch
	Reset        []evidence.Selection   `json:"reset,omitempty"`
	Restart      []evidence.Restart     `json:"restart,omitempty"`
	Retract      []string               `json:"retract,omitempty"`
	Observations []evidence.Observation `json:"observations,omitempty"`
}

// emit puts an event about a batch into the batch, if the learner has a topic.
func (l *Learner) emit(b *evidence.Batch, e Event) error {
	if l.cfg.Topic == "" {
		return nil
	}
	if b.ID != "" {
		e.Effect = &Effect{b.ID, b.Reset, b.Restart, b.Retract, b.Observations}
	}
	e.Learner = l.cfg.Name
	if e.Choice != nil {
		e.Category, e.Context, e.Item = e.Choice.Category, e.Choice.Context, e.Choice.Item
	}
	payload, err := json.Marshal(e)
	if err != nil {
		return err
	}
	b.Events = append(b.Events, evidence.Event{ID: e.ID, Topic: l.cfg.Topic, At: e.At, Payload: payload})
	return nil
}

// withoutDraws returns the choice as later events have it.
func (c Choice) withoutDraws() *Choice {
	if c.details != nil {
		d := *c.details
		d.draws = nil
		c.details = &d
	}
	return &c
}

// Replay lets the events of this learner happen once more to the store and the records of this one: from its log, what was
// learned is rebuilt in an empty store, to the same beliefs. What the store knows already counts nothing, so a log may be
// replayed in part, or again. Events of other learners are passed over. It returns how many events changed the evidence.
//
// The log has to be in order, and the store to remember its ids: see [memstore.EvidenceConfig]'s IDsFor. A payload that is
// not an event is a [*heed.InputError], and ends the replay.
//
// [memstore.EvidenceConfig]: https://pkg.go.dev/github.com/heedhq/heed/memstore#EvidenceConfig
func (l *Learner) Replay(ctx context.Context, log iter.Seq2[evidence.Event, error]) (changed int, err error) {
	changed, err = l.replayAll(ctx, log)
	if err = errors.Join(err, l.Refresh(ctx)); err != nil {
		return changed, fmt.Errorf("strategy: replay: %w", err)
	}
	return changed, nil
}

func (l *Learner) replayAll(ctx context.Context, log iter.Seq2[evidence.Event, error]) (changed int, err error) {
	for entry, err := range log {
		if err != nil {
			return changed, err
		}
		did, err := l.replay(ctx, entry)
		if did {
			changed++
		}
		if err != nil {
			return changed, err
		}
	}
	return changed, nil
}

func (l *Learner) replay(ctx context.Context, entry evidence.Event) (changed bool, err error) {
	var e Event
	if err := json.Unmarshal(entry.Payload, &e); err != nil {
		return false, &heed.InputError{Field: "Payload", Reason: "is no event of a learner: " + err.Error()}
	}
	if e.Learner != l.cfg.Name {
		return false, nil
	}
	if e.Effect != nil {
		b := evidence.Batch{
			ID: e.Effect.ID, Policies: l.policies,
			Reset: e.Effect.Reset, Restart: e.Effect.Restart, Retract: e.Effect.Retract, Observations: e.Effect.Observations,
		}
		receipt, err := l.cfg.Store.Commit(ctx, b)
		switch {
		case errors.Is(err, heed.ErrNotFound): // what it takes back is in a part of the log that was left out
		case err != nil:
			return false, err
		default:
			changed = !receipt.Duplicate
		}
	}
	return changed, l.replayRecord(ctx, &e)
}

// replayRecord does to the record of a choice what the event did. A record that is gone stays so.
func (l *Learner) replayRecord(ctx context.Context, e *Event) (err error) {
	if l.cfg.Choices == nil || e.Choice == nil {
		return nil
	}
	switch e.Type {
	case EventSelected:
		return l.cfg.Choices.Add(ctx, *e.Choice)
	case EventExpired:
		_, err = l.cfg.Choices.Expire(ctx, e.Choice.ID)
	case EventObserved:
		if e.Result != nil {
			_, err = l.cfg.Choices.Settle(ctx, e.Choice.ID, *e.Result)
		}
	default: // the others are about evidence alone
	}
	if errors.Is(err, heed.ErrNotFound) {
		return nil
	}
	return err
}
