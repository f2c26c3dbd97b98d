package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

const shopToken = "a-token-of-the-shop"

// A chatModel is a slow server of a model.
func chatModel(t *testing.T, takes time.Duration) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else nothing notices that the client has gone
		select {
		case <-time.After(takes):
		case <-r.Context().Done():
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"model":"m","choices":[{"message":{"role":"assistant",`+
			`"content":"Rotate its logs."},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

// replica starts a server that is one of several.
func replica(t *testing.T, db, model string) *server {
	t.Helper()
	lessons := filepath.Join(t.TempDir(), "lessons.json")
	require.NoError(t, os.WriteFile(lessons, []byte(`{"arms":[{"id":"brief"},{"id":"long"}]}`), 0o600))
	return serving(t, []string{"HEED_TOKENS=shop=" + shopToken}, "--db", db, "serve", "--run",
		"--listen", "127.0.0.1:0", "--lessons", lessons, "--model", model, "--model-name", "m")
}

// A balancer sends requests to servers in turns, until one has done what was asked.
type balancer struct {
	t      *testing.T
	client *http.Client
	next   atomic.Uint64

	mu      sync.Mutex
	ready   []string
	killed  map[string]bool
	longest time.Duration // from a request that broke off to its answer
}

func (b *balancer) add(url string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready = append(b.ready, url)
}

// remove sends a server no more requests.
func (b *balancer) remove(url string, killed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready = slices.DeleteFunc(b.ready, func(one string) bool { return one == url })
	b.killed[url] = killed
}

func (b *balancer) pick() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.ready) == 0 {
		return ""
	}
	return b.ready[b.next.Add(1)%uint64(len(b.ready))]
}

// do sends a request again until it has been carried out. A request to a server that was stopped,
// and not killed, must not break off.
func (b *balancer) do(path, body string) (reply map[string]any) {
	var broke time.Time
	for began := time.Now(); time.Since(began) < time.Minute; {
		url := b.pick()
		if url == "" {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		status, text, err := b.send(url+path, body)
		switch {
		case err != nil:
			b.mu.Lock()
			assert.True(b.t, b.killed[url], "%s broke off, and was not killed: %v", path, err)
			b.mu.Unlock()
			if broke.IsZero() {
				broke = time.Now()
			}
		case status == http.StatusOK || status == http.StatusNoContent:
			b.mu.Lock()
			if !broke.IsZero() {
				b.longest = max(b.longest, time.Since(broke))
			}
			b.mu.Unlock()
			if status == http.StatusOK {
				assert.NoError(b.t, json.Unmarshal([]byte(text), &reply), text)
			}
			return reply
		// another server was quicker, or the machine is busy
		case status == http.StatusConflict, status == http.StatusGatewayTimeout:
			time.Sleep(250 * time.Millisecond)
		default:
			assert.Fail(b.t, path, "%d: %s", status, text)
			return nil
		}
	}
	assert.Fail(b.t, path, "has no answer for a minute")
	return nil
}

func (b *balancer) send(url, body string) (status int, text string, err error) {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url,
		strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header = http.Header{"Authorization": {"Bearer " + shopToken},
		"Content-Type": {"application/json"}}
	got, err := b.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	read, err := io.ReadAll(got.Body)
	return got.StatusCode, string(read), errors.Join(err, got.Body.Close())
}

// turn has an event answered, by the server's model or by one of the client's, and reports what
// came of it. An answer that could not be recorded, because the store took too long on a busy
// machine, is sent again, as a client does.
func (b *balancer) turn(id string, asks bool) {
	kept := false
	for began := time.Now(); !kept && time.Since(began) < time.Minute; {
		event := fmt.Sprintf(`{"id":%q,"text":"The disk is full","item":"disk"}`, id)
		var reply map[string]any
		if asks {
			reply = b.do("/v1/answer", event)
		} else {
			b.do("/v1/prepare", event)
			reply = b.do("/v1/answered", fmt.Sprintf(`{"id":%q,"text":"Rotate its logs."}`, id))
		}
		kept, _ = reply["kept"].(bool)
	}
	assert.True(b.t, kept, id)
	b.do("/v1/outcome", fmt.Sprintf(`{"answer":%q,"success":true,"source":"ann"}`, id))
}

// Servers start, are stopped and are killed in turns under load, one for three seconds; with
// HEED_LONG ten on PostgreSQL for ten minutes. Requests to a server that is stopped finish. Every
// request is answered in the end, and every outcome that was acknowledged counts, once.
func TestReplicas(t *testing.T) {
	t.Parallel()
	db, count, lasts, clients := filepath.Join(t.TempDir(), "agent.db"), 1, 3*time.Second, 4
	if os.Getenv("HEED_LONG") != "" {
		db, count, lasts, clients = cluster.database(t, "heed_replicas"), 10, 10*time.Minute, 20
	}
	model := chatModel(t, 200*time.Millisecond)
	b := &balancer{t: t, killed: make(map[string]bool), client: &http.Client{
		Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}}
	servers := make([]*server, count)
	start := func(i int) {
		servers[i] = replica(t, db, model)
		b.add(servers[i].greeting.URL)
	}
	for i := range servers {
		start(i)
	}
	until := time.Now().Add(lasts)
	var done sync.Map
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			for n := 0; time.Now().Before(until) && !t.Failed(); n++ {
				id := fmt.Sprintf("e-%d-%d", c, n)
				b.turn(id, n%2 == 0)
				done.Store(id, true)
			}
		})
	}
	for n := 0; time.Now().Before(until) && !t.Failed(); n++ {
		time.Sleep(500 * time.Millisecond)
		i := n % count
		s, kill := servers[i], n/count%2 == 1
		b.remove(s.greeting.URL, kill)
		if kill {
			require.NoError(t, s.process.Process.Kill())
			_ = s.process.Wait()
		} else {
			time.Sleep(50 * time.Millisecond) // as a balancer waits, until its last request is there
			s.end(syscall.SIGTERM)
		}
		start(i)
	}
	all.Wait()
	for _, s := range servers {
		s.end(os.Interrupt)
	}
	counted(t, db, &done)
	t.Logf("after a request broke off, its answer took up to %v", b.longest)
	assert.Less(t, b.longest, time.Minute)
}

// counted checks that each answer has its outcome, once, and that the arms have no others.
func counted(t *testing.T, db string, done *sync.Map) {
	t.Helper()
	ids := maps.Collect(func(yield func(string, bool) bool) {
		done.Range(func(id, _ any) bool { return yield(id.(string), true) })
	})
	require.NotEmpty(t, ids)
	at, err := (&session{commands: &commands{DB: db}}).where()
	require.NoError(t, err)
	handle, err := at.handle(ctx, false)
	require.NoError(t, err)
	defer handle.Close()
	s, err := at.make(ctx, handle, sqlstore.Config{Existing: true})
	require.NoError(t, err)
	kind, found := answers.View("loop.answer"), 0
	for row, err := range kind.Find(ctx, s.store, store.Query{}) {
		require.NoError(t, err)
		if !ids[row.Value.ID] {
			continue
		}
		found++
		outcomes := 0
		for _, said := range row.Value.Statements {
			if said.How == answers.Outcome && said.By == "ann" && !said.Withdrawn {
				outcomes++
			}
		}
		assert.Equal(t, 1, outcomes, "%s: %+v", row.Value.ID, row.Value.Statements)
	}
	assert.Equal(t, len(ids), found)
	total := 0
	for _, line := range read[[]statusLine](t, "--db", db, "strategy", "status") {
		total += line.Outcomes
	}
	assert.Equal(t, len(ids), total)
	t.Logf("%d answers", len(ids))
}

// A signal ends a server that waits for a model: the client gets a problem in place of a cut
// connection, and nothing is kept of the answer.
func TestAServerThatStopsTellsItsClients(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes ten seconds")
	}
	t.Parallel()
	s := replica(t, filepath.Join(t.TempDir(), "agent.db"), chatModel(t, time.Minute))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.greeting.URL+"/v1/answer",
		strings.NewReader(`{"id":"e","text":"The disk is full"}`))
	require.NoError(t, err)
	r.Header = http.Header{"Authorization": {"Bearer " + shopToken},
		"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}}
	began := time.Now()
	time.AfterFunc(200*time.Millisecond, func() { _ = s.process.Process.Signal(syscall.SIGTERM) })
	got, err := s.client.Do(r)
	require.NoError(t, err)
	text, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	require.NoError(t, got.Body.Close())
	assert.Contains(t, string(text), "out-of-time")
	assert.InDelta(t, stopTime.Seconds(), time.Since(began).Seconds(), 4)
	require.NoError(t, s.process.Wait(), s.failures.String())
}
