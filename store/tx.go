package store

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// Do runs one step: it calls step, commits what the step has added, and returns. A step reads through its [Tx], decides by
// what it has read, and adds records and evidence. All of it becomes one [Store.Commit], or no commit if the step added
// nothing. Several packages can take part in one step, and so can the host: see the package's example.
//
// If another writer was quicker ([heed.ErrConflict]), or the store cannot tell whether it applied the commit
// ([heed.ErrOutcomeUnknown]), Do waits for a short random time and calls step again with a new Tx, which reads everything
// again. It does so at most [Tries] times. So a step must be safe to repeat: what it adds must have ids that count once, or
// follow from the records that it read. Any other error ends Do at once, and nothing was committed. A
// [*heed.SettingsError] and a [*heed.SizeError] are such errors.
func Do(ctx context.Context, st Store, step func(tx *Tx) error) error {
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		tx := &Tx{ctx: ctx, store: st}
		err := step(tx)
		if err == nil {
			err = tx.commit()
		}
		tx.finish(err)
		if err == nil || try == Tries || !repeats(err) {
			return err
		}
		if pause(ctx, try) != nil {
			return err
		}
	}
}

// Tries is how often [Do] calls a step at most.
const Tries = 100

// Final returns an error that ends [Do] at once, also if it is a [heed.ErrConflict]. A step returns it if the conflict is the
// step's result, for example because another record has the id. errors.Is and errors.As find the error in it.
func Final(err error) error {
	if err == nil {
		return nil
	}
	return &final{err}
}

type final struct{ error }

func (f *final) Unwrap() error { return f.error }

// repeats reports whether a step that ended with this error should be run again.
func repeats(err error) bool {
	return !errors.As(err, new(*final)) && (errors.Is(err, heed.ErrConflict) || errors.Is(err, heed.ErrOutcomeUnknown)) && !errors.As(err, new(*heed.SettingsError))
}

// longestPause bounds the pause before a step is run again.
const longestPause = 30 * time.Millisecond

// pause waits for a random time that grows with the number of tries, so that writers of one record get out of step.
func pause(ctx context.Context, try int) error {
	most := min(200*time.Microsecond<<min(try, 10), longestPause)
	timer := time.NewTimer(rand.N(most)) //nolint:forbidigo // the jitter changes when a step runs, never what it does
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Wants names what a step is going to read, so that it can be read in one round trip. The zero value names nothing. A name
// may be in it several times. It must not be used concurrently.
type Wants struct {
	Cells   []evidence.Cell
	Refs    []Ref
	Queries []Query
}

// Add adds what others want.
func (w *Wants) Add(others ...Wants) {
	for _, o := range others {
		w.Cells, w.Refs, w.Queries = append(w.Cells, o.Cells...), append(w.Refs, o.Refs...), append(w.Queries, o.Queries...)
	}
}

func (w *Wants) empty() bool { return len(w.Cells)+len(w.Refs)+len(w.Queries) == 0 }

// A Tx is one run of a step: it remembers what was read, and collects one batch. [Do] makes it, and it must not be used after
// the step has returned. It must not be used concurrently.
type Tx struct {
	ctx   context.Context
	store Store

	wants   Wants
	records map[Ref]Record
	parts   map[evidence.Cell][]evidence.Part
	found   map[string][]Record

	batch   Batch
	written map[Ref]int // the place of a record in the batch
	states  map[any]any // of packages
	before  []func() error
	ends    []func(Receipt, error)
	receipt Receipt
}

// Reading returns a Tx for a call that only reads: it reads in one round trip like the Tx of a step, and what is added to it
// is never committed.
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

// Want names what will be read later in the step. The next read that goes to the store reads all of it.
func (tx *Tx) Want(all ...Wants) { tx.wants.Add(all...) }

// Read does what [Store.Read] does, but what this Tx has read before is not read again. A call that has to go to the store also
// reads all that was named by [Tx.Want]. Records that the step has written are returned as they were read.
func (tx *Tx) Read(into *Snapshot, cells []evidence.Cell, refs []Ref, queries ...Query) error {
	if !tx.has(cells, refs, queries) {
		if err := tx.fetch(Wants{cells, refs, queries}); err != nil {
			return err
		}
	}
	for _, ref := range refs {
		into.Records = append(into.Records, tx.records[ref])
	}
	for _, c := range cells {
		into.Parts = append(into.Parts, tx.parts[c]...)
	}
	for _, q := range queries {
		into.Found = append(into.Found, tx.found[q.text()])
	}
	return nil
}

// Fetch reads what was named by [Tx.Want] and not read yet.
func (tx *Tx) Fetch() error { return tx.fetch(Wants{}) }

func (tx *Tx) has(cells []evidence.Cell, refs []Ref, queries []Query) bool {
	for _, c := range cells {
		if _, ok := tx.parts[c]; !ok {
			return false
		}
	}
	for _, ref := range refs {
		if _, ok := tx.records[ref]; !ok {
			return false
		}
	}
	for _, q := range queries {
		if _, ok := tx.found[q.text()]; !ok {
			return false
		}
	}
	return true
}

// fetch reads these and all that was named before, but for what was read already.
func (tx *Tx) fetch(now Wants) error {
	now.Add(tx.wants)
	tx.wants = Wants{}
	cells := missing(now.Cells, tx.parts)
	refs := missing(now.Refs, tx.records)
	texts := make([]string, 0, len(now.Queries))
	var queries []Query
	for _, q := range now.Queries {
		text := q.text()
		if _, known := tx.found[text]; !known && !slices.Contains(texts, text) {
			texts, queries = append(texts, text), append(queries, q)
		}
	}
	if len(cells)+len(refs)+len(queries) == 0 {
		return nil
	}
	var s Snapshot
	if err := tx.store.Read(tx.ctx, &s, cells, refs, queries...); err != nil {
		return err
	}
	if tx.records == nil {
		tx.records, tx.parts, tx.found = make(map[Ref]Record), make(map[evidence.Cell][]evidence.Part), make(map[string][]Record)
	}
	for i, ref := range refs {
		tx.records[ref] = s.Records[i]
	}
	for _, c := range cells {
		tx.parts[c] = nil
	}
	for i := 0; i < len(s.Parts); {
		end := i + 1
		for end < len(s.Parts) && s.Parts[end].Cell == s.Parts[i].Cell {
			end++
		}
		tx.parts[s.Parts[i].Cell] = s.Parts[i:end:end]
		i = end
	}
	for i, text := range texts {
		tx.found[text] = s.Found[i]
	}
	return nil
}

// missing returns what was not read yet, each once and in order.
func missing[K comparable, V any](all []K, read map[K]V) (left []K) {
	seen := make(map[K]bool, len(all))
	for _, one := range all {
		if _, known := read[one]; !known && !seen[one] {
			seen[one] = true
			left = append(left, one)
		}
	}
	return left
}

// text returns a text that no other query has.
func (q Query) text() string {
	var b strings.Builder
	for _, part := range append([]string{q.Kind, q.After}, q.Keys...) {
		b.WriteString(part)
		b.WriteByte(0)
	}
	for _, n := range [...]int64{q.Since.UnixNano(), q.Until.UnixNano(), int64(q.Limit)} {
		for range 8 {
			b.WriteByte(byte(n))
			n >>= 8
		}
	}
	if q.Oldest {
		b.WriteByte(1)
	}
	return b.String()
}

// Get returns one record as the step sees it: as the step has written it, or else as the store has it.
func (tx *Tx) Get(ref Ref) (Record, error) {
	if i, ok := tx.written[ref]; ok {
		return tx.batch.Records[i], nil
	}
	if r, ok := tx.records[ref]; ok {
		return r, nil
	}
	var s Snapshot
	if err := tx.Read(&s, nil, []Ref{ref}); err != nil {
		return Record{}, err
	}
	return s.Records[0], nil
}

// Put adds a record to write or, with the zero Body, to remove. A later Put of the same record replaces it, and keeps its
// revision.
func (tx *Tx) Put(r Record) {
	if i, ok := tx.written[r.Ref]; ok {
		r.Revision = tx.batch.Records[i].Revision
		tx.batch.Records[i] = r
		return
	}
	if tx.written == nil {
		tx.written = make(map[Ref]int)
	}
	tx.written[r.Ref] = len(tx.batch.Records)
	tx.batch.Records = append(tx.batch.Records, r)
	tx.batch.Expect = slices.DeleteFunc(tx.batch.Expect, func(p Precondition) bool { return p.Ref == r.Ref })
}

// Expect has the commit fail with [heed.ErrConflict] unless a record still has the revision that was read. It is not needed
// for records that the step writes.
func (tx *Tx) Expect(all ...Precondition) {
	for _, p := range all {
		_, writes := tx.written[p.Ref]
		if !writes && !slices.Contains(tx.batch.Expect, p) {
			tx.batch.Expect = append(tx.batch.Expect, p)
		}
	}
}

// Add adds the parts of a batch to the step's batch. An ID of the batch makes the whole step count once: if a batch or an
// observation of that ID is known, the step changes nothing.
func (tx *Tx) Add(b Batch) {
	own := &tx.batch
	if b.ID != "" {
		own.ID = b.ID
	}
	if own.Policies == nil && len(b.Policies) > 0 {
		own.Policies = make(map[string]evidence.Policy, len(b.Policies))
	}
	maps.Copy(own.Policies, b.Policies)
	own.Reset, own.Rebuild, own.Restart = append(own.Reset, b.Reset...), append(own.Rebuild, b.Rebuild...), append(own.Restart, b.Restart...)
	own.Retract, own.Withdraw = append(own.Retract, b.Retract...), append(own.Withdraw, b.Withdraw...)
	own.Expunge, own.Forget = append(own.Expunge, b.Expunge...), append(own.Forget, b.Forget...)
	own.Observations = append(own.Observations, b.Observations...)
	own.Parts = own.Parts || b.Parts
	for _, r := range b.Records {
		tx.Put(r)
	}
	tx.Expect(b.Expect...)
}

// Observe adds observations.
func (tx *Tx) Observe(all ...evidence.Observation) {
	tx.batch.Observations = append(tx.batch.Observations, all...)
}

// Before has f called after the step, right before the commit. It may add to the Tx. If it returns an error, the step has failed
// with it.
func (tx *Tx) Before(f func() error) { tx.before = append(tx.before, f) }

// State returns what a package keeps for a key in this run of the step, such as the heuristics that it has read. The first call
// makes it. The key should be of a type, or point to a value, that no other package has.
func (tx *Tx) State(key any, first func() any) any {
	if tx.states == nil {
		tx.states = make(map[any]any)
	}
	if _, known := tx.states[key]; !known {
		tx.states[key] = first()
	}
	return tx.states[key]
}

// Then has f called when this run of the step is over: with the receipt after a commit, else with the error. It is for what
// follows from a commit outside of the store, such as telling an observer. If the step added nothing, the receipt is empty.
func (tx *Tx) Then(f func(Receipt, error)) { tx.ends = append(tx.ends, f) }

func (tx *Tx) finish(err error) {
	for _, f := range slices.Backward(tx.ends) {
		f(tx.receipt, err)
	}
}

// commit commits the batch, unless it is empty.
func (tx *Tx) commit() error {
	for i := 0; i < len(tx.before); i++ { // one may add another
		if err := tx.before[i](); err != nil {
			return err
		}
	}
	b := &tx.batch
	if len(b.Records)+len(b.Observations)+len(b.Expect) == 0 && !b.TakesAway() {
		return nil
	}
	receipts, err := tx.store.Commit(tx.ctx, *b)
	if err == nil {
		tx.receipt = receipts[0]
	}
	return err
}
