package loop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/winner"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// outcomes returns the sums of n answers with good successes.
func outcomes(n, good float64) sums {
	return sums{success: evidence.Sums{Mass: n, Squares: n, Reward: good, RewardSquares: good}}
}

// The variance between groups of sessions is compared with the variance of independent answers, and
// the wider side counts. A side whose answers are all alike has none.
func TestHowAlikeSessionsAre(t *testing.T) {
	for name, test := range map[string]struct {
		rows table
		wide float64
	}{
		"none": {table{}, 1},
		"groups of one success": {table{
			"1": {outcomes(10, 10), outcomes(1, 1)}, "2": {outcomes(10, 0), outcomes(1, 1)},
		}, 50. / 5 * 64 / 63}, // each group is 5 off, and the answers' sum of squares is 5
		"the other side": {table{
			"1": {outcomes(1, 1), outcomes(4, 4)}, "2": {outcomes(1, 1), outcomes(4, 0)},
		}, 8. / 2 * 64 / 63},
		"groups of half": {table{
			"1": {outcomes(10, 5), outcomes(0, 0)}, "2": {outcomes(10, 5), outcomes(0, 0)},
		}, 1},
	} {
		of, wide := test.rows.compared()
		assert.InDelta(t, test.wide, wide, 1e-9, name)
		if len(test.rows) > 0 {
			assert.Positive(t, of[0].Mass, name)
		}
	}
}

// The strata count by their numbers of outcomes. A stratum with one side alone is left out.
func TestStrataOfAGain(t *testing.T) {
	all := [3]sums{outcomes(100, 50), outcomes(30, 3), outcomes(7, 7)}
	half := table{"1": {outcomes(40, 30), outcomes(20, 10)}}
	tenth := table{"1": {outcomes(30, 27), outcomes(10, 2)}}
	alone := table{"1": {outcomes(0.5, 0.5), outcomes(50, 50)}}
	g, wide := whole(map[string]table{"0.5": half, "0.1": tenth, "1": alone}, &all)
	assert.InDelta(t, (60*0.75+40*0.9)/100, g.Learned.Success, 1e-9)
	assert.InDelta(t, (60*0.5+40*0.2)/100, g.Control.Success, 1e-9)
	assert.InDelta(t, 1, g.Alone.Success, 1e-9)
	assert.Equal(t, []float64{100, 30, 7},
		[]float64{g.Learned.Outcomes, g.Control.Outcomes, g.Alone.Outcomes})
	var low, high float64
	for n, rows := range map[float64]table{60: half, 40: tenth} {
		of, w := rows.compared()
		from, to := winner.Difference(of[0], of[1], w, 0.1/3)
		low, high = low+n*from/100, high+n*to/100
	}
	assert.InDelta(t, low, g.Low, 1e-9)
	assert.InDelta(t, high, g.High, 1e-9)
	assert.InDelta(t, 1, wide, 1e-9)

	spread := table{"1": {outcomes(10, 10), outcomes(5, 5)}, "2": {outcomes(10, 0), outcomes(5, 0)}}
	_, wide = whole(map[string]table{"0.5": half, "0.1": spread}, &all)
	assert.InDelta(t, 50./5*64/63, wide, 1e-9)
	g, wide = whole(map[string]table{"1": alone}, &all)
	assert.Equal(t, []float64{-1, 1, 1}, []float64{g.Low, g.High, wide})
	assert.InDelta(t, 0.5, g.Learned.Success, 1e-9)
	assert.InDelta(t, 0.1, g.Control.Success, 1e-9)
}

// A cell is added to the side and the sum that its name has, and taken away with a minus. Rows come
// by their outcomes.
func TestTablesOfAGain(t *testing.T) {
	rows := make(table)
	add := func(row, name string, reward float64) {
		p := evidence.Part{Cell: evidence.Cell{Name: name}}
		p.Tally.Add(2, 1, reward, 0)
		rows.add(row, &p)
	}
	for _, name := range []string{"learned", "learned", "learned-", "control", "alone", "other",
		"learned answers", "learned cost", "learned seconds", "control answers"} {
		add("b", name, 0.5)
	}
	add("a", "learned", 1)
	add("c", "alone", 0)
	add("c", "alone", 0)
	add("d", "control", 1)
	var once evidence.Tally
	once.Add(2, 1, 0.5, 0)
	assert.Equal(t, once.At(0), rows["b"][0].success, "what was taken away leaves nothing")
	parts := rows.parts()
	var names []string
	for _, p := range parts {
		names = append(names, p.Name)
		assert.Equal(t, []float64{-1, 1}, []float64{p.Low, p.High})
	}
	assert.Equal(t, []string{"b", "c", "a", "d"}, names)
	assert.Equal(t, Measured{
		Outcomes: 2, Success: 0.5, Answers: 2, Calls: 0.5, Cost: 1, Seconds: 1,
	}, parts[0].Learned)
	assert.Equal(t, Measured{Outcomes: 2, Success: 0.5, Answers: 2, Calls: 0.5}, parts[0].Control)
	assert.Equal(t, Measured{Outcomes: 4}, parts[1].Alone)
	assert.Equal(t, []GainPart{}, table{}.parts())
}

// What waits for a sweep is bounded, and so is what one sweep looks at.
func TestWhatWaitsForASweepIsBounded(t *testing.T) {
	var c changes
	for n := range mostTouched + 10 {
		c.touch(&answer.Answer{
			Choice: &answer.Choice{Category: fmt.Sprintf("%06d", n)},
			Fires:  []answer.Fire{{Heuristic: fmt.Sprintf("%06d", n)}},
		})
		c.incident(store.AuditEntry{ID: fmt.Sprint(n)})
	}
	assert.Len(t, c.segments, mostTouched)
	assert.Len(t, c.heuristics, mostTouched)
	segments, heuristics, incidents := c.take()
	require.Len(t, incidents, mostTouched)
	assert.Equal(t, fmt.Sprint(mostTouched-1), incidents[mostTouched-1].ID)
	require.Len(t, segments, mostTurned)
	require.Len(t, heuristics, mostTurned)
	first := slices.Collect(maps.Keys(heuristics))
	_, heuristics, incidents = c.take()
	assert.Len(t, heuristics, mostTurned)
	assert.NotSubset(t, first, slices.Collect(maps.Keys(heuristics)), "the rest waits for a sweep")
	assert.Empty(t, incidents)
	c.incident(make([]store.AuditEntry, mostTouched+1)...)
	assert.Len(t, c.incidents, mostTouched)
	c = changes{}
	c.touch(&answer.Answer{})
	segments, heuristics, _ = c.take()
	assert.Empty(t, segments)
	assert.Empty(t, heuristics)
}

// However many fail each time, the others have their turn.
func TestWhatFailsKeepsNothingWaiting(t *testing.T) {
	var c changes
	for n := range 2 * mostTurned {
		c.touch(&answer.Answer{Fires: []answer.Fire{{Heuristic: fmt.Sprint("bad ", n)}}})
	}
	c.touch(&answer.Answer{Fires: []answer.Fire{{Heuristic: "sound"}}})
	for sweeps := 1; ; sweeps++ {
		_, heuristics, _ := c.take()
		if _, ok := heuristics["sound"]; ok {
			break
		}
		require.Less(t, sweeps, 1000)
		c.putBack(nil, heuristics, nil)
	}
}

// What the store answers is not asked again. After a conflict, and if the store could not be asked,
// it is.
func TestWhatASweepLooksAtAgain(t *testing.T) {
	for _, test := range []struct {
		err   error
		stays bool
	}{
		{nil, false}, {heed.ErrDamaged, false}, {&heed.SizeError{}, false}, {&heed.InputError{}, false},
		{heed.ErrUnavailable, true}, {context.Canceled, true}, {errors.New("refused"), true},
		{heed.ErrConflict, true},
	} {
		ids := touched{"a": {}}
		assert.Equal(t, test.err, ids.looked("a", test.err))
		assert.Equal(t, test.stays, len(ids) > 0, test.err)
	}
}

// An outage waits for a sweep until it is in the audit log, and no longer.
func TestAnOutageIsRecordedOnce(t *testing.T) {
	ctx := t.Context()
	st := &storetest.Failing{Store: new(memstore.Store)}
	a, err := New(ctx, Config{Store: st})
	require.NoError(t, err)
	a.outage(ctx, "model", time.Time{}, errors.New("refused"))
	st.SetAway(true)
	require.Error(t, a.Sweep(ctx, time.Time{}))
	st.SetAway(false)
	assert.NotEmpty(t, a.changed.incidents)
	require.NoError(t, a.Sweep(ctx, time.Time{}))
	assert.Empty(t, a.changed.incidents)
}

// What was not asked, and what the host's own code spoilt, is evidence about no model.
func TestWhatIsNoEvidence(t *testing.T) {
	for _, a := range []attempt{
		{err: llm.Unreachable}, {host: true, err: llm.Unreachable}, {},
		{called: true, host: true, err: llm.Unreachable}, {called: true, host: true},
		{called: true, text: "So."},
	} {
		assert.Equal(t, nothing, a.whose(), "%+v", a)
	}
	assert.Equal(t, aModel, (&attempt{called: true, err: llm.Unreachable}).whose())
	assert.Equal(t, someArm, (&attempt{called: true}).whose())
}
