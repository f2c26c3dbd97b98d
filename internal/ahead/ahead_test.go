package ahead_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/ahead"
	"github.com/heedhq/heed/internal/failing"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

var (
	ctx  = context.Background()
	ref  = store.Ref{Kind: "k", ID: "a"}
	cell = evidence.Cell{Kind: "c", Item: "i", Name: "n"}
	find = store.Query{Kind: "k", Keys: []string{"x"}}
)

func newStore(t *testing.T) (*ahead.Store, *failing.Store) {
	counted := &failing.Store{Store: new(memstore.Store)}
	s := &ahead.Store{Store: counted}
	require.NoError(t, s.Declare(ctx, store.Kind{Name: "k", Versioned: true}))
	_, err := s.Commit(ctx, store.Batch{
		Records:      []store.Record{{Ref: ref, At: time.Unix(1, 0), Keys: []string{"x"}, Body: store.Of(1)}},
		Observations: []evidence.Observation{{ID: "o", Cell: cell, Reward: 1, Weight: 1, At: time.Unix(1, 0)}},
	})
	require.NoError(t, err)
	return s, counted
}

// step is a step that reads, and one that finds. It returns what was read.
func step(ctx context.Context, s *ahead.Store) (read store.Snapshot, err error) {
	if err = s.Read(ctx, &read, []evidence.Cell{cell}, []store.Ref{ref, {Kind: "k"}}); err != nil {
		return read, err
	}
	err = finds(ctx, s, &read)
	return read, err
}

func finds(ctx context.Context, s *ahead.Store, into *store.Snapshot) error {
	var found []store.Record
	for r, err := range s.Find(ctx, find) {
		if err != nil {
			return err
		}
		found = append(found, r)
	}
	into.Found = append(into.Found, found)
	return nil
}

func TestStepsAreReadTogetherAndServedOnce(t *testing.T) {
	s, counted := newStore(t)
	want, err := step(ctx, s)
	require.NoError(t, err)
	c, end := s.Begin(ctx)
	defer end()
	before := counted.Calls()
	ahead.Rehearse(c, func(ctx context.Context) error {
		assert.True(t, ahead.Rehearsed(ctx))
		_, err := step(ctx, s)
		assert.ErrorIs(t, err, ahead.ErrRehearsed)
		return err
	})
	ahead.Rehearse(c, func(ctx context.Context) error { return finds(ctx, s, new(store.Snapshot)) })
	assert.False(t, ahead.Rehearsed(c))
	assert.Equal(t, before, counted.Calls(), "a rehearsal calls nobody")

	got, err := step(c, s)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	assert.Equal(t, before+1, counted.Calls())
	got, err = step(c, s)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	assert.Equal(t, before+3, counted.Calls(), "what was served is read again")
}

func TestNothingIsServedAfterACommit(t *testing.T) {
	s, counted := newStore(t)
	c, end := s.Begin(ctx)
	ahead.Rehearse(c, func(ctx context.Context) error { _, err := step(ctx, s); return err })
	require.NoError(t, s.Read(c, new(store.Snapshot), nil, []store.Ref{{Kind: "k"}})) // which reads all of it
	_, err := s.Commit(c, store.Batch{Records: []store.Record{{Ref: store.Ref{Kind: "k", ID: "b"}, At: time.Unix(2, 0), Keys: []string{"x"}, Body: store.Of(2)}}})
	require.NoError(t, err)
	got, err := step(c, s)
	require.NoError(t, err)
	assert.Len(t, got.Found[0], 2)

	end()
	before := counted.Calls()
	_, err = step(c, s)
	require.NoError(t, err)
	assert.Equal(t, before+2, counted.Calls())
}

func TestARehearsalDoesNothing(t *testing.T) {
	s, counted := newStore(t)
	c, end := s.Begin(ctx)
	defer end()
	before := counted.Calls()
	for name, call := range map[string]func(context.Context) error{
		"Commit":  func(ctx context.Context) error { _, err := s.Commit(ctx, store.Batch{}); return err },
		"List":    func(ctx context.Context) error { return drain(s.List(ctx, "c", "")) },
		"Scopes":  func(ctx context.Context) error { return drain(s.Scopes(ctx, "c")) },
		"History": func(ctx context.Context) error { return drain(s.History(ctx, cell)) },
	} {
		ahead.Rehearse(c, func(ctx context.Context) error {
			err := call(ctx)
			assert.ErrorIs(t, err, ahead.ErrRehearsed, name)
			return err
		})
		assert.NoError(t, call(c), name)
	}
	assert.Equal(t, before+4, counted.Calls())
	other, _ := newStore(t)
	ahead.Rehearse(c, func(ctx context.Context) error { // the context is of another store
		_, err := step(ctx, other)
		assert.NoError(t, err)
		return err
	})
}

func drain[T any](all func(func(T, error) bool)) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// The step that asks first has the error, and the next one reads for itself.
func TestAFailedReadIsToldAndReadAgain(t *testing.T) {
	s, counted := newStore(t)
	c, end := s.Begin(ctx)
	defer end()
	ahead.Rehearse(c, func(ctx context.Context) error { _, err := step(ctx, s); return err })
	counted.At = counted.Calls() + 1
	_, err := step(c, s)
	require.ErrorIs(t, err, failing.ErrFailed)
	got, err := step(c, s)
	require.NoError(t, err)
	assert.Len(t, got.Parts, 1)
}
