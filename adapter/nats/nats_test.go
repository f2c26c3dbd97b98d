package nats_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/adapter/internal/adaptertest"
	"github.com/heedhq/heed/adapter/nats"
	"github.com/heedhq/heed/stream"
	"github.com/heedhq/heed/stream/streamtest"
)

// asServer names the environment in which the test's program is a server, so that a test can kill
// it.
const asServer = "HEED_TEST_NATS_SERVER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(asServer); dir != "" {
		serve(dir)
		return
	}
	os.Exit(m.Run())
}

// serve is a server on a port until it is killed, or its parent is gone.
func serve(dir string) {
	port, err := strconv.Atoi(os.Getenv("PORT"))
	if err != nil {
		panic(err)
	}
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, JetStream: true,
		StoreDir: dir, NoSigs: true})
	if err != nil {
		panic(err)
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		panic("the server does not start")
	}
	fmt.Println("ready")
	_, _ = os.Stdin.Read(make([]byte, 1))
}

func TestDocs(t *testing.T) {
	t.Parallel()
	adaptertest.Page(t, "README.md")
}

// embedded returns a connection to a server within the process.
func embedded(t *testing.T) jetstream.JetStream {
	t.Helper()
	s, err := server.NewServer(&server.Options{DontListen: true, JetStream: true,
		StoreDir: t.TempDir(), NoSigs: true})
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(time.Minute))
	connection, err := natsgo.Connect("", natsgo.InProcessServer(s))
	require.NoError(t, err)
	t.Cleanup(connection.Close)
	js, err := jetstream.New(connection)
	require.NoError(t, err)
	// When the last stream goes, the server removes the directory of all streams, at some later
	// moment, in which a new stream can't be made there. So there is always this one.
	makeStream(t, js, "KEEP", "keep")
	return js
}

func makeStream(t *testing.T, js jetstream.JetStream, name string, subjects ...string) {
	t.Helper()
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: subjects})
	require.NoError(t, err)
}

func TestSuite(t *testing.T) {
	t.Parallel()
	js := embedded(t)
	name, made := "", 0
	streamtest.Run(t, func() (streamtest.Harness, error) {
		ctx := context.Background()
		if name != "" {
			if err := js.DeleteStream(ctx, name); err != nil {
				return streamtest.Harness{}, err
			}
		}
		made++
		// a new name, as the server removes what it has of the old one later
		name = fmt.Sprint("SUITE", made)
		if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: name,
			Subjects: []string{"suite"}}); err != nil {
			return streamtest.Harness{}, err
		}
		open := func() (stream.Source, error) {
			return nats.NewSource(ctx, nats.SourceConfig{JetStream: js, Stream: name, Consumer: "suite",
				Lease: 2 * time.Second})
		}
		sink, err := nats.NewSink(js)
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
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := listener.Addr().(*net.TCPAddr).Port
	require.NoError(t, listener.Close())
	dir := t.TempDir()
	kill := startServer(t, dir, port)
	defer func() { kill() }()
	connection, err := natsgo.Connect(fmt.Sprint("127.0.0.1:", port), natsgo.MaxReconnects(-1),
		natsgo.ReconnectWait(50*time.Millisecond))
	require.NoError(t, err)
	defer connection.Close()
	js, err := jetstream.New(connection)
	require.NoError(t, err)
	makeStream(t, js, "HEED", "heed.>")
	source, err := nats.NewSource(t.Context(), nats.SourceConfig{JetStream: js, Stream: "HEED",
		Consumer: "learner", Lease: time.Second})
	require.NoError(t, err)
	sink, err := nats.NewSink(js)
	require.NoError(t, err)
	adaptertest.EachCounts(t, source, sink, func() {
		kill()
		kill = startServer(t, dir, port)
	})
}

// startServer starts a server in a process of its own, and returns what kills it.
func startServer(t *testing.T, dir string, port int) (kill func()) {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), asServer+"="+dir, fmt.Sprint("PORT=", port))
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	require.NoError(t, err)
	output, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	_, err = bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	return func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		_ = input.Close()
	}
}

// JetStream takes what has an id that it has seen for a duplicate. It must not do so here.
func TestDeadLetterAgain(t *testing.T) {
	t.Parallel()
	js := embedded(t)
	makeStream(t, js, "HEED", "heed.>")
	sink, err := nats.NewSink(js)
	require.NoError(t, err)
	source, err := nats.NewSource(t.Context(), nats.SourceConfig{JetStream: js, Stream: "HEED",
		Consumer: "c", Subject: "heed.reports"})
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, sink.Publish(t.Context(), stream.Event{ID: "1", Topic: "heed.reports"}))
		require.NoError(t, sink.Publish(t.Context(), stream.Event{ID: "1", Topic: "heed.dead"}))
	}
	info, err := js.Stream(t.Context(), "HEED")
	require.NoError(t, err)
	assert.EqualValues(t, 4, info.CachedInfo().State.Msgs)
	for range 2 {
		d := adaptertest.Receive(t, source)
		assert.Equal(t, "heed.reports", d.Event().Topic)
		require.NoError(t, d.Ack(t.Context()))
	}
}

// TestEvents has ids that no header can hold, and messages of other publishers.
func TestEvents(t *testing.T) {
	t.Parallel()
	js := embedded(t)
	makeStream(t, js, "HEED", "heed.>")
	sink, err := nats.NewSink(js)
	require.NoError(t, err)
	source, err := nats.NewSource(t.Context(), nats.SourceConfig{JetStream: js, Stream: "HEED",
		Consumer: "c"})
	require.NoError(t, err)
	at := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	for _, id := range []string{"", " a\r\nb ", "50%+é\xff"} {
		require.NoError(t, sink.Publish(t.Context(), stream.Event{ID: id, Topic: "heed.x", At: at}))
		d := adaptertest.Receive(t, source)
		assert.Equal(t, id, d.Event().ID)
		assert.True(t, at.Equal(d.Event().At))
		require.NoError(t, d.Ack(t.Context()))
	}
	for _, tt := range []struct {
		header natsgo.Header
		id     string
	}{
		{nil, "HEED/4"},
		{natsgo.Header{"Nats-Msg-Id": {"50%41"}}, "50%41"},
		{natsgo.Header{"Heed-Id": {"%zz"}, "Heed-At": {"noon"}}, "HEED/6"},
	} {
		_, err := js.PublishMsg(t.Context(), &natsgo.Msg{Subject: "heed.x", Data: []byte("{}"),
			Header: tt.header})
		require.NoError(t, err)
		d := adaptertest.Receive(t, source)
		assert.Equal(t, tt.id, d.Event().ID)
		assert.WithinDuration(t, time.Now(), d.Event().At, time.Minute)
		require.NoError(t, d.Ack(t.Context()))
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	_, err := nats.NewSource(t.Context(), nats.SourceConfig{Lease: -1})
	adaptertest.Faults(t, err, "JetStream", "Stream", "Consumer", "Lease")
	_, err = nats.NewSink(nil)
	adaptertest.Faults(t, err, "JetStream")

	js := embedded(t)
	_, err = nats.NewSource(t.Context(), nats.SourceConfig{JetStream: js, Stream: "NONE",
		Consumer: "c"})
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound)
	sink, err := nats.NewSink(js)
	require.NoError(t, err)
	adaptertest.Refuses(t, sink, "a b", "a.*", ">", "a..b", ".a", "a\n")
	require.Error(t, sink.Publish(t.Context(), stream.Event{Topic: "nobody.reads"}),
		"no stream has the subject")
}

// A stream or connection that is gone for good ends the wait.
func TestGone(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(jetstream.JetStream) error{
		"the consumer": func(js jetstream.JetStream) error {
			return js.DeleteConsumer(t.Context(),
				"HEED", "c")
		},
		"the stream": func(js jetstream.JetStream) error {
			return js.DeleteStream(t.Context(),
				"HEED")
		},
		"the connection": func(js jetstream.JetStream) error { js.Conn().Close(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			js := embedded(t)
			makeStream(t, js, "HEED", "heed.>")
			source, err := nats.NewSource(t.Context(),
				nats.SourceConfig{JetStream: js, Stream: "HEED", Consumer: "c"})
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			got := make(chan error, 1)
			go func() {
				_, err := source.Receive(ctx)
				got <- err
			}()
			time.Sleep(50 * time.Millisecond)
			require.NoError(t, end(js))
			err = <-got
			require.Error(t, err)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			require.NotErrorIs(t, err, stream.ErrClosed)
		})
	}
}
