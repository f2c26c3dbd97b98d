//go:build !race

// The race detector makes this ten times slower, and it starts no goroutine.

package strategytest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
)

// A crowd is forty people who report on each of three items, and two liars who want to outweigh
// them. Each person reports once for each item that the arm "bad" failed, with an exception, and
// that the arm "good" did well.
type crowd struct {
	// config is the learner's. The crowd sets its arms, store, clock and seed.
	config strategy.Config
	// item returns the name of an item: the people report on 0, 1 and 2, and the liars may make up
	// any. nil: each number is an item.
	item func(n int) string
	// vector returns the vector of an item, in place of its name: then the linear level is tried. It
	// may be nil.
	vector func(n int) []float32
	// unnamed leaves out the sources, for a control: then the liars must win, for an item of the
	// people's.
	unnamed bool
}

const (
	crowdPeople = 40
	crowdItems  = 3
	crowdLiars  = 2
	crowdMost   = 0.15 // 2·2/42 + 2/40
)

// A lie is a false outcome, and how often it is reported.
type lie struct {
	liar, item, times int
	arm               strategy.ArmID
	value, confidence float64
	share             float64
	ago               time.Duration
	channel           string
}

// climb searches for the lies that raise the belief in the bad arm most: it begins without lies,
// and keeps each change that raises the belief. It fails the test if that is more than the rule
// allows: see evidence.Trust. That is f(2) + 2/40, less than 0.15, for an item of the people's
// and for an item without other evidence, also before the learner read its segment again.
func (c crowd) climb(t testing.TB) {
	t.Helper()
	items := []strategy.Query{c.query(0), {Item: "an item of nobody's"}}
	if c.unnamed || c.vector != nil {
		items = items[:1]
	}
	for _, item := range items {
		before := c.believe(t, nil, item)
		rng, lies, best := rand.New(rand.NewPCG(1, 2)), []lie{}, before
		tries := climbs
		if c.unnamed {
			tries *= 3 // the control has to find what is forbidden
		}
		for range tries {
			next := append([]lie{}, lies...)
			if i := rng.IntN(len(lies) + 1); i < len(lies) && rng.IntN(2) == 0 {
				next[i] = anyLie(rng)
			} else {
				next = append(next, anyLie(rng))
			}
			if now := c.believe(t, next, item); now > best {
				lies, best = next, now
			}
		}
		if moved := best - before; moved > crowdMost != c.unnamed {
			t.Errorf("lies move the belief of %+v by %.3f, where %v is the most (a control, which must"+
				" not hold: %t): %+v", item, moved, crowdMost, c.unnamed, lies)
		}
	}
}

// query returns the query of an item.
func (c crowd) query(n int) strategy.Query {
	switch {
	case c.vector != nil:
		return strategy.Query{Vector: c.vector(n)}
	case c.item != nil:
		return strategy.Query{Item: c.item(n)}
	default:
		return strategy.Query{Item: fmt.Sprint("item ", n)}
	}
}

// climbs is how many changes are tried.
const climbs = 40

func anyLie(rng *rand.Rand) lie {
	arms := []strategy.ArmID{"bad", "bad", "bad", "good"}
	return lie{
		liar: rng.IntN(crowdLiars), item: []int{0, 0, 1 + rng.IntN(2), 3 + rng.IntN(20)}[rng.IntN(4)],
		times: []int{5, 25, 100}[rng.IntN(3)], arm: arms[rng.IntN(len(arms))],
		value: []float64{-1, 1, 1, rng.Float64()}[rng.IntN(4)], channel: []string{"", "x"}[rng.IntN(2)],
		confidence: []float64{1, 1, 0.3 + 0.7*rng.Float64()}[rng.IntN(3)],
		share:      []float64{0, 0, rng.Float64()}[rng.IntN(3)],
		ago:        time.Duration(rng.IntN(100)) * time.Hour,
	}
}

// believe returns what a learner expects of the bad arm, after the reports of the people and the
// liars.
func (c crowd) believe(t testing.TB, lies []lie, item strategy.Query) float64 {
	t.Helper()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	st, err := memstore.New(memstore.Config{Now: clock})
	require.NoError(t, err)
	cfg := c.config
	cfg.Store, cfg.Now, cfg.Seed, cfg.Unrecorded = st, clock, rand.NewPCG(3, 4), c.vector == nil
	cfg.Arms = []strategy.Arm{{ID: "good"}, {ID: "bad"}}
	l, err := strategy.New(t.Context(), cfg)
	require.NoError(t, err)
	number := 0
	var outcomes []strategy.Outcome
	say := func(who string, of lie) {
		choice, err := l.Record(t.Context(), c.query(of.item), of.arm, 0)
		require.NoError(t, err)
		choice.At = now.Add(-of.ago)
		for range of.times {
			number++
			o := strategy.Outcome{
				Choice: choice, ID: fmt.Sprint(number), Value: of.value, Confidence: of.confidence,
				Share: of.share, Channel: of.channel, At: choice.At,
			}
			if !c.unnamed {
				o.Source = who
			}
			outcomes = append(outcomes, o)
		}
	}
	hear := func() {
		_, err = l.ObserveAll(t.Context(), outcomes, "", "")
		require.NoError(t, err)
		outcomes = nil
	}
	for person := range crowdPeople {
		for i := range crowdItems {
			bad := lie{item: i, times: 1, arm: "bad", value: -1, confidence: 1}
			if (person+i)%5 == 0 {
				bad.value = 1
			}
			good := lie{item: i, times: 1, arm: "good", value: 1, confidence: 1}
			say(fmt.Sprint("person ", person), bad)
			say(fmt.Sprint("person ", person), good)
		}
	}
	hear()
	expected(t, l, item)
	for _, lie := range lies {
		say(fmt.Sprint("liar ", lie.liar), lie)
		hear()
	}
	return expected(t, l, item)
}

// expected returns what is expected of the bad arm: the mean of the tables and the linear level.
func expected(t testing.TB, l *strategy.Learner, q strategy.Query) float64 {
	t.Helper()
	q.Frozen = true
	choice, err := l.Select(t.Context(), q)
	require.NoError(t, err)
	made := choice.Record()
	mean := made.Draws[1].Belief.Mean()
	if made.Linear == nil {
		return mean
	}
	return mean + made.Linear.Weight*(made.Draws[1].Mean-mean)
}
