package loop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/attribution"
	"github.com/heedhq/heed/stream/streamtest"
)

// An outcome from a stream is a statement about its answer: it ends the silence, counts for the arm
// and for the heuristic, once, and is listed with its source.
func TestAStreamedOutcomeReachesTheAnswer(t *testing.T) {
	ci := []string{"ci"}
	for name, cfg := range map[string]loop.Config{
		"of an arm": {Instruments: ci, Arms: []loop.Arm{{ID: "only"}}},
		"of a heuristic": {
			Instruments: ci,
			Lessons:     loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cfg)
			reports := new(streamtest.Stream)
			consumer, err := attribution.New(attribution.Config{
				Answers: w.Agent, Stream: reports, DeadLetters: new(streamtest.Stream),
			})
			require.NoError(t, err)
			given := w.answer(loop.Event{
				ID: "e", Text: full, Domain: "d", Item: "i", Session: "s", Person: "ann",
			})
			before := 0.
			if cfg.Arms == nil {
				before = w.confidence("rotate")
			}
			w.clock.Advance(time.Second)
			for id, worth := range map[string]attribution.Worth{
				"by its id":      {Answer: given.ID, Activated: true, Value: -1},
				"by its session": {Activated: true, Value: -1},
			} {
				event, err := attribution.Report{
					Session: "s", Items: []attribution.Worth{worth}, Source: "ci", Ended: true,
				}.Event(id, w.clock.Now())
				require.NoError(t, err)
				for range 2 {
					require.NoError(t, consumer.Handle(ctx, event))
				}
			}
			unknown, err := attribution.Report{
				Session: "other", Items: []attribution.Worth{{Activated: true, Value: 1}},
			}.Event("unknown", w.clock.Now())
			require.NoError(t, err)
			require.NoError(t, consumer.Handle(ctx, unknown))
			counts := consumer.Counts()
			assert.Equal(t, []uint64{1, 3, 1},
				[]uint64{counts.Outcomes, counts.Duplicates, counts.Unmatched})

			w.clock.Advance(time.Minute)
			require.NoError(t, w.Sweep(ctx, time.Time{}))
			account, err := w.Explain(ctx, given.ID)
			require.NoError(t, err)
			assert.EqualValues(t, -1, account.Worth)
			require.NotEmpty(t, account.Statements)
			assert.Equal(t, "ci", account.Statements[0].Source)
			assert.EqualValues(t, "instrument", account.Statements[0].Kind)
			assert.NotContains(t, account.String(), "known by: nobody")
			if cfg.Arms == nil {
				assert.Less(t, w.confidence("rotate"), before)
				return
			}
			all := w.outcomes()
			require.Len(t, all, 1, "silence does not count as well")
			assert.EqualValues(t, -1, all[0].Value)
			assert.InDelta(t, 0.8, all[0].Confidence, 1e-9, "of an attributed value alone")
		})
	}
}

// Without an id, an outcome is of the session's last answer for its item, also if the session was
// given answers for others since, or without an arm.
func TestAnAttributedOutcomeOfAnItem(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}})
	var first string
	for i, item := range []string{"i", "j"} {
		id := w.answer(loop.Event{Text: full, Domain: "d", Item: item, Session: "s"}).ID
		if i == 0 {
			first = id
		}
		w.clock.Advance(time.Second)
	}
	o := strategy.Outcome{Value: 1, Confidence: 1, Source: "ci", At: w.clock.Now()}
	o.Choice.Item = "i"
	did, err := w.Attribute(ctx, "", "s", o)
	require.NoError(t, err)
	assert.Equal(t, strategy.Applied, did)
	account, err := w.Explain(ctx, first)
	require.NoError(t, err)
	assert.EqualValues(t, 1, account.Worth)
	o.Choice.Item = "of no answer"
	_, err = w.Attribute(ctx, "", "s", o)
	require.ErrorIs(t, err, loop.ErrNoAnswer)

	plain := newWorld(t, loop.Config{})
	plain.answer(loop.Event{Text: full, Item: "i", Session: "s"})
	_, err = plain.Attribute(ctx, "", "s", o)
	require.ErrorIs(t, err, loop.ErrNoAnswer, "an answer without an arm has no item")
}
