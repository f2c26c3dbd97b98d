package web_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
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

// A counted store counts reads, and fails or hangs when it is told to.
type counted struct {
	store.Store
	reads  atomic.Int64
	broken atomic.Bool
	hangs  atomic.Bool
}

func (c *counted) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
	refs []store.Ref, finds ...store.Query) error {
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
	_, err := st.Commit(t.Context(), store.Batch{
		Records: []store.Record{store.AuditEntry{ID: id, At: at, Action: "test"}.Record()}})
	require.NoError(t, err)
}

// version asks for the version of the pages, and returns it with the status.
func version(h http.Handler, person string) (string, int) {
	got := ask{method: "GET", path: "/live", person: person}.of(h)
	return got.Body.String(), got.Code
}

// The version is another one after a change of this process and of another one, whatever its clock.
// The store is read once in a second, and not while nobody asks.
func TestLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &counted{Store: &memstore.Store{}}
		h := handler(t, func(c *web.Config) { c.Store = st })
		time.Sleep(time.Minute)
		assert.Zero(t, st.reads.Load(), "nobody asks")
		page := ask{method: "GET", path: "/", person: "kim"}.of(h).Body.String()
		seen, _ := version(h, "kim")
		assert.Contains(t, page, `data-seen="`+seen+`"`)
		assert.Contains(t, page, `data-live="/live"`)

		for i, ahead := range []time.Duration{0, -time.Minute, time.Second} {
			audited(t, st.Store, strconv.Itoa(i), time.Now().Add(ahead))
			time.Sleep(time.Second)
			now, _ := version(h, "kim")
			assert.NotEqual(t, seen, now, "by another process, with its own clock: %v", ahead)
			seen = now
		}
		before := st.reads.Load()
		for range 100 {
			again, _ := version(h, "kim")
			assert.Equal(t, seen, again)
			time.Sleep(100 * time.Millisecond)
		}
		assert.LessOrEqual(t, st.reads.Load()-before, int64(11), "all who ask share a reading")

		_, status := version(h, "")
		assert.Equal(t, http.StatusUnauthorized, status)
	})
}

// A store that fails is read as seldom as one that works, and said to fail. One that hangs holds a
// request no longer than its time, and who goes away leaves the reading to others.
func TestLiveWithoutAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &counted{Store: &memstore.Store{}}
		told := 0
		h := handler(t, func(c *web.Config) {
			c.Store, c.Timeout = st, 5*time.Second
			c.Observer = func(_ context.Context, n heed.Notice) {
				if _, failed := n.(heed.Failed); failed {
					told++
				}
			}
		})
		st.broken.Store(true)
		for range 100 {
			_, status := version(h, "kim")
			assert.Equal(t, http.StatusServiceUnavailable, status)
			time.Sleep(100 * time.Millisecond)
		}
		assert.LessOrEqual(t, st.reads.Load(), int64(11))
		assert.LessOrEqual(t, told, 11)
		st.hangs.Store(true)
		time.Sleep(time.Second)
		began := time.Now()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				_, status := version(h, "kim")
				assert.Equal(t, http.StatusServiceUnavailable, status)
			})
		}
		all.Wait()
		assert.Equal(t, 5*time.Second, time.Since(began))
		st.hangs.Store(false)
		st.broken.Store(false)
		_, status := version(h, "kim")
		assert.Equal(t, http.StatusOK, status, "at once")
	})
}
