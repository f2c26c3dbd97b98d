//go:build !race

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

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/fair"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// A rater is how one person rates a way of working or a criterion, and how often.
type rater struct {
	who   string
	class string
	times int
	ago   time.Duration
}

// earned is what a way or a criterion has earned from ratings: the shares that lies may move, and
// the state that they may not.
type earned struct {
	counts, masses float64 // the harmful shares
	state          string
}

// heard returns a recorder that got these ratings, of a pattern or of a criterion.
func heard(t *testing.T, cfg Config, all []rater, of Rating) *Recorder {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	st, err := memstore.New(memstore.Config{Now: clock})
	require.NoError(t, err)
	cfg.Store, cfg.Now = st, clock
	r, err := New(t.Context(), cfg)
	require.NoError(t, err)
	for i, one := range all {
		for n := range one.times {
			of.ID, of.Class, of.Strength = fmt.Sprint(i, " ", n), one.class, 1
			of.Source, of.At = one.who, now.Add(-one.ago)
			_, err := r.Rate(t.Context(), of)
			require.NoError(t, err)
		}
	}
	return r
}

func ratedWay(t *testing.T, cfg Config, all []rater) Standing {
	s, err := heard(t, cfg, all, Rating{Pattern: "w"}).Standing(t.Context(), "w")
	require.NoError(t, err)
	return s
}

func ratedCriterion(t *testing.T, cfg Config, all []rater) Criterion {
	found, err := heard(t, cfg, all, Rating{Criterion: "c"}).Criteria(t.Context(), "c")
	require.NoError(t, err)
	return found[0]
}

// TestLies: three of forty-three who report what they like as often as they like, found by
// climbing, have no more of the counts and masses of a way or a criterion than f(3), under the
// default configuration, and don't change its state.
func TestLies(t *testing.T) {
	way := func(all []rater) earned {
		s := ratedWay(t, Config{}, all)
		return earned{shareOf(s.Counts), s.HarmfulShare, s.State}
	}
	criterion := func(all []rater) earned {
		c := ratedCriterion(t, Config{}, all)
		e := earned{shareOf(Observations{c.HelpfulCount, c.HarmfulCount}), c.HarmfulShare, Established}
		if c.Deprecated {
			e.state = Deprecated
		}
		return e
	}
	for name, rated := range map[string]func([]rater) earned{"way": way, "criterion": criterion} {
		for truth, lie := range map[string]string{Helpful: Harmful, Harmful: Helpful} {
			t.Run(name+" "+truth, func(t *testing.T) { climb(t, truth, lie, rated) })
		}
	}
}

func climb(t *testing.T, truth, lie string, rated func([]rater) earned) {
	const f = 2*3./43 + 3./40
	states := []string{Established, Proven}
	if truth == Harmful {
		states = []string{Inverted, Deprecated}
	}
	var honest []rater
	for i := range 40 {
		one := rater{who: fmt.Sprint("person ", i), class: truth, times: 1 + i%3}
		if i%10 == 0 {
			one.class = lie
		}
		honest = append(honest, one)
	}
	before := rated(honest)
	require.Contains(t, states, before.state)
	moved := func(now earned) float64 {
		return max(math.Abs(before.masses-now.masses), math.Abs(before.counts-now.counts))
	}
	rng, lies, best := rand.New(rand.NewPCG(1, 2)), []rater{}, 0.
	for range 25 {
		one := rater{
			who: fmt.Sprint("mallory ", rng.IntN(3)), class: []string{lie, truth}[rng.IntN(8)/7],
			times: []int{1, 5, 60}[rng.IntN(3)], ago: time.Duration(rng.IntN(400)) * 24 * time.Hour,
		}
		next := slices.Concat(lies, []rater{one})
		now := rated(slices.Concat(honest, next))
		assert.Contains(t, states, now.state)
		if moved(now) > best {
			lies, best = next, moved(now)
		}
	}
	t.Logf("lies move a share by %.3f, of %.3f at most", best, f)
	assert.LessOrEqual(t, best, f)
	all := slices.Concat(honest, lies)
	for i := range all {
		all[i].who = ""
	}
	assert.Greater(t, moved(rated(all)), f, "a control: nobody is named")
}

// What one person said often before others spoke is no reason to warn, or not to warn, for long.
func TestWhoSpokeFirst(t *testing.T) {
	for _, test := range []struct {
		first, then, others, state string
	}{
		{Helpful, Harmful, Helpful, Proven},
		{Harmful, Helpful, Harmful, Inverted},
	} {
		all := []rater{{who: "mallory", class: test.first, times: 30},
			{who: "mallory", class: test.then, times: 80}}
		for i := range 20 {
			all = append(all, rater{who: fmt.Sprint("person ", i), class: test.others, times: 1})
		}
		assert.Equal(t, test.state, ratedWay(t, Config{}, all).State, test.others)
	}
}

// A way and a criterion keep as many people apart as a cell may have, and later ones by places.
func TestMostPeople(t *testing.T) {
	for _, of := range []Rating{{Pattern: "w"}, {Criterion: "c"}} {
		r := heard(t, Config{}, []rater{{who: "person 0", class: Helpful, times: 1}}, of)
		cell := r.patternCell("w")
		if of.Pattern == "" {
			cell = r.criterionCell("c")
		}
		var all []evidence.Observation
		for i := range fair.MostParts - 1 {
			all = append(all, evidence.Observation{Cell: cell, ID: fmt.Sprint("seeded ", i), Reward: 1,
				Weight: 1, Source: fmt.Sprint("person ", i+1), At: r.cfg.Now()})
		}
		_, err := r.cfg.Store.Commit(t.Context(), store.Batch{Policies: r.policies, Observations: all})
		require.NoError(t, err)
		for _, who := range []string{"person 7", "somebody new"} {
			of.ID, of.Class, of.Strength, of.Source = who, Helpful, 1, who
			_, err := r.Rate(t.Context(), of)
			require.NoError(t, err)
		}
		var s store.Snapshot
		require.NoError(t, r.cfg.Store.Read(t.Context(), &s, []evidence.Cell{cell}, nil))
		require.Len(t, s.Parts, fair.MostParts+1)
		for _, part := range s.Parts {
			assert.NotEqual(t, "somebody new", part.Source)
		}
	}
}

func shareOf(o Observations) float64 { return float64(o.Failures) / float64(o.total()) }

// An instrument, and one or two people, are believed as they are.
func TestWhoIsBelievedAboutAWay(t *testing.T) {
	two := []rater{{who: "ann", class: Helpful, times: 2}, {who: "ben", class: Harmful, times: 30}}
	assert.EqualValues(t, 30, ratedWay(t, Config{}, two).Counts.Failures)
	var all []rater
	for i := range 40 {
		all = append(all, rater{who: fmt.Sprint("person ", i), class: Helpful, times: 1})
	}
	all = append(all, rater{who: "ci", class: Harmful, times: 60})
	assert.LessOrEqual(t, ratedWay(t, Config{}, all).Counts.Failures, uint64(3), "a person")
	tests := ratedWay(t, Config{Instruments: []string{"ci"}}, all)
	assert.EqualValues(t, 60, tests.Counts.Failures, "an instrument")
	assert.Equal(t, Inverted, tests.State)
}
