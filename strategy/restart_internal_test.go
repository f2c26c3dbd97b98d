package strategy

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
)

// A change restarts no cell if the store has fewer than half of the outcomes that show it.
func TestARestartNeedsHalfOfTheOutcomes(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	st, err := memstore.New(memstore.Config{Now: func() time.Time { return now }})
	require.NoError(t, err)
	l, err := New(t.Context(), Config{
		Store: st, Arms: []Arm{{ID: "a"}, {ID: "b"}}, Now: func() time.Time { return now },
	})
	require.NoError(t, err)
	for n, arm := range []ArmID{"a", "a", "a", "b"} {
		c, err := l.Record(t.Context(), Query{Item: "i"}, arm, 0)
		require.NoError(t, err)
		_, err = l.Observe(t.Context(), Outcome{Choice: c, ID: fmt.Sprint(n), Confidence: 1})
		require.NoError(t, err)
	}
	s, err := l.segment("", "")
	require.NoError(t, err)
	for outcomes, cells := range map[int]int{6: 2, 7: 0} {
		for _, all := range []bool{false, true} {
			c := &change{
				item: "i", all: all, outcomes: make([]recent, outcomes),
				kept: func(*recent) float64 { return 1 },
			}
			got, err := l.toRestart(t.Context(), s, c)
			require.NoError(t, err)
			assert.Len(t, got, cells, "%d outcomes, of all items: %v", outcomes, all)
		}
	}
}

// What a tenant shares is the same if it has the same sums, each of them.
func TestWhatIsSharedTheSame(t *testing.T) {
	l := &Learner{}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	row := func(arm ArmID, change func(*evidence.Sums)) sharedRow {
		sums := evidence.Sums{Mass: 8, Squares: 4, Reward: 3, RewardSquares: 2, Limited: 1}
		change(&sums)
		return sharedRow{At: at, Arms: map[ArmID]evidence.Sums{"a": {
			Mass: 1, Squares: 1, Reward: 1, RewardSquares: 1,
		}, arm: sums}}
	}
	was := row("b", func(*evidence.Sums) {})
	assert.True(t, l.same(was, row("b", func(*evidence.Sums) {})))
	assert.True(t, l.same(was, row("b", func(s *evidence.Sums) { s.Limited = 5 })))
	assert.False(t, l.same(was, row("c", func(*evidence.Sums) {})), "another arm")
	more := row("b", func(*evidence.Sums) {})
	more.Arms["c"] = evidence.Sums{Mass: 1}
	assert.False(t, l.same(was, more), "one more arm")
	for name, field := range map[string]func(*evidence.Sums) *float64{
		"mass":             func(s *evidence.Sums) *float64 { return &s.Mass },
		"squares":          func(s *evidence.Sums) *float64 { return &s.Squares },
		"reward":           func(s *evidence.Sums) *float64 { return &s.Reward },
		"rewards' squares": func(s *evidence.Sums) *float64 { return &s.RewardSquares },
	} {
		bound := map[string]float64{"squares": 4e-9}[name]
		if bound == 0 {
			bound = 8e-9
		}
		for off, same := range map[float64]bool{
			0.8 * bound: true, 1.2 * bound: false, -0.8 * bound: true, -1.2 * bound: false,
		} {
			is := row("b", func(s *evidence.Sums) { *field(s) += off })
			assert.Equal(t, same, l.same(was, is), "%s: %v", name, off)
		}
	}
}
