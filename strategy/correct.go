package strategy

import (
	"context"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/store"
)

// Retract takes back the outcome of this id, as if it had never been observed: from the evidence on the arm and its parameters,
// and from the choice's record, in one commit with an entry in the audit. A choice without another outcome is pending again, or
// expired if Config.Silence.After is over; that does not count as silence. The session still counts as one in which the item was
// seen. The actor and the reason are for the audit, and may be empty.
//
// The id stays known: the outcome does not count if it is delivered again. To retract it again changes nothing. An outcome that
// was never counted is [heed.ErrNotFound]. If the store's history no longer has it, the error is [evidence.ErrForgotten]. Both
// change nothing. Further batches are committed with it, as by [Learner.Observe].
func (l *Learner) Retract(ctx context.Context, c Choice, id, actor, reason string, with ...store.Batch) (err error) {
	defer because(&err, "retract")
	if err := l.validateRetraction(&c, id); err != nil {
		return err
	}
	_, err = l.retract(ctx, &retraction{choice: &c, id: id, actor: actor, reason: reason}, with)
	return err
}

// Revise puts an outcome in the place of another one of the same choice, that of this id, in one commit: a ticket that was
// resolved is open again. The rules of [Learner.Observe] hold for the new outcome, whose id must be another one, and those of
// [Learner.Retract] for the old one. If the new one is [Dropped], the old one is taken back all the same. If it is a [Duplicate],
// nothing changes. The audit names the new outcome's source as the actor.
func (l *Learner) Revise(ctx context.Context, id string, o Outcome, with ...store.Batch) (did Disposition, err error) {
	defer because(&err, "revise")
	now := l.cfg.Now()
	if o.At.IsZero() {
		o.At = now
	}
	if err := l.validateOutcome(&o, now); err != nil {
		return "", err
	}
	if err := l.validateRetraction(&o.Choice, id); err != nil {
		return "", err
	}
	if o.ID == id {
		return "", &heed.InputError{Field: "ID", Reason: "must differ from that of the outcome whose place it takes"}
	}
	did, err = l.retract(ctx, &retraction{
		choice: &o.Choice, id: id, actor: o.Source, reason: "another outcome takes its place",
		next: &o, drop: l.cfg.Disabled || o.Confidence < l.cfg.MinConfidence,
	}, with)
	if err == nil && l.watch != nil {
		l.tell(ctx, now, []Outcome{o}, []Disposition{did})
	}
	return did, err
}

func (l *Learner) validateRetraction(c *Choice, id string) error {
	if c.Learner() != l.cfg.Name {
		return errForeign
	}
	if err := l.validateID(id); err != nil {
		return err
	}
	return (&Outcome{Choice: *c, ID: id}).validateTexts()
}

// A retraction takes back an outcome.
type retraction struct {
	choice        *Choice
	id            string
	actor, reason string
	next          *Outcome // takes its place; nil: none
	drop          bool     // next does not count
}

// retract takes an outcome back, and counts another one in its place if there is one.
func (l *Learner) retract(ctx context.Context, r *retraction, with []store.Batch) (did Disposition, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	s, err := l.segment(r.choice.Category, r.choice.Context)
	if err != nil {
		return "", err
	}
	held, err := observe(ctx, s)
	if err != nil {
		return "", err
	}
	defer leave(held)
	err = records.Retry(ctx, func() error {
		did, err = l.tryRetract(ctx, s, r, with)
		return err
	})
	if err == nil || !refused(err) {
		s.expire() // the next use reads it anew
	}
	return did, err
}

func (l *Learner) tryRetract(ctx context.Context, s *segment, r *retraction, with []store.Batch) (did Disposition, err error) {
	kept, err := l.recordOf(ctx, r.choice)
	if err != nil {
		return "", err
	}
	row, gone := kept.Value, &Result{ID: r.id}
	if kept.Revision > 0 {
		var had *Result
		if row, had = row.without(r.id, l.stageAt(r.choice, l.cfg.Now())); had != nil {
			gone = had
		}
		if r.next != nil && !r.drop {
			row = row.settled(r.next.result())
		}
	}
	b, err := l.correction(s, r, gone)
	if err != nil {
		return "", err
	}
	if row != kept.Value {
		b.Records = append(b.Records, row.write(kept.ID, kept.Revision))
	}
	receipts, err := l.cfg.Store.Commit(ctx, append([]store.Batch{b}, with...)...)
	switch {
	case err != nil:
		return "", err
	case receipts[0].Duplicate:
		return Duplicate, nil
	case row != kept.Value:
		r.choice.remember(keptChoice{Value: row, ID: kept.ID, Revision: receipts[0].Revision})
	}
	if r.drop {
		return Dropped, nil
	}
	return Applied, nil
}

// correction returns the batch that takes an outcome back and counts the next, with its events and its entry in the audit. It
// counts once, by the next outcome's id if there is one: a late delivery must not take back what has been revised since.
func (l *Learner) correction(s *segment, r *retraction, gone *Result) (b store.Batch, err error) {
	c := r.choice
	old := l.evidenceID(&Outcome{Choice: *c, ID: r.id})
	at := evidence.InstantOf(l.cfg.Now()).Time()
	id, action := derivedID(retracted, old), ".retract"
	switch {
	case r.next == nil:
		b.ID = id
	case r.drop:
		b.ID, action = l.evidenceID(r.next), ".revise"
	default:
		b, action = l.batch(s, r.next, observed), ".revise"
	}
	b.Parts = false // the segment is read anew
	b.Retract = []string{old}
	b.Records = []store.Record{store.AuditEntry{
		ID: id, At: at, Actor: r.actor, Action: l.cfg.Name + action, Subject: c.Item, Reason: r.reason,
		Details: map[string]string{
			"category": s.category, "context": s.context, "arm": string(c.Arm), "session": c.Session, "choice": c.ID.String(), "outcome": r.id,
		},
	}.Record()}
	e := LearnerEvent{ID: id, Type: retracted, At: at, Choice: c.withoutDraws(), Result: gone, Actor: r.actor, Reason: r.reason}
	if r.next == nil || r.drop {
		err = l.emit(&b, e)
		return b, err
	}
	told := store.Batch{Records: b.Records} // the effect on the evidence is in the event of the next outcome
	if err := l.emit(&told, e); err != nil {
		return b, err
	}
	b.Records = told.Records
	err = l.emitObserved(&b, r.next)
	return b, err
}

// recordOf reads the record of a choice. Revision 0: there is none.
func (l *Learner) recordOf(ctx context.Context, c *Choice) (keptChoice, error) {
	if l.cfg.Unrecorded || c.Fallback() {
		return keptChoice{}, nil
	}
	var read store.Snapshot
	if err := l.cfg.Store.Read(ctx, &read, nil, c.places()); err != nil {
		return keptChoice{}, err
	}
	return c.among(read.Records)
}

// stageAt returns how far a choice has come at a moment without an outcome.
func (l *Learner) stageAt(c *Choice, at time.Time) Stage {
	if at.Sub(c.At) > l.cfg.Silence.After {
		return Expired
	}
	return Pending
}
