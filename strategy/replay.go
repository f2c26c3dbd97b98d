package strategy

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/stream"
)

// An effect is what an event did to a store's evidence.
//
// It has the inputs of the commit, and not the sums after it, so replaying it in another store
// gives the same sums whatever that store has already.
type effect struct {
	ID           string                 `json:"id"` // of the batch
	Reset        []store.Selection      `json:"reset,omitempty"`
	Restart      []store.Restart        `json:"restart,omitempty"`
	Withdraw     []string               `json:"withdraw,omitempty"` // silence or a wrong outcome
	Expunge      []string               `json:"expunge,omitempty"`  // sources, in the whole store
	Observations []evidence.Observation `json:"observations,omitempty"`
}

// Replay commits the events of this learner once more. From its log, in an empty store, it rebuilds
// the same beliefs and the records of choices. Events that the store has have no effect, so a log
// may be replayed in part, or again. Events of other learners are passed over, unless a source was
// expunged. Replay returns how many events changed the evidence.
//
// A source that was expunged by [Learner.Reset] stays out, and so does an outcome that was taken
// back by [Learner.Retract]. A source also stays out if the audit of this store has an entry for it
// whose action is "expunge": what it had caused until then is not counted. The log does not know of
// anything else that was expunged, retracted or forgotten in the store: leave out of it what must
// not come back.
//
// The log must be in order, and the store must remember its ids: see [memstore.Config]'s IDsFor. A
// payload that is not an event ends the replay with a [*heed.InputError].
//
// [memstore.Config]: https://pkg.go.dev/github.com/heedhq/heed/memstore#Config
func (l *Learner) Replay(
	ctx context.Context, log iter.Seq2[stream.Event, error],
) (changed int, err error) {
	defer l.expireAll() // the next use reads it again
	out, err := l.expungedSources(ctx)
	if err != nil {
		return 0, fmt.Errorf("strategy: replay: %w", err)
	}
	for entry, err := range log {
		did := false
		if err == nil {
			did, err = l.replay(ctx, entry, out)
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

// expireAll has all segments in memory read again with their next use.
func (l *Learner) expireAll() {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, s := range l.segments {
		s.expire()
	}
}

// expungedSources returns when the sources that the store's audit names were expunged last.
func (l *Learner) expungedSources(ctx context.Context) (map[string]time.Time, error) {
	out := make(map[string]time.Time)
	for e, err := range store.AuditEntries(ctx, l.cfg.Store, store.AuditQuery{}) {
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix("."+e.Action, expunged) && e.At.After(out[e.Subject]) {
			out[e.Subject] = e.At
		}
	}
	return out, nil
}

// replay commits one event: first the job that it began, if there is one, and then its evidence and
// the record of its choice. It reports whether the evidence changed.
func (l *Learner) replay(ctx context.Context, entry stream.Event,
	out map[string]time.Time) (changed bool, err error) {
	var e LearnerEvent
	if err := json.Unmarshal(entry.Payload, &e); err != nil {
		return false, &heed.InputError{Field: "Payload",
			Reason: "is no event of a learner: " + err.Error()}
	}
	did, job := l.effects(&e, out)
	if e.Learner != l.cfg.Name && did == nil {
		return false, nil
	}
	if len(job.Reset)+len(job.Expunge) > 0 {
		receipt, err := l.run(ctx, did[0], job)
		if changed = err == nil && !receipt.Duplicate; err != nil {
			return false, err
		}
		did = nil
	}
	err = store.Do(ctx, l.cfg.Store, func(tx *store.Tx) error {
		batches := did
		// The record is a separate batch: the evidence may be known already, and the record not.
		if record, err := l.replayedRecord(tx, &e); err != nil {
			return err
		} else if record != nil {
			batches = append(slices.Clip(did), store.Batch{Records: []store.Record{*record}})
		}
		if len(batches) == 0 {
			return nil
		}
		receipts, err := l.cfg.Store.Commit(ctx, batches...)
		changed = changed || err == nil && did != nil && !receipts[0].Duplicate
		return err
	})
	return changed, err
}

// effects returns what an event did to the evidence, without what expunged sources had caused: a
// batch at most, and the job that it began. Of another learner's event it is what it expunged.
func (l *Learner) effects(
	e *LearnerEvent, out map[string]time.Time,
) (did []store.Batch, job store.Job) {
	f := e.Effect
	if f == nil {
		return nil, job
	}
	b := store.Batch{ID: f.ID}
	job.At = e.At
	for _, source := range f.Expunge {
		if source != "" { // it may have been forgotten since
			job.Expunge = append(job.Expunge, source)
		}
	}
	switch {
	case e.Learner == l.cfg.Name:
		b.Policies, b.Restart, b.Withdraw = l.policies, f.Restart, f.Withdraw
		job.Reset = f.Reset
		for _, o := range f.Observations {
			if at, ok := out[o.Source]; !ok || o.Source == "" || o.At.After(at) {
				b.Observations = append(b.Observations, o)
			}
		}
	case len(job.Expunge) == 0:
		return nil, job
	// it may have been done before for the other learner, and must be done after what this one has
	// learned
	default:
		b.ID = derivedID("expunged", l.cfg.Name, f.ID)
	}
	return []store.Batch{b}, job
}

// replayedRecord returns the record of a choice as an event left it, or nil without a change. A
// record that is gone stays so.
func (l *Learner) replayedRecord(tx *store.Tx, e *LearnerEvent) (*store.Record, error) {
	if l.cfg.Unrecorded || e.Choice == nil {
		return nil, nil
	}
	kept, err := l.readRecord(tx, e.Choice)
	if err != nil {
		return nil, err
	}
	// Each case is a change that the event made at the time, if the record does not have it yet.
	// Otherwise row stays the record that was read, and there is no change.
	row := kept.Answer
	switch known := kept.revision > 0; {
	case e.Type == selected && !known:
		made := e.Choice.Record()
		made.Own = true // so the record has the id of its choice
		row = &answer.Answer{ID: made.ID.String(), At: made.At, Session: made.Session, Choice: made}
		record := l.answers.Record(*row, 0)
		return &record, nil
	case e.Type == expired && known && len(row.Statements) == 0 && !row.Choice.Expired:
		next, choice := *row, *row.Choice
		choice.Expired, choice.Silent = true, e.Effect != nil
		next.Choice, row = &choice, &next
	case e.Type == observed && known && e.Result != nil:
		row = settled(row, *e.Result)
	case e.Type == retracted && known && e.Result != nil:
		row, _ = without(row, e.Result.ID, l.stageAt(e.Choice.At, e.At))
	}
	if row == kept.Answer {
		return nil, nil
	}
	kept.Answer = row
	record := l.write(&kept)
	return &record, nil
}
