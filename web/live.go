package web

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/store"
)

// Live tells open pages that something has changed. Its Observe is the [heed.Observer] of the parts whose changes pages show at
// once. The zero Live is ready. It is safe for concurrent use by multiple goroutines.
type Live struct {
	mu        sync.Mutex
	listeners map[chan struct{}]struct{}
	persons   map[string]int // how many listeners each has
	changes   uint64
}

// Observe implements [heed.Observer]. It waits for nobody.
func (l *Live) Observe(_ context.Context, n heed.Notice) {
	switch n.(type) {
	case heed.Selected, heed.Duplicate, heed.Failed, heed.Outage, heed.Restored: // they change nothing that a page shows
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes++
	for c := range l.listeners {
		select {
		case c <- struct{}{}:
		default: // it is woken already
		}
	}
}

const (
	mostListeners = 1000
	mostOfPerson  = 20
)

// listen returns a channel that gets a value after changes, and a function that ends it. ok is false where too many listen, or where a
// person has too many listeners.
func (l *Live) listen(person string) (changed <-chan struct{}, end func(), ok bool) {
	c := make(chan struct{}, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.listeners) >= mostListeners || l.persons[person] >= mostOfPerson {
		return nil, nil, false
	}
	if l.listeners == nil {
		l.listeners, l.persons = make(map[chan struct{}]struct{}), make(map[string]int)
	}
	l.listeners[c] = struct{}{}
	l.persons[person]++
	return c, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.listeners, c)
		if l.persons[person]--; l.persons[person] == 0 {
			delete(l.persons, person)
		}
	}, true
}

func (l *Live) count() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changes
}

// A pulse is what the store was like when it was last read, or the failure of that reading. All streams share it.
type pulse struct {
	mu      sync.Mutex
	at      time.Time // when the last reading ended, by the machine's clock
	state   string
	err     error
	reading chan struct{} // is closed when the reading that is under way ends. nil: there is none
}

const (
	beat       = time.Second
	pause      = 500 * time.Millisecond // between two changes that a page is told of
	quiet      = 15                     // beats after which a stream says that it is there
	streamTime = 10 * time.Minute       // after which a browser connects anew, and its person is identified again
	writeTime  = 10 * time.Second       // for a browser to take what it is told
	window     = 50                     // records of a kind that a reading compares, for processes whose clocks are behind
	answers    = 10                     // the same for answers, which are longer and come more often
)

// version names the state of the store and of the parts in this process. It changes with decisions, corrections and answers of any
// process, and with all that [Live] is told.
func (h *Handler) version(ctx context.Context) (string, error) {
	changes := h.cfg.Live.count()
	state, err := h.pulse.read(ctx, h)
	return fmt.Sprintf("%s.%d", state, changes), err
}

// read returns the last reading, or makes a new one. One caller reads for all. The others wait for it, each within its own context.
func (p *pulse) read(ctx context.Context, h *Handler) (string, error) {
	for {
		p.mu.Lock()
		if !p.at.IsZero() && time.Since(p.at) < beat*9/10 { //nolint:forbidigo // a store is read once in a second of real time
			defer p.mu.Unlock()
			return p.state, p.err
		}
		under := p.reading
		if under == nil {
			p.reading = make(chan struct{})
			p.mu.Unlock()
			return p.renew(ctx, h)
		}
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-under:
		}
	}
}

// renew reads the store for all. A reader that goes away leaves the reading to another one.
func (p *pulse) renew(ctx context.Context, h *Handler) (state string, err error) {
	ended := false
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if ended && (err == nil || ctx.Err() == nil) {
			p.at, p.state, p.err = time.Now(), state, err //nolint:forbidigo // as above
		}
		close(p.reading)
		p.reading = nil
	}()
	state, err = h.state(ctx)
	ended = true
	return state, err
}

// state reads what the store is like.
func (h *Handler) state(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Timeout)
	defer cancel()
	var latest store.Snapshot
	if err := h.cfg.Store.Read(ctx, &latest, nil, nil, h.latest()...); err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, found := range latest.Found {
		for _, r := range found {
			_, _ = fmt.Fprintf(sum, "%q %d\n", r.ID, r.Revision)
		}
		_, _ = sum.Write([]byte{0})
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// latest asks for the latest records of what changes when something happens.
func (h *Handler) latest() []store.Query {
	queries := []store.Query{{Kind: h.cfg.Name + ".answer", Limit: answers}, {Kind: store.Audit.Name, Limit: window}}
	if h.cfg.Feedback != nil {
		for _, kind := range []string{"feedback.record", "feedback.proposal", "feedback.rule"} {
			queries = append(queries, store.Query{Kind: kind, Limit: window})
		}
	}
	return queries
}

// streams reports whether a request is for a stream, which has no end by itself.
func streams(r *http.Request) bool { return r.URL.Path == "/live" }

// live sends the version of what pages show, whenever it changes, as server-sent events. "behind" says that it is not known.
func (h *Handler) live(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	changed, end, ok := h.cfg.Live.listen(personOf(r))
	if !ok {
		h.refuse(w, r, http.StatusServiceUnavailable, "Too many pages are open.")
		return
	}
	defer end()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(h.closing, cancel)()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // has nginx pass on each event
	s := stream{h: h, w: w, rc: http.NewResponseController(w), seen: cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("seen"))}
	over := time.NewTimer(streamTime)
	defer over.Stop()
	tick := time.NewTicker(beat)
	defer tick.Stop()
	if !s.send("retry: 2000\n\n") {
		return
	}
	for s.beat(ctx) {
		select {
		case <-ctx.Done():
			return
		case <-over.C:
			return
		case <-changed:
		case <-tick.C:
		}
	}
}

// A stream is what one page is told. It must not be used concurrently.
type stream struct {
	h      *Handler
	w      http.ResponseWriter
	rc     *http.ResponseController
	seen   string // the version that the page has
	behind bool
	silent int // beats
}

// beat tells the page what it does not know yet, and reports whether it still listens.
func (s *stream) beat(ctx context.Context) bool {
	version, err := s.h.version(ctx)
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil && !s.behind:
		s.behind = true
		s.h.tell(ctx, "live", err)
		return s.send("event: behind\ndata: \n\n")
	case err == nil && (version != s.seen || s.behind):
		s.seen, s.behind = version, false
		return s.send("event: changed\nid: "+version+"\ndata: "+version+"\n\n") && s.rest(ctx)
	}
	if s.silent++; s.silent < quiet {
		return true
	}
	return s.send(": here\n\n")
}

func (s *stream) send(text string) bool {
	s.silent = 0
	_ = s.rc.SetWriteDeadline(time.Now().Add(writeTime)) //nolint:forbidigo // connections have the machine's clock
	_, err := s.w.Write([]byte(text))
	return err == nil && s.rc.Flush() == nil
}

// rest waits between two changes, so that a busy agent does not make pages flicker.
func (s *stream) rest(ctx context.Context) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
