package strategy

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// Retract takes back the outcomes of these ids, as if they had never been observed: from the
// evidence on the arm and its parameters, and from the choice's record, in one commit with an entry
// in the audit. A choice without another outcome is pending again, or expired if
// Config.Silence.After is over; that does not count as silence. If the pooling is a [Copy],
// the session still counts for the item. The actor and the reason are for the audit, and
// may be empty.
//
// The ids stay known: the outcomes do not count if they are delivered again. Retracting them again
// has no effect. An outcome that was never counted is [heed.ErrNotFound]. If the store's history no
// longer has one, the error is [evidence.ErrForgotten]. In both cases the store is unchanged.
func (l *Learner) Retract(
	ctx context.Context, c Choice, ids []string, actor, reason string,
) (err error) {
	defer because(&err, "retract")
	if len(ids) == 0 {
		return valid.Input("ids", "must not be empty")
	}
	if err := l.validateRetraction(&c, ids); err != nil {
		return err
	}
	r := &retraction{choice: &c, ids: ids, actor: actor, reason: reason}
	return store.Do(ctx, l.cfg.Store, func(tx *store.Tx) error { return l.retractIn(tx, r) })
}

// Revise puts outcomes in the place of others of the same choice, named by their ids, in one
// commit: a ticket that was resolved is open again. The rules of [Learner.Observe] hold for the new
// outcomes, whose ids must be others, and the rules of [Learner.Retract] for the old ones. If all
// new ones are [Dropped], the old ones are taken back all the same. If the first one that counts is
// a [Duplicate], the call has no effect. The actor is for the audit, and may be empty. Without ids
// the outcomes are observed.
func (l *Learner) Revise(
	ctx context.Context, ids []string, outcomes []Outcome, actor string,
) (did []Disposition, err error) {
	defer because(&err, "revise")
	now := l.cfg.Now()
	outcomes = slices.Clone(outcomes)
	if err := l.validateRevision(ids, outcomes, now); err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return l.observe(ctx, now, outcomes, "", "")
	}
	r := &retraction{
		choice: &outcomes[0].Choice, ids: ids, actor: actor, reason: another, revises: true,
		name: outcomes[0].ID,
	}
	counts := func(o Outcome) bool { return !l.drops(o.Confidence) }
	if i := slices.IndexFunc(outcomes, counts); i >= 0 {
		r.name = outcomes[i].ID
	}
	each := make([]*Disposition, len(outcomes))
	err = store.Do(ctx, l.cfg.Store, func(tx *store.Tx) (err error) {
		// It runs after the functions of observeIn, because the last one of a step runs first.
		tx.Then(func(receipt store.Receipt, _ error) {
			for i := range each {
				if receipt.Duplicate {
					*each[i] = Duplicate
				}
			}
		})
		if err := l.retractIn(tx, r); err != nil {
			return err
		}
		for i := range outcomes {
			if each[i], err = l.observeIn(tx, &outcomes[i], now, false); err != nil {
				return err
			}
		}
		return nil
	})
	return dispositions(each, err)
}

// another is why an outcome was taken back that others have replaced.
const another = "another outcome takes its place"

// drops reports whether an outcome of this confidence does not count.
func (l *Learner) drops(confidence float64) bool {
	return l.cfg.Disabled || confidence < l.cfg.MinConfidence
}

// validateRevision checks the new outcomes and the ids of the old ones before anything is read. It
// gives all outcomes the same Choice value, so that they share the record that this process has of
// it.
func (l *Learner) validateRevision(ids []string, outcomes []Outcome, now time.Time) error {
	if len(outcomes) == 0 {
		return valid.Input("outcomes", "must not be empty")
	}
	known := make(map[string]bool, len(ids)+len(outcomes))
	for _, id := range ids {
		known[id] = true
	}
	for i := range outcomes {
		o := &outcomes[i]
		if err := l.validateOutcome(o, now); err != nil {
			return err
		}
		switch {
		case o.Choice.ID != outcomes[0].Choice.ID:
			return valid.Input("Choice", "must be the same in all outcomes")
		case known[o.ID]:
			return valid.Input("ID", "must differ from those of all other outcomes")
		}
		known[o.ID] = true
		o.Choice = outcomes[0].Choice
	}
	return l.validateRetraction(&outcomes[0].Choice, ids)
}

// validateRetraction refuses the choice of another learner and ids that no outcome can have. Such
// ids would fail in the store, with an error that does not name the field.
func (l *Learner) validateRetraction(c *Choice, ids []string) error {
	if c.facts().Learner != l.cfg.Name {
		return errForeign
	}
	for _, id := range ids {
		if err := l.validateID(id); err != nil {
			return err
		}
		if err := (&Outcome{Choice: *c, ID: id}).validateTexts(); err != nil {
			return err
		}
	}
	return nil
}

// A retraction takes back outcomes.
type retraction struct {
	choice        *Choice
	ids           []string
	actor, reason string
	// revises reports that other outcomes take their place. It is true also if all others are
	// dropped.
	revises bool
	// name is the id of a new outcome, from which the id of the batch is derived, so that a revision
	// which is delivered twice counts once.
	name string
}

// retractIn takes outcomes back as a part of a step, which counts once. The record loses them
// before the batch is made, because the events report what the record had. A choice without a
// record has events with the ids alone.
func (l *Learner) retractIn(tx *store.Tx, r *retraction) error {
	s, err := l.segment(r.choice.Category, r.choice.Context)
	if err != nil {
		return err
	}
	now := l.cfg.Now()
	step := l.stepOf(tx, now)
	kept, err := l.recordIn(tx, step, r.choice)
	if err != nil {
		return err
	}
	row, gone := kept.Answer, make([]Result, len(r.ids))
	for i, id := range r.ids {
		gone[i] = Result{ID: id}
		if row == nil {
			continue
		}
		var had *Result
		if row, had = without(row, id, l.stageAt(r.choice.At, now)); had != nil {
			gone[i] = *had
		}
	}
	b, err := l.correction(s, r, gone)
	if err != nil {
		return err
	}
	step.revised, step.gone = b.Retract, append(step.gone, b.Retract...)
	if row != kept.Answer {
		kept.Answer = row
		b.Records = append(b.Records, l.write(kept))
	}
	// The receipt has no parts of what was taken back, so the segment is loaded again with its next
	// use.
	step.expires = append(step.expires, s)
	tx.Add(b)
	return nil
}

// correction returns the batch that takes outcomes back, with its events and its entry in the
// audit. It counts once, by a new outcome's id if there is one: a late delivery must not take back
// what has been revised since. A retraction without new outcomes has an id that is derived from the
// ids of the old ones.
func (l *Learner) correction(s *segment, r *retraction, gone []Result) (b store.Batch, err error) {
	c := r.choice
	old := make([]string, len(r.ids))
	for i, id := range r.ids {
		old[i] = l.evidenceID(&Outcome{Choice: *c, ID: id})
	}
	at := evidence.InstantOf(l.cfg.Now()).Time()
	id, action := derivedID(retracted, old...), ".retract"
	if b.ID = id; r.revises {
		b.ID, action = l.evidenceID(&Outcome{Choice: *c, ID: r.name}), ".revise"
	}
	b.Retract = old
	b.Records = []store.Record{store.AuditEntry{
		ID: id, At: at, Actor: r.actor, Action: l.cfg.Name + action, Subject: c.Item, Reason: r.reason,
		Details: map[string]string{
			"category": s.category, "context": s.context, "arm": string(c.Arm), "session": c.Session,
			"choice": c.ID.String(), "outcome": strings.Join(r.ids, ", "),
		},
	}.Record()}
	for i := range gone {
		if err := l.emit(&b, LearnerEvent{
			ID: derivedID(retracted, old[i]), Type: retracted, At: at,
			Choice: c.withoutDraws(), Result: &gone[i], Actor: r.actor, Reason: r.reason,
		}); err != nil {
			return b, err
		}
	}
	return b, nil
}

// stageAt returns how far a choice of one moment came at another one without an outcome.
func (l *Learner) stageAt(made, now time.Time) Stage {
	if now.Sub(made) > cmp.Or(l.cfg.Silence.After, waits) {
		return Expired
	}
	return Pending
}
