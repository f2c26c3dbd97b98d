package attribution_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/attribution"
	"github.com/heedhq/heed/stream"
)

// long returns the second number where HEED_LONG asks for long tests.
func long(short, full int) int {
	if os.Getenv("HEED_LONG") != "" {
		return full
	}
	return short
}

// No test of this package may leave a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A tape is a source that delivers what is on it, in order, then what was rejected, and then ends.
type tape struct {
	mu       sync.Mutex
	events   []stream.Event
	acked    []string
	rejected []string
	ack      func(ctx context.Context, id string) error // nil: it succeeds
	reject   func(ctx context.Context, id string) error
}

func (s *tape) Receive(ctx context.Context) (stream.Delivery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case len(s.events) == 0:
		return nil, stream.ErrClosed
	}
	e := s.events[0]
	s.events = s.events[1:]
	return &taped{s, e}, nil
}

type taped struct {
	from  *tape
	event stream.Event
}

func (d *taped) Event() stream.Event { return d.event }

func (d *taped) Ack(ctx context.Context) error {
	if d.from.ack != nil {
		if err := d.from.ack(ctx, d.event.ID); err != nil {
			return err
		}
	}
	d.from.mu.Lock()
	defer d.from.mu.Unlock()
	d.from.acked = append(d.from.acked, d.event.ID)
	return ctx.Err()
}

func (d *taped) Reject(ctx context.Context) error {
	if d.from.reject != nil {
		if err := d.from.reject(ctx, d.event.ID); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	d.from.mu.Lock()
	defer d.from.mu.Unlock()
	d.from.rejected = append(d.from.rejected, d.event.ID)
	d.from.events = append(d.from.events, d.event)
	return nil
}

// A letterbox is a sink that keeps what is published, each id once.
type letterbox struct {
	mu      sync.Mutex
	events  []stream.Event
	times   int // how often it was published to
	publish func(ctx context.Context, e stream.Event) error
}

func (b *letterbox) Publish(ctx context.Context, e stream.Event) error {
	if b.publish != nil {
		if err := b.publish(ctx, e); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.times++
	if !slices.ContainsFunc(b.events, func(o stream.Event) bool { return o.ID == e.ID }) {
		b.events = append(b.events, e)
	}
	return nil
}

func (b *letterbox) ids() (ids []string) {
	for _, e := range b.events {
		ids = append(ids, e.ID)
	}
	return ids
}

// letters reads the dead letters that are kept.
func (b *letterbox) letters(t testing.TB) (letters []stream.DeadLetter) {
	for _, e := range b.events {
		require.Equal(t, attribution.DeadTopic, e.Topic)
		var letter stream.DeadLetter
		require.NoError(t, json.Unmarshal(e.Payload, &letter))
		letters = append(letters, letter)
	}
	return letters
}

// A fragile store asks first whether it may fail now.
type fragile struct {
	store.Store
	before func(ctx context.Context, b store.Batch) error
}

func (s *fragile) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	for _, b := range batches {
		if s.before != nil {
			if err := s.before(ctx, b); err != nil {
				return nil, err
			}
		}
	}
	return s.Store.Commit(ctx, batches...)
}

// A desk is a consumer with all that is around it.
type desk struct {
	clock   *clock
	store   *fragile
	learner *strategy.Learner
	tape    *tape
	dead    *letterbox
}

func newDesk(t testing.TB, cfg strategy.Config) *desk {
	d := &desk{clock: &clock{}, tape: &tape{}, dead: &letterbox{}}
	d.store = &fragile{Store: newStore(t, d.clock.Now)}
	cfg.Now, cfg.Store = d.clock.Now, d.store
	d.learner = newLearner(t, cfg)
	return d
}

func (d *desk) consumer(t testing.TB, cfg attribution.Config) *attribution.Consumer {
	cfg.Learner = d.learner
	if cfg.Stream == nil {
		cfg.Stream = d.tape
	}
	if cfg.DeadLetters == nil {
		cfg.DeadLetters = d.dead
	}
	if cfg.Router == (attribution.Router{}) { // weights that add up without rounding
		cfg.Router = attribution.Router{ConfidenceBoth: 1, ConfidenceAttribution: 0.5,
			ConfidenceDirect: 0.5}
	}
	c, err := attribution.New(cfg)
	require.NoError(t, err)
	return c
}

// choose makes a choice for each of n sessions "s0", "s1" and so on, for the item "i".
func (d *desk) choose(t testing.TB, n int) {
	for i := range n {
		choose(t, d.learner, strategy.Query{Session: fmt.Sprint("s", i), Item: "i"})
	}
}

// worth is the event that the item "i" was of that value in a session.
func (d *desk) worth(t testing.TB, id, session string, value float64) stream.Event {
	return d.report(t, id, attribution.Report{
		Session: session, Items: []attribution.Worth{{Item: "i", Activated: true, Value: value}},
	})
}

func (d *desk) report(t testing.TB, id string, r attribution.Report) stream.Event {
	e, err := r.Event(id, d.clock.Now())
	require.NoError(t, err)
	return e
}

func (d *desk) mass(t testing.TB) (mass float64) {
	for _, p := range everything(t, d.store) {
		if p.Cell.Kind == "strategy.arm" {
			mass += p.Tally.Mass
		}
	}
	return mass
}

// A witness keeps what an observer is told.
type witness struct {
	mu   sync.Mutex
	told []heed.Notice
}

func (w *witness) observe(_ context.Context, n heed.Notice) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, n)
}

// failures returns the failures that were told, what failed before its error.
func (w *witness) failures() (texts []string, stacks string) {
	for _, n := range w.told {
		if f, ok := n.(heed.Failed); ok {
			texts = append(texts, f.What+": "+f.Err.Error())
			var p *heed.PanicError
			if errors.As(f.Err, &p) {
				stacks += string(p.Stack)
			}
		}
	}
	return texts, stacks
}

var errFlaky = errors.New("flaky")

var (
	ctx   = context.Background()
	start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// A clock stands still until it is told to go on.
type clock struct{ since atomic.Int64 }

func (c *clock) Now() time.Time          { return start.Add(time.Duration(c.since.Load())) }
func (c *clock) Advance(d time.Duration) { c.since.Add(int64(d)) }

// newLearner returns a learner of four arms.
func newLearner(t testing.TB, cfg strategy.Config) *strategy.Learner {
	if cfg.Now == nil {
		cfg.Now = (&clock{}).Now
	}
	if cfg.Store == nil {
		cfg.Store = newStore(t, cfg.Now)
	}
	cfg.Arms, cfg.Seed = []strategy.Arm{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}}, rand.NewPCG(1, 2)
	l, err := strategy.New(ctx, cfg)
	require.NoError(t, err)
	return l
}

func newStore(t testing.TB, now func() time.Time) *memstore.Store {
	st, err := memstore.New(memstore.Config{Now: now})
	require.NoError(t, err)
	return st
}

func choose(t testing.TB, l *strategy.Learner, q strategy.Query) strategy.Choice {
	c, err := l.Select(ctx, q)
	require.NoError(t, err)
	return c
}

// everything returns all evidence of a learner in the segment without a name.
func everything(t testing.TB, st store.Store) (parts []evidence.Part) {
	for _, kind := range []string{"strategy.arm", "strategy.given", "strategy.sessions",
		"strategy.parameter"} {
		for part, err := range st.List(ctx, store.CellQuery{Kind: kind, Scope: `""/`}) {
			require.NoError(t, err)
			parts = append(parts, part)
		}
	}
	return parts
}

// fields returns the fields of all faults of a configuration, in order.
func fields(err error) (names []string) {
	for fault := range heed.ConfigErrors(err) {
		names = append(names, fault.Field)
	}
	return names
}
