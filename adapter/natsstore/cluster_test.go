package natsstore_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// asNode names the environment in which the test's program is a server, so that a test can kill it
// or stop it: its number, the ports of all clients, the ports of all routes, its directory.
const asNode = "HEED_TEST_NATS_NODE"

func TestMain(m *testing.M) {
	if node := os.Getenv(asNode); node != "" {
		serve(strings.Fields(node))
		return
	}
	os.Exit(m.Run())
}

// up is how long a server may take to come up, which is seconds on a busy machine.
const up = 2 * time.Minute

// serve is a server until it is killed, or its parent is gone.
func serve(node []string) {
	n := make([]int, 7)
	for i := range n {
		n[i], _ = strconv.Atoi(node[i])
	}
	s, err := newServer(n[0], [3]int(n[1:4]), [3]int(n[4:7]), node[7], len(node) > 8)
	if err != nil || !s.ReadyForConnections(up) {
		panic(fmt.Sprint("the server does not start: ", err))
	}
	fmt.Println("ready")
	_, _ = os.Stdin.Read(make([]byte, 1))
}

func newServer(i int, clients, routes [3]int, dir string, always bool) (*server.Server, error) {
	var urls []*url.URL
	for _, port := range routes {
		urls = append(urls, &url.URL{Scheme: "nats", Host: fmt.Sprint("127.0.0.1:", port)})
	}
	s, err := server.NewServer(&server.Options{
		ServerName: fmt.Sprint("n", i), Host: "127.0.0.1", Port: clients[i], Routes: urls,
		JetStream: true, StoreDir: dir, SyncAlways: always, NoSigs: true, NoLog: true,
		Cluster: server.ClusterOpts{Name: "heed", Host: "127.0.0.1", Port: routes[i]},
	})
	if err == nil {
		s.Start()
	}
	return s, err
}

// freePorts returns ports that nobody listens on. They lie below those that the system hands out to
// connections, so that none takes one, nor a server that looks for another one meets itself.
func freePorts(t testing.TB) (ports [6]int) {
	t.Helper()
	for i := range ports {
		require.Eventually(t, func() bool {
			ports[i] = 12_000 + rand.IntN(20_000)
			l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", ports[i]))
			if err == nil {
				err = l.Close()
			}
			return err == nil && !slices.Contains(ports[:i], ports[i])
		}, up, time.Millisecond)
	}
	return ports
}

// A cluster is three servers, within the process or each in a process.
type cluster struct {
	clients, routes [3]int
	dirs            [3]string
	nodes           [3]*exec.Cmd // nil: within the process
	always          bool         // to write each message to the disk at once
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	ports := freePorts(t)
	return &cluster{clients: [3]int(ports[:3]), routes: [3]int(ports[3:]),
		dirs: [3]string{t.TempDir(), t.TempDir(), t.TempDir()}}
}

// startCluster starts servers within the process.
func startCluster(t testing.TB) *cluster {
	t.Helper()
	c := newCluster(t)
	for i := range c.nodes {
		s, err := newServer(i, c.clients, c.routes, c.dirs[i], false)
		require.NoError(t, err)
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		require.True(t, s.ReadyForConnections(up))
	}
	c.ready(t)
	return c
}

// startNodes starts servers in processes. They write each message to the disk at once if always is
// set.
func startNodes(t testing.TB, always bool) *cluster {
	t.Helper()
	c := newCluster(t)
	c.always = always
	for i := range c.nodes {
		c.start(t, i)
	}
	c.ready(t)
	return c
}

func (c *cluster) start(t testing.TB, i int) {
	t.Helper()
	node := exec.Command(os.Args[0])
	ports := fmt.Sprint(i, c.clients, c.routes)
	node.Env = append(os.Environ(), asNode+"="+strings.Trim(strings.NewReplacer("[", " ", "]", " ").
		Replace(ports), " ")+" "+c.dirs[i])
	if c.always {
		node.Env[len(node.Env)-1] += " always"
	}
	stdin, err := node.StdinPipe() // which ends with this process
	require.NoError(t, err)
	out, err := node.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, node.Start())
	t.Cleanup(func() { _ = stdin.Close(); _ = node.Process.Kill(); _ = node.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	c.nodes[i] = node
}

// ready waits until the servers have found each other.
func (c *cluster) ready(t testing.TB) {
	t.Helper()
	js := c.connect(t, []int{0})
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "ready", Replicas: 3})
		return err == nil
	}, up, 50*time.Millisecond)
	// When the last stream goes, a server removes the directory of all streams, at some later moment,
	// in which a new stream can't be made there. So there is always another one.
	_, err := js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{Name: "KEEP", Replicas: 3})
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream(t.Context(), "ready"))
}

// connect connects to one of some servers, the first that can be reached.
func (c *cluster) connect(t testing.TB, to []int, options ...nats.Option) jetstream.JetStream {
	t.Helper()
	var urls []string
	for _, i := range to {
		urls = append(urls, fmt.Sprint("nats://127.0.0.1:", c.clients[i]))
	}
	options = append([]nats.Option{nats.MaxReconnects(-1), nats.DontRandomize(),
		nats.IgnoreDiscoveredServers(), nats.ReconnectWait(100 * time.Millisecond)}, options...)
	nc, err := nats.Connect(strings.Join(urls, ","), options...)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return js
}

// leader returns the number of the server that leads the stream of a store's log. While the servers
// elect one, there is none.
func (c *cluster) leader(t testing.TB, js jetstream.JetStream, store string) int {
	t.Helper()
	leader := ""
	require.Eventually(t, func() bool {
		names := js.StreamNames(t.Context(), jetstream.WithStreamListSubject("heed."+store+".*"))
		for name := range names.Name() {
			if strings.HasSuffix(name, "_place") {
				continue
			}
			if stream, err := js.Stream(t.Context(), name); err == nil {
				leader = stream.CachedInfo().Cluster.Leader
			}
		}
		return names.Err() == nil && leader != ""
	}, up, 50*time.Millisecond)
	i, err := strconv.Atoi(strings.TrimPrefix(leader, "n"))
	require.NoError(t, err)
	return i
}
