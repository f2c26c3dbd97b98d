package memstore

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
)

// Feedback is a [feedback.Store] in memory. The zero value is ready to use; it must not be copied after first use. It
// keeps everything, the audit log too. Feedback is safe for concurrent use.
type Feedback struct {
	mu        sync.RWMutex
	revisions map[string]uint64
	records   dated[feedback.Record]
	proposals dated[feedback.Proposal]
	rules     dated[feedback.Rule]
	audit     []evidence.AuditEntry // the first recorded first
	audited   map[string]bool
}

var _ feedback.Store = (*Feedback)(nil)

// Apply implements [feedback.Store].
func (f *Feedback) Apply(ctx context.Context, c feedback.Change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, revision := range c.Expect {
		if f.revisions[name] != revision {
			return conflict("revision " + name)
		}
	}
	if err := f.check(&c); err != nil {
		return err
	}
	if f.revisions == nil {
		f.revisions, f.audited = make(map[string]uint64), make(map[string]bool)
	}
	for name := range c.Expect {
		f.revisions[name]++
	}
	f.put(&c)
	return nil
}

func conflict(what string) error {
	return fmt.Errorf("memstore: %s is not current: %w", what, heed.ErrConflict)
}

// check reports a value whose revision is not the one that is stored.
func (f *Feedback) check(c *feedback.Change) error {
	for i := range c.Records {
		if r := &c.Records[i]; f.records.get(r.ID).Revision != r.Revision {
			return conflict("a feedback")
		}
	}
	for i := range c.Proposals {
		if p := &c.Proposals[i]; f.proposals.get(p.ID).Revision != p.Revision {
			return conflict("a proposal")
		}
	}
	for i := range c.Rules {
		if r := &c.Rules[i]; f.rules.get(r.ID).Revision != r.Revision {
			return conflict("a rule")
		}
	}
	return nil
}

func (f *Feedback) put(c *feedback.Change) {
	for i := range c.Records {
		r := c.Records[i].Clone()
		r.Revision++
		f.records.put(r.ID, r.At, r.Agent, r)
	}
	for i := range c.Proposals {
		p := c.Proposals[i].Clone()
		p.Revision++
		f.proposals.put(p.ID, p.Created, string(p.Status), p)
	}
	for i := range c.Rules {
		r := c.Rules[i].Clone()
		r.Revision++
		f.rules.put(r.ID, r.Activated, string(r.Status), r)
	}
	for _, e := range c.Audit {
		if !f.audited[e.ID] {
			f.audited[e.ID] = true
			e.Details = maps.Clone(e.Details)
			f.audit = append(f.audit, e)
		}
	}
}

// Revisions implements [feedback.Store].
func (f *Feedback) Revisions(ctx context.Context, names ...string) ([]uint64, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	revisions := make([]uint64, len(names))
	for i, name := range names {
		revisions[i] = f.revisions[name]
	}
	return revisions, nil
}

// Record implements [feedback.Store].
func (f *Feedback) Record(ctx context.Context, id string) (feedback.Record, error) {
	return one(ctx, f, &f.records, id, feedback.Record.Clone)
}

// Proposal implements [feedback.Store].
func (f *Feedback) Proposal(ctx context.Context, id string) (feedback.Proposal, error) {
	return one(ctx, f, &f.proposals, id, feedback.Proposal.Clone)
}

// Rule implements [feedback.Store].
func (f *Feedback) Rule(ctx context.Context, id string) (feedback.Rule, error) {
	return one(ctx, f, &f.rules, id, feedback.Rule.Clone)
}

// Records implements [feedback.Store].
func (f *Feedback) Records(ctx context.Context, q feedback.Query) iter.Seq2[feedback.Record, error] {
	return many(ctx, f, &f.records, q.Agent, q.Selects, feedback.Record.Clone)
}

// Proposals implements [feedback.Store].
func (f *Feedback) Proposals(ctx context.Context, q feedback.ProposalQuery) iter.Seq2[feedback.Proposal, error] {
	return many(ctx, f, &f.proposals, string(q.Status), q.Selects, feedback.Proposal.Clone)
}

// Rules implements [feedback.Store].
func (f *Feedback) Rules(ctx context.Context, q feedback.RuleQuery) iter.Seq2[feedback.Rule, error] {
	return many(ctx, f, &f.rules, string(q.Status), q.Selects, feedback.Rule.Clone)
}

// Audit implements [feedback.Store].
func (f *Feedback) Audit(ctx context.Context) iter.Seq2[evidence.AuditEntry, error] {
	return func(yield func(evidence.AuditEntry, error) bool) {
		f.mu.RLock()
		entries := f.audit[:len(f.audit):len(f.audit)] // only ever appended to
		f.mu.RUnlock()
		for _, e := range slices.Backward(entries) {
			if err := ctx.Err(); err != nil {
				yield(evidence.AuditEntry{}, err)
				return
			}
			e.Details = maps.Clone(e.Details)
			if !yield(e, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil && len(entries) == 0 {
			yield(evidence.AuditEntry{}, err)
		}
	}
}

// one returns a copy of a value.
func one[T any](ctx context.Context, f *Feedback, d *dated[T], id string, clone func(T) T) (value T, err error) {
	if err := ctx.Err(); err != nil {
		return value, err
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	e, ok := d.byID[id]
	if !ok {
		return value, fmt.Errorf("memstore: %w", heed.ErrNotFound)
	}
	return clone(e.value), nil
}

// many yields copies of the values of a group that are selected, the newest first. Values are never changed once they are
// stored, so that a list of them can be gone through without the lock.
func many[T any](ctx context.Context, f *Feedback, d *dated[T], group string, selects func(T) bool, clone func(T) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		f.mu.RLock()
		entries := slices.Clone(d.groups[group])
		f.mu.RUnlock()
		var none T
		if err := ctx.Err(); err != nil {
			yield(none, err)
			return
		}
		for _, e := range entries {
			if err := ctx.Err(); err != nil {
				yield(none, err)
				return
			}
			if selects(e.value) && !yield(clone(e.value), nil) {
				return
			}
		}
	}
}

// dated holds values by id, and sorted by time, the newest first and of one moment by id: all of them in the group "", and
// each also in a group of its own. The zero value is ready to use; it must not be used concurrently.
type dated[T any] struct {
	byID   map[string]*datedEntry[T]
	groups map[string][]*datedEntry[T]
}

// A datedEntry is immutable.
type datedEntry[T any] struct {
	id    string
	at    time.Time
	group string
	value T
}

// get returns the value of this id, or the zero value.
func (d *dated[T]) get(id string) *T {
	if e, ok := d.byID[id]; ok {
		return &e.value
	}
	return new(T)
}

func (d *dated[T]) put(id string, at time.Time, group string, value T) {
	if d.byID == nil {
		d.byID, d.groups = make(map[string]*datedEntry[T]), make(map[string][]*datedEntry[T])
	}
	if old, ok := d.byID[id]; ok {
		d.drop("", old)
		if old.group != "" {
			d.drop(old.group, old)
		}
	}
	e := &datedEntry[T]{id, at, group, value}
	d.byID[id] = e
	d.add("", e)
	if group != "" {
		d.add(group, e)
	}
}

func compareEntries[T any](a, b *datedEntry[T]) int {
	return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.id, b.id))
}

func (d *dated[T]) add(group string, e *datedEntry[T]) {
	at, _ := slices.BinarySearchFunc(d.groups[group], e, compareEntries[T])
	d.groups[group] = slices.Insert(d.groups[group], at, e)
}

func (d *dated[T]) drop(group string, e *datedEntry[T]) {
	at, _ := slices.BinarySearchFunc(d.groups[group], e, compareEntries[T])
	d.groups[group] = slices.Delete(d.groups[group], at, at+1)
}
