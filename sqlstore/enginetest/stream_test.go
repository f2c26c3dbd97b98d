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

// TestADeliveryIsRejectedOnce: who has an event no longer in hand can't hold it back from others.
func TestADeliveryIsRejectedOnce(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		db := at.db(t)
		open := func() *sqlstore.Stream {
			s, err := sqlstore.NewStream(ctx, db, sqlstore.StreamConfig{Name: "s", Holder: "h"})
			require.NoError(t, err)
			return s
		}
		stream := open()
		require.NoError(t, stream.Publish(ctx, evidence.Event{ID: "1", Topic: "t", At: time.Now()}))
		old, err := stream.Receive(ctx)
		require.NoError(t, err)
		require.NoError(t, old.Reject(ctx, 0))
		require.NoError(t, old.Reject(ctx, time.Hour))
		old, err = stream.Receive(ctx)
		require.NoError(t, err)
		stream = open() // which gives back what the holder had in hand
		require.NoError(t, old.Reject(ctx, time.Hour))
		again, err := stream.Receive(ctx)
		require.NoError(t, err)
		require.NoError(t, old.Reject(ctx, time.Hour))
		require.NoError(t, again.Reject(ctx, 0))
		last, err := stream.Receive(ctx)
		require.NoError(t, err)
		assert.Equal(t, "1", last.Event().ID)
		require.NoError(t, last.Ack(ctx))
	})
}
