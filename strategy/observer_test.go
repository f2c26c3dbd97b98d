package strategy_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

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

// since returns what was told since the last call.
func (w *witness) since() []heed.Notice {
	w.mu.Lock()
	defer w.mu.Unlock()
	told := w.told
	w.told = nil
	return told
}

const component = "strategy/strategy"

func TestObserverIsToldOfChoicesAndOutcomes(t *testing.T) {
	var w witness
	cfg, c := recording(t, strategy.Config{Observer: w.observe})
	l := newLearner(t, cfg)
	q := strategy.Query{Session: "s", Item: "i", Category: "c", Context: "x"}
	choice := choose(t, l, q)
	id := choice.ID.String()
	assert.Equal(t, []heed.Notice{heed.Selected{
		Component: component, At: choice.At, ID: id, Category: "c", Context: "x", Item: "i",
		Arm: string(choice.Arm),
	}}, w.since())
	choose(t, l, q)
	choose(t, newLearner(t, cfg), q)
	assert.Empty(t, w.since(), "the choice was made before")
	loose := choose(t, l, strategy.Query{})
	assert.Equal(t, loose.ID.String(), w.since()[0].(heed.Selected).ID)

	c.Advance(time.Minute)
	o := strategy.Outcome{Choice: choice, Value: -0.5, Confidence: 0.8, Channel: "user",
		Source: "ann", At: start}
	for range 2 {
		_, err := l.Observe(ctx, o)
		require.NoError(t, err)
	}
	o.ID, o.Confidence = "unsure", 0.1
	_, err := l.Observe(ctx, o)
	require.NoError(t, err)
	assert.Equal(t, []heed.Notice{
		heed.Observed{
			Component: component, At: c.Now(), ID: id, Category: "c", Context: "x", Item: "i",
			Arm:     string(choice.Arm),
			Channel: "user", Reward: 0.25, Confidence: 0.8,
		},
		heed.Duplicate{Component: component, At: c.Now(), What: "outcome", ID: id},
	}, w.since(), "a dropped outcome is nothing to tell")
}

func TestObserverIsToldOfSweeps(t *testing.T) {
	for _, silence := range []strategy.Silence{{}, {Confidence: 0.5}} {
		var w witness
		cfg, c := recording(t, strategy.Config{Observer: w.observe, Silence: silence})
		l := newLearner(t, cfg)
		for n := range 3 {
			choose(t, l, strategy.Query{Session: fmt.Sprint(n)})
		}
		w.since()
		require.NoError(t, l.Sweep(ctx, time.Time{}))
		assert.Empty(t, w.since(), "nothing is due")
		c.Advance(25 * time.Hour)
		require.NoError(t, l.Sweep(ctx, time.Time{}))
		assert.Equal(t, []heed.Notice{heed.Swept{Component: component, At: c.Now(), Count: 3}},
			w.since())
	}
}

func TestObserverIsToldOfInvertedItems(t *testing.T) {
	var w witness
	l := newLearner(t, strategy.Config{Observer: w.observe})
	q := strategy.Query{Item: "i", Category: "c"}
	for n := range 60 {
		value := 1.
		if n >= 30 {
			value = -1
		}
		try(t, l, q, "a", value)
	}
	var inverted []heed.Changed
	for _, n := range w.since() {
		if n, ok := n.(heed.Changed); ok {
			inverted = append(inverted, n)
		}
	}
	require.NotEmpty(t, inverted)
	assert.Equal(t, heed.Changed{What: "inverted", Component: component, At: start, Subject: "i",
		Reason: inverted[0].Reason}, inverted[0])
	assert.Contains(t, inverted[0].Reason, "the rewards of a changed from 1.00 to 0.00")
}

// The observer hears of failures after an outcome was counted, and of those in sweeps.
func TestObserverIsToldOfHiddenFailures(t *testing.T) {
	var w witness
	cfg, _ := recording(t, strategy.Config{Observer: w.observe, Pooling: strategy.Copy{Sessions: 1}})
	st := &fragile{Store: cfg.Store}
	cfg.Store = st
	l := newLearner(t, cfg)
	try(t, l, strategy.Query{Item: "other"}, "a", 1)
	w.since()
	st.before = func(_ context.Context, b store.Batch) error {
		if len(b.Observations) > 0 && b.Observations[0].Cell.Kind == "strategy.given" {
			return errStore
		}
		return nil
	}
	try(t, l, strategy.Query{Item: "i"}, "a", 1)
	told := w.since()
	require.Len(t, told, 3)
	assert.IsType(t, heed.Selected{}, told[0])
	assert.Equal(t, heed.Failed{Component: component, At: cfg.Now(), What: "after an outcome",
		Err: errStore}, told[1])
	assert.IsType(t, heed.Observed{}, told[2])

	broken := &faulty{Store: cfg.Store}
	cfg.Store = broken
	l = newLearner(t, cfg)
	broken.find.Store(&errStore)
	require.ErrorIs(t, l.Sweep(ctx, time.Time{}), errStore)
	told = w.since()
	require.Len(t, told, 1)
	assert.Equal(t, "sweep", told[0].(heed.Failed).What)
}

// The observer is called outside of all locks, so it may call the learner.
func TestObserverMayCallBack(t *testing.T) {
	var l *strategy.Learner
	called := 0
	l = newLearner(t, strategy.Config{Observer: func(ctx context.Context, n heed.Notice) {
		q := strategy.Query{Session: "s", Item: "i"}
		switch n.(type) {
		case heed.Selected:
			called++
			_, err := l.Select(ctx, q)
			assert.NoError(t, err)
		case heed.Observed:
			called++
			assert.NoError(t, l.Refresh(ctx))
		default:
			assert.Fail(t, "a call back hangs", "%+v", n)
		}
	}})
	credit(t, l, choose(t, l, strategy.Query{Session: "s", Item: "i"}), 1)
	assert.Equal(t, 2, called)
}

// TestAnObserverThatPanics stops nothing.
func TestAnObserverThatPanics(t *testing.T) {
	l := newLearner(t, strategy.Config{Observer: func(context.Context,
		heed.Notice) {
		panic("observer")
	}})
	credit(t, l, choose(t, l, strategy.Query{Session: "s", Item: "i"}), 1)
}
