package scorecard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// The memory of a long-running agent over a store in memory stays flat, and no goroutine is left
// running: it chooses, observes, answers, hears reactions and outcomes, and people are forgotten,
// with retention of an hour. The live heap of the second half is compared with the heap of the
// second tenth. A cache of choices without a limit is found.
func TestSoak(t *testing.T) {
	operations := int64(30_000)
	if long {
		operations = 2_000_000
	}
	before := runtime.NumGoroutine()
	assert.Less(t, growth(t, operations, strategy.Cache{Size: 1000}), 0.1)
	for range 1000 {
		if runtime.NumGoroutine() > before { // some end in a moment
			time.Sleep(10 * time.Millisecond)
		}
	}
	assert.LessOrEqual(t, runtime.NumGoroutine(), before, "goroutines are left behind")
	forever := strategy.Cache{Size: 1 << 30, TTL: 100 * 365 * 24 * time.Hour}
	assert.Greater(t, growth(t, 15_000, forever), 0.1)
}

// A soaked agent lives on its own clock.
type soaked struct {
	*loop.Agent
	store *memstore.Store
	rng   *rand.Rand
	now   time.Time
	done  int64
}

// growth has an agent work, and returns by how much its live heap grows.
func growth(t *testing.T, operations int64, cache strategy.Cache) float64 {
	a := &soaked{rng: rand.New(rand.NewPCG(1, 2)), now: fixedNow}
	limits := make(map[string]store.Limits)
	for _, kind := range []string{
		"loop.answer", "strategy.session", "learning.streak", "decision.trace", store.Audit.Name,
	} {
		limits[kind] = store.Limits{For: time.Hour}
	}
	clock := func() time.Time { return a.now }
	var err error
	a.store, err = memstore.New(memstore.Config{Now: clock,
		Retention: store.Retention{HistoryFor: time.Hour, IDsFor: time.Hour, Limits: limits}})
	require.NoError(t, err)
	model := decision.LLMFunc(func(context.Context, decision.LLMRequest) (decision.LLMResponse,
		error) {
		return decision.LLMResponse{Text: "Look at the logs."}, nil
	})
	id := rand.New(rand.NewPCG(1, 15))
	a.Agent, err = loop.New(t.Context(), loop.Config{
		Store: a.store, Model: model, Arms: []loop.Arm{{ID: "short"}, {ID: "long"}}, Keep: time.Hour,
		Testing: loop.Testing{Now: clock, Seed: rand.NewPCG(1, 1),
			NewID: func() string { return fmt.Sprint("id", id.Uint64()) }},
		Tuning: loop.Tuning{Strategy: strategy.Config{Cache: cache, NewID: func() (u uuid.UUID) {
			for i := range u {
				u[i] = byte(id.Uint32())
			}
			return u
		}}},
	})
	require.NoError(t, err)
	heaps := make([]float64, 10) // by tenths, each the mean of ten
	for tenth := range heaps {
		for range 10 {
			for end := a.done + operations/100; a.done < end; {
				require.NoError(t, a.round(t.Context()), "after %d operations", a.done)
			}
			heaps[tenth] += liveHeap() / 10
		}
	}
	t.Logf("the live heap in MB, by tenths: %.1f", heaps)
	runtime.KeepAlive(a)
	most := 0.0
	for _, heap := range heaps[5:] {
		most += heap / 5
	}
	return most/heaps[1] - 1
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
