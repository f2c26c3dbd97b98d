package enginetest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/stream"
	"github.com/heedhq/heed/stream/streamtest"
)

func TestInbox(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		st := at.store(t, sqlstore.Config{})
		n := 0
		streamtest.Run(t, func() (streamtest.Harness, error) {
			n++
			name := fmt.Sprint("inbox", n)
			inbox, err := sqlstore.NewInbox(ctx, st, name, "h")
			reopen := func() (stream.Source, error) { return sqlstore.NewInbox(ctx, st, name, "h") }
			return streamtest.Harness{Source: inbox, Sink: inbox, Reopen: reopen, Close: inbox.Close}, err
		})
	})
}

// A receiver that has an event no longer in hand can't hold it back from others.
func TestInboxRejectsOnce(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		st := at.store(t, sqlstore.Config{})
		open := func() *sqlstore.Inbox {
			s, err := sqlstore.NewInbox(ctx, st, "s", "h")
			require.NoError(t, err)
			return s
		}
		inbox := open()
		require.NoError(t, inbox.Publish(ctx, stream.Event{ID: "1", Topic: "t", At: time.Now()}))
		old, err := inbox.Receive(ctx)
		require.NoError(t, err)
		require.NoError(t, old.Reject(ctx, 0))
		require.NoError(t, old.Reject(ctx, time.Hour))
		old, err = inbox.Receive(ctx)
		require.NoError(t, err)
		inbox = open() // which gives back what the holder had in hand
		require.NoError(t, old.Reject(ctx, time.Hour))
		again, err := inbox.Receive(ctx)
		require.NoError(t, err)
		require.NoError(t, old.Reject(ctx, time.Hour))
		require.NoError(t, again.Reject(ctx, 0))
		last, err := inbox.Receive(ctx)
		require.NoError(t, err)
		assert.Equal(t, "1", last.Event().ID)
		require.NoError(t, last.Ack(ctx))
	})
}
