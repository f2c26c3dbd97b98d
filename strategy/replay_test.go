//go:build !race

package strategy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/stream"
)

// The log of a learner to which everything happened rebuilds the same beliefs in an empty store,
// and once more, or in part, changes nothing.
func TestReplay(t *testing.T) {
	for _, pooling := range []strategy.Pooling{strategy.TwoLevel{}, strategy.Copy{Sessions: 10},
		strategy.Alone{}} {
		t.Run(fmt.Sprintf("%T", pooling), func(t *testing.T) {
			c := &clock{}
			first := newLearner(t, eventful(t, c, pooling))
			live(t, c, first)
			log := outbox(t, first.Config().Store)
			effects := 0
			for _, entry := range log {
				var e strategy.LearnerEvent
				require.NoError(t, json.Unmarshal(entry.Payload, &e))
				if e.Effect != nil {
					effects++
				}
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
			assert.Equal(t, effects, changed)
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

// A retraction of an outcome from a missing part of the log is no fault.
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

// Events of other learners are passed over, and what is no event ends the replay, though not in
// vain.
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
	_, err = second.Replay(ctx, func(yield func(stream.Event, error) bool) {
		yield(stream.Event{},
			errStore)
	})
	require.ErrorIs(t, err, errStore)
	away := &storetest.Failing{Store: newStore(t, c.Now)}
	cfg = eventful(t, c, nil)
	cfg.Store = away
	third := newLearner(t, cfg)
	away.SetAway(true)
	_, err = third.Replay(ctx, logOf(nil))
	require.ErrorIs(t, err, storetest.ErrFailed)
}

// TestReplayLeavesOutWhatWasExpunged expunges a source in two ways. A learner writes it into the
// log, which several learners may share. The store writes it into its audit. Later outcomes of the
// source count again.
func TestReplayLeavesOutWhatWasExpunged(t *testing.T) {
	q := strategy.Query{Item: "i", Category: "c"}
	by := func(l *strategy.Learner, source string, value float64) {
		_, err := l.Observe(ctx, strategy.Outcome{Choice: choose(t, l, q), Value: value, Confidence: 1,
			Source: source})
		require.NoError(t, err)
	}
	c := &clock{}
	cfg := withFixtures(t, strategy.Config{Now: c.Now, Store: newStore(t, c.Now), Arms: plain("a"),
		Pooling: strategy.Alone{}, Topic: "heed.strategy"})
	of := func(st store.Store, name string) *strategy.Learner {
		cfg := cfg
		cfg.Store, cfg.Name = st, name
		return newLearner(t, cfg)
	}
	one, two := of(cfg.Store, "one"), of(cfg.Store, "two")
	for range 5 {
		for _, l := range []*strategy.Learner{one, two} {
			by(l, "ann", 1)
			by(l, "liar", -1)
		}
	}
	c.Advance(time.Minute)
	require.NoError(t, one.Reset(ctx, strategy.Reset{Source: "liar", Actor: "ops",
		Reason: "it lies"}))
	entry := audited(t, cfg.Store)[0]
	assert.Equal(t, []string{"one.expunge", "liar", "ops"},
		[]string{entry.Action, entry.Subject, entry.Actor})
	c.Advance(time.Minute)
	require.NoError(t, two.Refresh(ctx)) // as one alone knows
	by(two, "liar", -1)
	want := [][]float64{means(t, one, q), means(t, two, q)}
	assert.Equal(t, [][]float64{{6. / 7}, {6. / 8}}, want)
	log := outbox(t, cfg.Store)

	st := newStore(t, c.Now)
	for range 2 {
		for i, name := range []string{"one", "two"} {
			l := of(st, name)
			_, err := l.Replay(ctx, logOf(log))
			require.NoError(t, err)
			assert.InDeltaSlice(t, want[i], means(t, l, q), 1e-9, name)
		}
	}

	st = newStore(t, c.Now)
	_ = of(st, "one") // which declares the audit
	_, err := st.Commit(ctx, store.Batch{Records: []store.Record{
		store.AuditEntry{ID: "1", At: start.Add(time.Minute), Action: "expunge",
			Subject: "liar"}.Record(),
	}})
	require.NoError(t, err)
	untold := slices.DeleteFunc(log, func(e stream.Event) bool {
		return bytes.Contains(e.Payload,
			[]byte("expunge"))
	})
	for i, name := range []string{"one", "two"} {
		l := of(st, name)
		_, err := l.Replay(ctx, logOf(untold))
		require.NoError(t, err)
		assert.InDeltaSlice(t, want[i], means(t, l, q), 1e-9, name)
	}
}

func TestASourceIsForgottenAlone(t *testing.T) {
	l := newLearner(t, strategy.Config{})
	assertInputError(t, l.Reset(ctx, strategy.Reset{Source: "liar", Category: "c", Reason: "r"}),
		"Source")
	assertInputError(t, l.Reset(ctx, strategy.Reset{Source: "liar"}), "Reason")
	assertInputError(t, l.Reset(ctx, strategy.Reset{Source: "\xff", Reason: "r"}), "Source")
}
