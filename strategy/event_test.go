package strategy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// eventful is a configuration under which everything happens.
func eventful(t testing.TB, c *clock, pooling strategy.Pooling) strategy.Config {
	return strategy.Config{
		Now: c.Now, Store: newStore(t, c.Now), Arms: plain("a", "b"), Pooling: pooling,
		Topic:    "heed.strategy",
		HalfLife: 30 * 24 * time.Hour,
		Silence:  strategy.Silence{After: 2 * time.Hour, Confidence: 0.5},
	}
}

// live lets a learner live through everything that can happen to it.
func live(t testing.TB, c *clock, l *strategy.Learner) {
	var late []strategy.Choice
	for i := range 120 {
		c.Advance(time.Minute)
		q := strategy.Query{Session: fmt.Sprint("s", i), Item: fmt.Sprint("i", i%3), Category: "c"}
		value := 0.9
		if i >= 60 {
			value = -0.9 // the world changes
		}
		if i%10 == 9 {
			late = append(late, choose(t, l, q))
			continue
		}
		try(t, l, q, "a", value)
	}
	c.Advance(3 * time.Hour)
	require.NoError(t, l.Sweep(ctx, time.Time{}))
	for _, choice := range late[:len(late)/2] {
		credit(t, l, choice, 0.5)
	}
	require.NoError(t, l.Retract(ctx, late[0], []string{""}, "me", "it was another's"))
	_, err := revise(l, "", strategy.Outcome{Choice: late[1], ID: "again", Value: -0.5, Confidence: 1,
		Source: "me"})
	require.NoError(t, err)
	require.NoError(t, l.Reset(ctx, strategy.Reset{Category: "c", Item: "i2", Actor: "me",
		Reason: "a trial"}))
	try(t, l, strategy.Query{Session: "after", Item: "i2", Category: "c"}, "b", 1)
}

// The outbox of a learner to which everything happened has events of each type, under the ids of
// what they carry.
func TestEvents(t *testing.T) {
	for _, pooling := range []strategy.Pooling{strategy.TwoLevel{}, strategy.Copy{Sessions: 10},
		strategy.Alone{}} {
		t.Run(fmt.Sprintf("%T", pooling), func(t *testing.T) {
			c := &clock{}
			first := newLearner(t, eventful(t, c, pooling))
			live(t, c, first)
			log := outbox(t, first.Config().Store)
			types := make(map[string]int)
			for _, entry := range log {
				assert.Equal(t, "heed.strategy", entry.Topic)
				var e strategy.LearnerEvent
				require.NoError(t, json.Unmarshal(entry.Payload, &e))
				assert.Equal(t, entry.ID, e.ID)
				assert.Equal(t, first.Config().Name, e.Learner)
				types[e.Type]++
			}
			want := []string{
				"selected", "observed", "retracted", "expired",
				"restarted", "reset",
			}
			if _, ok := pooling.(strategy.Copy); ok {
				want = append(want, "specialized")
			}
			for _, e := range want {
				assert.Positive(t, types[e], e)
			}
		})
	}
}

func records(t testing.TB, l *strategy.Learner) (texts []string) {
	for r, err := range l.History(ctx, strategy.ChoiceFilter{}) {
		require.NoError(t, err)
		text, err := json.Marshal(r)
		require.NoError(t, err)
		texts = append(texts, string(text))
	}
	return texts
}

// A choice whose event can't be kept leaves no record that would wait for an outcome.
func TestSelectTellsFirst(t *testing.T) {
	cfg, _ := recording(t, strategy.Config{Topic: "heed.strategy"})
	st := &fragile{Store: cfg.Store}
	cfg.Store = st
	l := newLearner(t, cfg)
	st.before = func(context.Context, store.Batch) error { return evidence.ErrFull }
	c, err := l.Select(ctx, strategy.Query{Session: "s", Item: "i"})
	require.ErrorIs(t, err, evidence.ErrFull)
	assert.True(t, c.Record().Fallback)
	assert.Empty(t, records(t, l))
}

// TestWithoutRecordsChoicesHaveNoEvent, and outcomes have theirs.
func TestWithoutRecordsChoicesHaveNoEvent(t *testing.T) {
	cfg := withFixtures(t, strategy.Config{Unrecorded: true, Topic: "heed.strategy"})
	l := newLearner(t, cfg)
	credit(t, l, choose(t, l, strategy.Query{Session: "s", Item: "i"}), 1)
	events := outbox(t, cfg.Store)
	require.Len(t, events, 1)
	assert.Contains(t, events[0].ID, "observed:")
}
