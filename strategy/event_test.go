package strategy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
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

// Without records, a race for a choice is decided first. Then the event of the winner is written.
func TestAChoiceThatLostARaceHasNoEvent(t *testing.T) {
	l, st, told := telling(t)
	q := strategy.Query{Session: "s", Item: "i"}
	var quicker strategy.Choice
	st.after = map[string]func(){"Read": func() { quicker = choose(t, l, q) }}
	assert.Equal(t, quicker, choose(t, l, q))
	events := outbox(t, st)
	require.Len(t, events, 1)
	assert.Equal(t, "selected:"+quicker.ID.String(), events[0].ID)
	assert.Equal(t, []string{quicker.ID.String()}, *told)
}

// A choice that is remembered has its event when Select returns, whichever caller wrote it.
func TestARememberedChoiceHasItsEvent(t *testing.T) {
	l, st, told := telling(t)
	q := strategy.Query{Session: "s", Item: "i"}
	fail := func(context.Context, store.Batch) error { return evidence.ErrFull }
	st.before = fail
	c, err := l.Select(ctx, q)
	require.ErrorIs(t, err, evidence.ErrFull)
	assert.True(t, c.Record().Fallback)
	q.Frozen = true
	choose(t, l, q)
	assert.Empty(t, outbox(t, st))
	assert.Empty(t, *told)

	q.Frozen = false
	var second strategy.Choice
	st.before = func(context.Context, store.Batch) error { // before the first has written the event
		st.before = nil
		second = choose(t, l, q)
		return nil
	}
	first := choose(t, l, q)
	assert.Equal(t, first, second)
	assert.Equal(t, []string{first.ID.String()}, *told)

	st.before = fail
	q.Item = "j"
	_, err = l.Select(ctx, q)
	require.ErrorIs(t, err, evidence.ErrFull)
	st.before = nil
	third, _ := chooseIn(t, l, q)
	st.before = fail // there is no more to write
	assert.Equal(t, third, choose(t, l, q))
	assert.Equal(t, []string{first.ID.String(), third.ID.String()}, *told)
	events := outbox(t, st)
	require.Len(t, events, 2)
	assert.Equal(t, "selected:"+third.ID.String(), events[1].ID)
}

// telling returns a learner without records that sends events, with the ids of the choices that its
// observer was notified of. It has loaded the segment.
func telling(t testing.TB) (*strategy.Learner, *fragile, *[]string) {
	c, told := &clock{}, new([]string)
	st := &fragile{Store: newStore(t, c.Now)}
	l := newLearner(t, strategy.Config{
		Store: st, Now: c.Now, Unrecorded: true, Topic: "heed.strategy",
		Observer: func(_ context.Context, n heed.Notice) {
			if s, ok := n.(heed.Selected); ok {
				*told = append(*told, s.ID)
			}
		},
	})
	choose(t, l, strategy.Query{Item: "i", Frozen: true})
	return l, st, told
}
