package web_test

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
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

// A counted store counts reads, and fails when it is told to.
type counted struct {
	store.Store
	reads  atomic.Int64
	broken atomic.Bool
}

func (c *counted) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell, refs []store.Ref, finds ...store.Query) error {
	c.reads.Add(1)
	if c.broken.Load() {
		return errors.New("the store is away")
	}
	return c.Store.Read(ctx, into, cells, refs, finds...)
}

func audited(t *testing.T, st store.Store, id string) {
	t.Helper()
	require.NoError(t, st.Declare(t.Context(), store.Audit))
	_, err := st.Commit(t.Context(), store.Batch{Records: []store.Record{store.AuditEntry{ID: id, At: time.Now(), Action: "test"}.Record()}})
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

		audited(t, st.Store, "by another process")
		time.Sleep(2 * time.Second)
		assert.Equal(t, []string{"changed"}, a.events())
		assert.Equal(t, []string{"changed"}, b.events())

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

// TestLiveEnds has streams end with the handler and with time, and refuses more than there is room for.
func TestLiveEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := handler(t)
		done := make(chan int, 2000)
		ctx, cancel := context.WithCancel(t.Context())
		listen := func(ctx context.Context) {
			r := httptest.NewRequestWithContext(ctx, "GET", "/live", nil)
			r.Header.Set("X-Person", "kim")
			w := &tap{header: make(http.Header)}
			h.ServeHTTP(w, r)
			done <- w.status
		}
		for range 1001 {
			go listen(ctx)
		}
		synctest.Wait()
		require.Len(t, done, 1)
		assert.Equal(t, http.StatusServiceUnavailable, <-done)
		cancel()
		synctest.Wait()
		require.Len(t, done, 1000)

		go listen(t.Context())
		time.Sleep(9 * time.Minute)
		assert.Len(t, done, 1000)
		time.Sleep(2 * time.Minute)
		assert.Len(t, done, 1001, "a person is identified again from time to time")
		go listen(t.Context())
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
