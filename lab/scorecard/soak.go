package scorecard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/google/uuid"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/lab/internal/card"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

const (
	growthBar = "% growth of the live heap"
	leftBar   = "goroutines left behind"
)

func soakLine() card.Line {
	return card.Line{
		Name:    "S15",
		Promise: "The memory of a long-running agent stays flat, and no goroutine is left running.",
		Attack: "An agent over a store in memory chooses, observes, answers, hears reactions and " +
			"outcomes, and people are forgotten. " +
			"Simulated months go by, with retention of an hour. The live heap of the second half is " +
			"compared with the heap of the second tenth.",
		Bars:  append(card.None(leftBar), card.Bar{Name: growthBar, Most: 10}),
		Short: card.Form{Work: 100_000, Budget: 3 * time.Minute},
		Long:  card.Form{Work: 2_000_000, Budget: 60 * time.Minute},
		Alone: true, // others' memory would count
		Run: func(ctx context.Context, s card.Settings) (card.Result, error) {
			return soak(ctx, s, card.Pick[int64](s, 100_000, 2_000_000), strategy.Cache{Size: 1000},
				false)
		},
		Controls: []card.Control{{Name: "a cache of choices without a limit, and a goroutine that " +
			"never ends", Misses: []string{growthBar, leftBar}, Run: func(ctx context.Context,
			s card.Settings) (card.Result, error) {
			return soak(ctx, s, 30_000, strategy.Cache{Size: 1 << 30, TTL: 100 * 365 * 24 * time.Hour},
				true)
		}}},
	}
}

// A soaked agent lives on its own clock.
type soaked struct {
	*loop.Agent
	store *memstore.Store
	rng   *rand.Rand
	now   time.Time
	done  int64
}

// heaps has the agent work, and returns the live heap by tenths, each the mean of ten.
func (a *soaked) heaps(ctx context.Context, operations int64) ([]float64, error) {
	heaps := make([]float64, 10)
	for tenth := range heaps {
		for range 10 {
			for end := a.done + operations/100; a.done < end; {
				if err := a.round(ctx); err != nil {
					return nil, fmt.Errorf("after %d operations: %w", a.done, err)
				}
			}
			heaps[tenth] += liveHeap() / 10
		}
	}
	return heaps, nil
}

// soak has an agent work. Work counts operations.
func soak(ctx context.Context, s card.Settings, operations int64, cache strategy.Cache,
	leaks bool) (result card.Result, err error) {
	baseline := runtime.NumGoroutine()
	if leaks {
		go func() { <-ctx.Done() }()
	}
	a := &soaked{rng: s.Rand(0), now: fixedNow}
	hour := store.Limits{For: time.Hour}
	limits := make(map[string]store.Limits)
	for _, kind := range []string{
		"loop.answer", "strategy.session", "learning.streak", "decision.trace",
		store.Audit.Name,
	} {
		limits[kind] = hour
	}
	clock := func() time.Time { return a.now }
	if a.store, err = memstore.New(memstore.Config{Now: clock, HistoryFor: time.Hour,
		IDsFor: time.Hour, Limits: limits}); err != nil {
		return result, err
	}
	model := decision.LLMFunc(func(context.Context, decision.LLMRequest) (decision.LLMResponse,
		error) {
		return decision.LLMResponse{Text: "Look at the logs."}, nil
	})
	id := rand.New(rand.NewPCG(s.Seed, 15))
	a.Agent, err = loop.New(ctx, loop.Config{
		Store: a.store, Model: model, Arms: []loop.Arm{{ID: "short"}, {ID: "long"}}, Keep: time.Hour,
		Testing: loop.Testing{Now: clock, Seed: rand.NewPCG(s.Seed, 1),
			NewID: func() string { return fmt.Sprint("id", id.Uint64()) }},
		Tuning: loop.Tuning{Strategy: strategy.Config{Cache: cache, NewID: func() uuid.UUID {
			var u uuid.UUID
			fill(id, u[:])
			return u
		}}},
	})
	if err != nil {
		return result, err
	}
	heaps, err := a.heaps(ctx, operations)
	if err != nil {
		return result, err
	}
	most := 0.0
	for _, heap := range heaps[5:] {
		most += heap / 5
	}
	result.Work = a.done
	result.Note("the live heap in MB, by tenths: %.1f", heaps)
	left := runtime.NumGoroutine() - baseline
	for range 100 {
		if left > 0 { // some end in a moment
			time.Sleep(10 * time.Millisecond)
			left = runtime.NumGoroutine() - baseline
		}
	}
	result.Values = map[string]float64{growthBar: 100 * (most/heaps[1] - 1),
		leftBar: float64(max(0, left))}
	runtime.KeepAlive(a)
	return result, nil
}

func fill(rng *rand.Rand, b []byte) {
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
}

// liveHeap is in megabytes.
func liveHeap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / 1e6
}

// round is a session: mostly choices and their outcomes, now and then an answer and what becomes of
// it.
func (a *soaked) round(ctx context.Context) error {
	a.now = a.now.Add(8 * time.Second)
	n, person := a.done, fmt.Sprint("person ", a.rng.IntN(20))
	learner := a.Strategy()
	for range 4 {
		c, err := learner.Select(ctx, strategy.Query{Session: fmt.Sprint("session ", a.done),
			Item: fmt.Sprint("item ", a.rng.IntN(20))})
		if err != nil {
			return err
		}
		_, err = learner.Observe(ctx, strategy.Outcome{Choice: c, Value: float64(a.rng.IntN(7))/3 - 1,
			Confidence: 0.8, Source: person})
		if err != nil {
			return err
		}
		a.done += 2
	}
	if a.rng.IntN(8) == 0 {
		if err := a.answer(ctx, person); err != nil {
			return err
		}
	}
	if a.crossed(n, 400) {
		if err := a.Sweep(ctx, a.now); err != nil {
			return err
		}
		if err := a.store.Sweep(ctx, time.Time{}); err != nil {
			return err
		}
		a.done += 2
	}
	if a.crossed(n, 10_000) {
		if err := store.Run(ctx, a.store, store.Job{Forget: []string{person}}); err != nil {
			return err
		}
		a.done++
	}
	return nil
}

// crossed reports whether the count of operations came over a multiple of every since it was n.
func (a *soaked) crossed(n, every int64) bool { return n/every != a.done/every }

func (a *soaked) answer(ctx context.Context, person string) error {
	said, err := a.Answer(ctx, loop.Event{Text: fmt.Sprintf("The disk %d is full.", a.rng.IntN(1000)),
		Session: fmt.Sprint("talk ", a.done), Person: person})
	if err != nil {
		return err
	}
	if err := a.React(ctx, said.ID, loop.Reaction{Person: person,
		Value: float64(a.rng.IntN(2))*2 - 1}); err != nil {
		return err
	}
	worked := a.rng.IntN(2) == 0
	a.done += 3
	return a.Outcome(ctx, said.ID, loop.Outcome{Success: &worked, Source: person})
}
