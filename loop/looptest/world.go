package looptest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
)

// A World is what surrounds an agent in a host's own tests. It is the same in each run. It is safe
// for concurrent use, except for [World.Advance], which is for the goroutine of the test.
type World struct {
	// Config made the agent. Make another one of it to play a second process.
	Config loop.Config
	// Model has the requests that reached the scripted model.
	Model *llmtest.Model

	t     testing.TB
	agent *loop.Agent
	clock *clock
}

// New returns an agent for a host's own tests, and its world: a store in memory, a clock that
// begins on 5 January 2026 at 9:00 UTC and does not advance by itself, a seed, ids that count from
// "event-1", and a model that returns each text in turn, and the last one again and again.
//
// With texts, the scripted model takes the place of all models in cfg. Without texts, it returns
// "ok" if cfg has no model. The store, the seed and the ids of cfg stay if it has them. The clock
// of cfg is replaced.
func New(t testing.TB, cfg loop.Config, says ...string) (*loop.Agent, *World) {
	t.Helper()
	w := &World{t: t, clock: &clock{}, Model: &llmtest.Model{Answers: llmtest.Say(says...)}}
	cfg.Testing.Now = w.clock.Now
	if cfg.Store == nil {
		kept, err := memstore.New(memstore.Config{Now: w.clock.Now})
		if err != nil {
			t.Fatalf("looptest: %v", err)
		}
		cfg.Store = kept
	}
	if cfg.Testing.Seed == nil {
		cfg.Testing.Seed = rand.NewPCG(1, 2)
	}
	for what, newID := range map[string]*func() string{
		"event": &cfg.Testing.NewID, "answer": &cfg.Tuning.Decision.NewID,
		"proposal": &cfg.Tuning.Feedback.NewID,
	} {
		if *newID == nil {
			var n atomic.Int64
			*newID = func() string { return fmt.Sprintf("%s-%d", what, n.Add(1)) }
		}
	}
	if len(says) > 0 {
		replaceModels(&cfg, w.Model)
	} else if cfg.Model == nil && len(cfg.Fallbacks)+len(cfg.Models) == 0 {
		cfg.Model = w.Model
	}
	w.Config = cfg
	var err error
	if w.agent, err = loop.New(t.Context(), cfg); err != nil {
		t.Fatalf("looptest: %v", err)
	}
	return w.agent, w
}

// replaceModels puts a model in the place of all others.
func replaceModels(cfg *loop.Config, m decision.LLM) {
	cfg.Model, cfg.Fallbacks, cfg.Models = m, nil, maps.Clone(cfg.Models)
	for name := range cfg.Models {
		cfg.Models[name] = m
	}
	cfg.Arms = asking(m, cfg.Arms)
	cfg.Lessons.Arms = asking(m, cfg.Lessons.Arms)
}

// asking returns the arms with a model in the place of their own models.
func asking(m decision.LLM, arms []loop.Arm) []loop.Arm {
	arms = slices.Clone(arms)
	for i := range arms {
		if arms[i].Model != nil {
			arms[i].Model = m
		}
	}
	return arms
}

// Now is the time in the world.
func (w *World) Now() time.Time { return w.clock.Now() }

// Advance lets time pass, and then does what [loop.Agent.Run] would have done at the end of it: it
// sweeps.
func (w *World) Advance(d time.Duration) {
	w.t.Helper()
	w.clock.advance(d)
	if err := w.agent.Sweep(w.t.Context(), w.Now()); err != nil {
		w.t.Fatalf("looptest: %v", err)
	}
}
