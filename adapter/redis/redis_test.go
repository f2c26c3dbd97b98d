package redis_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/adapter/internal/adaptertest"
	"github.com/heedhq/heed/adapter/redis"
	"github.com/heedhq/heed/internal/servertest"
	"github.com/heedhq/heed/stream"
	"github.com/heedhq/heed/stream/streamtest"
)

// A broker is a server in a process of its own, which keeps everything on disk at once.
type broker struct {
	testing.TB
	program, dir string
	command      *exec.Cmd
	end          func() error
}

// newBroker starts a server. Without redis-server the test is skipped, or fails with
// HEED_REDIS=require.
func newBroker(t testing.TB) *broker {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		require.NotEqual(t, "require", os.Getenv("HEED_REDIS"), "redis-server is not here")
		t.Skip("redis-server is not here (apt-get install redis-server)")
	}
	b := &broker{TB: t, program: program, dir: t.TempDir()}
	b.start()
	t.Cleanup(b.kill)
	return b
}

func (b *broker) socket() string { return filepath.Join(b.dir, "s") }

func (b *broker) client() *goredis.Client {
	client := goredis.NewClient(&goredis.Options{Network: "unix", Addr: b.socket()})
	b.Cleanup(func() { _ = client.Close() })
	return client
}

func (b *broker) start() {
	b.Helper()
	b.command = exec.Command(b.program, "--port", "0", "--unixsocket", b.socket(), "--dir", b.dir,
		"--appendonly", "yes", "--appendfsync", "always", "--save", "")
	require.NoError(b, b.command.Start())
	var err error
	b.end, err = servertest.AtEnd(`kill -9 "$1"`, strconv.Itoa(b.command.Process.Pid))
	require.NoError(b, err)
	client := goredis.NewClient(&goredis.Options{Network: "unix", Addr: b.socket()})
	defer func() { _ = client.Close() }()
	require.Eventually(b, func() bool { return client.Ping(context.Background()).Err() == nil },
		time.Minute, 10*time.Millisecond)
}

func (b *broker) kill() {
	_ = b.end()
	_ = b.command.Wait()
}

func TestDocs(t *testing.T) {
	assert.Equal(t, "outcomes: 1 duplicates: 1\n", program(newBroker(t).client()))
	adaptertest.Page(t, "README.md")
}

func TestSuite(t *testing.T) {
	t.Parallel()
	client := newBroker(t).client()
	streamtest.Run(t, func() (streamtest.Harness, error) {
		ctx := context.Background()
		if err := client.FlushAll(ctx).Err(); err != nil {
			return streamtest.Harness{}, err
		}
		open := func() (stream.Source, error) {
			return redis.NewSource(ctx, redis.SourceConfig{Client: client, Stream: "suite", Group: "g",
				Consumer: "c", Delete: true, Lease: 2 * time.Second})
		}
		sink, err := redis.NewSink(client)
		if err != nil {
			return streamtest.Harness{}, err
		}
		source, err := open()
		return streamtest.Harness{Source: source, Sink: sink, Reopen: open}, err
	})
}

// TestKilledServer kills the server while reports are published and read. Each counts once all the
// same.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	client := b.client()
	source, err := redis.NewSource(t.Context(), redis.SourceConfig{
		Client: client, Stream: "heed.attribution", Group: "learner", Consumer: "c", Lease: time.Second,
	})
	require.NoError(t, err)
	sink, err := redis.NewSink(client)
	require.NoError(t, err)
	adaptertest.EachCounts(t, source, sink, func() { b.kill(); b.start() })
}

// A process ends with an event in hand. Another process takes the event when the lease is over.
// Anybody may take a rejected event.
func TestLeases(t *testing.T) {
	t.Parallel()
	client := newBroker(t).client()
	open := func(consumer string) stream.Source {
		source, err := redis.NewSource(t.Context(), redis.SourceConfig{
			Client: client, Stream: "s", Group: "g", Consumer: consumer, Lease: 500 * time.Millisecond,
		})
		require.NoError(t, err)
		return source
	}
	one, two := open("one"), open("two")
	sink, err := redis.NewSink(client)
	require.NoError(t, err)
	for i := range 15 { // more than Redis looks at at a time
		require.NoError(t, sink.Publish(t.Context(), stream.Event{ID: fmt.Sprint(i), Topic: "s"}))
		adaptertest.Receive(t, one)
	}
	seen := make(map[string]bool)
	for range 15 {
		d := adaptertest.Receive(t, two)
		seen[d.Event().ID] = true
		require.NoError(t, d.Ack(t.Context()))
	}
	assert.Len(t, seen, 15)
	require.NoError(t, sink.Publish(t.Context(), stream.Event{ID: "x", Topic: "s"}))
	require.NoError(t, adaptertest.Receive(t, two).Reject(t.Context()))
	assert.Equal(t, "x", adaptertest.Receive(t, one).Event().ID)
}

// TestEvents has ids of all kinds, and entries of other programs.
func TestEvents(t *testing.T) {
	t.Parallel()
	client := newBroker(t).client()
	source, err := redis.NewSource(t.Context(),
		redis.SourceConfig{Client: client, Stream: "s", Group: "g", Consumer: "c"})
	require.NoError(t, err)
	sink, err := redis.NewSink(client)
	require.NoError(t, err)
	for _, id := range []string{"", " a\r\nb ", "50%+é\xff"} {
		require.NoError(t, sink.Publish(t.Context(), stream.Event{ID: id, Topic: "s"}))
		d := adaptertest.Receive(t, source)
		assert.Equal(t, id, d.Event().ID)
		assert.True(t, d.Event().At.IsZero())
	}
	entry, err := client.XAdd(t.Context(), &goredis.XAddArgs{Stream: "s",
		Values: []any{"payload", "{}", "at", "noon"}}).Result()
	require.NoError(t, err)
	e := adaptertest.Receive(t, source).Event()
	assert.Equal(t, entry, e.ID)
	assert.Equal(t, "{}", string(e.Payload))
	assert.WithinDuration(t, time.Now(), e.At, time.Minute)

	require.NoError(t, client.Del(t.Context(), "s").Err())
	require.NoError(t, sink.Publish(t.Context(), stream.Event{ID: "after", Topic: "s"}))
	assert.Equal(t, "after", adaptertest.Receive(t, source).Event().ID, "the group is made again")
}

func TestBadInput(t *testing.T) {
	_, err := redis.NewSource(t.Context(), redis.SourceConfig{Lease: 1})
	adaptertest.Faults(t, err, "Client", "Stream", "Group", "Consumer", "Lease")
	_, err = redis.NewSink(nil)
	adaptertest.Faults(t, err, "Client")
	client := newBroker(t).client()
	sink, err := redis.NewSink(client)
	require.NoError(t, err)
	adaptertest.Refuses(t, sink)

	require.NoError(t, client.Set(t.Context(), "text", "x", 0).Err())
	cfg := redis.SourceConfig{Client: client, Stream: "text", Group: "g", Consumer: "c"}
	_, err = redis.NewSource(t.Context(), cfg)
	require.ErrorContains(t, err, "WRONGTYPE")
	cfg.Stream = "s"
	source, err := redis.NewSource(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, client.Del(t.Context(), "s").Err())
	require.NoError(t, client.Set(t.Context(), "s", "x", 0).Err())
	_, err = source.Receive(t.Context())
	require.ErrorContains(t, err, "WRONGTYPE")
	require.NoError(t, client.Close())
	_, err = source.Receive(t.Context())
	require.ErrorIs(t, err, goredis.ErrClosed)
}

// TestDeletedStream deletes the stream while a source waits for an entry. The source makes the
// group again, and receives what is published then.
func TestDeletedStream(t *testing.T) {
	t.Parallel()
	client := newBroker(t).client()
	source, err := redis.NewSource(t.Context(), redis.SourceConfig{
		Client: client, Stream: "s", Group: "g", Consumer: "c",
	})
	require.NoError(t, err)
	sink, err := redis.NewSink(client)
	require.NoError(t, err)
	for i := range 5 {
		ended := make(chan error, 1)
		go func() {
			d, err := source.Receive(t.Context())
			if err == nil {
				err = d.Ack(t.Context())
			}
			ended <- err
		}()
		require.Eventually(t, func() bool {
			clients, err := client.ClientList(t.Context()).Result()
			return err == nil && strings.Contains(clients, "cmd=xreadgroup")
		}, time.Minute, time.Millisecond)
		require.NoError(t, client.Del(t.Context(), "s").Err())
		require.NoError(t, sink.Publish(t.Context(), stream.Event{ID: fmt.Sprint(i), Topic: "s"}))
		require.NoError(t, <-ended)
	}
}
