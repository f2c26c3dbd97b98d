package patterns

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/store"
)

// Promote makes a pattern [Proven] until [Recorder.Reset], in spite of any evidence, and brings it back from the archive. If
// it is deprecated or inverted, the error is a [heed.ErrConflict]: reset it first. If it was promoted before, nothing changes
// and the transition is the zero one.
func (r *Recorder) Promote(ctx context.Context, id PatternID, by By) (Transition, error) {
	return r.override(ctx, id, by, "promote", Proven)
}

// Deprecate makes a pattern [Deprecated] until [Recorder.Reset], in spite of any evidence. If it was deprecated by hand before,
// nothing changes and the transition is the zero one.
func (r *Recorder) Deprecate(ctx context.Context, id PatternID, by By) (Transition, error) {
	return r.override(ctx, id, by, "deprecate", Deprecated)
}

func (r *Recorder) override(ctx context.Context, id PatternID, by By, action string, to State) (Transition, error) {
	return r.decide(ctx, id, by, action, func(d *draft, p *Pattern, t *evidence.Tally) (string, error) {
		if p.Override == to {
			return "", errDone
		}
		current := p.clone()
		r.advance(&current, t, d.now)
		if to == Proven && (current.State == Deprecated || current.State == Inverted) {
			return "", fmt.Errorf("%w: the pattern is %s: reset it first", heed.ErrConflict, current.State)
		}
		p.Override, p.By, p.ArchivedAt = to, by, time.Time{}
		return by.Reason, nil
	})
}

// decide makes a change that somebody wants, in one commit with its audit entry. If the change returns errDone, it stores
// nothing.
func (r *Recorder) decide(
	ctx context.Context, id PatternID, by By, action string, change func(*draft, *Pattern, *evidence.Tally) (string, error),
) (Transition, error) {
	err := firstError(by.validate(), checkIDs(field{"ID", string(id)}))
	if err != nil {
		return Transition{}, failed(action, err)
	}
	d, err := r.change(ctx, []PatternID{id}, "", func(d *draft) error {
		p, known := d.pattern(id)
		switch {
		case !known:
			return heed.ErrNotFound
		case p.Anti:
			return inputError("Pattern", "is an anti-pattern: decide on the pattern that it was made of")
		}
		err := d.settle(id, by.Actor, func(p *Pattern, t *evidence.Tally) (string, error) { return change(d, p, t) })
		for _, done := range d.transitions {
			d.batch.Records = append(d.batch.Records, r.audit(done.ID, done.At, by, action, string(id), map[string]string{
				"from": string(done.From), "to": string(done.To),
			}))
		}
		return err
	})
	if err != nil || len(d.transitions) == 0 {
		return Transition{}, failed(action, err)
	}
	return d.transitions[0], nil
}

// audit returns the record of what somebody has done.
func (r *Recorder) audit(id string, at time.Time, by By, action, subject string, details map[string]string) store.Record {
	return store.AuditEntry{
		ID: store.IDOf("patterns", r.cfg.Name, action, id), At: at, Actor: by.Actor, Action: r.cfg.Name + "." + action, Subject: subject,
		Reason: by.Reason, Details: details,
	}.Record()
}

// A Reset names what a recorder is to forget or to end, and says who wants it and why. Exactly one of Pattern, Criterion and Task
// must be set.
type Reset struct {
	Pattern PatternID
	// KeepEvidence keeps the pattern's evidence and ends only what was decided by hand. Without it, the evidence and the inversion
	// are forgotten too.
	KeepEvidence bool
	// Criterion forgets the evidence on a criterion.
	Criterion string
	// Task ends the strikes of a task and forgets its errors: somebody looked into it.
	Task string
	By   By
}

// Reset ends a promotion or deprecation by hand, an inversion and an archiving. The pattern is a candidate again; or, with
// KeepEvidence, what its evidence makes of it. It also resets criteria and tasks. Outcomes and ratings that were counted do
// not count again. If there is nothing to end or to forget, nothing changes. The transition is zero if no pattern changed.
func (r *Recorder) Reset(ctx context.Context, reset Reset) (Transition, error) {
	err := firstError(reset.By.validate(), checkText("Criterion", reset.Criterion, maxID), checkText("Task", reset.Task, maxID))
	switch pattern := string(reset.Pattern); {
	case err != nil:
	case pattern != "" && reset.Criterion+reset.Task == "":
		return r.resetPattern(ctx, reset)
	case reset.Criterion != "" && pattern+reset.Task == "":
		err = r.resetCriterion(ctx, reset.Criterion, reset.By)
	case reset.Task != "" && pattern+reset.Criterion == "":
		err = records.Retry(ctx, func() error { return r.resetTask(ctx, reset.Task, reset.By) })
	default:
		err = inputError("Pattern", "or Criterion or Task must be set, and one of them alone")
	}
	return Transition{}, failed("reset", err)
}

func (r *Recorder) resetPattern(ctx context.Context, reset Reset) (Transition, error) {
	action := "reset"
	if reset.KeepEvidence {
		action = "restore"
	}
	return r.decide(ctx, reset.Pattern, reset.By, action, func(d *draft, p *Pattern, t *evidence.Tally) (string, error) {
		before := p.clone()
		p.Override, p.By, p.ArchivedAt = "", By{}, time.Time{}
		if !reset.KeepEvidence {
			p.State, p.Base, p.Inverted = Candidate, Observations{}, Observations{}
		}
		after := p.clone()
		if reset.KeepEvidence {
			r.advance(&after, t, d.now)
		}
		if reflect.DeepEqual(before, after) && (reset.KeepEvidence || t.N() == 0) {
			return "", errDone
		}
		if !reset.KeepEvidence {
			d.batch.Reset = []store.Selection{{Kind: r.kinds.patternCells, Item: string(p.ID)}}
			*t = evidence.Tally{}
		}
		return reset.By.Reason, nil
	})
}

func (r *Recorder) resetCriterion(ctx context.Context, name string, by By) error {
	var s store.Snapshot
	if err := r.cfg.Store.Read(ctx, &s, []evidence.Cell{r.criterionCell(name)}, nil); err != nil || len(s.Parts) == 0 {
		return err
	}
	_, err := r.cfg.Store.Commit(ctx, store.Batch{
		Reset:   []store.Selection{{Kind: r.kinds.criterionCells, Item: name}},
		Records: []store.Record{r.audit(r.cfg.NewID(), r.cfg.Now(), by, "reset_criterion", name, nil)},
	})
	return err
}

func (r *Recorder) resetTask(ctx context.Context, task string, by By) error {
	recent, err := r.recent(ctx, task)
	if err != nil {
		return err
	}
	var b store.Batch
	for kept, err := range r.kinds.errors.Find(ctx, r.cfg.Store, store.Query{Keys: []string{store.Key("task", task)}}) {
		if err != nil {
			return err
		}
		b.Records = append(b.Records, r.kinds.errors.Removal(kept.ID, kept.Revision))
	}
	if s := r.strikes(task, recent); s.Count == 0 && len(b.Records) == 0 {
		return nil
	}
	now := stored(r.cfg.Now())
	id := r.cfg.Name + ":review:" + r.cfg.NewID()
	review := Entry{Outcome: Outcome{ID: id, Task: task, At: now}, Review: by, RecordedAt: now}
	b.Records = append(b.Records, r.kinds.entries.Record(review, store.Once), r.audit(id, now, by, "reset_task", task, nil))
	_, err = r.commit(ctx, b)
	return err
}
