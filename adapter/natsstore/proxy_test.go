package natsstore_test

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A proxy passes connections on to a server, unless it is cut.
type proxy struct {
	port, to int
	mu       sync.Mutex
	cut      bool
	mute     bool          // what the server sends is lost
	pause    time.Duration // before every 64 KiB from the server
	open     []net.Conn
}

func newProxy(t *testing.T, to int) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{port: l.Addr().(*net.TCPAddr).Port, to: to}
	t.Cleanup(func() { _ = l.Close(); p.set(true) })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.pass(c)
		}
	}()
	return p
}

func (p *proxy) pass(c net.Conn) {
	defer func() { _ = c.Close() }()
	s, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", p.to))
	if err != nil {
		return
	}
	defer func() { _ = s.Close() }()
	p.mu.Lock()
	if p.cut {
		p.mu.Unlock()
		return
	}
	p.open = append(p.open, c, s)
	p.mu.Unlock()
	go func() { _, _ = io.Copy(s, c); _ = s.Close() }()
	for err := error(nil); err == nil; time.Sleep(p.slow()) {
		_, err = io.CopyN(ear{p, c}, s, 64<<10)
	}
}

func (p *proxy) slow() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pause
}

// An ear takes what the server sends.
type ear struct {
	*proxy
	io.Writer
}

func (e ear) Write(text []byte) (int, error) {
	e.mu.Lock()
	mute := e.mute
	e.mu.Unlock()
	if mute {
		return len(text), nil
	}
	return e.Writer.Write(text)
}

// setMute has replies be lost, or ends that with all connections.
func (p *proxy) setMute(mute bool) {
	p.mu.Lock()
	p.mute = mute
	p.mu.Unlock()
	if !mute {
		p.set(false)
	}
}

// set cuts all connections and refuses new ones, or ends that.
func (p *proxy) set(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	for _, c := range p.open {
		_ = c.Close()
	}
	p.open = nil
}
