package scorecard

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/heedhq/heed/lab/internal/card"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/attribution"
	"github.com/heedhq/heed/stream"
)

const (
	lost      = "events neither applied nor dead"
	notExact  = "outcomes too many or too few"
	notMarked = "hook failures not counted"
)

func contained() []card.Line {
	bars := []card.Bar{card.AtMost(lost, 0), card.AtMost(notExact, 0), card.AtMost(notMarked, 0)}
	return []card.Line{{
		Name:    "S7",
		Promise: "A poisoned event, a store that fails now and then, and a hook that panics stop nothing and lose nothing.",
		Attack: "One event in a hundred can't be read, one commit in twenty fails, and the host's hook panics, ends its goroutine or hangs in " +
			"12 of 100 calls.",
		Short: card.Form{Bars: bars, Work: 10_000, Faults: 1500, Budget: 5 * time.Minute},
		Long:  card.Form{Bars: bars, Work: 100_000, Faults: 15_000, Budget: time.Hour},
		Run:   consumed, Controls: []card.Control{{Name: "no recover", Misses: []string{lost, notExact, notMarked}, Run: unguarded}},
	}}
}

// A flaky store fails in some commits.
type flaky struct {
	store.Store
	mu     sync.Mutex
	rng    *rand.Rand
	failed int64
}

func (s *flaky) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	s.mu.Lock()
	fails := s.rng != nil && s.rng.IntN(20) == 0
	if fails {
		s.failed++
	}
	s.mu.Unlock()
	if fails {
		return nil, errors.New("the store is not there")
	}
	return s.Store.Commit(ctx, batches...)
}

// wild is a hook that fails in every way there is.
type wild struct {
	mu    sync.Mutex
	rng   *rand.Rand
	fails uint64
}

func (w *wild) outcome(ctx context.Context, _ strategy.Outcome) error {
	w.mu.Lock()
	kind := w.rng.IntN(100)
	if kind < 12 {
		w.fails++
	}
	w.mu.Unlock()
	switch {
	case kind < 10:
		panic("the hook panics")
	case kind == 10:
		runtime.Goexit()
	case kind == 11:
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

// poisoned returns a desk with a store that fails now and then. One in a hundred of its events can't be read.
func poisoned(ctx context.Context, s card.Settings, events int) (*desk, *flaky, error) {
	st := &flaky{}
	d, err := newDesk(ctx, func(kept store.Store) store.Store { st.Store = kept; return st })
	if err != nil {
		return nil, nil, err
	}
	if d.belt.events, err = d.reports(events); err != nil {
		return nil, nil, err
	}
	for i := 7; i < events; i += 100 {
		d.belt.events[i].Payload = d.belt.events[i].Payload[1:]
	}
	st.rng = s.Rand(1)
	return d, st, nil
}

func consumed(ctx context.Context, s card.Settings) (r card.Result, err error) {
	events := card.Pick(s, 10_000, 100_000)
	d, st, err := poisoned(ctx, s, events)
	if err != nil {
		return r, err
	}
	hook := &wild{rng: s.Rand(2)}
	// That an event fails twelve times in a row has a probability of 1e-12.
	counts, err := d.consume(ctx, attribution.Config{
		Workers: 4, Attempts: 12, Hook: attribution.Hook{Outcome: hook.outcome}, HookTimeout: time.Millisecond,
	}, math.MaxInt)
	if err != nil {
		return r, err
	}
	mass, err := d.mass(ctx)
	sound := events - events/100
	r.Values = map[string]float64{
		lost:      math.Abs(float64(events) - float64(counts.Applied) - float64(len(d.dead.events))),
		notExact:  math.Abs(mass/deskWeight-float64(sound)) + math.Abs(float64(counts.Outcomes)-float64(sound)),
		notMarked: max(0, float64(hook.fails)-float64(counts.HookFailed)),
	}
	r.Work, r.Faults = int64(counts.Received), int64(events/100)+st.failed+int64(hook.fails)
	return r, err
}

// unguarded is a worker that calls the hook as it is, and is ended by its first panic.
func unguarded(ctx context.Context, s card.Settings) (r card.Result, err error) {
	const events = 1000
	d, _, err := poisoned(ctx, s, events)
	if err != nil {
		return r, err
	}
	c, err := attribution.New(attribution.Config{Learner: d.learner, Stream: d.belt, DeadLetters: d.dead})
	if err != nil {
		return r, err
	}
	hook := &wild{rng: s.Rand(2)}
	applied, done := 0, make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }() // of the process, as it were
		for ctx.Err() == nil {
			next, err := d.belt.Receive(ctx)
			if errors.Is(err, stream.ErrClosed) {
				return
			}
			if c.Handle(ctx, next.Event()) == nil {
				applied++
			}
			short, cancel := context.WithTimeout(ctx, time.Millisecond)
			_ = hook.outcome(short, strategy.Outcome{})
			cancel()
		}
	}()
	<-done
	mass, err := d.mass(ctx)
	r.Values = map[string]float64{
		lost: float64(events - applied - len(d.dead.events)), notExact: math.Abs(mass/deskWeight - (events - events/100)), notMarked: float64(hook.fails),
	}
	r.Work = int64(applied)
	return r, errors.Join(err, ctx.Err())
}
