package strategy

import (
	"cmp"
	"context"

	"github.com/google/uuid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// A Reset names what a learner is to forget, and why.
type Reset struct {
	// Category and Context name the segment.
	Category string
	Context  string
	// Item is the one item to forget. Empty: the whole segment, with what was learned about
	// parameters.
	Item string
	// Actor is who wants it, and Reason why. The reason must not be empty. Both are in the store's
	// audit log. To forget a source, run a [store.Job] with Expunge, and then [Learner.Refresh].
	Actor  string
	Reason string
}

// Reset forgets what was learned of a segment, or of one of its items, and writes that into the
// store's audit log. A segment begins again from the cold start, and an item from its segment.
// Outcomes that had been counted do not count again if they are delivered again. Choices that
// running sessions remember stay as they are. If there is no evidence to forget, Reset returns
// [heed.ErrNotFound] and has no effect, because the name of the category may be mistyped.
//
// Reset returns when the evidence is gone, which may take several commits for a large segment: see
// [store.Job]. If the program ends in between, the next Sweep of the store finishes it.
func (l *Learner) Reset(ctx context.Context, r Reset) (err error) {
	defer because(&err, "reset")
	if err := r.validate(); err != nil {
		return err
	}
	s, err := l.segment(r.Category, r.Context)
	if err != nil {
		return err
	}
	at := l.cfg.Now()
	b, job := store.Batch{ID: "reset:" + uuid.NewString()}, store.Job{At: at}
	for _, kind := range []string{l.kinds.arm, l.kinds.given, l.kinds.sessions} {
		job.Reset = append(job.Reset, store.Selection{Kind: kind, Scope: s.space.scope, Item: r.Item})
	}
	if r.Item == "" {
		job.Reset = append(job.Reset, store.Selection{Kind: l.kinds.parameter, Scope: s.space.scope})
	}
	if err := l.anyOf(ctx, job.Reset); err != nil {
		return err
	}
	_, err = l.forget(ctx, s, b, job, LearnerEvent{Type: wasReset, Item: r.Item, At: at,
		Actor: r.Actor, Reason: r.Reason}, r.Actor, ".reset")
	of := store.IDOf(s.space.scope)
	return cmp.Or(err, l.unshare(ctx, func(segment string) bool { return segment == of }))
}

// validate reports the first fault. A reason is required, because the audit must show why evidence
// is gone.
func (r *Reset) validate() error {
	if r.Reason == "" {
		return valid.Input("Reason", "must not be empty")
	}
	return valid.Texts(evidence.MaxText, "Item", r.Item, "Category", r.Category, "Context", r.Context)
}

// anyOf returns [heed.ErrNotFound] if there is no evidence in what is selected.
func (l *Learner) anyOf(ctx context.Context, selected []store.Selection) error {
	for _, sel := range selected {
		for part, err := range l.cfg.Store.List(ctx,
			store.CellQuery{Kind: sel.Kind, Scope: sel.Scope}) {
			if err != nil || sel.Covers(part.Cell) {
				return err
			}
		}
	}
	return heed.ErrNotFound
}

// forget commits a batch and runs its job, with its event, its entry in the audit, and the count of
// resets. It reports false if it was done before. The count of resets is an observation of this
// batch, so it counts once with it. Its new value comes back in the receipt, and is remembered for
// the ids of derived evidence.
func (l *Learner) forget(ctx context.Context, s *segment, b store.Batch, job store.Job,
	e LearnerEvent, actor, action string) (bool, error) {
	b.Observations = []evidence.Observation{{ID: b.ID, Cell: s.space.resets(e.Item), Reward: 1,
		Weight: 1, At: e.At}}
	b.PartsOf = store.CellsOf(b.Observations...)
	b.Records = []store.Record{store.AuditEntry{
		ID: b.ID, At: e.At, Actor: actor, Action: l.cfg.Name + action, Subject: e.Item,
		Reason:  e.Reason,
		Details: map[string]string{"category": s.category, "context": s.context},
	}.Record()}
	e.ID, e.Category, e.Context = b.ID, s.category, s.context
	if err := l.emit(&b, e); err != nil {
		return false, err
	}
	var receipt store.Receipt
	err := store.Do(ctx, l.cfg.Store, func(tx *store.Tx) error {
		tx.Add(b)
		tx.Start(job)
		tx.Then(func(r store.Receipt, _ error) { receipt = r })
		return nil
	})
	s.expire() // the next use reads it again
	l.bulk.Store(nil)
	if err != nil || receipt.Duplicate {
		return false, err
	}
	if n := countOf(receipt.Parts); e.Item == "" {
		s.wasReset("", resets{n})
	} else {
		s.wasReset(e.Item, resets{0, n})
	}
	return true, nil
}
