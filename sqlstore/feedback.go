package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/export"
)

// Feedback is a [feedback.Store] in a database. It keeps everything, the audit log too, of which [DB.Forget] alone changes who
// is named in it. It is safe for concurrent use.
type Feedback struct {
	revisions shelf[struct{}]
	records   shelf[feedback.Record]
	proposals shelf[feedback.Proposal]
	rules     shelf[feedback.Rule]
	audit     shelf[evidence.AuditEntry]
}

var _ feedback.Store = (*Feedback)(nil)

// NewFeedback returns the store of feedback in a database.
func NewFeedback(db *DB) *Feedback {
	return &Feedback{
		shelf[struct{}]{db, export.FeedbackRevision}, shelf[feedback.Record]{db, export.Feedback},
		shelf[feedback.Proposal]{db, export.Proposal}, shelf[feedback.Rule]{db, export.Rule},
		shelf[evidence.AuditEntry]{db, export.FeedbackAudit},
	}
}

// Apply implements [feedback.Store]. What is written is written in order, so that no two changes wait for each other.
func (f *Feedback) Apply(ctx context.Context, c feedback.Change) error {
	return f.revisions.write(ctx, func(t *tx) error {
		for _, name := range slices.Sorted(maps.Keys(c.Expect)) {
			if err := f.revisions.put(t, document[struct{}]{id: name}, c.Expect[name]); err != nil {
				return err
			}
		}
		if err := putAll(t, f.records, c.Records, func(r *feedback.Record) document[feedback.Record] {
			r.Revision++
			return document[feedback.Record]{r.ID, r.Agent, nanos(r.At), r.Revision - 1, *r}
		}); err != nil {
			return err
		}
		if err := putAll(t, f.proposals, c.Proposals, func(p *feedback.Proposal) document[feedback.Proposal] {
			p.Revision++
			return document[feedback.Proposal]{p.ID, string(p.Status), nanos(p.Created), p.Revision - 1, *p}
		}); err != nil {
			return err
		}
		if err := putAll(t, f.rules, c.Rules, func(r *feedback.Rule) document[feedback.Rule] {
			r.Revision++
			return document[feedback.Rule]{r.ID, string(r.Status), nanos(r.Activated), r.Revision - 1, *r}
		}); err != nil {
			return err
		}
		for _, e := range c.Audit {
			if _, err := f.audit.add(t, document[evidence.AuditEntry]{id: e.ID, value: e}); err != nil {
				return err
			}
		}
		return nil
	})
}

// putAll keeps values, each with the revision that it was read with.
func putAll[T any](t *tx, s shelf[T], values []T, of func(*T) document[T]) error {
	all := make([]document[T], len(values))
	for i := range values {
		value := values[i]
		all[i] = of(&value)
	}
	slices.SortFunc(all, func(a, b document[T]) int { return cmp.Compare(a.id, b.id) })
	for _, d := range all {
		if err := s.put(t, d, d.revision); err != nil {
			return err
		}
	}
	return nil
}

// Revisions implements [feedback.Store].
func (f *Feedback) Revisions(ctx context.Context, names ...string) ([]uint64, error) {
	revisions := make([]uint64, len(names))
	err := f.revisions.db.snapshot(ctx, func(t *tx) error {
		for i, name := range names {
			d, err := f.revisions.get(t, name)
			if err != nil && !errors.Is(err, heed.ErrNotFound) {
				return err
			}
			revisions[i] = d.revision
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("sqlstore: revisions: %w", err)
	}
	return revisions, nil
}

// Record implements [feedback.Store].
func (f *Feedback) Record(ctx context.Context, id string) (feedback.Record, error) {
	d, err := f.records.read(ctx, id)
	return d.value, err
}

// Proposal implements [feedback.Store].
func (f *Feedback) Proposal(ctx context.Context, id string) (feedback.Proposal, error) {
	d, err := f.proposals.read(ctx, id)
	return d.value, err
}

// Rule implements [feedback.Store].
func (f *Feedback) Rule(ctx context.Context, id string) (feedback.Rule, error) {
	d, err := f.rules.read(ctx, id)
	return d.value, err
}

// Records implements [feedback.Store].
func (f *Feedback) Records(ctx context.Context, q feedback.Query) iter.Seq2[feedback.Record, error] {
	return f.records.newest(ctx, q.Agent, q.Selects)
}

// Proposals implements [feedback.Store].
func (f *Feedback) Proposals(ctx context.Context, q feedback.ProposalQuery) iter.Seq2[feedback.Proposal, error] {
	return f.proposals.newest(ctx, string(q.Status), q.Selects)
}

// Rules implements [feedback.Store].
func (f *Feedback) Rules(ctx context.Context, q feedback.RuleQuery) iter.Seq2[feedback.Rule, error] {
	return f.rules.newest(ctx, string(q.Status), q.Selects)
}

// Audit implements [feedback.Store].
func (f *Feedback) Audit(ctx context.Context) iter.Seq2[evidence.AuditEntry, error] {
	return f.audit.lastFirst(ctx, "")
}
