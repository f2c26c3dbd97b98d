package strategy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/stream"
)

func logOf(events []stream.Event) iter.Seq2[stream.Event, error] {
	return func(yield func(stream.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// eventful is a configuration under which everything happens.
func eventful(t testing.TB, c *clock, pooling strategy.Pooling) strategy.Config {
	return strategy.Config{
		Now: c.Now, Store: newStore(t, c.Now), Arms: plain("a", "b"), Pooling: pooling, Topic: strategy.DefaultTopic,
		HalfLife: 30 * 24 * time.Hour, Change: strategy.Change{FalseAlarms: 0.01, Every: 5},
		Silence: strategy.Silence{After: 2 * time.Hour, Confidence: 0.5},
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
	require.NoError(t, l.Reset(ctx, strategy.Reset{Category: "c", Item: "i2", Actor: "me", Reason: "a trial"}))
	try(t, l, strategy.Query{Session: "after", Item: "i2", Category: "c"}, "b", 1)
}

// TestReplay: the log of a learner to which everything happened rebuilds the same beliefs in an empty store, and once more,
// or in part, changes nothing.
func TestReplay(t *testing.T) {
	for _, pooling := range []strategy.Pooling{strategy.TwoLevel{}, strategy.Copy{Sessions: 10}, strategy.Alone{}} {
		t.Run(fmt.Sprintf("%T", pooling), func(t *testing.T) {
			c := &clock{}
			first := newLearner(t, eventful(t, c, pooling))
			live(t, c, first)
			log := outbox(t, first.Config().Store)
			types := make(map[string]int)
			for _, entry := range log {
				assert.Equal(t, strategy.DefaultTopic, entry.Topic)
				var e strategy.Event
				require.NoError(t, json.Unmarshal(entry.Payload, &e))
				assert.Equal(t, entry.ID, e.ID)
				types[e.Type]++
			}
			want := []string{
				"selected", "observed", "expired",
				"restarted", "reset",
			}
			if _, ok := pooling.(strategy.Specializer); ok {
				want = append(want, "specialized")
			}
			for _, e := range want {
				assert.Positive(t, types[e], e)
			}
			require.NoError(t, first.Refresh(ctx))

			second := newLearner(t, eventful(t, c, pooling))
			same := func() {
				t.Helper()
				for _, item := range []string{"i0", "i1", "i2", "unseen"} {
					q := strategy.Query{Item: item, Category: "c"}
					assert.Equal(t, beliefs(t, first, q), beliefs(t, second, q), item)
				}
				assert.Equal(t, records(t, first), records(t, second))
			}
			_ = beliefs(t, second, strategy.Query{Item: "i0", Category: "c"}) // it is in memory before
			changed, err := second.Replay(ctx, logOf(log))
			require.NoError(t, err)
			assert.Equal(t, len(log)-types["selected"], changed)
			same()
			for _, part := range [][]stream.Event{log, log[len(log)/2:], log[:len(log)/3]} {
				changed, err := second.Replay(ctx, logOf(part))
				require.NoError(t, err)
				assert.Zero(t, changed)
				same()
			}
			assert.Empty(t, outbox(t, second.Config().Store), "what is replayed is not told again")
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

// TestReplayInPart: what is taken back of a part of the log that is gone is no fault.
func TestReplayInPart(t *testing.T) {
	c := &clock{}
	first := newLearner(t, eventful(t, c, nil))
	live(t, c, first)
	log := outbox(t, first.Config().Store)
	late := slices.IndexFunc(log, func(e stream.Event) bool { return bytes.Contains(e.Payload, []byte(`"withdraw"`)) })
	require.Positive(t, late)
	second := newLearner(t, eventful(t, c, nil))
	changed, err := second.Replay(ctx, logOf(log[late:late+1]))
	require.NoError(t, err)
	assert.Equal(t, 1, changed, "the outcome that took the place of silence counts")
}

// TestReplayOfOthers: events of other learners are passed over, and what is no event ends the replay, though not in vain.
func TestReplayOfOthers(t *testing.T) {
	c := &clock{}
	first := newLearner(t, eventful(t, c, nil))
	try(t, first, strategy.Query{Item: "i", Category: "c"}, "a", 1)
	log := outbox(t, first.Config().Store)
	cfg := eventful(t, c, nil)
	cfg.Name = "other"
	changed, err := newLearner(t, cfg).Replay(ctx, logOf(log))
	require.NoError(t, err)
	assert.Zero(t, changed)

	second := newLearner(t, eventful(t, c, nil))
	q := strategy.Query{Item: "unseen", Category: "c"}
	before := means(t, second, q)
	changed, err = second.Replay(ctx, logOf(append(log, stream.Event{ID: "x", Payload: []byte("{")})))
	assertInputError(t, err, "Payload")
	assert.Equal(t, 1, changed)
	assert.NotEqual(t, before, means(t, second, q), "what came before is seen")
	_, err = second.Replay(ctx, func(yield func(stream.Event, error) bool) { yield(stream.Event{}, errStore) })
	require.ErrorIs(t, err, errStore)
}

// TestSelectTellsFirst: a choice whose event can't be kept leaves no record that would wait for an outcome.
func TestSelectTellsFirst(t *testing.T) {
	cfg, _ := recording(t, strategy.Config{Topic: strategy.DefaultTopic})
	st := &fragile{Store: cfg.Store}
	cfg.Store = st
	l := newLearner(t, cfg)
	st.before = func(context.Context, store.Batch) error { return evidence.ErrFull }
	c, err := l.Select(ctx, strategy.Query{Session: "s", Item: "i"})
	require.ErrorIs(t, err, evidence.ErrFull)
	assert.True(t, c.Fallback())
	assert.Empty(t, records(t, l))
}
