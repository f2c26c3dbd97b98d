package strategy_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/strategy"
)

func TestStandingsAreWhatTheItemsAre(t *testing.T) {
	for _, pooling := range []strategy.Pooling{strategy.TwoLevel{}, strategy.Alone{}, strategy.Copy{Sessions: 2, MinConfidence: 0.1}} {
		l, _ := surveyed(t, pooling)
		standings, err := l.Standings(ctx, "c", "x")
		require.NoError(t, err)
		require.Len(t, standings, 2)
		for i, item := range []string{"i", "j"} {
			r := itemOf(t, l, strategy.Query{Item: item, Category: "c", Context: "x"})
			s := standings[i]
			assert.Equal(t, strategy.Standing{
				Item: item, Leading: r.Leading, Mean: s.Mean, Independence: r.Independence, Specialized: r.Specialized,
				Sessions: r.Sessions, Outcomes: 2,
			}, s)
			for _, arm := range r.Arms {
				if arm.Arm == r.Leading {
					assert.InDelta(t, arm.Mean, s.Mean, 0)
				}
			}
		}
	}
}

func TestStandingsOfNothing(t *testing.T) {
	l, _ := surveyed(t, nil)
	_, err := l.Standings(ctx, "c", "elsewhere")
	require.ErrorIs(t, err, heed.ErrNotFound)
	_, err = l.Standings(ctx, "\x00", "")
	var fault *heed.InputError
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, "Category", fault.Field)
}

func TestStoredArms(t *testing.T) {
	store := newStore(t, (&clock{}).Now)
	arms := []strategy.Arm{{ID: "z", Parameters: []strategy.Parameter{{Name: "p", Values: []string{"b=1"}}, {Name: "m", Values: []string{"x"}}}}, {ID: "a"}, {ID: "unused"}}
	for _, name := range []string{"", "other"} {
		l := newLearner(t, strategy.Config{Store: store, Arms: arms, Name: name})
		try(t, l, strategy.Query{Item: "i", Category: "c"}, "z", 1)
		try(t, l, strategy.Query{Item: "j", Category: "d"}, "a", 1)
	}
	for _, name := range []string{"strategy", "other"} {
		stored, err := strategy.StoredArms(ctx, store, name)
		require.NoError(t, err)
		assert.Equal(t, []strategy.Arm{{ID: "a"}, {ID: "z", Parameters: []strategy.Parameter{{Name: "m", Values: []string{"x"}}, {Name: "p", Values: []string{"b=1"}}}}}, stored)
	}
	none, err := strategy.StoredArms(ctx, store, "nobody")
	require.NoError(t, err)
	assert.Empty(t, none)
	assert.Equal(t, "other.arm", strategy.ArmKind("other"))
}

// unlistable has scopes that can't be listed.
type unlistable struct{ evidence.Store }

var errUnlistable = errors.New("can't be listed")

func (unlistable) List(context.Context, string, string) iter.Seq2[evidence.Part, error] {
	return func(yield func(evidence.Part, error) bool) { yield(evidence.Part{}, errUnlistable) }
}

func TestStandingsAndStoredArmsTellTheStoresErrors(t *testing.T) {
	l, _ := surveyed(t, nil)
	_, err := strategy.StoredArms(ctx, unlistable{l.Config().Store}, "strategy")
	require.ErrorIs(t, err, errUnlistable)
	broken := newLearner(t, strategy.Config{Store: unlistable{l.Config().Store}, Arms: plain("a", "b")})
	_, err = broken.Standings(ctx, "c", "x")
	require.ErrorIs(t, err, errUnlistable)
}
