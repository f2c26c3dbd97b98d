package learning_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/store"
)

// The caller's batch is in the commit of the evidence, also where there is no evidence. If that commit fails, it is in none.
func TestCommittedAlong(t *testing.T) {
	signal := learning.NewSignal(learning.Positive, "h", "e", "user_implicit")
	neutral := learning.NewSignal(learning.Neutral, "h", "e", "user_implicit")
	nothing := thumb("h", "e", true)
	nothing.Value = 0
	outdated := thumb("h", "e", false)
	outdated.At = start.Add(-time.Minute)
	for name, call := range map[string]func(*fixture, store.Batch) error{
		"a fire": func(f *fixture, b store.Batch) error {
			return f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: "new"}, b)
		},
		"a fire again": func(f *fixture, b store.Batch) error {
			return f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: "e"}, b)
		},
		"a click": func(f *fixture, b store.Batch) error {
			_, err := f.Judge(ctx, thumb("h", "e", false), b)
			return err
		},
		"a click again": func(f *fixture, b store.Batch) error {
			_, err := f.Judge(ctx, thumb("h", "e", true), b)
			return err
		},
		"a click that is taken back": func(f *fixture, b store.Batch) error { _, err := f.Judge(ctx, nothing, b); return err },
		"a click from before":        func(f *fixture, b store.Batch) error { _, err := f.Judge(ctx, outdated, b); return err },
		"an undo": func(f *fixture, b store.Batch) error {
			_, err := f.Undo(ctx, learning.Undo{EventID: "undone"}, b)
			return err
		},
		"a signal": func(f *fixture, b store.Batch) error {
			_, err := f.Apply(ctx, signal, learning.Origin{ID: "new"}, b)
			return err
		},
		"a signal again": func(f *fixture, b store.Batch) error {
			_, err := f.Apply(ctx, signal, learning.Origin{ID: "old"}, b)
			return err
		},
		"a signal of nothing": func(f *fixture, b store.Batch) error {
			_, err := f.Apply(ctx, neutral, learning.Origin{ID: "new"}, b)
			return err
		},
	} {
		for _, dry := range []bool{false, true} {
			f := newFixture(t, learning.Config{DryRun: dry}, "h")
			require.NoError(t, f.store.Declare(ctx, store.Kind{Name: "host"}))
			f.fire("h", "e", "")
			f.fire("h", "undone", "")
			f.say(thumb("h", "e", true))
			f.apply("old", "h", 1)
			host := store.Ref{Kind: "host", ID: "x"}
			there := func() bool {
				var s store.Snapshot
				require.NoError(t, f.store.Read(ctx, &s, nil, []store.Ref{host}))
				return s.Records[0].Revision > 0
			}
			along := store.Batch{Records: []store.Record{{Ref: host, At: start, Body: store.Of("x")}}}
			before := f.standing("h")
			f.store.failOnce = errDown
			require.ErrorIs(t, call(f, along), errDown, name)
			assert.False(t, there(), name)
			f.store.failOnce = heed.ErrConflict
			require.ErrorIs(t, call(f, along), heed.ErrConflict, "%s: the caller has to read anew", name)
			assert.False(t, there(), name)
			assert.Equal(t, before, f.standing("h"), name)
			f.store.commits = nil
			require.NoError(t, call(f, along), name)
			assert.True(t, there(), name)
			assert.Len(t, f.store.commits, 2, "%s: the module's batch, and the caller's", name)
			stale := store.Batch{Expect: []store.Precondition{{Ref: host}}}
			after := f.standing("h")
			require.ErrorIs(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: "stale"}, stale), heed.ErrConflict)
			_, err := f.Judge(ctx, thumb("h", "stale", true), stale)
			require.ErrorIs(t, err, heed.ErrConflict)
			assert.Equal(t, after, f.standing("h"))
		}
	}
	f := newFixture(t, learning.Config{})
	require.ErrorIs(t, f.Fire(ctx, learning.Fire{HeuristicID: "none", EventID: "e"}, store.Batch{ID: "x"}), heed.ErrNotFound)
	assert.Empty(t, f.store.commits)
}
