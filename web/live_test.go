package web_test

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/web"
)

// A tap is a browser that reads a stream.
type tap struct {
	mu     sync.Mutex
	header http.Header
	status int
	text   strings.Builder
}

func (t *tap) Header() http.Header { return t.header }

func (t *tap) WriteHeader(status int) { t.status = status }

func (t *tap) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(b)
}

func (t *tap) Flush() {}

// events returns the names of the events since the last call.
func (t *tap) events() (names []string) {
	synctest.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := bufio.NewScanner(strings.NewReader(t.text.String()))
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			names = append(names, name)
		}
	}
	t.text.Reset()
	return names
}

// open opens a stream, and returns it with what ends it.
func open(h http.Handler, path string) (*tap, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	r := httptest.NewRequestWithContext(ctx, "GET", path, nil)
	r.Header.Set("X-Person", "kim")
	t := &tap{header: make(http.Header)}
	done := make(chan struct{})
	go func() { defer close(done); h.ServeHTTP(t, r) }()
	return t, func() { cancel(); <-done }
}

// A counted store counts reads, and fails or hangs when it is told to.
type counted struct {
	store.Store
	reads  atomic.Int64
	broken atomic.Bool
	hangs  atomic.Bool
}

func (c *counted) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell, refs []store.Ref, finds ...store.Query) error {
	c.reads.Add(1)
	if c.hangs.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	if c.broken.Load() {
		return errors.New("the store is away")
	}
	return c.Store.Read(ctx, into, cells, refs, finds...)
}

func audited(t *testing.T, st store.Store, id string, at time.Time) {
	t.Helper()
	require.NoError(t, st.Declare(t.Context(), store.Audit))
	_, err := st.Commit(t.Context(), store.Batch{Records: []store.Record{store.AuditEntry{ID: id, At: at, Action: "test"}.Record()}})
	require.NoError(t, err)
}

func TestLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &counted{Store: &memstore.Store{}}
		live := &web.Live{}
		h := handler(t, func(c *web.Config) { c.Store, c.Live = st, live })
		time.Sleep(time.Minute)
		assert.Zero(t, st.reads.Load(), "nobody listens")
		page := ask{method: "GET", path: "/", person: "kim"}.of(h).Body.String()
		_, after, found := strings.Cut(page, `data-seen="`)
		require.True(t, found)
		seen, _, _ := strings.Cut(after, `"`)

		a, endA := open(h, "/live?seen="+seen)
		b, endB := open(h, "/live?seen=older")
		assert.Empty(t, a.events(), "the page has seen what there is")
		assert.Equal(t, []string{"changed"}, b.events())
		time.Sleep(5 * time.Second)
		assert.Empty(t, a.events())

		for i, ahead := range []time.Duration{0, -time.Minute, time.Second} {
			audited(t, st.Store, strconv.Itoa(i), time.Now().Add(ahead))
			time.Sleep(2 * time.Second)
			assert.Equal(t, []string{"changed"}, a.events(), "by another process, with its own clock: %v", ahead)
			assert.Equal(t, []string{"changed"}, b.events())
		}

		for range 100 {
			live.Observe(t.Context(), heed.Proposed{})
		}
		live.Observe(t.Context(), heed.Selected{})
		assert.Equal(t, []string{"changed"}, a.events(), "at once, and once")
		time.Sleep(3 * time.Second)
		assert.LessOrEqual(t, len(a.events()), 1)

		b.events()
		before := st.reads.Load()
		time.Sleep(10 * time.Second)
		assert.LessOrEqual(t, st.reads.Load()-before, int64(11), "both streams share a reading")
		assert.Empty(t, b.events())

		st.broken.Store(true)
		time.Sleep(3 * time.Second)
		assert.Equal(t, []string{"behind"}, a.events())
		st.broken.Store(false)
		time.Sleep(2 * time.Second)
		assert.Equal(t, []string{"changed"}, a.events())
		endA()
		h.Close()
		endB()
		before = st.reads.Load()
		time.Sleep(time.Minute)
		assert.Equal(t, before, st.reads.Load())
	})
}

// Many streams read a store that fails as seldom as one that works. A store that hangs makes no page wait for the streams, and they end at once.
func TestLiveWithoutAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &counted{Store: &memstore.Store{}}
		h := handler(t, func(c *web.Config) { c.Store, c.Timeout = st, 5*time.Second })
		var taps []*tap
		var ends []func()
		for range 20 {
			one, end := open(h, "/live")
			taps, ends = append(taps, one), append(ends, end)
		}
		time.Sleep(2 * time.Second)
		st.broken.Store(true)
		before := st.reads.Load()
		time.Sleep(10 * time.Second)
		assert.LessOrEqual(t, st.reads.Load()-before, int64(11))
		for _, one := range taps {
			assert.Equal(t, []string{"changed", "behind"}, one.events())
		}
		st.hangs.Store(true)
		time.Sleep(1500 * time.Millisecond)
		began := time.Now()
		ask{method: "GET", path: "/audit", person: "lee"}.of(h)
		assert.LessOrEqual(t, time.Since(began), 5*time.Second)
		time.Sleep(1500 * time.Millisecond)
		began = time.Now()
		ends[0]() // whether or not it reads for all
		h.Close()
		for _, end := range ends {
			end()
		}
		assert.Zero(t, time.Since(began))
	})
}

// Streams end with the handler and with time. Nobody has more than their share, and a question for the header ends at once.
func TestLiveEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := handler(t)
		done := make(chan int, 2000)
		ctx, cancel := context.WithCancel(t.Context())
		listen := func(ctx context.Context, method, person string) {
			r := httptest.NewRequestWithContext(ctx, method, "/live", nil)
			r.Header.Set("X-Person", person)
			w := &tap{header: make(http.Header)}
			h.ServeHTTP(w, r)
			done <- w.status
		}
		for i := range 50 {
			for range 20 {
				go listen(ctx, http.MethodGet, "person "+strconv.Itoa(i))
			}
			if synctest.Wait(); i == 0 {
				require.Empty(t, done)
				listen(ctx, http.MethodGet, "person 0")
				assert.Equal(t, http.StatusServiceUnavailable, <-done, "a person has 20")
			}
		}
		require.Empty(t, done)
		listen(ctx, http.MethodGet, "kim")
		assert.Equal(t, http.StatusServiceUnavailable, <-done, "all have 1,000")
		listen(ctx, http.MethodHead, "person 0")
		assert.Zero(t, <-done, "no status but 200")
		cancel()
		synctest.Wait()
		require.Len(t, done, 1000)

		go listen(t.Context(), http.MethodGet, "person 0")
		time.Sleep(9 * time.Minute)
		assert.Len(t, done, 1000)
		time.Sleep(2 * time.Minute)
		assert.Len(t, done, 1001, "a person is identified again from time to time")
		go listen(t.Context(), http.MethodGet, "person 0")
		synctest.Wait()
		h.Close()
		synctest.Wait()
		assert.Len(t, done, 1002)
	})
}

// TestShutdown ends a server gracefully while pages listen.
func TestShutdown(t *testing.T) {
	h := handler(t)
	server := httptest.NewUnstartedServer(h)
	server.Config.RegisterOnShutdown(h.Close)
	server.Start()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/live", nil)
	require.NoError(t, err)
	r.Header.Set("X-Person", "kim")
	answer, err := server.Client().Do(r)
	require.NoError(t, err)
	assert.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	require.NoError(t, server.Config.Shutdown(ctx))
	require.NoError(t, answer.Body.Close())
	server.Close()
}
