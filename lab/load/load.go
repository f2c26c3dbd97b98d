// Package load measures the API of package web under a steady load, on SQLite, with a page open:
//
//	go run ./lab load [-long] [-for 60] [-rate 200]
//	go run ./lab load postgres [-long] [-each 1s] [-items 1000000]
//
// The second form measures how many choices with their outcomes one PostgreSQL records: see
// docs/scale.md.
//
// Half of the requests choose an arm, 40 % report how a choice turned out, and the rest read. They
// are sent at their times, however long those before take, and each latency counts from the time at
// which its request should have been sent.
package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/heedhq/heed/lab/internal/database"
	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/web"
)

// Run sends the load: for 10 seconds, and in the long form for a minute.
func Run(ctx context.Context, call *kit.Call) (err error) {
	var l load
	seconds := call.Count("for", 10, 60, "how many seconds")
	call.Float64Var(&l.rate, "rate", 200, "requests a second")
	var s study
	call.DurationVar(&s.each, "each", time.Second, "how long each figure of postgres is measured")
	items := call.Count("items", 10_000, 1_000_000, "items of the large segment of postgres")
	if err := call.ParseNames(); err != nil {
		return err
	}
	switch {
	case len(call.Names) == 0:
	case len(call.Names) == 1 && call.Names[0] == "postgres" && s.each > 0:
		s.items = *items
		return onPostgres(ctx, call, &s)
	default:
		return call.Usage("unexpected arguments %q: postgres is the only name", call.Names)
	}
	l.long = time.Duration(*seconds) * time.Second
	if !(l.rate > 0) {
		return call.Usage("-rate must be above 0")
	}
	dir, err := os.MkdirTemp("", "heed-load-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	got, err := l.measure(ctx, dir)
	if err == nil {
		_, err = fmt.Fprintf(call.Out, "%v at %g requests a second, %d cores\n%s", l.long, l.rate,
			runtime.GOMAXPROCS(0), got)
	}
	return err
}

// A load is what is sent.
type load struct {
	long time.Duration
	rate float64 // requests a second

	url    string
	client *http.Client

	mu      sync.Mutex
	choices []string // that have no outcome yet
	took    map[string][]time.Duration
	failed  []error
	pages   int // that were loaded
}

const (
	items    = 500
	segments = 5
	warm     = 100 // choices before the load
)

// measure serves an agent in a directory and sends the load.
func (l *load) measure(ctx context.Context, dir string) (got report, err error) {
	st, db, err := database.Open(ctx, filepath.Join(dir, "load.db"), sqlstore.Config{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	agent, err := loop.New(ctx, loop.Config{
		Store: st, Arms: []loop.Arm{{ID: "small"}, {ID: "middle"},
			{ID: "large"}},
	})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	swept := make(chan error, 1)
	go func() { swept <- agent.Run(ctx) }()
	got, err = l.serve(ctx, web.Config{
		Store: st, Agent: agent, Identify: func(*http.Request) (string,
			error) {
			return "load", nil
		},
	})
	stop()
	if ended := <-swept; !errors.Is(ended, context.Canceled) {
		err = errors.Join(err, ended)
	}
	return got, err
}

// serve sends the load to the pages while one of them is open.
func (l *load) serve(ctx context.Context, cfg web.Config) (report, error) {
	pages, err := web.New(cfg)
	if err != nil {
		return nil, err
	}
	server := httptest.NewServer(pages)
	defer server.Close()
	l.url, l.took, l.client = server.URL, make(map[string][]time.Duration), server.Client()
	l.client.Transport.(*http.Transport).MaxIdleConnsPerHost = 256
	for range warm { // outcomes need choices
		choice, err := l.call(ctx, http.MethodPost, "/v1/select", `{}`)
		if err != nil {
			return nil, err
		}
		l.choices = append(l.choices, choice)
	}
	looking, leave := context.WithCancel(ctx)
	page := make(chan error, 1)
	go func() { page <- l.look(looking) }()
	l.send(ctx)
	leave()
	err = errors.Join(<-page, ctx.Err())
	if n := len(l.failed); n > 0 {
		err = errors.Join(fmt.Errorf("%d requests failed, the first with: %w", n, l.failed[0]), err)
	}
	for _, took := range l.took {
		slices.Sort(took)
	}
	return l.took, err
}

// send sends all requests, each at its time, and waits for their answers.
func (l *load) send(ctx context.Context) {
	dice := rand.New(rand.NewPCG(1, 2))
	var wg sync.WaitGroup
	defer wg.Wait()
	start := time.Now()
	for i := range int(l.long.Seconds() * l.rate) {
		due := start.Add(time.Duration(float64(i) / l.rate * float64(time.Second)))
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(due)):
		}
		kind, method, path, body := l.next(dice)
		wg.Go(func() {
			answer, err := l.call(ctx, method, path, body)
			took := time.Since(due)
			l.mu.Lock()
			defer l.mu.Unlock()
			if err != nil {
				l.failed = append(l.failed, err)
				return
			}
			l.took[kind] = append(l.took[kind], took)
			if kind == "select" {
				l.choices = append(l.choices, answer)
			}
		})
	}
}

// next draws a request.
func (l *load) next(dice *rand.Rand) (kind, method, path, body string) {
	kind = []string{"select", "select", "select", "select", "select", "observe", "observe", "observe",
		"observe", "read"}[dice.IntN(10)]
	if kind == "observe" {
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.choices) == 0 {
			kind = "select"
		}
	}
	switch item := dice.IntN(items); kind {
	case "select":
		return kind, http.MethodPost, "/v1/select",
			fmt.Sprintf(`{"item":"item-%d","category":"kind-%d"}`, item, item%segments)
	case "observe":
		i := dice.IntN(len(l.choices))
		choice := l.choices[i]
		l.choices = slices.Delete(l.choices, i, i+1)
		return kind, http.MethodPost, "/v1/observe",
			fmt.Sprintf(`{"choice":%q,"value":%g,"confidence":1,"source":"user-%d"}`, choice,
				1-2*dice.Float64(), item)
	}
	return kind, http.MethodGet, []string{"/v1/segments", "/v1/heuristics", "/v1/rules",
		"/v1/warnings"}[dice.IntN(4)], ""
}

// call sends a request, and returns the choice of a select.
func (l *load) call(ctx context.Context, method, path, body string) (choice string, err error) {
	r, err := http.NewRequestWithContext(ctx, method, l.url+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	got, err := l.client.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		return "", err
	}
	if got.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %d %s", path, got.StatusCode, bytes.TrimSpace(text))
	}
	var answer struct{ Choice string }
	if path != "/v1/select" {
		return "", nil
	}
	err = json.Unmarshal(text, &answer)
	return answer.Choice, err
}

// look has a page open: it asks once in a second whether something changed, and loads the page
// again as one does that follows a busy agent.
func (l *load) look(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 0; ; n++ {
		path := "/live"
		if n%2 == 0 {
			path = "/"
			l.pages++
		}
		if _, err := l.call(ctx, http.MethodGet, path, ""); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// A report has the latencies of each kind of request, in order.
type report map[string][]time.Duration

// quantile returns the latency that a share of the requests kept.
func (r report) quantile(kind string, q float64) time.Duration {
	took := r[kind]
	if len(took) == 0 {
		return 0
	}
	return took[min(int(q*float64(len(took))), len(took)-1)]
}

func (r report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-8s %9s %9s %9s %9s %9s\n", "", "requests", "50 %", "99 %", "99.9 %", "most")
	for _, kind := range []string{"select", "observe", "read"} {
		fmt.Fprintf(&b, "%-8s %9d", kind, len(r[kind]))
		for _, q := range []float64{0.5, 0.99, 0.999, 1} {
			fmt.Fprintf(&b, " %6.1f ms", float64(r.quantile(kind, q).Microseconds())/1000)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
