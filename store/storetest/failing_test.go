package storetest_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

var ctx = context.Background()

// A fake counts the calls that had an effect.
type fake struct{ effects int }

func (f *fake) Commit(context.Context, ...store.Batch) ([]store.Receipt, error) {
	f.effects++
	return make([]store.Receipt, 1), nil
}
func (f *fake) Declare(context.Context, ...store.Kind) error { f.effects++; return nil }
func (f *fake) Read(
	context.Context, *store.Snapshot, []evidence.Cell, []store.Ref, ...store.Query,
) error {
	f.effects++
	return nil
}
func (f *fake) Sweep(context.Context, time.Time) error { f.effects++; return nil }
func (f *fake) Find(context.Context, store.Query) iter.Seq2[store.Record, error] {
	return two[store.Record](f)
}
func (f *fake) List(context.Context, store.CellQuery) iter.Seq2[evidence.Part, error] {
	return two[evidence.Part](f)
}
func (f *fake) Scopes(context.Context, string) iter.Seq2[string, error] { return two[string](f) }
func (f *fake) History(context.Context, evidence.Cell) iter.Seq2[evidence.Observation, error] {
	return two[evidence.Observation](f)
}

// two yields two values.
func two[T any](f *fake) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		f.effects++
		var v T
		for range 2 {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// drain returns how many values there were, and the error at the end.
func drain[T any](all iter.Seq2[T, error]) (n int, err error) {
	for _, err = range all {
		if err == nil {
			n++
		}
	}
	return n, err
}

func TestStoreFailsOneCall(t *testing.T) {
	calls := []func(s store.Store) error{
		func(s store.Store) error { _, err := s.Commit(ctx); return err },
		func(s store.Store) error { return s.Declare(ctx) },
		func(s store.Store) error { return s.Read(ctx, nil, nil, nil) },
		func(s store.Store) error { return s.Sweep(ctx, time.Time{}) },
		func(s store.Store) error { _, err := drain(s.Find(ctx, store.Query{})); return err },
		func(s store.Store) error { _, err := drain(s.List(ctx, store.CellQuery{})); return err },
		func(s store.Store) error { _, err := drain(s.Scopes(ctx, "")); return err },
		func(s store.Store) error { _, err := drain(s.History(ctx, evidence.Cell{})); return err },
	}
	runs := 0
	storetest.FailEach(func(at int, after bool) bool {
		runs++
		f := &fake{}
		s := &storetest.Failing{Store: f, At: at, After: after}
		for i, call := range calls {
			assert.Equal(t, i+1 == at, errors.Is(call(s), storetest.ErrFailed), "call %d of %d", i+1, at)
		}
		want := len(calls)
		if s.Failed() && !after {
			want--
		}
		assert.Equal(t, want, f.effects)
		assert.Equal(t, len(calls), s.Calls())
		assert.Equal(t, 2, s.Calls("Read", "Find"))
		return s.Failed()
	})
	assert.Equal(t, 2*len(calls)+1, runs)
}

func TestAnIteratorFailsAfterAllItsValues(t *testing.T) {
	s := &storetest.Failing{Store: &fake{}, At: 1, After: true}
	n, err := drain(s.Scopes(ctx, ""))
	assert.Equal(t, 2, n)
	assert.ErrorIs(t, err, storetest.ErrFailed)
	for range s.Scopes(ctx, "") {
		break // ends early
	}
	s.Fail(1, false)
	assert.Zero(t, s.Calls())
	n, err = drain(s.Scopes(ctx, ""))
	assert.Zero(t, n)
	assert.ErrorIs(t, err, storetest.ErrFailed)
}

// The second commit loses its reply, with its effect or without it, and then one read fails.
func TestALostReplyIsNotKnown(t *testing.T) {
	for _, after := range []bool{false, true} {
		f := &fake{}
		s := &storetest.Failing{Store: f, At: 2, After: after, Replies: true, Blind: true}
		commit := func() error { _, err := s.Commit(ctx); return err }
		read := func() error { return s.Read(ctx, nil, nil, nil) }
		require.NoError(t, read())
		require.NoError(t, commit())
		assert.False(t, s.Failed())
		require.ErrorIs(t, commit(), heed.ErrOutcomeUnknown)
		assert.True(t, s.Failed())
		require.ErrorIs(t, read(), storetest.ErrFailed)
		require.NoError(t, read())
		require.NoError(t, commit())
		assert.Equal(t, map[bool]int{false: 4, true: 5}[after], f.effects)
		s.Blind = false
		s.Fail(1, after)
		require.ErrorIs(t, commit(), heed.ErrOutcomeUnknown)
		require.NoError(t, read())
	}
}
