package memstore

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/faults"
)

// TracesConfig bounds a [Traces]. The zero value means the defaults.
type TracesConfig struct {
	// Now is the clock by which traces age. nil means time.Now.
	Now func() time.Time
	// TTL is how long a trace is kept from when it came; feedback that comes later finds nothing. 0 means a day.
	TTL time.Duration
	// MaxTraces and MaxBytes are how many traces are kept, and how much memory they take, about. Where a new one has no
	// room, the oldest go. 0 means 100,000, and 64 MiB.
	MaxTraces, MaxBytes int
	// MaxVerdicts is on how many verdicts of different persons, sources and targets an answer is kept; further ones are
	// refused with [evidence.ErrFull]. 0 means 1,000.
	MaxVerdicts int
}

func (c TracesConfig) withDefaults() TracesConfig {
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the default clock of a host that gives none
	}
	c.TTL = cmp.Or(c.TTL, 24*time.Hour)
	c.MaxTraces = cmp.Or(c.MaxTraces, 100_000)
	c.MaxBytes = cmp.Or(c.MaxBytes, 64<<20)
	c.MaxVerdicts = cmp.Or(c.MaxVerdicts, 1000)
	return c
}

// Validate reports all faults, joined.
func (c TracesConfig) Validate() error {
	c = c.withDefaults()
	var found faults.List
	found.Check(c.TTL > 0, "TTL", c.TTL, "must not be negative")
	found.Check(c.MaxTraces > 0, "MaxTraces", c.MaxTraces, "must not be negative")
	found.Check(c.MaxBytes > 0, "MaxBytes", c.MaxBytes, "must not be negative")
	found.Check(c.MaxVerdicts > 0, "MaxVerdicts", c.MaxVerdicts, "must not be negative")
	return found.Err()
}

// Traces is a [decision.TraceStore] in memory. The zero value is ready to use, with the defaults of [TracesConfig]; it must
// not be copied after first use. Traces is safe for concurrent use.
type Traces struct {
	cfg     TracesConfig
	started sync.Once

	mu     sync.Mutex
	traces map[string]*traceEntry
	ring   traceEntry // the ring of all entries, the newest before it and the oldest behind it
	bytes  int
}

var _ decision.TraceStore = (*Traces)(nil)

// A traceEntry is a trace and what was said of it.
type traceEntry struct {
	trace        decision.Trace
	came         time.Time
	bytes        int
	verdicts     map[verdictKey]decision.Standing
	newer, older *traceEntry
}

type verdictKey struct{ person, source, target string }

func (k verdictKey) bytes() int { return verdictBytes + len(k.person) + len(k.source) + len(k.target) }

// What an entry and a verdict take beside their texts, about.
const (
	entryBytes   = 512
	verdictBytes = 384
)

// NewTraces returns a store, or all faults of its configuration, joined.
func NewTraces(cfg TracesConfig) (*Traces, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("memstore: %w", err)
	}
	return &Traces{cfg: cfg}, nil
}

func (s *Traces) start() {
	s.started.Do(func() {
		s.cfg = s.cfg.withDefaults()
		s.traces = make(map[string]*traceEntry)
		s.ring.newer, s.ring.older = &s.ring, &s.ring
	})
}

// lock begins a method: it locks the store, with what is past its time gone, and returns the entry of an answer, or nil.
func (s *Traces) lock(ctx context.Context, responseID string) (*traceEntry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.start()
	now := s.cfg.Now()
	s.mu.Lock()
	s.expire(now)
	e := s.traces[responseID]
	if e != nil && s.over(e, now) { // behind one that came when the clock was ahead
		s.drop(e)
		e = nil
	}
	return e, nil
}

func (s *Traces) over(e *traceEntry, now time.Time) bool { return now.Sub(e.came) > s.cfg.TTL }

// expire drops what is older than the time to live.
func (s *Traces) expire(now time.Time) {
	for e := s.ring.newer; e != &s.ring && s.over(e, now); e = s.ring.newer {
		s.drop(e)
	}
}

func (s *Traces) drop(e *traceEntry) {
	delete(s.traces, e.trace.ResponseID)
	e.older.newer, e.newer.older = e.newer, e.older
	s.bytes -= e.bytes
}

// Put implements [decision.TraceStore].
func (s *Traces) Put(ctx context.Context, t decision.Trace) error {
	if t.ResponseID == "" {
		return &heed.InputError{Field: "ResponseID", Reason: "must not be empty"}
	}
	e, err := s.lock(ctx, t.ResponseID)
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	if e != nil {
		return heed.ErrConflict
	}
	e = newTraceEntry(t, s.cfg.Now())
	if e.bytes > s.cfg.MaxBytes {
		return fmt.Errorf("a trace of %d bytes: %w", e.bytes, evidence.ErrFull)
	}
	s.add(e)
	return nil
}

func newTraceEntry(t decision.Trace, came time.Time) *traceEntry {
	e := &traceEntry{trace: t, came: came, bytes: entryBytes}
	for _, text := range [...]*string{
		&t.ResponseID, &t.EventID, &t.Source, &t.Domain, &t.Text, &t.Response, &t.MatchedID, &t.CreditID, &t.Variant,
	} {
		e.bytes += len(*text)
	}
	return e
}

// add keeps an entry, which has room alone, as the newest.
func (s *Traces) add(e *traceEntry) {
	for len(s.traces) >= s.cfg.MaxTraces || s.bytes+e.bytes > s.cfg.MaxBytes {
		s.drop(s.ring.newer)
	}
	e.newer, e.older = &s.ring, s.ring.older
	e.older.newer, e.newer.older = e, e
	s.traces[e.trace.ResponseID] = e
	s.bytes += e.bytes
}

// Get implements [decision.TraceStore].
func (s *Traces) Get(ctx context.Context, responseID string) (decision.Trace, error) {
	e, err := s.lock(ctx, responseID)
	if err != nil {
		return decision.Trace{}, err
	}
	defer s.mu.Unlock()
	if e == nil {
		return decision.Trace{}, heed.ErrNotFound
	}
	return e.trace, nil
}

// Delete implements [decision.TraceStore].
func (s *Traces) Delete(ctx context.Context, responseID string) error {
	e, err := s.lock(ctx, responseID)
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	if e == nil {
		return heed.ErrNotFound
	}
	s.drop(e)
	return nil
}

// React implements [decision.TraceStore].
func (s *Traces) React(ctx context.Context, responseID string, v decision.Verdict) (decision.Trace, decision.Standing, error) {
	e, err := s.lock(ctx, responseID)
	if err != nil {
		return decision.Trace{}, decision.Standing{}, err
	}
	defer s.mu.Unlock()
	if e == nil {
		return decision.Trace{}, decision.Standing{}, heed.ErrNotFound
	}
	key := verdictKey{v.Person, v.Source, v.Target}
	standing, known := e.verdicts[key]
	switch {
	case !known && len(e.verdicts) >= s.cfg.MaxVerdicts:
		return decision.Trace{}, decision.Standing{}, evidence.ErrFull
	case !known:
		n := key.bytes()
		for s.bytes+n > s.cfg.MaxBytes && s.ring.newer != e {
			s.drop(s.ring.newer)
		}
		if s.bytes+n > s.cfg.MaxBytes {
			return decision.Trace{}, decision.Standing{}, evidence.ErrFull
		}
		e.bytes += n
		s.bytes += n
		key = verdictKey{strings.Clone(v.Person), strings.Clone(v.Source), strings.Clone(v.Target)}
		v.Person, v.Source, v.Target = key.person, key.source, key.target
		standing.Now = v
		if e.verdicts == nil {
			e.verdicts = make(map[verdictKey]decision.Standing)
		}
	case v.At.Before(standing.Now.At) || v.At.Equal(standing.Now.At) && v.Value == standing.Now.Value:
		return e.trace, standing, nil
	default:
		v.Person, v.Source, v.Target = standing.Now.Person, standing.Now.Source, standing.Now.Target
		standing.Before, standing.Now = standing.Now, v
	}
	e.verdicts[key] = standing
	return e.trace, standing, nil
}

// Sweep drops traces that are past their time. It is not needed for what reads see, which is never past its time, nor to
// stay within the bounds.
func (s *Traces) Sweep(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.start()
	now := s.cfg.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now)
	return nil
}

// Len returns how many traces are held.
func (s *Traces) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.traces)
}
