package strategy_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// speak commits judgements of people on an arm of the item "i", without the learner.
func speak(t testing.TB, st store.Store, arm strategy.ArmID, people int, reward float64) {
	b := store.Batch{Policies: map[string]evidence.Policy{"strategy.arm": {ByOrigin: true}}}
	cell := strategy.Choice{Item: "i", Arm: arm}.Cells()[0]
	cell.Kind = "strategy.arm"
	for i := range people {
		b.Observations = append(b.Observations, evidence.Observation{
			ID: fmt.Sprint("before ", arm, i), Cell: cell, Source: fmt.Sprint("person ", i),
			Reward: reward, Weight: 1, At: start,
		})
	}
	_, err := st.Commit(ctx, b)
	require.NoError(t, err)
}

// partsOf returns what a store has of an arm of the item "i".
func partsOf(t testing.TB, st store.Store, arm strategy.ArmID) []evidence.Part {
	cell := strategy.Choice{Item: "i", Arm: arm}.Cells()[0]
	cell.Kind = "strategy.arm"
	var read store.Snapshot
	require.NoError(t, st.Read(ctx, &read, []evidence.Cell{cell}, nil))
	return read.Parts
}

// A cell keeps a bounded number of sources, and people beyond them move it no further than others.
func TestManySources(t *testing.T) {
	cfg := withFixtures(t, strategy.Config{
		Arms: plain("a", "b"), Unrecorded: true,
		Trust: evidence.Trust{Instruments: []string{"ci"}},
	})
	most := evidence.MostParts
	speak(t, cfg.Store, "a", most, 0)
	l := newLearner(t, cfg)
	q := strategy.Query{Item: "i"}
	say := func(l *strategy.Learner, who, id string, value float64) {
		c, err := l.Record(ctx, q, "a", 0)
		require.NoError(t, err)
		_, err = l.Observe(ctx, strategy.Outcome{
			Choice: c, ID: id, Value: value, Confidence: 1, Source: who,
		})
		require.NoError(t, err)
	}
	before := means(t, l, q)[0]
	for i := range 20 {
		for k := range 3 {
			say(l, fmt.Sprint("mallory ", k), fmt.Sprint(i, k), 1)
		}
	}
	require.NoError(t, l.Refresh(ctx))
	moved := means(t, l, q)[0] - before
	assert.Positive(t, moved)
	assert.LessOrEqual(t, moved, 2*3./float64(most)+3./float64(most), "f(3) + 3/n")

	say(l, "person 7", "known", 1)
	say(l, "ci", "tests", 1)
	outcomes := newLearner(t, cfg) // of a process that makes no choices
	for i := range 20 {
		say(outcomes, fmt.Sprint("late ", i), fmt.Sprint("late ", i), 1)
	}
	parts, named := partsOf(t, cfg.Store, "a"), map[string]uint64{}
	for _, p := range parts {
		named[p.Source] = p.Tally.N()
	}
	assert.Greater(t, len(parts), most+1, "the places")
	assert.LessOrEqual(t, len(parts), most+1+3+20)
	assert.EqualValues(t, 2, named["person 7"], "a source that the cell has keeps its name")
	assert.EqualValues(t, 1, named["ci"], "and an instrument")
	for _, who := range []string{"mallory 0", "late 0", "late 19"} {
		assert.Zero(t, named[who], "%s shares a place", who)
	}
	shared := slices.DeleteFunc(parts, func(p evidence.Part) bool {
		return p.Source == "ci" || p.Source[:6] == "person"
	})
	n := uint64(0)
	for _, p := range shared {
		n += p.Tally.N()
	}
	assert.EqualValues(t, 3*20+20, n, "all outcomes count")
}
