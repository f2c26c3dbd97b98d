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
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

func TestStandingsAreWhatTheItemsAre(t *testing.T) {
	for _, pooling := range []strategy.Pooling{strategy.TwoLevel{}, strategy.Alone{},
		strategy.Copy{Sessions: 2, MinConfidence: 0.1}} {
		l, _ := surveyed(t, pooling)
		d, err := distribution(l, "c", "x")
		require.NoError(t, err)
		standings := d.Standings
		require.Len(t, standings, 2)
		for i, item := range []string{"i", "j"} {
			r := itemOf(t, l, strategy.Query{Item: item, Category: "c", Context: "x"})
			s := standings[i]
			arms := r.Arms
			r.Arms = nil
			assert.Equal(t, s, r)
			assert.Equal(t, []any{item, uint64(2)}, []any{s.Item, s.Outcomes})
			for _, arm := range arms {
				if arm.Arm == r.Leading {
					assert.InDelta(t, arm.Mean, s.Mean, 0)
				}
			}
		}
	}
}

func TestDistributionOfNothing(t *testing.T) {
	l, _ := surveyed(t, nil)
	_, err := distribution(l, "c", "elsewhere")
	require.ErrorIs(t, err, heed.ErrNotFound)
	_, err = distribution(l, "\x00", "")
	var fault *heed.InputError
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, "Category", fault.Field)
}

// unlistable has scopes that can't be listed.
type unlistable struct{ store.Store }

var errUnlistable = errors.New("can't be listed")

func (unlistable) List(context.Context, store.CellQuery) iter.Seq2[evidence.Part, error] {
	return func(yield func(evidence.Part, error) bool) { yield(evidence.Part{}, errUnlistable) }
}

func TestDistributionTellsTheStoresErrors(t *testing.T) {
	l, _ := surveyed(t, nil)
	broken := newLearner(t, strategy.Config{Store: unlistable{l.Config().Store},
		Arms: plain("a", "b")})
	_, err := distribution(broken, "c", "x")
	require.ErrorIs(t, err, errUnlistable)
}
