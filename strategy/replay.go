package strategy

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/stream"
)

// An effect is what an event did to a store's evidence.
type effect struct {
	ID           string                 `json:"id"` // of the batch
	Reset        []store.Selection      `json:"reset,omitempty"`
	Restart      []store.Restart        `json:"restart,omitempty"`
	Withdraw     []string               `json:"withdraw,omitempty"` // silence, as an outcome came after all; an outcome that was wrong
	Observations []evidence.Observation `json:"observations,omitempty"`
}

// Replay commits the events of this learner once more. From its log, in an empty store, it rebuilds the same beliefs and the
// records of choices. Events that the store knows change nothing, so a log may be replayed in part, or again. Events of other
// learners are passed over. Replay returns how many events changed the evidence.
//
// The log must be in order, and the store must remember its ids: see [memstore.Config]'s IDsFor. A payload that is not an
// event ends the replay with a [*heed.InputError]. The log does not know what was expunged from the store, or forgotten: leave
// out of it what must not come back.
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
	var e LearnerEvent
	if err := json.Unmarshal(entry.Payload, &e); err != nil {
		return false, &heed.InputError{Field: "Payload", Reason: "is no event of a learner: " + err.Error()}
	}
	if e.Learner != l.cfg.Name {
		return false, nil
	}
	var did []store.Batch
	if f := e.Effect; f != nil {
		did = []store.Batch{{
			ID: f.ID, Policies: l.policies, Reset: f.Reset, Restart: f.Restart, Withdraw: f.Withdraw, Observations: f.Observations,
		}}
	}
	err = records.Retry(ctx, func() error {
		batches := did
		// The record is a batch of its own: the evidence may be known already, and the record not.
		if record, err := l.replayedRecord(ctx, &e); err != nil {
			return err
		} else if record != nil {
			batches = append(slices.Clip(did), store.Batch{Records: []store.Record{*record}})
		}
		if len(batches) == 0 {
			return nil
		}
		receipts, err := l.cfg.Store.Commit(ctx, batches...)
		changed = err == nil && did != nil && !receipts[0].Duplicate
		return err
	})
	return changed, err
}

// replayedRecord returns the record of a choice as an event has left it, or nil if there is nothing to write. A record that is
// gone stays so.
func (l *Learner) replayedRecord(ctx context.Context, e *LearnerEvent) (*store.Record, error) {
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
		row = &choiceRow{ChoiceRecord: ChoiceRecord{Choice: *e.Choice, Stage: Pending}, Own: true}
	case e.Type == expired && kept.Revision > 0 && kept.Value.Stage == Pending:
		expired := *kept.Value
		expired.Stage, expired.Silent = Expired, e.Effect != nil
		row = &expired
	case e.Type == observed && kept.Revision > 0 && e.Result != nil:
		row = kept.Value.settled(*e.Result)
	case e.Type == retracted && kept.Revision > 0 && e.Result != nil:
		row, _ = kept.Value.without(e.Result.ID, l.stageAt(e.Choice, e.At))
	default:
		return nil, nil
	}
	if row == kept.Value {
		return nil, nil
	}
	record := choices.Record(row, kept.Revision) // a new one has the id of its choice
	if kept.Revision > 0 {
		record = row.write(kept.ID, kept.Revision)
	}
	return &record, nil
}
