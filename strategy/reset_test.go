package strategy_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/injection"
)

// earn has an item seen in the given number of sessions, each with one outcome.
func earn(t *testing.T, l *strategy.Learner, item, session string,
	sessions int) (outcomes []strategy.Outcome) {
	for i := range sessions {
		c := choose(t, l, strategy.Query{Session: fmt.Sprint(session, i), Item: item,
			Category: "preference"})
		o := strategy.Outcome{Choice: c, Value: 1, Confidence: 1}
		_, err := l.Observe(ctx, o)
		require.NoError(t, err)
		outcomes = append(outcomes, o)
	}
	return outcomes
}

func given(t *testing.T, st store.Store, item string) (mass float64) {
	for part, err := range st.List(ctx, store.CellQuery{Kind: "strategy.given",
		Scope: "preference/"}) {
		require.NoError(t, err)
		if part.Cell.Item == item {
			mass += part.Tally.Mass
		}
	}
	return mass
}

// TestAnItemThatWasResetLearnsAnew, and specialises again, while what had been counted stays
// counted.
func TestAnItemThatWasResetLearnsAnew(t *testing.T) {
	st := &memstore.Store{}
	l := newLearner(t, strategy.Config{Store: st, Pooling: strategy.Copy{Sessions: 5}})
	earn(t, l, "other", "o", 3)
	old := earn(t, l, "item", "s", 5)
	require.InDelta(t, 3, given(t, st, "item"), 1e-9)

	require.NoError(t, l.Reset(ctx, strategy.Reset{Category: "preference", Item: "item", Actor: "ann",
		Reason: "it was reworded"}))
	assert.Zero(t, given(t, st, "item"))
	history, err := outcomes(l, strategy.Query{Item: "item", Category: "preference"}, 0)
	require.NoError(t, err)
	assert.Empty(t, history)
	history, err = outcomes(l, strategy.Query{Item: "other", Category: "preference"}, 0)
	require.NoError(t, err)
	assert.Len(t, history, 3, "only the item is forgotten")

	disposition, err := l.Observe(ctx, old[0])
	require.NoError(t, err)
	assert.Equal(t, strategy.Duplicate, disposition)
	// The same sessions count again, as they may go on after the reset.
	for _, o := range old[:4] {
		o.ID = "after the reset"
		_, err := l.Observe(ctx, o)
		require.NoError(t, err)
	}
	assert.Zero(t, given(t, st, "item"), "four sessions are not five")
	last := old[4]
	last.ID = "after the reset"
	_, err = l.Observe(ctx, last)
	require.NoError(t, err)
	assert.InDelta(t, 3, given(t, st, "item"), 1e-9)
}

// A reset by another process counts from the next choice for the item on.
func TestSessionsCountAgainAfterAResetElsewhere(t *testing.T) {
	st := &memstore.Store{}
	cfg := strategy.Config{Store: st, Pooling: strategy.Copy{Sessions: 5}}
	l, other := newLearner(t, cfg), newLearner(t, cfg)
	earn(t, l, "other", "o", 3)
	old := earn(t, l, "item", "s", 5)
	require.NoError(t, other.Reset(ctx, strategy.Reset{
		Category: "preference", Item: "item", Actor: "ann", Reason: "it was reworded",
	}))
	choose(t, l, strategy.Query{Session: "new", Item: "item", Category: "preference"})
	for _, o := range old {
		assert.Zero(t, given(t, st, "item"), "it takes five sessions")
		o.ID = "after the reset"
		_, err := l.Observe(ctx, o)
		require.NoError(t, err)
	}
	assert.InDelta(t, 3, given(t, st, "item"), 1e-9)
}

func TestASegmentThatWasResetStartsCold(t *testing.T) {
	st := &memstore.Store{}
	arms := injection.Arms()
	l := newLearner(t, strategy.Config{Store: st, Arms: arms})
	cold, err := l.Beliefs(ctx, strategy.Query{Item: "item", Category: "preference"})
	require.NoError(t, err)
	for _, item := range []string{"a", "b"} {
		earn(t, l, item, item, 5)
	}
	elsewhere := choose(t, l, strategy.Query{Item: "a", Category: "correction"})
	_, err = l.Observe(ctx, strategy.Outcome{Choice: elsewhere, Value: 1, Confidence: 1})
	require.NoError(t, err)

	require.NoError(t, l.Reset(ctx, strategy.Reset{Category: "preference", Reason: "a new model"}))
	warm, err := l.Beliefs(ctx, strategy.Query{Item: "item", Category: "preference"})
	require.NoError(t, err)
	for i := range cold {
		assert.Equal(t, cold[i].Level, warm[i].Level)
	}
	for _, kind := range []string{"arm", "parameter", "sessions"} {
		for part, err := range st.List(ctx, store.CellQuery{Kind: "strategy." + kind,
			Scope: "preference/"}) {
			require.NoError(t, err)
			t.Errorf("%v is still there", part.Cell)
		}
	}
	assert.NotEmpty(t, read(t, st, elsewhere.Cells()[0]), "another segment is not touched")
	entries := audited(t, st)
	require.Len(t, entries, 1)
	assert.Equal(t, "strategy.reset", entries[0].Action)
	assert.Equal(t, "a new model", entries[0].Reason)
	assert.Equal(t, "preference", entries[0].Details["category"])
}

// A mistyped name is an error, and nothing of it is in the audit.
func TestAResetOfNothingIsNotFound(t *testing.T) {
	st := &memstore.Store{}
	l := newLearner(t, strategy.Config{Store: st})
	earn(t, l, "item", "s", 1)
	for _, r := range []strategy.Reset{
		{Category: "preferences"}, {Category: "preference", Context: "x"},
		{Category: "preference", Item: "itme"},
	} {
		r.Reason = "it was reworded"
		require.ErrorIs(t, l.Reset(ctx, r), heed.ErrNotFound, "%+v", r)
	}
	assert.Empty(t, audited(t, st))
	require.NoError(t, l.Reset(ctx, strategy.Reset{Category: "preference", Item: "item",
		Reason: "it was reworded"}))
	require.ErrorIs(t, l.Reset(ctx, strategy.Reset{Category: "preference", Item: "item",
		Reason: "once more"}), heed.ErrNotFound)
}

func TestAResetNeedsAReason(t *testing.T) {
	l := newLearner(t, strategy.Config{})
	earn(t, l, "item", "s", 1)
	var fault *heed.InputError
	require.ErrorAs(t, l.Reset(ctx, strategy.Reset{Category: "preference"}), &fault)
	assert.Equal(t, "Reason", fault.Field)
	require.ErrorAs(t, l.Reset(ctx, strategy.Reset{Category: "\xff", Reason: "why not"}), &fault)
	assert.Equal(t, "Category", fault.Field)
	history, err := outcomes(l, strategy.Query{Item: "item", Category: "preference"}, 0)
	require.NoError(t, err)
	assert.Len(t, history, 1)
}

// A reset returns an error if it can't list the cells that it has to forget.
func TestAResetWithoutItsStore(t *testing.T) {
	st := &faulty{Store: newStore(t, (&clock{}).Now)}
	l := newLearner(t, strategy.Config{Store: st})
	try(t, l, strategy.Query{Item: "i"}, "a", 1)
	st.list.Store(&errStore)
	err := l.Reset(ctx, strategy.Reset{Item: "i", Reason: "r"})
	require.ErrorIs(t, err, errStore)
	require.NotErrorIs(t, err, heed.ErrNotFound)
	assert.Empty(t, audited(t, st), "no part of it was begun")
}

// A choice knows how often its segment was reset, and its item if it has one.
func TestAChoiceKnowsItsResets(t *testing.T) {
	l := newLearner(t, strategy.Config{})
	for _, item := range []string{"", "i", "i"} {
		try(t, l, strategy.Query{Item: "i"}, "a", 1)
		require.NoError(t, l.Reset(ctx, strategy.Reset{Item: item, Reason: "r"}))
	}
	for item, want := range map[string][2]uint64{"": {1, 0}, "i": {1, 2}, "other": {1, 0}} {
		assert.Equal(t, want, choose(t, l, strategy.Query{Item: item}).Record().Resets, item)
	}
}
