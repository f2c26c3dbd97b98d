package strategy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/stream"
)

// raced tells that the race detector is on, under which the longest tests are shorter.
var raced bool

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

func (d *taped) Reject(ctx context.Context, _ time.Duration) error {
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
func (b *letterbox) letters(t testing.TB) (letters []strategy.DeadLetter) {
	for _, e := range b.events {
		require.Equal(t, strategy.DeadTopic, e.Topic)
		var letter strategy.DeadLetter
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

func (d *desk) consumer(t testing.TB, cfg strategy.ConsumerConfig) *strategy.Consumer {
	cfg.Learner = d.learner
	if cfg.Source == nil {
		cfg.Source = d.tape
	}
	if cfg.DeadLetters == nil {
		cfg.DeadLetters = d.dead
	}
	if cfg.Router == nil { // weights that add up without rounding
		router, err := strategy.NewRouter(strategy.RouterConfig{
			Confidences: strategy.RouterConfidences{Both: 1, Attribution: 0.5, Direct: 0.5},
		})
		require.NoError(t, err)
		cfg.Router = router
	}
	c, err := strategy.NewConsumer(cfg)
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
	return d.attribution(t, id, strategy.AttributionEvent{
		Session: session, Records: []strategy.AttributionRecord{{Item: "i", Activated: true, Value: value}},
	})
}

func (d *desk) attribution(t testing.TB, id string, a strategy.AttributionEvent) stream.Event {
	e, err := strategy.NewAttribution(id, d.clock.Now(), a)
	require.NoError(t, err)
	return e
}

func (d *desk) mass(t testing.TB) float64 { return massOf(kept(t, d.store, strategy.Query{}, "arm")) }

func textLog(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

var errFlaky = errors.New("flaky")

// A hook is a NoveltyHook made of functions.
type hook struct {
	outcome func(context.Context, strategy.Outcome) error
	end     func(context.Context, string) error
}

func (h hook) OnOutcome(ctx context.Context, o strategy.Outcome) error {
	if h.outcome == nil {
		return nil
	}
	return h.outcome(ctx, o)
}

func (h hook) OnSessionEnd(ctx context.Context, session string) error {
	if h.end == nil {
		return nil
	}
	return h.end(ctx, session)
}
