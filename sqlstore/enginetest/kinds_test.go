package enginetest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
)

func TestKindsAreThoseWithEvidence(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		store, err := sqlstore.NewEvidence(at.db(t), sqlstore.EvidenceConfig{})
		require.NoError(t, err)
		kinds := func(ctx context.Context) (all []string, err error) {
			for kind, err := range store.Kinds(ctx) {
				if err != nil {
					return nil, err
				}
				all = append(all, kind)
			}
			return all, nil
		}
		none, err := kinds(ctx)
		require.NoError(t, err)
		assert.Empty(t, none)

		var b evidence.Batch
		for _, kind := range []string{"b.arm", "a.arm", "Z.arm", "gone"} {
			for _, item := range []string{"i", "j"} {
				b.Observations = append(b.Observations, evidence.Observation{
					ID: kind + item, Cell: evidence.Cell{Kind: kind, Scope: "s", Item: item}, Reward: 1, Weight: 1, At: time.Now(),
				})
			}
		}
		_, err = store.Commit(ctx, b)
		require.NoError(t, err)
		_, err = store.Commit(ctx, evidence.Batch{Reset: []evidence.Selection{{Kind: "gone", Scope: "s"}}})
		require.NoError(t, err)
		some, err := kinds(ctx)
		require.NoError(t, err)
		assert.Equal(t, []string{"Z.arm", "a.arm", "b.arm"}, some)

		done, cancel := context.WithCancel(ctx)
		cancel()
		_, err = kinds(done)
		require.ErrorIs(t, err, context.Canceled)
	})
}
