//go:build !race

package strategy_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/fair"
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
	most := fair.MostParts
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

// One person who names a channel for each outcome, or does not name themselves, costs a cell a
// bounded number of parts, and leaves the names of others in it.
func TestManyChannels(t *testing.T) {
	cfg := withFixtures(t, strategy.Config{Arms: plain("a", "b"), Unrecorded: true})
	l := newLearner(t, cfg)
	say := func(l *strategy.Learner, who, channel string) {
		c, err := l.Record(ctx, strategy.Query{Item: "i"}, "a", 0)
		require.NoError(t, err)
		_, err = l.Observe(ctx, strategy.Outcome{
			Choice: c, ID: channel + who, Value: 1, Confidence: 1, Source: who, Channel: channel,
		})
		require.NoError(t, err)
	}
	for i := range 60 {
		say(l, "mallory", fmt.Sprint("channel ", i))
		say(l, "", fmt.Sprint("channel ", i))
	}
	assert.Len(t, partsOf(t, cfg.Store, "a"), 2*(fair.MostChannels+1))
	other := newLearner(t, cfg)
	for i := range 60 {
		say(other, "mallory", fmt.Sprint("further ", i))
	}
	say(other, "ann", "channel 1")
	parts, n := partsOf(t, cfg.Store, "a"), uint64(0)
	assert.LessOrEqual(t, len(parts), 2*(fair.MostChannels+1)+2, "a process may keep one more")
	for _, p := range parts {
		if p.Source == "mallory" {
			n += p.Tally.N()
		}
	}
	assert.EqualValues(t, 120, n, "all count, and can be forgotten by the name")
}

// One source invents 400 good outcomes of the worst arm. Among ten people these outcomes change
// little. If all outcomes have the same source, they decide, because no limit applies.
func TestALiarAmongPeople(t *testing.T) {
	for _, pooling := range poolings {
		t.Run(fmt.Sprint(pooling), func(t *testing.T) {
			t.Parallel()
			share := func(named bool) (ofItem, ofNew float64) {
				l := newLearner(t, strategy.Config{Pooling: pooling})
				q := strategy.Query{Item: "i", Category: "c"}
				report := func(source string, arm strategy.ArmID, value float64) {
					c := choose(t, l, strategy.Query{Item: q.Item, Category: q.Category,
						Arms: []strategy.ArmID{arm}})
					o := strategy.Outcome{Choice: c, Value: value, Confidence: 1}
					if named {
						o.Source = source
					}
					_, err := l.Observe(ctx, o)
					require.NoError(t, err)
				}
				for n := range 40 {
					user := fmt.Sprint("user", n%10)
					report(user, "a", 0.8)
					report(user, "b", 0)
					report(user, "c", 0)
					report(user, "d", -0.9)
				}
				for range 400 {
					report("liar", "d", 1)
				}
				require.NoError(t, l.Refresh(ctx))
				return shares(t, l, q, 500)["d"], shares(t, l,
					strategy.Query{Item: "new", Category: q.Category}, 500)["d"]
			}
			ofItem, ofNew := share(true)
			assert.Less(t, ofItem, 0.05)
			if pooling != (strategy.Alone{}) {
				assert.Less(t, ofNew, 0.15)
			}
			ofItem, _ = share(false)
			assert.Greater(t, ofItem, 0.5)
		})
	}
}

// TestLoudTenant has at most two fifths of what counts among six, whatever it claims.
func TestLoudTenant(t *testing.T) {
	town := newTown(t)
	for _, tenant := range []string{"one", "two", "three", "four", "five"} {
		town.learns(tenant, "a", 30, 1)
	}
	before := town.start()[0]
	loud := town.learner("loud")
	for i := range 5000 {
		c, err := loud.Record(ctx, strategy.Query{Session: fmt.Sprint(i)}, "a", 0)
		require.NoError(t, err)
		credit(t, loud, c, -1)
	}
	require.NoError(t, loud.Refresh(ctx))
	assert.InDelta(t, before, town.start()[0], 2./5)
	assert.Less(t, town.start()[0], before)
}
