package loop

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// How an agent goes on without its store. A lifeline is between the agent and the host's store. It
// notices outages by the errors and the duration of calls, and keeps a copy of what was read last.
// If the step before an answer fails, the plan is made once more from these copies: see
// Agent.recalled. The answer can be recorded later by Answered.

// Degraded reports what an answer lacks because the store could not be reached. An event is
// answered all the same, by what this process read last. Before and After wrap the errors of the
// store, and [heed.ErrUnavailable]. It is a plain value, immutable once returned.
type Degraded struct {
	// Before is why the step before the answer failed, nil if it did not. That step reads what was
	// learned. It also commits what the event's text changes about earlier answers, and a session's
	// arm: no part of that was counted, and [Agent.Hear] can count the text later.
	Before error
	// After is why the answer is not recorded, nil if it is. Statements about the answer are
	// [ErrNoAnswer] then. Once the store is back, [Agent.Answered] with the answer's Plan records it;
	// without that call, heed does not learn from the answer.
	After error
	// Unread are the parts that could not be taken from memory either, such as "rules": see
	// [LeftOut].What. Without "rules" in it, the rules are those which were read last.
	Unread []string
}

// Recorded reports whether the answer is recorded. It is if d is nil.
func (d *Degraded) Recorded() bool { return d == nil || d.After == nil }

// clone returns a copy, because a plan may be used for several answers.
func (d *Degraded) clone() *Degraded {
	if d == nil {
		return nil
	}
	c := *d
	c.Unread = slices.Clone(d.Unread)
	return &c
}

// degrade returns what the plan lacks, to be changed.
func (p *Plan) degrade() *Degraded {
	if p.Degraded == nil {
		p.Degraded = new(Degraded)
	}
	return p.Degraded
}

// unkept reports whether the store was away when the answer was to be recorded.
func (p *Plan) unkept() bool { return !p.Degraded.Recorded() }

// down returns the error of a step if it means that the store can't be reached and the agent goes
// on without it, and else nil. limited is the context that bounds the step, and ctx the caller's.
func (a *Agent) down(ctx, limited context.Context, err error) error {
	goesOn := ctx.Err() == nil && !a.cfg.RequireStore
	if goesOn && errors.Is(err, heed.ErrUnavailable) {
		return err
	}
	if goesOn && limited.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
		return &unreachable{err}
	}
	return nil
}

// An unreachable error is the error of a store that can't be reached.
type unreachable struct{ err error }

func (e *unreachable) Error() string        { return e.err.Error() }
func (e *unreachable) Unwrap() error        { return e.err }
func (e *unreachable) Is(target error) bool { return target == heed.ErrUnavailable }

// errStoreSlow is the cause of a context that ends because the store takes too long.
var errStoreSlow = errors.New("the store gave no answer in its time")

// storeTimeout bounds what a store may take for one answer, beyond the budget, and for its commit.
const storeTimeout = 5 * time.Second

// patient returns a context for a step of an answer. The store has at most half of the time that
// the caller left, so that there is an answer if the store hangs.
func patient(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(end)/2) //nolint:forbidigo // a deadline is of real time
	}
	return context.WithTimeoutCause(ctx, most, errStoreSlow)
}

// A lifeline is the store of the host. It notices outages, remembers what was read, and keeps
// answers for [Config].Keep.
//
// Calls pass through it to the host's store. Errors that mean an outage become an unreachable
// error; all others, such as conflicts, stay as they are. It makes no calls by itself, so an outage
// is noticed to be over by the next call.
type lifeline struct {
	store.Store
	// limits follow from Config.Keep, by kind. They replace the limits with which a part declares the
	// kind.
	limits map[string]store.Limits
	memory *memory // nil with Config.RequireStore
	now    func() time.Time
	// report receives the beginning of an outage with its cause, and the end with when it began.
	report func(ctx context.Context, what string, since time.Time, cause error)
	root   store.Store // of all tenants, for what they share; nil if this is the one
	// tenant is the name of the tenant whose agent this is for, or empty.
	tenant string

	mu      sync.Mutex
	failing [2]bool // whether reads fail, and commits
	outages []outage
	last    error // the latest failure
	// After a slow failed try, calls fail at once for as long as it took, so that they do not wait as
	// well. The time is at most storeTimeout, because a sweep may fail after an hour. For reads and
	// for commits, it began at ended: see hangs.
	took  time.Duration
	ended [2]time.Time
}

// An outage is a time in which the store could not be reached. until is zero while it lasts.
type outage struct{ since, until time.Time }

// Places in lifeline.failing.
const (
	reading = iota
	committing
)

// mostOutages is how many outages a lifeline remembers.
const mostOutages = 16

// slow is how long a failing try takes at least that is not repeated at once.
const slow = 100 * time.Millisecond

// Root returns the store of all tenants, and the tenant: see [strategy.Config].Shared.
func (l *lifeline) Root() (store.Store, string) {
	if l.root == nil {
		return l, ""
	}
	return l.root, l.tenant
}

// Declare implements [store.Store].
func (l *lifeline) Declare(ctx context.Context, kinds ...store.Kind) error {
	kinds = slices.Clone(kinds)
	for i := range kinds {
		if limits, ok := l.limits[kinds[i].Name]; ok {
			kinds[i].Limits = limits
		}
	}
	return l.try(ctx, reading, func() error { return l.Store.Declare(ctx, kinds...) })
}

// Commit implements [store.Store].
func (l *lifeline) Commit(
	ctx context.Context, batches ...store.Batch,
) (receipts []store.Receipt, err error) {
	err = l.try(ctx, committing, func() error {
		receipts, err = l.Store.Commit(ctx, batches...)
		return err
	})
	return receipts, err
}

// Read implements [store.Store].
func (l *lifeline) Read(
	ctx context.Context, into *store.Snapshot, cells []evidence.Cell, refs []store.Ref,
	finds ...store.Query,
) error {
	records, parts := len(into.Records), len(into.Parts)
	err := l.try(ctx, reading, func() error {
		return l.Store.Read(ctx, into, cells, refs, finds...)
	})
	if err == nil && l.memory != nil {
		l.memory.keep(refs, into.Records[records:], cells, into.Parts[parts:])
	}
	return err
}

// Find implements [store.Store].
func (l *lifeline) Find(ctx context.Context, q store.Query) iter.Seq2[store.Record, error] {
	return trying(ctx, l, l.Store.Find(ctx, q))
}

// List implements [store.Store].
func (l *lifeline) List(ctx context.Context, q store.CellQuery) iter.Seq2[evidence.Part, error] {
	return trying(ctx, l, l.Store.List(ctx, q))
}

// Scopes implements [store.Store].
func (l *lifeline) Scopes(ctx context.Context, kind string) iter.Seq2[string, error] {
	return trying(ctx, l, l.Store.Scopes(ctx, kind))
}

// History implements [store.Store].
func (l *lifeline) History(
	ctx context.Context, c evidence.Cell,
) iter.Seq2[evidence.Observation, error] {
	return trying(ctx, l, l.Store.History(ctx, c))
}

// Sweep implements [store.Store].
func (l *lifeline) Sweep(ctx context.Context, now time.Time) error {
	return l.try(ctx, committing, func() error { return l.Store.Sweep(ctx, now) })
}

// trying passes on what a store yields, and notices whether it fails. An error ends the loop, and
// so does the caller, which is no failure.
func trying[T any](ctx context.Context, l *lifeline, all iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		err := l.try(ctx, reading, func() error {
			for v, err := range all {
				if err != nil {
					return err
				}
				l.reached(ctx, reading) // before the loop's body, which may call the store
				if !yield(v, nil) {
					break
				}
			}
			return nil
		})
		if err != nil {
			yield(*new(T), err)
		}
	}
}

// try calls the store, unless that has just hung, and notes how it went. A store that hangs is not
// called by each event in turn, because each would wait.
func (l *lifeline) try(ctx context.Context, what int, call func() error) error {
	began := time.Now() //nolint:forbidigo // a store hangs in real time
	if err := l.hangs(what, began); err != nil && ctx.Err() == nil {
		return err
	}
	err := call()
	switch {
	case err == nil || errors.Is(err, heed.ErrConflict): // then the step is repeated at once
		l.reached(ctx, what)
	// Bad input and damaged records are answers of a store that can be reached, too.
	case isOutage(ctx, err):
		err = &unreachable{err}
		l.missed(ctx, what, err, began)
	}
	return err
}

// hangs returns the error of the latest try if it took long and ended only shortly before. One
// caller finds out whether that is over, and the others don't wait with it: the time begins again.
func (l *lifeline) hangs(what int, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	hung := l.last != nil && l.took >= slow
	switch {
	case hung && now.Sub(l.ended[what]) < l.took:
		return l.last
	case l.failing[what]:
		l.ended[what], l.ended[committing] = now, now // while a commit hangs, reads go on
	}
	return nil
}

// isOutage reports whether the store could not be reached, by an error that it returned. An error
// that is not one of the known answers of a store counts as an outage. If the caller's context
// ended, only the store's own time limit does.
func isOutage(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return errors.Is(context.Cause(ctx), errStoreSlow)
	}
	for _, other := range []error{
		heed.ErrNotFound, heed.ErrConflict, heed.ErrDamaged, evidence.ErrForgotten, evidence.ErrFull,
	} {
		if errors.Is(err, other) {
			return false
		}
	}
	return !errors.As(err, new(*heed.InputError)) && !errors.As(err, new(*heed.ConfigError)) &&
		!errors.As(err, new(*heed.SizeError)) && !errors.As(err, new(*heed.PanicError))
}

// missed notes that a call failed, and notifies the observer if an outage begins.
func (l *lifeline) missed(ctx context.Context, what int, err error, began time.Time) {
	ended := time.Now() //nolint:forbidigo // a store hangs in real time
	l.mu.Lock()
	before := l.failing
	l.failing[what], l.last, l.took = true, err, min(ended.Sub(began), storeTimeout)
	l.ended = [2]time.Time{ended, ended}
	if before == [2]bool{} {
		l.outages = append(l.outages, outage{since: l.now()})
		l.outages = l.outages[max(len(l.outages)-mostOutages, 0):]
	}
	l.mu.Unlock()
	if before == [2]bool{} {
		l.report(ctx, "store", time.Time{}, errors.Unwrap(err))
	}
}

// reached notes that a call has succeeded, and notifies the observer if an outage ended. A commit
// that succeeds ends the outage of reads, too, but not the reverse: a database that takes over may
// only allow reads at first.
func (l *lifeline) reached(ctx context.Context, what int) {
	l.mu.Lock()
	before := l.failing
	l.failing = [2]bool{committing: before[committing] && what == reading}
	l.ended[reading] = time.Time{}
	if before[reading] || !l.failing[committing] {
		l.ended[committing] = time.Time{} // a commit may follow at once
	}
	var since time.Time
	if before != [2]bool{} && l.failing == [2]bool{} {
		l.last = nil
		over := &l.outages[len(l.outages)-1]
		over.until, since = l.now(), over.since
	}
	l.mu.Unlock()
	if !since.IsZero() {
		l.report(ctx, "store", since, nil)
	}
}

// away reports whether an outage that this process noticed overlaps a time. What was stated then
// may not have been recorded.
func (l *lifeline) away(from, until time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.outages, func(o outage) bool {
		return !o.since.After(until) && (o.until.IsZero() || o.until.After(from))
	})
}

// A recalled store returns what a lifeline remembers.
type recalled struct{ *lifeline }

// Read implements [store.Store]. A record or a cell that is not remembered is read as if it did
// not exist, which only changes the belief about one item or heuristic. Without a version or what
// a query finds, a whole part is missing, so that is an error.
func (r recalled) Read(
	_ context.Context, into *store.Snapshot, cells []evidence.Cell, refs []store.Ref,
	finds ...store.Query,
) error {
	if len(finds) > 0 || !r.memory.recall(into, cells, refs) {
		return &unreachable{errNotRemembered}
	}
	return nil
}

var errNotRemembered = errors.New("this process had not read it before the store failed")

// A memory holds the records and evidence that a process read last, at most about 4,000 records,
// 4,000 cells and 200,000 parts of cells. Records of answers are left out. It is safe for
// concurrent use. It makes an outage bearable for what was in use before it, and is no cache: while
// the store can be reached, everything is read from there.
type memory struct {
	answers string // the kind of answers

	mu      sync.Mutex
	records recent[store.Ref, store.Record]
	parts   recent[evidence.Cell, []evidence.Part]
}

// keep remembers what was read. The parts are in the order of the cells, each cell's together.
func (m *memory) keep(
	refs []store.Ref, records []store.Record, cells []evidence.Cell, parts []evidence.Part,
) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, ref := range refs {
		if ref.Kind != m.answers {
			m.records.put(ref, records[i], 1)
		}
	}
	for _, c := range cells {
		end := 0
		for end < len(parts) && parts[end].Cell == c {
			end++
		}
		// A copy, because the caller may read into the slice again. It takes the place of the one
		// before, because recall returns no slice that is kept.
		before, _ := m.parts.get(c)
		m.parts.put(c, append(before[:0], parts[:end]...), end)
		parts = parts[end:]
	}
}

// recall appends what is remembered, and reports whether all versions are: refs without an ID.
func (m *memory) recall(into *store.Snapshot, cells []evidence.Cell, refs []store.Ref) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	records := into.Records
	for _, ref := range refs {
		r, known := m.records.get(ref)
		if !known && ref.ID == "" {
			return false
		}
		if r.Revision == 0 && ref.ID != "" {
			r = store.Record{Ref: ref}
		}
		records = append(records, r)
	}
	into.Records = records
	for _, c := range cells {
		parts, _ := m.parts.get(c)
		into.Parts = append(into.Parts, parts...)
	}
	return true
}

// A generation of recent has at most mostRecent entries, and entries of mostSize in all: a cell of
// an arm may have five thousand parts, of about partBytes each.
const (
	mostRecent = 2048
	mostSize   = 100_000
	partBytes  = 150
)

// recent keeps what was put or got lately: the latest entries, and one generation before them.
// Dropping a generation at a time costs less than an order by use, and keeps what is asked for
// often.
type recent[K comparable, V any] struct {
	now, before map[K]sized[V]
	size        int // of now
}

// sized is a value with its size.
type sized[V any] struct {
	value V
	size  int
}

// put keeps a value. The generation before goes if the present one is full.
func (r *recent[K, V]) put(key K, value V, size int) {
	r.size += size - r.now[key].size
	if len(r.now) >= mostRecent || r.size > mostSize || r.now == nil {
		r.now, r.before, r.size = make(map[K]sized[V]), r.now, size
	}
	r.now[key] = sized[V]{value, size}
}

// get returns a value that was kept, and keeps it longer, because it was asked for.
func (r *recent[K, V]) get(key K) (value V, ok bool) {
	if kept, ok := r.now[key]; ok {
		return kept.value, true
	}
	kept, ok := r.before[key]
	if ok {
		r.put(key, kept.value, kept.size)
	}
	return kept.value, ok
}
