package watermill_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/adapter/internal/adaptertest"
	"github.com/heedhq/heed/adapter/watermill"
	"github.com/heedhq/heed/strategy/attribution"
	"github.com/heedhq/heed/stream"
	"github.com/heedhq/heed/stream/streamtest"
)

func TestDocs(t *testing.T) { adaptertest.Page(t, "README.md") }

func TestSuite(t *testing.T) {
	streamtest.Run(t, func() (streamtest.Harness, error) {
		channel := gochannel.NewGoChannel(gochannel.Config{}, nil)
		t.Cleanup(func() { assert.NoError(t, channel.Close()) })
		source, err := watermill.NewSource(context.Background(),
			watermill.SourceConfig{Subscriber: channel, Topic: "suite"})
		if err != nil {
			return streamtest.Harness{}, err
		}
		sink, err := watermill.NewSink(channel)
		return streamtest.Harness{Source: source, Sink: sink}, err
	})
}

// away is a source whose subscription may be replaced, as after the loss of a connection.
type away struct {
	stream.Source
	again func() stream.Source
}

func (a *away) Receive(ctx context.Context) (stream.Delivery, error) {
	for {
		d, err := a.Source.Receive(ctx)
		if !errors.Is(err, stream.ErrClosed) {
			return d, err
		}
		a.Source = a.again()
	}
}

// shared lets several goroutines receive, one at a time.
type shared struct {
	turn   chan struct{}
	source stream.Source
}

func (s shared) Receive(ctx context.Context) (stream.Delivery, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
		return s.source.Receive(ctx)
	}
}

// TestSubscribedAgain ends the subscription while reports come. The next one delivers everything
// from the beginning, and each report counts once.
func TestSubscribedAgain(t *testing.T) {
	channel := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
	defer func() { require.NoError(t, channel.Close()) }()
	ends := make(chan context.CancelFunc, 10)
	subscribe := func() stream.Source {
		ctx, end := context.WithCancel(context.Background())
		ends <- end
		source, err := watermill.NewSource(ctx, watermill.SourceConfig{Subscriber: channel,
			Topic: attribution.Topic})
		assert.NoError(t, err)
		return source
	}
	sink, err := watermill.NewSink(channel)
	require.NoError(t, err)
	source := shared{make(chan struct{}, 1), &away{subscribe(), subscribe}}
	adaptertest.EachCounts(t, source, sink, func() { (<-ends)() })
	(<-ends)()
}

func TestReceiveEnds(t *testing.T) {
	channel := gochannel.NewGoChannel(gochannel.Config{}, nil)
	source, err := watermill.NewSource(t.Context(),
		watermill.SourceConfig{Subscriber: channel, Topic: "a"})
	require.NoError(t, err)
	require.NoError(t, channel.Close())
	_, err = source.Receive(t.Context())
	require.ErrorIs(t, err, stream.ErrClosed)
}

// TestForeign has a message that no sink has published.
func TestForeign(t *testing.T) {
	channel := gochannel.NewGoChannel(gochannel.Config{}, nil)
	defer func() { require.NoError(t, channel.Close()) }()
	source, err := watermill.NewSource(t.Context(),
		watermill.SourceConfig{Subscriber: channel, Topic: "a"})
	require.NoError(t, err)
	require.NoError(t, channel.Publish("a", message.NewMessage("1", []byte("{}"))))
	d, err := source.Receive(t.Context())
	require.NoError(t, err)
	assert.Equal(t, stream.Event{ID: "1", Topic: "a", Payload: []byte("{}")}, d.Event())
	require.NoError(t, d.Reject(t.Context()))
	require.NoError(t, d.Reject(t.Context()), "it is given back once")
}

func TestBadInput(t *testing.T) {
	_, err := watermill.NewSource(t.Context(), watermill.SourceConfig{})
	adaptertest.Faults(t, err, "Subscriber", "Topic")
	_, err = watermill.NewSink(nil)
	adaptertest.Faults(t, err, "Publisher")

	channel := gochannel.NewGoChannel(gochannel.Config{}, nil)
	require.NoError(t, channel.Close())
	_, err = watermill.NewSource(t.Context(), watermill.SourceConfig{Subscriber: channel, Topic: "a"})
	require.ErrorContains(t, err, "closed")
	sink, err := watermill.NewSink(channel)
	require.NoError(t, err)
	require.ErrorContains(t, sink.Publish(t.Context(), stream.Event{Topic: "a"}), "closed")
	adaptertest.Refuses(t, sink)
}
