package patterns

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
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

func (r *Recorder) override(ctx context.Context, id PatternID, d Decision, action string, to State) (Transition, error) {
	t, err := r.byHand(ctx, id, d, func(p *Pattern, tally *evidence.Tally) (string, error) {
		now := r.cfg.Now()
		if p.Override != nil && p.Override.State == to {
			return "", errDone
		}
		current := p.Clone()
		r.advance(&current, tally, now)
		if to == Proven && (current.State == Deprecated || current.State == Inverted) {
			return "", &StateError{current.State, to, action}
		}
		p.Override, p.ArchivedAt = &Override{to, d, stored(now)}, time.Time{}
		return d.Reason, nil
	})
	if err != nil {
		return Transition{}, fmt.Errorf("patterns: %s: %w", action, err)
	}
	return t, nil
}

// byHand makes a change that someone wants. StateErrors are for the caller, and no reason to try again.
func (r *Recorder) byHand(ctx context.Context, id PatternID, d Decision, change edit) (Transition, error) {
	if err := r.checkByHand(ctx, id, d); err != nil {
		return Transition{}, err
	}
	var refused error
	s, err := r.settle(ctx, id, d.Actor, func(p *Pattern, t *evidence.Tally) (cause string, err error) {
		cause, refused = change(p, t)
		if refused != nil {
			return "", errDone
		}
		return cause, nil
	})
	switch {
	case err != nil:
		return Transition{}, err
	case refused != nil && !errors.Is(refused, errDone):
		return Transition{}, refused
	case s.transition == nil:
		return Transition{}, nil
	}
	return *s.transition, nil
}

// A Reset names a pattern that is to begin anew, and says who wants it and why.
type Reset struct {
	Pattern  PatternID
	Decision Decision
	// KeepEvidence ends what was decided by hand and keeps what was observed. Else the pattern's evidence is forgotten,
	// with its inversion.
	KeepEvidence bool
}

// Reset ends a promotion or deprecation by hand, and an inversion. The pattern is a candidate again; or, with
// KeepEvidence, what its evidence makes of it. Outcomes that had been counted do not count again.
//
// The evidence is forgotten first. Where an error comes between, reset again.
func (r *Recorder) Reset(ctx context.Context, reset Reset) (Transition, error) {
	t, err := r.reset(ctx, reset)
	if err != nil {
		return Transition{}, fmt.Errorf("patterns: reset: %w", err)
	}
	return t, nil
}

func (r *Recorder) reset(ctx context.Context, reset Reset) (Transition, error) {
	if err := r.checkByHand(ctx, reset.Pattern, reset.Decision); err != nil {
		return Transition{}, err
	}
	if !reset.KeepEvidence {
		_, err := r.cfg.Evidence.Commit(ctx, evidence.Batch{
			Reset: []evidence.Selection{{Kind: r.kinds.pattern, Item: string(reset.Pattern)}},
			Audit: []evidence.AuditEntry{{
				ID: r.kinds.pattern + ":reset:" + r.cfg.NewID(), At: r.cfg.Now(), Actor: reset.Decision.Actor,
				Action: r.kinds.pattern + ".reset", Subject: string(reset.Pattern), Reason: reset.Decision.Reason,
			}},
		})
		if err != nil {
			return Transition{}, err
		}
	}
	return r.byHand(ctx, reset.Pattern, reset.Decision, func(p *Pattern, _ *evidence.Tally) (string, error) {
		p.Override, p.ArchivedAt = nil, time.Time{}
		if !reset.KeepEvidence {
			p.State, p.Base, p.Inverted = Candidate, Counts{}, Counts{}
		}
		return reset.Decision.Reason, nil
	})
}

// checkByHand refuses a decision without an actor or a reason, and one about what is no pattern of its own.
func (r *Recorder) checkByHand(ctx context.Context, id PatternID, d Decision) error {
	if err := d.validate(); err != nil {
		return err
	}
	p, err := r.cfg.Store.Pattern(ctx, id)
	switch {
	case err != nil:
		return err
	case p.Kind != Positive:
		return inputError("Pattern", "is an anti-pattern: decide on the pattern that it was made of")
	}
	return nil
}
