package patterns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// Promote makes a pattern "proven" until [Recorder.Reset], in spite of any evidence. If it is
// deprecated or inverted, the error is a [heed.ErrConflict]: reset it first. If it was promoted
// before, the call has no effect and returns the zero transition.
func (r *Recorder) Promote(ctx context.Context, id PatternID, by By) (Transition, error) {
	return r.override(ctx, id, by, "promote", proven)
}

// Deprecate makes a pattern "deprecated" until [Recorder.Reset], in spite of any evidence. If it
// was deprecated by hand before, the call has no effect and returns the zero transition.
func (r *Recorder) Deprecate(ctx context.Context, id PatternID, by By) (Transition, error) {
	return r.override(ctx, id, by, "deprecate", deprecated)
}

// override gives a pattern a state by hand. A pattern that is known to fail is not promoted,
// because the person should see its record first, and reset it.
func (r *Recorder) override(ctx context.Context, id PatternID, by By, action string,
	to string) (Transition, error) {
	return r.decide(ctx, id, by, action, func(d *draft, p *Pattern) error {
		if p.Override == to {
			return errDone
		}
		t := d.tallies[p.ID]
		r.advance(p, &t, d.now)
		if to == proven && (p.State == deprecated || p.State == inverted) {
			return store.Final(fmt.Errorf("%w: the pattern is %s: reset it first",
				heed.ErrConflict, p.State))
		}
		p.Override, p.By = to, by
		return nil
	})
}

var errDone = errors.New("done")

// decide makes a change that somebody wants, in one commit with its audit entry. If the change
// returns errDone, decide does not write. An anti-pattern is a warning in any case, so its
// pattern is what a person decides on. The id of the audit entry follows from the transition, so a
// step that runs twice has one entry.
func (r *Recorder) decide(
	ctx context.Context, id PatternID, by By, action string,
	change func(*draft, *Pattern) error,
) (Transition, error) {
	err := cmp.Or(by.validate(), valid.Names(maxID, "ID", string(id)))
	if err != nil {
		return Transition{}, failed(action, err)
	}
	d, err := r.change(ctx, []PatternID{id}, func(d *draft) error {
		_, warned := r.warned(d.reading, id, d.now)
		p, known := d.pattern(id)
		switch {
		case !known && !warned:
			return heed.ErrNotFound
		case p.Anti || warned:
			return valid.Input("Pattern", "is an anti-pattern: decide on the pattern that it was made of")
		}
		wanted := p.clone()
		switch err := change(d, &wanted); {
		case errors.Is(err, errDone):
			return nil
		case err != nil:
			return err
		}
		d.settle(wanted, by.Actor, by.Reason)
		for _, done := range d.Transitions {
			d.tx.Put(r.audit(done.ID, done.At, by, action, string(id), map[string]string{
				"from": done.From, "to": done.To,
			}))
		}
		return nil
	})
	if err != nil || len(d.Transitions) == 0 {
		return Transition{}, failed(action, err)
	}
	return d.Transitions[0], nil
}

// audit returns the record of what somebody did.
func (r *Recorder) audit(id string, at time.Time, by By, action, subject string,
	details map[string]string) store.Record {
	return store.AuditEntry{
		ID: store.IDOf("patterns", r.cfg.Name, action,
			id), At: at, Actor: by.Actor, Action: r.cfg.Name + "." + action, Subject: subject,
		Reason: by.Reason, Details: details,
	}.Record()
}

// A Reset selects what a recorder is to forget or to end, and records who wants it and why. Either
// Pattern or Criterion must be set.
type Reset struct {
	// Pattern is the pattern to reset. It must not be an anti-pattern, which follows its pattern.
	Pattern PatternID
	// KeepEvidence keeps the pattern's evidence and ends only what was decided by hand. Without it,
	// the evidence and the inversion are forgotten too.
	KeepEvidence bool
	// Criterion forgets the evidence on a criterion.
	Criterion string
	// By is who wants it and why, for the audit.
	By By
}

// Reset ends a promotion or deprecation by hand, and an inversion. The pattern is a
// candidate again; or, with KeepEvidence, what its evidence makes of it. It also resets criteria.
// Outcomes and ratings that were counted do not count again. If there is no such state
// or evidence, the call has no effect. The transition is zero if no pattern changed.
func (r *Recorder) Reset(ctx context.Context, reset Reset) (Transition, error) {
	err := cmp.Or(reset.By.validate(), valid.Texts(maxID, "Criterion", reset.Criterion))
	switch pattern := string(reset.Pattern); {
	case err != nil:
	case (pattern == "") == (reset.Criterion == ""):
		err = valid.Input("Pattern", "or Criterion must be set, and not both")
	case pattern != "":
		return r.resetPattern(ctx, reset)
	default:
		err = store.Do(ctx, r.cfg.Store,
			func(tx *store.Tx) error { return r.resetCriterion(tx, reset.Criterion, reset.By) })
	}
	return Transition{}, failed("reset", err)
}

// resetPattern ends what was decided by hand, and forgets the evidence unless it is to be kept.
// With KeepEvidence the state is computed again from the evidence. If neither the pattern nor its
// evidence would change, no record and no audit entry is written.
func (r *Recorder) resetPattern(ctx context.Context, reset Reset) (Transition, error) {
	action := "reset"
	if reset.KeepEvidence {
		action = "restore"
	}
	return r.decide(ctx, reset.Pattern, reset.By, action,
		func(d *draft, p *Pattern) error {
			before, t := p.clone(), d.tallies[p.ID]
			p.Override, p.By = "", By{}
			if reset.KeepEvidence {
				after := p.clone()
				if r.advance(&after, &t, d.now); reflect.DeepEqual(before, after) {
					return errDone
				}
				return nil
			}
			p.State, p.Twin = candidate, ""
			p.Base, p.Inverted = Observations{}, Observations{}
			if reflect.DeepEqual(before, *p) && t.N() == 0 {
				return errDone
			}
			d.tx.Add(store.Batch{Reset: []evidence.Cell{r.patternCell(p.ID)}})
			delete(d.tallies, p.ID)
			return nil
		})
}

// resetCriterion forgets the evidence on a criterion, if there is any. Without evidence the audit
// gets no entry either.
func (r *Recorder) resetCriterion(tx *store.Tx, name string, by By) error {
	var s store.Snapshot
	if err := tx.Read(&s, []evidence.Cell{r.criterionCell(name)}, nil); err != nil ||
		len(s.Parts) == 0 {
		return err
	}
	tx.Add(store.Batch{Reset: []evidence.Cell{r.criterionCell(name)}})
	tx.Put(r.audit(tx.ID(r.cfg.NewID), r.cfg.Now(), by, "reset_criterion", name, nil))
	return nil
}
