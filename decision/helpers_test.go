package decision_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

var (
	ctx   = context.Background()
	start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// A clock stands still until it is told to go on.
type clock struct{ since atomic.Int64 }

func (c *clock) Now() time.Time          { return start.Add(time.Duration(c.since.Load())) }
func (c *clock) Advance(d time.Duration) { c.since.Add(int64(d)) }

// withFixtures fills in what a test does not care about: a clock that stands, a store, a fixed
// seed, ids in order.
func withFixtures(cfg decision.Config) decision.Config {
	if cfg.Now == nil {
		cfg.Now = (&clock{}).Now
	}
	if cfg.Store == nil {
		cfg.Store = newStore(cfg.Now)
	}
	if cfg.Seed == nil {
		cfg.Seed = rand.NewPCG(1, 2)
	}
	if cfg.NewID == nil {
		var n atomic.Int64
		cfg.NewID = func() string { return fmt.Sprint("r", n.Add(1)) }
	}
	return cfg
}

func newStore(now func() time.Time) *memstore.Store {
	st, err := memstore.New(memstore.Config{Now: now})
	if err != nil {
		panic(err)
	}
	return st
}

// traces returns the traces that a strategy has kept.
func traces(t testing.TB, h *decision.Decider) (all []decision.Trace) {
	t.Helper()
	for trace, err := range h.Traces(ctx) {
		require.NoError(t, err)
		all = append(all, trace)
	}
	return all
}

func newHeuristicFirst(t testing.TB, cfg decision.Config) *decision.Decider {
	h, err := decision.New(ctx, withFixtures(cfg))
	require.NoError(t, err)
	return h
}

// decide decides with HeuristicFirst.
func decide(t testing.TB, cfg decision.Config, r decision.Request) decision.Result {
	t.Helper()
	res, err := newHeuristicFirst(t, cfg).Decide(ctx, r)
	require.NoError(t, err)
	return res
}

// model returns a model that gives this answer and these predictions.
func model(answer string, predictions ...string) *llmtest.Model {
	return &llmtest.Model{Name: "scripted", Answers: llmtest.Say(answer),
		Predictions: llmtest.Say(predictions...)}
}

// candidates returns candidates of these confidences: h1, h2, and so on.
func candidates(confidences ...float64) (all []decision.Candidate) {
	for i, c := range confidences {
		all = append(all, decision.Candidate{
			HeuristicID: fmt.Sprint("h", i+1), Condition: fmt.Sprint("condition ", i+1),
			Action: fmt.Sprint("action ", i+1), Confidence: c,
		})
	}
	return all
}

func readJSON(t testing.TB, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, into))
}

// brokenStore can't commit.
type brokenStore struct {
	store.Store
	err error
}

func (b brokenStore) Commit(context.Context, ...store.Batch) ([]store.Receipt, error) {
	return nil, b.err
}

func nan() float64 { return math.NaN() }
