package patterns

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/store"
)

// A StateError says that a pattern can't go from one state to another. It is a [heed.ErrConflict].
type StateError struct {
	From, To State
	Action   string // "promote"
}

func (e *StateError) Error() string {
	return fmt.Sprintf("cannot %s a pattern that is %s: reset it first", e.Action, e.From)
}

func (e *StateError) Unwrap() error { return heed.ErrConflict }

// Promote makes a pattern [Proven], whatever its evidence says, until [Recorder.Reset], and brings it back from the
// archive. One that is deprecated or inverted can't be promoted: that is a [*StateError]. Where it was promoted before,
// nothing changes, and the transition is the zero one.
func (r *Recorder) Promote(ctx context.Context, id PatternID, d Decision) (Transition, error) {
	return r.override(ctx, id, d, "promote", Proven)
}

// Deprecate makes a pattern [Deprecated], whatever its evidence says, until [Recorder.Reset]. Where it was deprecated by
// hand before, nothing changes, and the transition is the zero one.
func (r *Recorder) Deprecate(ctx context.Context, id PatternID, d Decision) (Transition, error) {
	return r.override(ctx, id, d, "deprecate", Deprecated)
}

func (r *Recorder) override(ctx context.Context, id PatternID, by Decision, action string, to State) (Transition, error) {
	return r.decide(ctx, id, by, action, func(d *draft, p *Pattern, t *evidence.Tally) (string, error) {
		if p.Override != nil && p.Override.State == to {
			return "", errDone
		}
		current := p.clone()
		r.advance(&current, t, d.now)
		if to == Proven && (current.State == Deprecated || current.State == Inverted) {
			return "", &StateError{current.State, to, action}
		}
		p.Override, p.ArchivedAt = &Override{to, by, stored(d.now)}, time.Time{}
		return by.Reason, nil
	})
}

// decide makes a change that someone wants, in one commit with its audit entry. Where the change is errDone, nothing is
// stored.
func (r *Recorder) decide(
	ctx context.Context, id PatternID, by Decision, action string, change func(*draft, *Pattern, *evidence.Tally) (string, error),
) (done Transition, err error) {
	if err = by.validate(); err == nil {
		err = r.retry(ctx, func() error {
			found, err := r.find(ctx, id)
			if err != nil {
				return err
			}
			d := r.draft(found)
			if p, _ := d.pattern(id); p.Kind != Positive {
				return inputError("Pattern", "is an anti-pattern: decide on the pattern that it was made of")
			}
			s, err := d.settle(id, by.Actor, func(p *Pattern, t *evidence.Tally) (string, error) { return change(d, p, t) })
			if err != nil {
				return err
			}
			done = *s.transition
			d.batch.Records = append(d.batch.Records, r.audit(done.ID, done.At, by, action, string(id), map[string]string{
				"from": string(done.From), "to": string(done.To),
			}))
			_, err = d.commit(ctx)
			return err
		})
	}
	switch {
	case errors.Is(err, errDone):
		return Transition{}, nil
	case err != nil:
		return Transition{}, fmt.Errorf("patterns: %s: %w", action, err)
	}
	return done, nil
}

// audit returns the record of what somebody has done.
func (r *Recorder) audit(id string, at time.Time, by Decision, action, subject string, details map[string]string) store.Record {
	return store.AuditEntry{
		ID: records.ID("patterns", r.cfg.Name, action, id), At: at, Actor: by.Actor, Action: r.cfg.Name + "." + action, Subject: subject,
		Reason: by.Reason, Details: details,
	}.Record()
}

// A Reset names a pattern that is to begin anew, and says who wants it and why.
type Reset struct {
	Pattern  PatternID
	Decision Decision
	// KeepEvidence ends what was decided by hand and keeps what was observed. Else the pattern's evidence is forgotten,
	// with its inversion.
	KeepEvidence bool
}

// Reset ends a promotion or deprecation by hand, an inversion and an archiving. The pattern is a candidate again; or, with
// KeepEvidence, what its evidence makes of it. Outcomes that had been counted do not count again. Where there is nothing to
// end or to forget, nothing changes, and the transition is the zero one.
func (r *Recorder) Reset(ctx context.Context, reset Reset) (Transition, error) {
	action := "reset"
	if reset.KeepEvidence {
		action = "restore"
	}
	return r.decide(ctx, reset.Pattern, reset.Decision, action, func(d *draft, p *Pattern, t *evidence.Tally) (string, error) {
		before := p.clone()
		p.Override, p.ArchivedAt = nil, time.Time{}
		if !reset.KeepEvidence {
			p.State, p.Base, p.Inverted = Candidate, Counts{}, Counts{}
		}
		after := p.clone()
		if reset.KeepEvidence {
			r.advance(&after, t, d.now)
		}
		if reflect.DeepEqual(before, after) && (reset.KeepEvidence || t.N() == 0) {
			return "", errDone
		}
		if !reset.KeepEvidence {
			d.batch.Reset = []evidence.Selection{{Kind: r.kinds.patternCells, Item: string(p.ID)}}
			*t = evidence.Tally{}
		}
		return reset.Decision.Reason, nil
	})
}

// ResetCriterion forgets the evidence on a criterion. Feedback that had been counted does not count again. Where there is
// none, nothing changes.
func (r *Recorder) ResetCriterion(ctx context.Context, name string, by Decision) error {
	err := firstError(checkIDs(field{"Criterion", name}), by.validate())
	if err == nil {
		err = r.resetCriterion(ctx, name, by)
	}
	if err != nil {
		return fmt.Errorf("patterns: reset criterion: %w", err)
	}
	return nil
}

func (r *Recorder) resetCriterion(ctx context.Context, name string, by Decision) error {
	var s store.Snapshot
	if err := r.cfg.Store.Read(ctx, &s, []evidence.Cell{r.criterionCell(name)}, nil); err != nil || len(s.Parts) == 0 {
		return err
	}
	_, err := r.cfg.Store.Commit(ctx, store.Batch{
		Reset:   []evidence.Selection{{Kind: r.kinds.criterionCells, Item: name}},
		Records: []store.Record{r.audit(r.cfg.NewID(), r.cfg.Now(), by, "reset_criterion", name, nil)},
	})
	return err
}
