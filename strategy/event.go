package strategy

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/stream"
)

// DefaultTopic is the topic of a learner's events: see Config.Topic.
const DefaultTopic = "heed.strategy"

// The types of events.
const (
	selected    = "selected"
	observed    = "observed"
	expired     = "expired"
	specialized = "specialized"
	restarted   = "restarted"
	wasReset    = "reset"
)

// An Event tells what happened to a learner, and has all that is needed to let it happen again: see [Learner.Replay]. In a
// store's outbox it is the JSON payload of a [stream.Event] of the same id.
type Event struct {
	ID string `json:"id"`
	// Type says what happened. selected: a choice was made. observed: an outcome was counted. expired: no outcome came in time.
	// specialized: an item took its copy of the segment's evidence. restarted: a change was found, and the evidence from before
	// it no longer counts. reset: somebody had something forgotten.
	Type     string    `json:"type"`
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
	Reset        []store.Selection      `json:"reset,omitempty"`
	Restart      []store.Restart        `json:"restart,omitempty"`
	Withdraw     []string               `json:"withdraw,omitempty"` // silence, as an outcome came after all
	Observations []evidence.Observation `json:"observations,omitempty"`
}

// outbox is the kind of outgoing events, with the paths to the names of people in an [Event], and in what package
// attribution sends: its reports, and dead letters of them.
var outbox = store.Kind{
	Name: stream.Outbox.Name, Limits: stream.Outbox.Limits,
	Caused: []string{
		"payload.~.result.source", "payload.~.effect.observations.*.source",
		"payload.~.source", "payload.~.event.payload.~.source",
	},
	Decided: []string{"payload.~.actor"},
}

// emit puts an event about a batch into the batch, if the learner has a topic.
func (l *Learner) emit(b *store.Batch, e Event) error {
	if l.cfg.Topic == "" {
		return nil
	}
	if b.ID != "" {
		e.Effect = &Effect{b.ID, b.Reset, b.Restart, b.Withdraw, b.Observations}
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
	for i := range b.Observations {
		people = append(people, b.Observations[i].Source)
	}
	event := stream.Event{ID: e.ID, Topic: l.cfg.Topic, At: e.At, Payload: payload}
	b.Records = append(b.Records, event.Waiting(people...))
	return nil
}

// withoutDraws returns the choice as later events have it.
func (c Choice) withoutDraws() *Choice {
	if c.details != nil {
		d := c.details
		c.details = &details{learner: d.learner, parameters: d.parameters, fallback: d.fallback, resets: d.resets}
	}
	return &c
}

// Replay lets the events of this learner happen once more to the store: from its log, what was learned is rebuilt in an
// empty store, to the same beliefs, with the records of choices. What the store knows already counts nothing, so a log may
// be replayed in part, or again. Events of other learners are passed over. It returns how many events changed the evidence.
//
// The log has to be in order, and the store to remember its ids: see [memstore.Config]'s IDsFor. A payload that is not an
// event is a [*heed.InputError], and ends the replay. The log does not know what was expunged from the store, or forgotten:
// leave out of it what must not come back.
//
// [memstore.Config]: https://pkg.go.dev/github.com/heedhq/heed/memstore#Config
func (l *Learner) Replay(ctx context.Context, log iter.Seq2[stream.Event, error]) (changed int, err error) {
	defer l.expireAll() // the next use reads it anew
	for entry, err := range log {
		did := false
		if err == nil {
			did, err = l.replay(ctx, entry)
		}
		if did {
			changed++
		}
		if err != nil {
			return changed, fmt.Errorf("strategy: replay: %w", err)
		}
	}
	return changed, nil
}

func (l *Learner) expireAll() {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, s := range l.segments {
		s.expire()
	}
}

func (l *Learner) replay(ctx context.Context, entry stream.Event) (changed bool, err error) {
	var e Event
	if err := json.Unmarshal(entry.Payload, &e); err != nil {
		return false, &heed.InputError{Field: "Payload", Reason: "is no event of a learner: " + err.Error()}
	}
	if e.Learner != l.cfg.Name {
		return false, nil
	}
	var effect []store.Batch
	if f := e.Effect; f != nil {
		effect = []store.Batch{{
			ID: f.ID, Policies: l.policies, Reset: f.Reset, Restart: f.Restart, Withdraw: f.Withdraw, Observations: f.Observations,
		}}
	}
	err = records.Retry(ctx, func() error {
		batches := effect
		// The record is a batch of its own: it may be behind the evidence, and need what is no news to that.
		if record, err := l.replayedRecord(ctx, &e); err != nil {
			return err
		} else if record != nil {
			batches = append(slices.Clip(effect), store.Batch{Records: []store.Record{*record}})
		}
		if len(batches) == 0 {
			return nil
		}
		receipts, err := l.cfg.Store.Commit(ctx, batches...)
		changed = err == nil && effect != nil && !receipts[0].Duplicate
		return err
	})
	return changed, err
}

// replayedRecord returns the record of a choice as an event has left it, and nil where nothing is to be written. A record
// that is gone stays so.
func (l *Learner) replayedRecord(ctx context.Context, e *Event) (*store.Record, error) {
	if l.cfg.Unrecorded || e.Choice == nil {
		return nil, nil
	}
	var read store.Snapshot
	if err := l.cfg.Store.Read(ctx, &read, nil, e.Choice.places()); err != nil {
		return nil, err
	}
	kept, err := e.Choice.among(read.Records)
	if err != nil {
		return nil, err
	}
	var row *choiceRow
	switch {
	case e.Type == selected && kept.Revision == 0:
		row = &choiceRow{Record: Record{Choice: *e.Choice, Stage: Pending}, Own: true}
	case e.Type == expired && kept.Revision > 0 && kept.Value.Stage == Pending:
		expired := *kept.Value
		expired.Stage, expired.Silent = Expired, e.Effect != nil
		row = &expired
	case e.Type == observed && kept.Revision > 0 && e.Result != nil && (kept.Value.Result == nil || kept.Value.Result.before(*e.Result)):
		row = kept.Value.settled(*e.Result)
	default:
		return nil, nil
	}
	record := choices.Record(row, kept.Revision) // a new one has the id of its choice
	if kept.Revision > 0 {
		record = row.write(kept.ID, kept.Revision)
	}
	return &record, nil
}
