package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// A Tx is one run of a step: it remembers what was read, and collects one batch. [Do] makes it, and
// it must not be used after Do returned: it no longer reads then, and what is added to it is lost.
// It must not be used concurrently.
//
// Slices in what a Tx returns must not be changed: a later call may return them again.
type Tx struct {
	ctx   context.Context
	store Store
	drawn *[]string // by ID, in all runs of the step
	draws int       // by ID, in this run

	wants   []Wants
	fetches int // how often the store was read
	records map[Ref]read[Record]
	parts   map[evidence.Cell]read[[]evidence.Part]
	queries []Query
	found   []read[[]Record] // by query

	batch       Batch
	jobs        []Job
	written     index[Ref] // of the batch's records
	expected    index[Ref] // of the batch's expectations
	wantedParts index[evidence.Cell]
	fault       error // what was added can't be committed

	states  map[any]any // of packages
	before  []func() error
	ends    []func(Receipt, error)
	again   []func(error) bool
	receipt Receipt
	over    bool
}

// read is what the store returned to one fetch. Fetches count from 1; what was not read has 0.
type read[V any] struct {
	value V
	fetch int
}

// Reading returns a Tx for a call that only reads: it reads in one round trip like the Tx of a
// step, and what is added to it is never committed.
func Reading(ctx context.Context, st Store) *Tx { return &Tx{ctx: ctx, store: st} }

// Context returns the context of [Do].
func (tx *Tx) Context() context.Context { return tx.ctx }

// Within calls f, and bounds what is read in it by a context.
func (tx *Tx) Within(ctx context.Context, f func() error) error {
	before := tx.ctx
	tx.ctx = ctx
	defer func() { tx.ctx = before }()
	return f()
}

// Want names what will be read later in the step. The next read that goes to the store reads all of
// it.
func (tx *Tx) Want(all ...Wants) { tx.wants = append(tx.wants, all...) }

// Read does what [Store.Read] does, but what this Tx read before is not read again, and all that
// was named by [Tx.Want] is read as well if the call must go to the store. Records that the step
// wrote are returned as they were read.
//
// What one call returns is ordered as [Store.Read] promises: versions are no newer than the rest,
// and records no newer than parts. If an earlier call read some of it too early for that, that is
// read again. Between calls there is no such promise: what depends on each other must be read by
// one call.
func (tx *Tx) Read(into *Snapshot, cells []evidence.Cell, refs []Ref, queries ...Query) error {
	if err := tx.fetch(Wants{cells, refs, queries}, false); err != nil {
		return err
	}
	into.Records = slices.Grow(into.Records, len(refs))
	for _, ref := range refs {
		into.Records = append(into.Records, tx.records[ref].value)
	}
	parts := 0
	for _, c := range cells {
		parts += len(tx.parts[c].value)
	}
	into.Parts = slices.Grow(into.Parts, parts)
	for _, c := range cells {
		into.Parts = append(into.Parts, tx.parts[c].value...)
	}
	for i := range queries {
		// A copy, because callers sort and filter what they have found.
		into.Found = append(into.Found, slices.Clone(tx.found[tx.query(&queries[i])].value))
	}
	return nil
}

// Fetch reads what was named by [Tx.Want] and not read yet.
func (tx *Tx) Fetch() error { return tx.fetch(Wants{}, true) }

// query returns the place of a query among those that were read, or -1.
func (tx *Tx) query(q *Query) int {
	for i := range tx.queries {
		if tx.queries[i].same(q) {
			return i
		}
	}
	return -1
}

// A need names what must be read, each once.
type need struct {
	cells   index[evidence.Cell]
	refs    index[Ref]
	queries []Query
}

func (n *need) empty() bool { return len(n.cells.keys)+len(n.refs.keys)+len(n.queries) == 0 }

// need adds what of a call was not read, or too early.
func (tx *Tx) need(n *need, call Wants) {
	versions := 1 // the earliest fetch that is late enough for what is not a version
	for _, ref := range call.Refs {
		if ref.ID == "" {
			versions = max(versions, tx.needs(n, ref, 1))
		}
	}
	records := versions // the same for parts
	for _, ref := range call.Refs {
		if ref.ID != "" {
			records = max(records, tx.needs(n, ref, versions))
		}
	}
	for _, c := range call.Cells {
		if tx.parts[c].fetch < records {
			n.cells.add(c)
		}
	}
	for i := range call.Queries {
		q := &call.Queries[i]
		at := tx.query(q)
		if at >= 0 && tx.found[at].fetch >= versions {
			continue
		}
		if !slices.ContainsFunc(n.queries, func(o Query) bool { return o.same(q) }) {
			n.queries = append(n.queries, *q)
		}
	}
}

// needs adds a record, unless it was read by a fetch or a later one. It returns which fetch reads
// it.
func (tx *Tx) needs(n *need, ref Ref, fetch int) int {
	if of := tx.records[ref].fetch; of >= fetch {
		return of
	}
	n.refs.add(ref)
	return tx.fetches + 1
}

// fetch goes to the store if something of a call must be read, or in any case. Then it also reads
// what was wanted.
func (tx *Tx) fetch(call Wants, anyway bool) error {
	if tx.over {
		return errOver
	}
	var n need
	tx.need(&n, call)
	if n.empty() && !anyway {
		return nil
	}
	for _, w := range tx.wants {
		tx.need(&n, w)
	}
	tx.wants = nil
	if n.empty() {
		return nil
	}
	var s Snapshot
	err := tx.store.Read(tx.ctx, &s, n.cells.keys, n.refs.keys, n.queries...)
	if err != nil {
		return err
	}
	tx.fetches++
	if tx.records == nil {
		tx.records = make(map[Ref]read[Record], len(n.refs.keys))
		tx.parts = make(map[evidence.Cell]read[[]evidence.Part], len(n.cells.keys))
	}
	for i, ref := range n.refs.keys {
		tx.records[ref] = read[Record]{s.Records[i], tx.fetches}
	}
	for _, c := range n.cells.keys {
		end := 0
		for end < len(s.Parts) && s.Parts[end].Cell == c {
			end++
		}
		tx.parts[c] = read[[]evidence.Part]{s.Parts[:end:end], tx.fetches}
		s.Parts = s.Parts[end:]
	}
	for i, q := range n.queries {
		if at := tx.query(&q); at >= 0 {
			tx.found[at] = read[[]Record]{s.Found[i], tx.fetches}
			continue
		}
		q.Keys = slices.Clone(q.Keys) // the caller may go on to use the slice
		tx.queries = append(tx.queries, q)
		tx.found = append(tx.found, read[[]Record]{s.Found[i], tx.fetches})
	}
	return nil
}

var errOver = invalid("tx", "must not be used after its step has ended")

// pending is the revision of a record that the step adds. No stored record has it.
const pending = Once - 1

// current returns the store's revision of a record.
func current(revision uint64) uint64 {
	if revision == pending {
		return 0 // the step removed the record since that it added
	}
	return revision
}

// Get returns one record as the step sees it: as the step wrote it, or else as the store keeps it.
// If there is no record, or the step removes it, the Revision is 0. If the step adds the record,
// the Revision is not 0 and is of use only for another Put in the step.
func (tx *Tx) Get(ref Ref) (Record, error) {
	i := tx.written.find(ref)
	if i >= 0 {
		w := tx.batch.Records[i]
		switch {
		case w.Body.IsZero():
			return Record{Ref: ref}, nil
		case w.Revision == 0:
			w.Revision = pending
			return w, nil
		case w.Revision != Once:
			return w, nil
		}
	}
	if err := tx.fetch(Wants{Refs: []Ref{ref}}, false); err != nil {
		return Record{}, err
	}
	r := tx.records[ref].value
	if r.Revision == 0 && i >= 0 {
		r = tx.batch.Records[i]
		r.Revision = pending
	}
	return r, nil
}

// Writes reports whether the step writes or removes a record. [Tx.Get] returns it as it will be
// then.
func (tx *Tx) Writes(ref Ref) bool { return tx.written.find(ref) >= 0 }

// Put adds a record to write or, with the zero Body, to remove. A later Put of the same record
// replaces it, and keeps its revision, but one with the Revision [Once] leaves it alone. If the
// step removes a record that it added, it does not write it.
func (tx *Tx) Put(r Record) {
	i := tx.written.find(r.Ref)
	if i < 0 {
		r.Revision = current(r.Revision)
		tx.written.add(r.Ref)
		tx.batch.Records = append(tx.batch.Records, r)
		return
	}
	before := &tx.batch.Records[i]
	switch {
	case r.Revision == Once && !before.Body.IsZero():
		return
	case before.Revision != Once || r.Revision == pending:
		r.Revision = before.Revision
	}
	if r.Body.IsZero() && (r.Revision == 0 || r.Revision == Once) {
		tx.drop(i)
		tx.Expect(Precondition{r.Ref, 0})
		return
	}
	*before = r
}

// drop takes a record out of the batch.
func (tx *Tx) drop(i int) {
	tx.batch.Records = slices.Delete(tx.batch.Records, i, i+1)
	tx.written.remove(i)
}

// Expect has the commit fail with [heed.ErrConflict] unless a record still has the revision that
// was read. It is not needed for records that the step writes.
func (tx *Tx) Expect(all ...Precondition) {
	for _, p := range all {
		p.Revision = current(p.Revision)
		if i := tx.expected.find(p.Ref); i < 0 {
			tx.expected.add(p.Ref)
			tx.batch.Expect = append(tx.batch.Expect, p)
		} else if tx.batch.Expect[i] != p {
			tx.fail(errTwoRevisions)
		}
	}
}

// settle makes expectations agree with the records that the batch writes, which a store expects
// anyway.
func (tx *Tx) settle() {
	tx.batch.Expect = slices.DeleteFunc(tx.batch.Expect, func(e Precondition) bool {
		i := tx.written.find(e.Ref)
		if i < 0 {
			return false
		}
		switch w := &tx.batch.Records[i]; {
		case w.Revision == Once && e.Revision == 0:
			w.Revision = 0
		case w.Revision == Once: // the record is there, and stays as it is
			tx.drop(i)
			return false
		case w.Revision != e.Revision:
			tx.fail(errTwoRevisions)
		}
		return true
	})
}

var errTwoRevisions = fmt.Errorf("store: a step has read two revisions of a record: %w",
	heed.ErrConflict)

// fail has the commit return an error.
func (tx *Tx) fail(err error) {
	if tx.fault == nil {
		tx.fault = err
	}
}

// Add adds the parts of a batch to the step's batch. An ID of the batch makes the whole step count
// once: if a batch or an observation of that ID is known, the step has no effect. So a step has one
// ID: two different ones are a [*heed.InputError] of Do, and so are two policies for one kind of
// cell.
//
// The rules of [Batch] hold for all that a step adds. For example, a step can't take back what it
// adds.
func (tx *Tx) Add(b Batch) {
	own := &tx.batch
	if b.ID != "" && own.ID != "" && b.ID != own.ID {
		tx.fail(invalid("ID", "must be the only one of the step"))
	}
	if b.ID != "" {
		own.ID = b.ID
	}
	tx.addPolicies(b.Policies)
	own.Reset, own.Rebuild = append(own.Reset, b.Reset...), append(own.Rebuild, b.Rebuild...)
	own.Restart = append(own.Restart, b.Restart...)
	own.Retract, own.Withdraw = append(own.Retract, b.Retract...), append(own.Withdraw, b.Withdraw...)
	own.Expunge = append(own.Expunge, b.Expunge...)
	own.Forgotten = append(own.Forgotten, b.Forgotten...)
	own.Observations = append(own.Observations, b.Observations...)
	for _, c := range b.PartsOf {
		tx.wantedParts.add(c)
	}
	for _, r := range b.Records {
		tx.Put(r)
	}
	tx.Expect(b.Expect...)
}

func (tx *Tx) addPolicies(all map[string]evidence.Policy) {
	if tx.batch.Policies == nil {
		tx.batch.Policies = maps.Clone(all)
	}
	for kind, policy := range all {
		if before, known := tx.batch.Policies[kind]; known && before != policy {
			tx.fail(invalid(fmt.Sprintf("Policies[%q]", kind), "must be the only one of the step"))
		}
		tx.batch.Policies[kind] = policy
	}
}

// Observe adds observations.
func (tx *Tx) Observe(all ...evidence.Observation) {
	tx.batch.Observations = append(tx.batch.Observations, all...)
}

// Before has f called after the step, right before the commit, in the order of the calls of Before.
// f may add to the Tx. If it returns an error, the step failed with it.
func (tx *Tx) Before(f func() error) { tx.before = append(tx.before, f) }

// State returns what a package keeps for a key in this run of the step, such as the heuristics that
// it read. The first call makes it. The key should be of a type, or point to a value, that no other
// package has.
func (tx *Tx) State(key any, first func() any) any {
	if state, known := tx.states[key]; known {
		return state
	}
	state := first() // which may ask for the state of another key
	if tx.states == nil {
		tx.states = make(map[any]any)
	}
	tx.states[key] = state
	return state
}

// ID returns an id that draw makes. If the step runs again, the n-th call returns the same id as
// before, so that a run that took effect and the run after it write the same records.
func (tx *Tx) ID(draw func() string) string {
	if tx.drawn == nil || tx.over {
		return draw()
	}
	if tx.draws == len(*tx.drawn) {
		*tx.drawn = append(*tx.drawn, draw())
	}
	tx.draws++
	return (*tx.drawn)[tx.draws-1]
}

// Then has f called when this run of the step is over, the last f first: with the receipt after a
// commit, else with the error. A step that runs again has f called for each run. f is for what
// follows from a commit outside of the store, such as a call of an observer. If the step added
// nothing, the receipt is empty.
func (tx *Tx) Then(f func(Receipt, error)) { tx.ends = append(tx.ends, f) }

// Again has f called if this run of the step fails with an error that ends [Do]. If f returns true,
// Do runs the step again. It is for a package that can do without what failed, for example without
// the retraction of a forgotten observation.
func (tx *Tx) Again(f func(error) bool) { tx.again = append(tx.again, f) }

// recovers reports whether a package can do without what failed.
func (tx *Tx) recovers(err error) (recovers bool) {
	for _, f := range tx.again {
		recovers = f(err) || recovers
	}
	return recovers
}

func (tx *Tx) finish(err error) {
	for _, f := range slices.Backward(tx.ends) {
		f(tx.receipt, err)
	}
	tx.over = true
}

// commit commits the batch, unless it is empty.
func (tx *Tx) commit() error {
	if tx.settle(); tx.fault != nil {
		return tx.fault
	}
	jobs, err := tx.addJobs()
	if err != nil {
		return err
	}
	b := &tx.batch
	b.PartsOf = tx.wantedParts.keys
	if b.ID == "" && b.Changes() == 0 {
		return nil
	}
	receipts, err := tx.store.Commit(tx.ctx, *b)
	switch took := false; {
	case errors.Is(err, heed.ErrOutcomeUnknown):
		if tx.receipt, took = tx.resolve(); !took {
			return err
		}
	case err != nil:
		return err
	default:
		tx.receipt = receipts[0]
	}
	return tx.finishJobs(jobs)
}
