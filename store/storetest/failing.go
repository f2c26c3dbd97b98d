package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// ErrFailed is the error of the call that fails.
var ErrFailed = errors.New("the store failed")

// A Failing is a store that fails one call, for tests of what becomes of a program then. It passes
// calls on to another store and counts them. The call number At fails with [ErrFailed]: before its
// effect, or after it, like a cut connection. A commit that fails after its effect also returns
// [heed.ErrOutcomeUnknown], because [store.Store] demands it; [store.Do] then finds out that the
// commit took effect. A Failing is safe for concurrent use; its fields are set before its first
// call, or by [Failing.Fail].
type Failing struct {
	store.Store
	At    int  // the number of the call that fails, from 1; 0: no call fails
	After bool // the call has its effect first; an iterator yields everything first
	// Replies has At count commits alone. The reply to one is lost: it returns
	// [heed.ErrOutcomeUnknown] with its effect or without. Blind has the first read after it fail, so
	// that no caller finds out which.
	Replies, Blind bool

	mu     sync.Mutex
	calls  int
	counts map[string]int // by method
	failed bool
	unread bool // the next read fails
	away   bool
	// pick returns the store that a call of a method goes to. nil: Store.
	pick func(method string) store.Store
}

// SetAway has all calls fail with [ErrFailed] and without effect, as during an outage, or ends
// that.
func (s *Failing) SetAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

// Fail begins to count again from 0, and has the call number at fail.
func (s *Failing) Fail(at int, after bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.At, s.After = at, after
	s.calls, s.counts, s.failed, s.unread = 0, nil, false, false
}

// Failed reports whether the call was reached.
func (s *Failing) Failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// Calls returns how many calls of the methods were counted, or of all methods if no method is
// named.
func (s *Failing) Calls(methods ...string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(methods) == 0 {
		return s.calls
	}
	for _, method := range methods {
		n += s.counts[method]
	}
	return n
}

// FailEach calls run for the first call, the second and so on: each fails before its effect, and in
// another run after it. It ends when run reports that the call was not reached ([Failing.Failed]).
func FailEach(run func(at int, after bool) (failed bool)) {
	for at := 1; run(at, false); at++ {
		run(at, true)
	}
}

// count counts a call and reports how it fails.
func (s *Failing) count(method string) (before, after bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.counts == nil {
		s.counts = make(map[string]int)
	}
	s.counts[method]++
	if s.away {
		return true, false
	}
	calls := s.calls
	if s.Replies {
		if calls = 0; method == "Commit" {
			calls = s.counts[method]
		} else if s.unread && method == "Read" {
			s.unread = false
			return true, false
		}
	}
	if calls == 0 || calls != s.At {
		return false, false
	}
	s.failed, s.unread = true, s.Blind
	return !s.After, s.After
}

// of returns the store that a call goes to.
func (s *Failing) of(method string) store.Store {
	if s.pick != nil {
		return s.pick(method)
	}
	return s.Store
}

// do makes a call.
func (s *Failing) do(method string, call func(store.Store) error) error {
	before, after := s.count(method)
	if !before {
		if err := call(s.of(method)); err != nil || !after {
			return err
		}
	}
	if method == "Commit" && (after || s.Replies) {
		return fmt.Errorf("%w: %w", heed.ErrOutcomeUnknown, ErrFailed)
	}
	return ErrFailed
}

// Commit implements [store.Store].
func (s *Failing) Commit(
	ctx context.Context, batches ...store.Batch,
) (receipts []store.Receipt, err error) {
	err = s.do("Commit", func(st store.Store) error {
		receipts, err = st.Commit(ctx, batches...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return receipts, nil
}

// Declare implements [store.Store].
func (s *Failing) Declare(ctx context.Context, kinds ...store.Kind) error {
	return s.do("Declare", func(st store.Store) error { return st.Declare(ctx, kinds...) })
}

// Read implements [store.Store].
func (s *Failing) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
	refs []store.Ref, finds ...store.Query) error {
	return s.do("Read", func(st store.Store) error {
		return st.Read(ctx, into, cells, refs, finds...)
	})
}

// Sweep implements [store.Store].
func (s *Failing) Sweep(ctx context.Context, now time.Time) error {
	return s.do("Sweep", func(st store.Store) error { return st.Sweep(ctx, now) })
}

// Find implements [store.Store].
func (s *Failing) Find(ctx context.Context, q store.Query) iter.Seq2[store.Record, error] {
	return loop(s, "Find", s.of("Find").Find(ctx, q))
}

// List implements [store.Store].
func (s *Failing) List(ctx context.Context, q store.CellQuery) iter.Seq2[evidence.Part, error] {
	return loop(s, "List", s.of("List").List(ctx, q))
}

// Scopes implements [store.Store].
func (s *Failing) Scopes(ctx context.Context, kind string) iter.Seq2[string, error] {
	return loop(s, "Scopes", s.of("Scopes").Scopes(ctx, kind))
}

// History implements [store.Store].
func (s *Failing) History(
	ctx context.Context, c evidence.Cell,
) iter.Seq2[evidence.Observation, error] {
	return loop(s, "History", s.of("History").History(ctx, c))
}

// loop counts each loop over the sequence.
func loop[T any](s *Failing, method string, all iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		before, after := s.count(method)
		if !before {
			for v, err := range all {
				if !yield(v, err) || err != nil {
					return
				}
			}
		}
		if before || after {
			var none T
			yield(none, ErrFailed)
		}
	}
}
