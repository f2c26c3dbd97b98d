package scorecard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/heedhq/heed/lab/internal/card"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/attribution"
	"github.com/heedhq/heed/stream"
)

const offBy = "outcomes too many or too few"

func exactlyOnce() []card.Line {
	return []card.Line{{
		Name:    "S6",
		Promise: "An event has its effect once, however often it is delivered.",
		Attack: "Each id is delivered ten times, in any order, to two workers of a consumer that is stopped 20 times with events in hand. Now and " +
			"then everything is dumped, and loaded into a new store.",
		Short:    card.Form{Bars: []card.Bar{card.AtMost(offBy, 0)}, Work: 100_000, Faults: 90_000, Budget: 5 * time.Minute},
		Long:     card.Form{Bars: []card.Bar{card.AtMost(offBy, 0)}, Work: 1_000_000, Faults: 900_000, Budget: time.Hour},
		Run:      deliveries(func(e stream.Event) string { return e.ID }, 10_000, 100_000),
		Controls: []card.Control{{Name: "knows an event by the hash of its payload", Run: deliveries(hashed, 1000, 1000)}},
	}}
}

func hashed(e stream.Event) string {
	sum := sha256.Sum256(e.Payload)
	return hex.EncodeToString(sum[:])
}

// deliveries delivers each event ten times under the id that it is given.
func deliveries(id func(stream.Event) string, short, long int) card.Attempt {
	return func(ctx context.Context, s card.Settings) (card.Result, error) {
		events := card.Pick(s, short, long)
		rng := s.Rand(0)
		d, err := newDesk(ctx, nil)
		if err != nil {
			return card.Result{}, err
		}
		belt, err := d.reports(events)
		if err != nil {
			return card.Result{}, err
		}
		for i := range belt {
			belt[i].ID = id(belt[i])
		}
		const times, restarts = 10, 20
		for range times - 1 {
			belt = append(belt, belt[:events]...)
		}
		rng.Shuffle(len(belt), func(i, j int) { belt[i], belt[j] = belt[j], belt[i] })
		d.belt.events = belt
		var counted, again uint64
		for restart := range restarts + 1 {
			stop := len(belt) // the last one has the rest
			if restart < restarts {
				stop = len(belt) / (restarts + 1)
			}
			counts, err := d.consume(ctx, attribution.Config{Workers: 2}, stop)
			if err != nil {
				return card.Result{}, err
			}
			counted, again = counted+counts.Outcomes, again+counts.Duplicates
			if restart%5 != 0 {
				err = d.open(ctx, nil)
			} else {
				d, err = d.restarted(ctx)
			}
			if err != nil {
				return card.Result{}, err
			}
		}
		mass, err := d.mass(ctx)
		off := math.Max(math.Abs(float64(counted)-float64(events)), math.Abs(mass-float64(events)*deskWeight))
		return card.Result{Values: map[string]float64{offBy: off}, Work: int64(counted + again), Faults: int64(again)}, err
	}
}

// A desk is a consumer with all that is around it, in memory.
type desk struct {
	kept    *memstore.Store
	store   store.Store // what the learner is given: kept, or what stands before it
	learner *strategy.Learner
	belt    *belt
	dead    *letterbox
}

// deskWeight is the weight of one outcome, and deskSessions are the sessions that have made a choice.
const (
	deskWeight   = 0.5
	deskSessions = 100
)

var deskStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func deskNow() time.Time { return deskStart }

// newDesk makes a learner, with the choices of a hundred sessions. wrap puts something before the store.
func newDesk(ctx context.Context, wrap func(store.Store) store.Store) (*desk, error) {
	d := &desk{belt: &belt{}, dead: &letterbox{}}
	var err error
	if d.kept, err = memstore.New(memstore.Config{Now: deskNow}); err != nil {
		return nil, err
	}
	if err := d.open(ctx, wrap); err != nil {
		return nil, err
	}
	for i := range deskSessions {
		if _, err := d.learner.Select(ctx, strategy.Query{Session: fmt.Sprint("s", i), Item: "i"}); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *desk) open(ctx context.Context, wrap func(store.Store) store.Store) (err error) {
	d.store = d.kept
	if wrap != nil {
		d.store = wrap(d.kept)
	}
	d.learner, err = strategy.New(ctx, strategy.Config{
		Store: d.store, Now: deskNow, Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}}, Seed: rand.NewPCG(1, 2),
	})
	return err
}

// restarted returns a desk in a store that was loaded from a dump of this one, with the same belt.
func (d *desk) restarted(ctx context.Context) (*desk, error) {
	var file bytes.Buffer
	if err := d.kept.Dump(ctx, &file); err != nil {
		return nil, err
	}
	next := &desk{belt: d.belt, dead: d.dead}
	var err error
	if next.kept, err = memstore.New(memstore.Config{Now: deskNow}); err != nil {
		return nil, err
	}
	if err := next.kept.Load(ctx, &file); err != nil {
		return nil, err
	}
	return next, next.open(ctx, nil)
}

// reports are events of one outcome each.
func (d *desk) reports(n int) (events []stream.Event, err error) {
	for i := range n {
		r := attribution.Report{
			Session: fmt.Sprint("s", i%deskSessions), Items: []attribution.Worth{{Item: "i", Activated: true, Value: float64(i%3 - 1)}},
		}
		e, err := r.Event(fmt.Sprint("e", i), deskStart)
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// consume has a consumer work until it has dealt with that many events, or all. It is stopped with events in hand.
func (d *desk) consume(ctx context.Context, cfg attribution.Config, stop int) (attribution.Counts, error) {
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	d.belt.stopAfter(stop, cancel)
	cfg.Learner, cfg.Stream, cfg.DeadLetters, cfg.Backoff = d.learner, d.belt, d.dead, time.Microsecond
	cfg.Router = attribution.Router{ConfidenceBoth: 1, ConfidenceAttribution: deskWeight, ConfidenceDirect: deskWeight} // sums without rounding
	cfg.Drain = time.Nanosecond
	c, err := attribution.New(cfg)
	if err != nil {
		return attribution.Counts{}, err
	}
	if err := c.Run(running); err != nil && running.Err() == nil {
		return attribution.Counts{}, err
	}
	return c.Counts(), ctx.Err()
}

// mass is all evidence about arms.
func (d *desk) mass(ctx context.Context) (mass float64, err error) {
	for part, err := range d.kept.List(ctx, "strategy.arm", `""/`) {
		if err != nil {
			return 0, err
		}
		mass += part.Tally.Mass
	}
	return mass, nil
}

// A belt is a source that delivers what is on it, in order, then what was given back, and then ends.
type belt struct {
	mu     sync.Mutex
	events []stream.Event
	acked  int
	stop   func()
	stopAt int
}

func (s *belt) stopAfter(n int, stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop, s.stopAt = stop, s.acked+n
}

func (s *belt) Receive(ctx context.Context) (stream.Delivery, error) {
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
	return &onBelt{s, e}, nil
}

type onBelt struct {
	from  *belt
	event stream.Event
}

func (d *onBelt) Event() stream.Event { return d.event }

func (d *onBelt) Ack(context.Context) error {
	d.from.mu.Lock()
	defer d.from.mu.Unlock()
	if d.from.acked++; d.from.acked == d.from.stopAt {
		d.from.stop()
	}
	return nil
}

func (d *onBelt) Reject(context.Context, time.Duration) error {
	d.from.mu.Lock()
	defer d.from.mu.Unlock()
	d.from.events = append(d.from.events, d.event)
	return nil
}

// A letterbox is a sink that keeps what is published.
type letterbox struct {
	mu     sync.Mutex
	events []stream.Event
	broken bool
}

func (b *letterbox) Publish(_ context.Context, e stream.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken {
		return errors.New("the letterbox is broken")
	}
	b.events = append(b.events, e)
	return nil
}
