package patterns_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store/storetest"
)

// A witness keeps what an observer is told.
type witness struct {
	mu        sync.Mutex
	pastEntry []heed.Notice
}

func (w *witness) observe(_ context.Context, n heed.Notice) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pastEntry = append(w.pastEntry, n)
}

// since returns what was told since the last call.
func (w *witness) since() []heed.Notice {
	w.mu.Lock()
	defer w.mu.Unlock()
	pastEntry := w.pastEntry
	w.pastEntry = nil
	return pastEntry
}

const component = "patterns/patterns"

func observed(t *testing.T, cfg patterns.Config) (*world, *witness) {
	pastEntry := &witness{}
	cfg.Observer = pastEntry.observe
	return newWorld(t, cfg), pastEntry
}

func TestObserverIsToldOfEvidence(t *testing.T) {
	w, pastEntry := observed(t, patterns.Config{})
	o := good("p")
	o.ID, o.Task, o.Criteria = "o", "t", []string{"c"}
	w.record(o)
	assert.Equal(t, []heed.Notice{
		heed.Counted{Component: component, At: start, Subject: "c", Channel: "outcome", Reward: 1,
			Weight: 1},
		heed.Counted{Component: component, At: start, Subject: "p", Channel: "outcome", Reward: 1,
			Weight: 1},
	}, pastEntry.since())
	w.record(o)
	assert.Equal(t, []heed.Notice{heed.Duplicate{Component: component, At: start, What: "outcome",
		ID: "o"}}, pastEntry.since())

	rating := patterns.Rating{ID: "r", Pattern: "p", Class: patterns.Harmful, Strength: 0.5}
	for range 2 {
		_, err := w.Rate(ctx, rating)
		require.NoError(t, err)
	}
	assert.Equal(t, []heed.Notice{
		heed.Counted{Component: component, At: start, Subject: "p", Channel: "rating", Reward: 0,
			Weight: 0.5},
		heed.Duplicate{Component: component, At: start, What: "rating", ID: "r"},
	}, pastEntry.since())

	for range 2 {
		_, err := w.RecordError(ctx, patterns.TaskError{ID: "e", Task: "t", Message: "m"})
		require.NoError(t, err)
	}
	assert.Equal(t, []heed.Notice{heed.Duplicate{Component: component, At: start, What: "error",
		ID: "e"}}, pastEntry.since())
	w.record(patterns.Outcome{Task: "other", Patterns: []patterns.PatternID{"p"}, Errors: 3,
		Duration: time.Hour, Success: true})
	assert.Empty(t, pastEntry.since(), "a neutral outcome is no evidence")
}

// changes leaves out the evidence.
func changes(all []heed.Notice) (rest []heed.Notice) {
	for _, n := range all {
		if _, evidence := n.(heed.Counted); !evidence {
			rest = append(rest, n)
		}
	}
	return rest
}

func TestObserverIsToldOfChanges(t *testing.T) {
	w, pastEntry := observed(t, patterns.Config{})
	w.feedPattern("p", patterns.Helpful, 2, 0)
	assert.Empty(t, changes(pastEntry.since()))
	w.feedPattern("p", patterns.Helpful, 1, 0)
	assert.Equal(t, []heed.Notice{heed.Changed{What: "activated",
		Component: component, At: start, Subject: "p"}},
		changes(pastEntry.since()), "it is established")
	w.feedPattern("p", patterns.Helpful, 2, 0)
	require.Equal(t, patterns.Proven, w.standing("p").State)
	assert.Empty(t, changes(pastEntry.since()), "it was in use before")
	w.feedPattern("p", patterns.Harmful, 3, 0)
	retired := changes(pastEntry.since())
	require.Len(t, retired, 1)
	assert.Equal(t, "p", retired[0].(heed.Changed).Subject)
	assert.Contains(t, retired[0].(heed.Changed).Reason, "a harmful share of 37.5%")

	w.feedPattern("bad", patterns.Harmful, 3, 0)
	const why = "Failed 3/3 times (100% failure rate)"
	assert.Equal(t, []heed.Notice{heed.Changed{What: "harmful",
		Component: component, At: start, Subject: "bad",
		Reason: why}}, changes(pastEntry.since()))
	w.feedPattern("turned", patterns.Helpful, 3, 0)
	for range 5 {
		w.record(bad("turned"))
	}
	all := changes(pastEntry.since())
	require.Len(t, all, 3)
	assert.Equal(t, heed.Changed{What: "activated",
		Component: component, At: start, Subject: "turned"}, all[0])
	assert.Equal(t, "retired", all[1].(heed.Changed).What)
	assert.Equal(t, "harmful", all[2].(heed.Changed).What)
	assert.Equal(t, "turned", all[2].(heed.Changed).Subject)
}

func TestObserverIsToldOfAnInversionOfWhatWasRecommended(t *testing.T) {
	w, pastEntry := observed(t, patterns.Config{})
	w.feedPattern("p", patterns.Helpful, 10, 0)
	for range 14 { // old, so that they do not deprecate it before
		w.feed(patterns.Rating{Pattern: "p", Class: patterns.Harmful, Strength: 1}, 900)
	}
	require.Equal(t, patterns.Proven, w.standing("p").State)
	pastEntry.since()
	w.feed(patterns.Rating{Pattern: "p", Class: patterns.Harmful, Strength: 1}, 900)
	const why = "Failed 15/25 times (60% failure rate)"
	assert.Equal(t, []heed.Notice{
		heed.Changed{What: "harmful", Component: component, At: start, Subject: "p", Reason: why},
		heed.Changed{What: "inverted", Component: component, At: start, Subject: "p", Reason: why},
	}, changes(pastEntry.since()))
}

func TestObserverIsToldOfDecisionsWithoutTheirWords(t *testing.T) {
	w, pastEntry := observed(t, patterns.Config{})
	_, err := w.Define(ctx, patterns.Pattern{ID: "p", Content: "c"})
	require.NoError(t, err)
	for range 2 {
		_, err = w.Promote(ctx, "p", by)
		require.NoError(t, err)
	}
	_, err = w.Deprecate(ctx, "p", by)
	require.NoError(t, err)
	assert.Equal(t, []heed.Notice{
		heed.Changed{What: "activated", Component: component, At: start, Subject: "p"},
		heed.Changed{What: "retired",
			Component: component, At: start, Subject: "p", Reason: "decided by hand"},
	}, pastEntry.since())
}

func TestObserverIsToldOfSweeps(t *testing.T) {
	w, pastEntry := observed(t, patterns.Config{})
	w.feedPattern("p", patterns.Helpful, 5, 0)
	w.feedPattern("q", patterns.Helpful, 5, 0)
	w.clock.Advance(100 * day)
	pastEntry.since()
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	now := start.Add(100 * day)
	assert.Equal(t, []heed.Notice{
		heed.Swept{Component: component, At: now, Count: 2},
	}, pastEntry.since())
	w.clock.Advance(day)
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	assert.Empty(t, pastEntry.since(), "a sweep that changes nothing")
}

func TestObserverIsToldOfFailures(t *testing.T) {
	gone := errors.New("the index is gone")
	c := &clock{}
	st := &storetest.Failing{Store: newStore(t, c.Now)}
	w, pastEntry := observed(t, patterns.Config{Store: st, Now: c.Now,
		Similar: func(context.Context, string, int) ([]patterns.Precedent, error) {
			return nil, gone
		}})
	_, err := w.Plan(ctx, "task")
	require.ErrorIs(t, err, gone)
	assert.Equal(t, []heed.Notice{heed.Failed{Component: component, At: start, What: "similar",
		Err: gone}}, pastEntry.since())
	st.Fail(1, false)
	require.ErrorIs(t, w.Sweep(ctx, time.Time{}), storetest.ErrFailed)
	all := pastEntry.since()
	require.Len(t, all, 1)
	assert.Equal(t, "sweep", all[0].(heed.Failed).What)
}
