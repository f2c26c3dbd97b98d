package natsstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A server that was behind for long may lose a reply on its way: that is no damage.
func TestALostReplyIsNoDamage(t *testing.T) {
	t.Parallel()
	of, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true})
	require.NoError(t, err)
	go of.Start()
	t.Cleanup(func() { of.Shutdown(); of.WaitForShutdown() })
	require.True(t, of.ReadyForConnections(10*time.Second))
	nc, err := nats.Connect(of.ClientURL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	s := &Store{js: js, cfg: Config{Name: "lost"}}
	asked := 0
	_, err = nc.Subscribe("$JS.API.DIRECT.GET."+s.stream(place{}), func(m *nats.Msg) {
		asked++
		for n := 1; n <= 2 && asked > 12; n++ {
			if asked == 13 && n == 1 { // it is lost
				continue
			}
			reply := nats.NewMsg(m.Reply)
			reply.Header.Set("Nats-Sequence", fmt.Sprint(n))
			assert.NoError(t, nc.PublishMsg(reply))
		}
		end := nats.NewMsg(m.Reply)
		end.Header.Set("Status", "204")
		assert.NoError(t, nc.PublishMsg(end))
	})
	require.NoError(t, err)
	err = s.read(t.Context(), place{}, 0, func(_ []byte, last uint64) (bool, error) {
		return last == 2, nil
	})
	require.NoError(t, err)
}
