package strategy_test

import (
	"cmp"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// The host's record is in the commit of an outcome, also if the outcome is a duplicate. If the
// commit fails, it is in none.
func TestCommittedAlong(t *testing.T) {
	q := strategy.Query{Session: "s", Item: "i", Arms: []strategy.ArmID{"a"}}
	host := store.Ref{Kind: "host", ID: "x"}
	for name, tt := range map[string]struct {
		cfg  strategy.Config
		o    strategy.Outcome
		want strategy.Disposition
	}{
		"applied": {strategy.Config{}, strategy.Outcome{Value: 1, Confidence: 1}, strategy.Applied},
		"unrecorded": {strategy.Config{Unrecorded: true}, strategy.Outcome{Value: 1, Confidence: 1},
			strategy.Applied},
		"a duplicate": {strategy.Config{}, strategy.Outcome{ID: "known", Value: 1, Confidence: 1},
			strategy.Duplicate},
		"unsure": {strategy.Config{MinConfidence: 0.5},
			strategy.Outcome{Value: 1, Confidence: 0.1}, strategy.Dropped},
		"disabled": {strategy.Config{Disabled: true, Default: "a"},
			strategy.Outcome{Value: 1, Confidence: 1}, strategy.Dropped},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLearner(t, tt.cfg)
			st := l.Config().Store
			require.NoError(t, st.Declare(ctx, store.Kind{Name: "host"}))
			there := func() bool {
				var s store.Snapshot
				require.NoError(t, st.Read(ctx, &s, nil, []store.Ref{host}))
				return s.Records[0].Revision > 0
			}
			tt.o.Choice = choose(t, l, q)
			if tt.want == strategy.Duplicate {
				_, err := l.Observe(ctx, tt.o)
				require.NoError(t, err)
			}
			with := func(b store.Batch) (strategy.Disposition, error) {
				var did *strategy.Disposition
				err := store.Do(ctx, st, func(tx *store.Tx) (err error) {
					tx.Add(b)
					did, err = l.ObserveIn(tx, tt.o)
					return err
				})
				return *did, err
			}
			before := means(t, l, q)
			failure := errors.New("no")
			_, err := with(store.Batch{
				Records: []store.Record{{Ref: store.Ref{Kind: strings.Repeat("x", 2000)}}},
			})
			require.Error(t, err)
			require.ErrorIs(t, store.Do(ctx, st, func(tx *store.Tx) error {
				_, err := l.ObserveIn(tx, tt.o)
				return cmp.Or(err, failure)
			}), failure)
			assert.Equal(t, before, means(t, l, q))
			assert.False(t, there())
			got, err := with(store.Batch{
				Records: []store.Record{{Ref: host, At: tt.o.Choice.At, Body: store.Of("x")}},
			})
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
			assert.True(t, there())
			got, err = l.Observe(ctx, tt.o)
			require.NoError(t, err)
			if tt.want == strategy.Applied {
				tt.want = strategy.Duplicate
			}
			assert.Equal(t, tt.want, got, "it counts once, however it is observed")
		})
	}
}
