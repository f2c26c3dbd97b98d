package learning_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/store"
)

// observed returns a module and what its observer is told, each notice in a line.
func observed(t testing.TB, cfg learning.Config, ids ...string) (f *fixture,
	notices func() []string) {
	var all []string
	cfg.Observer = func(_ context.Context, n heed.Notice) {
		switch n := n.(type) {
		case heed.Counted:
			all = append(all, fmt.Sprintf("%s counted %s %s: %g with %.1f, %.2f to %.2f", n.Component,
				n.Subject, n.Channel, n.Reward, n.Weight, n.Before, n.After))
		case heed.Duplicate:
			assert.NotEmpty(t, n.ID)
			all = append(all, "duplicate "+n.What)
		case heed.Swept:
			all = append(all, fmt.Sprint("swept ", n.Count))
		case heed.Changed:
			all = append(all, n.What+" "+n.Subject+": "+n.Reason)
		case heed.Failed:
			all = append(all, "failed "+n.What+": "+n.Err.Error())
		default:
			t.Errorf("%T", n)
		}
	}
	f = newFixture(t, cfg, ids...)
	return f, func() (told []string) {
		told, all = all, nil
		return told
	}
}

// TestObserver tells of each kind of signal that counts, once it is stored.
func TestObserver(t *testing.T) {
	f, notices := observed(t, learning.Config{Expectations: []learning.Expectation{{Trigger: "oven",
		Outcome: "burning", Failure: true}}}, "h")
	f.say(thumb("h", "e", true))
	assert.Equal(t, []string{"learning/learning counted h user_explicit: 1 with 0.8, 0.50 to 0.64"},
		notices())

	f.fire("h", "f", "s")
	f.event("t", "undo")
	assert.Equal(t, []string{"learning/learning counted h implicit_undo: 0 with 1.0, 0.64 to 0.47"},
		notices())

	f.fire("h", "g", "")
	f.clock.Advance(31 * time.Second)
	f.sweep()
	assert.Equal(t, []string{"learning/learning counted h implicit_timeout: 1 with 1.0, 0.47 to 0.58",
		"swept 2"}, notices())
	f.sweep()
	assert.Empty(t, notices(), "nothing was due")

	require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: "i",
		Condition: "the oven is on", Session: "room"}))
	f.event("t", "It is burning!")
	assert.Equal(t, []string{"learning/learning counted h implicit_outcome: 0 with 1.0, 0.58 to 0.48",
		"harmful h: an expected outcome speaks against it"}, notices())

	f.apply("1", "h", 1)
	f.apply("1", "h", 1)
	assert.Equal(t, []string{"learning/learning counted h user_implicit: 1 with 1.0, 0.48 to 0.56",
		"duplicate user_implicit"}, notices())

	f.apply("2", "h", -1000)
	assert.Equal(t, []string{"learning/learning counted h user_implicit: 0 with 1000.0, 0.56 to 0.05",
		"harmful h: its confidence fell to the floor"}, notices())
	f.apply("3", "h", -1)
	assert.Len(t, notices(), 1, "it was there before")
}

func TestObserverIsToldOfNothingThatDoesNotCount(t *testing.T) {
	f, notices := observed(t, learning.Config{Packs: map[string]learning.Constraints{
		"": {Lock: "locked"}}}, "h")
	f.say(thumb("h", "e", true))
	assert.Empty(t, notices(), "locked")

	f, notices = observed(t, learning.Config{}, "h")
	f.store.fail(errDown)
	_, err := f.Judge(ctx, thumb("h", "e", true))
	assert.ErrorIs(t, err, errDown)
	assert.Empty(t, notices(), "not stored")
}

// What is known of an answer before it is shown is no notice when it is shown again.
func TestObserverIsToldOfNoJudgementTwice(t *testing.T) {
	f, notices := observed(t, learning.Config{}, "h")
	f.say(thumb("h", "e", true))
	notices()
	judged := f.answer("e")
	for range 2 {
		require.NoError(t, store.Do(ctx, f.store, func(tx *store.Tx) error {
			a := *judged
			tx.Add(store.Batch{ID: "once"})
			return f.FireIn(tx, &a, learning.Fire{HeuristicID: "h"})
		}))
		assert.Empty(t, notices())
	}
}

func TestObserverIsToldOfFailures(t *testing.T) {
	panics := moody{Strategy: silenceIsNeutral,
		timeout: func(learning.Answer) (learning.Signal, error) { panic("no") }}
	f, notices := observed(t, learning.Config{Strategy: panics}, "h")
	f.fire("h", "e", "s")
	f.clock.Advance(time.Minute)
	require.Error(t, f.Sweep(ctx, f.clock.Now()))
	assert.Equal(t, []string{"failed strategy: the strategy panicked: no"}, notices())

	f, notices = observed(t, learning.Config{}, "h")
	f.store.blind = errors.New("the store failed")
	require.Error(t, f.Sweep(ctx, f.clock.Now()))
	assert.Equal(t, []string{"failed sweep: the store failed"}, notices(),
		"nobody reads what heed.Run returns at the end")

	panics = moody{Strategy: silenceIsNeutral, undo: func([]learning.Answer) ([]learning.Signal,
		error) {
		panic("no")
	}}
	f, notices = observed(t, learning.Config{Strategy: panics}, "h")
	f.fire("h", "e", "s")
	_, err := f.Hear(ctx, learning.Message{Text: "undo", Session: "room"})
	require.Error(t, err)
	assert.Equal(t, []string{"failed strategy: the strategy panicked: no"}, notices())
}
