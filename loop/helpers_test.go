package loop_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy"
)

var (
	ctx   = context.Background()
	start = time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
)

// A clock is moved by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	c.mu.Unlock()
}

// A mouth is a model that says one text, and keeps what it was asked.
type mouth struct {
	mu    sync.Mutex
	says  string
	err   error
	asked []decision.LLMRequest
}

func (m *mouth) Generate(_ context.Context, r decision.LLMRequest) (decision.LLMResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, r)
	return decision.LLMResponse{Text: m.says, Model: "mouth"}, m.err
}

// calls returns how often it was asked for an answer.
func (m *mouth) calls() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.asked {
		if !r.JSON {
			n++
		}
	}
	return n
}

// last returns the system prompt and the prompt of the last answer.
func (m *mouth) last() (system, prompt string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.asked {
		if !r.JSON {
			system, prompt = r.System, r.Prompt
		}
	}
	return system, prompt
}

// A world is an agent with what is around it.
type world struct {
	t     *testing.T
	clock *clock
	store store.Store
	model *mouth
	cfg   loop.Config
	*loop.Agent
}

const (
	full   = "The disk of db-1 is full and its logs have grown"
	rotate = "Rotate the logs of the server."
)

var rotating = learning.Heuristic{ID: "rotate",
	Condition: "the disk of a server is full and its logs have grown", Action: rotate}

// trusted has the confidence that it takes to answer.
func trusted(h learning.Heuristic) learning.Heuristic {
	h.Initial = 0.8
	return h
}

func newWorld(t *testing.T, cfg loop.Config) *world {
	t.Helper()
	w := &world{t: t, clock: &clock{now: start}, model: &mouth{says: "Look at the logs."}}
	if cfg.Store == nil {
		st, err := memstore.New(memstore.Config{Now: w.clock.Now})
		require.NoError(t, err)
		cfg.Store = st
	}
	if cfg.Model == nil {
		cfg.Model = w.model
	}
	var n int
	var mu sync.Mutex
	cfg.Testing.NewID = func() string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return fmt.Sprint("event-", n)
	}
	cfg.Testing.Now, cfg.Testing.Seed = w.clock.Now, rand.NewPCG(1, 2)
	// The budget is of real time. On a busy machine a test can wait for a second.
	cfg.Budget.Time = cmp.Or(cfg.Budget.Time, time.Minute)
	w.store, w.cfg = cfg.Store, cfg
	agent, err := loop.New(ctx, cfg)
	require.NoError(t, err)
	w.Agent = agent
	return w
}

// again returns the agent that another process would make.
func (w *world) again() *loop.Agent {
	w.t.Helper()
	w.cfg.Testing.Seed = rand.NewPCG(1, 2)
	agent, err := loop.New(ctx, w.cfg)
	require.NoError(w.t, err)
	return agent
}

func (w *world) answer(e loop.Event) loop.Answer {
	w.t.Helper()
	answer, err := w.Answer(ctx, e)
	require.NoError(w.t, err)
	return answer
}

func (w *world) confidence(id string) float64 {
	w.t.Helper()
	s, err := w.Learning().Standing(ctx, id)
	require.NoError(w.t, err)
	return s.Confidence
}

// distribution returns what is believed in a segment, and the zero value if it has no outcomes.
func distribution(
	t require.TestingT, l *strategy.Learner, category string,
) (d strategy.Distribution) {
	for d, err := range l.Distributions(ctx, strategy.Query{Category: category}) {
		require.NoError(t, err)
		return d
	}
	return d
}

// mean returns the reward that is expected of an arm.
func (w *world) mean(category, arm string) float64 {
	w.t.Helper()
	for _, a := range distribution(w.t, w.Strategy(), category).Arms {
		if string(a.Arm) == arm {
			return a.Mean
		}
	}
	w.t.Fatalf("no arm %s", arm)
	return 0
}

func assertField(t *testing.T, field string, err error) {
	t.Helper()
	var input *heed.InputError
	if assert.ErrorAs(t, err, &input) {
		assert.Equal(t, field, input.Field)
		assert.True(t, strings.HasPrefix(err.Error(), "loop: "), err.Error())
	}
}

func each(rows []loop.Past) iter.Seq2[loop.Past, error] {
	return func(yield func(loop.Past, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}

func newSource(seed uint64) rand.Source { return rand.NewPCG(seed, seed) }

// failEach is [storetest.FailEach] with a clock that stands still: on a busy machine a failing try
// can take so long that it counts as hanging, and the agent gives up the next calls at once.
func failEach(t *testing.T, run func(t *testing.T, at int, after bool) bool) {
	storetest.FailEach(func(at int, after bool) (failed bool) {
		synctest.Test(t, func(t *testing.T) { failed = run(t, at, after) })
		return failed
	})
}
