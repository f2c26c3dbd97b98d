package loop

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// A moody store may hang until its context ends. Its first commit after that may be a conflict.
type moody struct {
	store.Store
	hangs, commitsHang, conflicts atomic.Bool
	committing                    atomic.Int64
}

func (s *moody) wait(ctx context.Context, hangs bool) error {
	if !hangs {
		return nil
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

func (s *moody) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
	refs []store.Ref, finds ...store.Query) error {
	if err := s.wait(ctx, s.hangs.Load()); err != nil {
		return err
	}
	time.Sleep(20 * time.Millisecond)
	return s.Store.Read(ctx, into, cells, refs, finds...)
}

func (s *moody) Find(ctx context.Context, q store.Query) iter.Seq2[store.Record, error] {
	if err := s.wait(ctx, s.hangs.Load()); err != nil {
		return func(yield func(store.Record, error) bool) { yield(store.Record{}, err) }
	}
	return s.Store.Find(ctx, q)
}

func (s *moody) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	if hang := s.hangs.Load() || s.commitsHang.Load(); hang {
		s.committing.Add(1)
		return nil, s.wait(ctx, hang)
	}
	if s.conflicts.CompareAndSwap(true, false) {
		return nil, heed.ErrConflict
	}
	return s.Store.Commit(ctx, batches...)
}

var moodyKind = store.Kind{Name: "mood", Limits: store.Limits{For: time.Hour, Most: 10}}

func newMoody(t *testing.T) (*moody, *lifeline) {
	s := &moody{Store: new(memstore.Store)}
	l := &lifeline{Store: s, now: time.Now,
		report: func(context.Context, string, time.Time, error) {}}
	require.NoError(t, l.Declare(t.Context(), moodyKind))
	require.NoError(t, putMood(t.Context(), l))
	return s, l
}

func putMood(ctx context.Context, st store.Store) error {
	ctx, cancel := patient(ctx, storeTimeout)
	defer cancel()
	return store.Do(ctx, st, func(tx *store.Tx) error {
		ref := store.Ref{Kind: moodyKind.Name, ID: "one"}
		r, err := tx.Get(ref)
		if err != nil {
			return err
		}
		tx.Put(store.Record{
			Ref: ref, Revision: r.Revision, At: time.Now(), Body: store.Raw([]byte("{}")),
		})
		return nil
	})
}

// The store's answer to the one call that finds out whether the store is back may be a conflict.
// Then the step is repeated, as always.
func TestAConflictAfterAStoreHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := newMoody(t)
		s.commitsHang.Store(true)
		require.ErrorIs(t, putMood(t.Context(), l), heed.ErrUnavailable)
		s.commitsHang.Store(false)
		s.conflicts.Store(true)
		time.Sleep(storeTimeout)
		require.NoError(t, putMood(t.Context(), l))
	})
}

// If a caller leaves while it finds out whether the store is back, another one does so later.
func TestACallerThatLeavesAStoreThatHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := newMoody(t)
		s.hangs.Store(true)
		require.ErrorIs(t, putMood(t.Context(), l), heed.ErrUnavailable)
		time.Sleep(storeTimeout)
		left, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		require.ErrorIs(t, putMood(left, l), context.Canceled)
		s.hangs.Store(false)
		time.Sleep(storeTimeout)
		require.NoError(t, putMood(t.Context(), l))
	})
}

// A loop over what the store yields may call the store.
func TestALoopAfterAStoreHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := newMoody(t)
		s.hangs.Store(true)
		require.ErrorIs(t, putMood(t.Context(), l), heed.ErrUnavailable)
		s.hangs.Store(false)
		time.Sleep(storeTimeout)
		n := 0
		for _, err := range l.Find(t.Context(), store.Query{Kind: moodyKind.Name}) {
			require.NoError(t, err)
			require.NoError(t, putMood(t.Context(), l))
			n++
		}
		assert.Equal(t, 1, n)
	})
}

// While the store hangs, only the read that finds out whether that is over waits, and no commit
// does. The first commit after it is made at once.
func TestNoCommitWaitsWithARead(t *testing.T) {
	for _, commitsFailed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, l := newMoody(t)
			s.hangs.Store(true)
			commit := func() error {
				limited, cancel := patient(t.Context(), storeTimeout)
				defer cancel()
				_, err := l.Commit(limited)
				return err
			}
			if commitsFailed {
				require.ErrorIs(t, commit(), heed.ErrUnavailable)
				time.Sleep(storeTimeout)
			}
			require.ErrorIs(t, putMood(t.Context(), l), heed.ErrUnavailable)
			time.Sleep(storeTimeout)
			var all sync.WaitGroup
			all.Go(func() { assert.ErrorIs(t, putMood(t.Context(), l), heed.ErrUnavailable) })
			synctest.Wait()
			began := time.Now()
			require.ErrorIs(t, commit(), heed.ErrUnavailable)
			assert.Zero(t, time.Since(began))
			all.Wait()
			time.Sleep(storeTimeout)
			s.hangs.Store(false)
			require.NoError(t, putMood(t.Context(), l))
		})
	}
}

// While commits alone hang, one at a time finds out whether that is over, however many come. Reads
// continue.
func TestCommitsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := newMoody(t)
		s.commitsHang.Store(true)
		require.ErrorIs(t, putMood(t.Context(), l), heed.ErrUnavailable)
		time.Sleep(storeTimeout)
		before := s.committing.Load()
		var all sync.WaitGroup
		var refused atomic.Int64
		for range 20 * 100 {
			all.Go(func() {
				ref := store.Ref{Kind: moodyKind.Name, ID: "two"}
				err := l.Read(t.Context(), new(store.Snapshot), nil, []store.Ref{ref})
				if err != nil {
					refused.Add(1)
				}
				time.Sleep(time.Second) // the model answers
				assert.ErrorIs(t, putMood(t.Context(), l), heed.ErrUnavailable)
			})
			time.Sleep(10 * time.Millisecond)
		}
		all.Wait()
		assert.Less(t, refused.Load(), int64(200), "a read that succeeds lets others through")
		assert.LessOrEqual(t, s.committing.Load()-before, int64(21/5+1))
	})
}

// A store that hangs holds up each call of an agent for five seconds at most.
func TestHowLongAStoreThatHangsHoldsUpACall(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, a *Agent, p Plan) error{
		"a check of a tool": func(ctx context.Context, a *Agent, _ Plan) error {
			_, err := a.Tool(ctx, "e", ToolResult{Name: "sh", Input: "ls", Before: true})
			return err
		},
		"a tool that fails": func(ctx context.Context, a *Agent, _ Plan) error {
			_, err := a.Tool(ctx, "e", ToolResult{Name: "sh", Err: context.Canceled})
			return err
		},
		"a plan to keep": func(ctx context.Context, a *Agent, p Plan) error {
			return a.KeepPlan(ctx, "ann", p)
		},
		"a kept plan": func(ctx context.Context, a *Agent, p Plan) error {
			_, err := a.KeptPlan(ctx, "ann", "e")
			return err
		},
		"an answer": func(ctx context.Context, a *Agent, p Plan) error {
			_, err := a.Answered(ctx, p, Reply{Text: "So."})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &moody{Store: new(memstore.Store)}
				a, err := New(t.Context(), Config{Store: s})
				require.NoError(t, err)
				p, err := a.Prepare(t.Context(), Event{ID: "e", Text: "Why?"})
				require.NoError(t, err)
				s.hangs.Store(true)
				began := time.Now()
				_ = call(t.Context(), a, p)
				assert.Equal(t, storeTimeout, time.Since(began))
			})
		})
	}
}
