package patterns

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/memstore"
)

// A rater is how one person rates a way of working, and how often.
type rater struct {
	who   string
	class Class
	times int
	ago   time.Duration
}

// rated returns where a way stands after these ratings, and of how many the counts are.
func rated(t *testing.T, cfg Config, all []rater) Standing {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	st, err := memstore.New(memstore.Config{Now: clock})
	require.NoError(t, err)
	cfg.Store, cfg.Now = st, clock
	r, err := New(t.Context(), cfg)
	require.NoError(t, err)
	_, err = r.Define(t.Context(), Pattern{ID: "w", Content: "Write the test first."})
	require.NoError(t, err)
	for i, one := range all {
		for n := range one.times {
			_, err := r.Rate(t.Context(), Rating{
				ID: fmt.Sprint(i, " ", n), Pattern: "w", Class: one.class, Strength: 1,
				Source: one.who, At: now.Add(-one.ago),
			})
			require.NoError(t, err)
		}
	}
	s, err := r.Standing(t.Context(), "w")
	require.NoError(t, err)
	return s
}

// TestLiesAboutAWay: three of forty-three who say what they like as often as they like, found by
// climbing, have no more of a way's counts and masses than f(3), and don't change where it stands.
func TestLiesAboutAWay(t *testing.T) {
	const f = 2*3./43 + 3./40
	good, bad := []State{Established, Proven}, []State{Inverted, Deprecated}
	for _, of := range []struct {
		truth, lie Class
		states     []State
	}{{Helpful, Harmful, good}, {Harmful, Helpful, bad}} {
		var honest []rater
		for i := range 40 {
			one := rater{who: fmt.Sprint("person ", i), class: of.truth, times: 1 + i%3}
			if i%10 == 0 {
				one.class = of.lie
			}
			honest = append(honest, one)
		}
		before := rated(t, Config{}, honest)
		require.Contains(t, of.states, before.State)
		moved := func(s Standing) float64 {
			return max(math.Abs(before.HarmfulShare-s.HarmfulShare),
				math.Abs(shareOf(before.Counts)-shareOf(s.Counts)))
		}
		rng, lies, best := rand.New(rand.NewPCG(1, 2)), []rater{}, 0.
		for range 25 {
			lie := rater{
				who: fmt.Sprint("mallory ", rng.IntN(3)), class: []Class{of.lie, of.truth}[rng.IntN(8)/7],
				times: []int{1, 5, 60}[rng.IntN(3)], ago: time.Duration(rng.IntN(400)) * 24 * time.Hour,
			}
			next := slices.Concat(lies, []rater{lie})
			s := rated(t, Config{}, slices.Concat(honest, next))
			assert.Contains(t, of.states, s.State)
			if now := moved(s); now > best {
				lies, best = next, now
			}
		}
		t.Logf("%s: lies move a share by %.3f, of %.3f at most", of.lie, best, f)
		assert.LessOrEqual(t, best, f)
		all := slices.Concat(honest, lies)
		for i := range all {
			all[i].who = ""
		}
		assert.Greater(t, moved(rated(t, Config{}, all)), f, "a control: nobody is named")
	}
}

func shareOf(o Observations) float64 { return float64(o.Failures) / float64(o.total()) }

// An instrument, and one or two people, are believed as they are.
func TestWhoIsBelievedAboutAWay(t *testing.T) {
	two := []rater{{who: "ann", class: Helpful, times: 2}, {who: "ben", class: Harmful, times: 30}}
	assert.EqualValues(t, 30, rated(t, Config{}, two).Counts.Failures)
	var all []rater
	for i := range 40 {
		all = append(all, rater{who: fmt.Sprint("person ", i), class: Helpful, times: 1})
	}
	all = append(all, rater{who: "ci", class: Harmful, times: 60})
	assert.LessOrEqual(t, rated(t, Config{}, all).Counts.Failures, uint64(3), "a person")
	tests := rated(t, Config{Instruments: []string{"ci"}}, all)
	assert.EqualValues(t, 60, tests.Counts.Failures, "an instrument")
	assert.Equal(t, Inverted, tests.State)
}
