package strategy_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/chance"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/injection"
)

func TestASessionKeepsAnItemsChoice(t *testing.T) {
	l := newLearner(t, strategy.Config{})
	first := choose(t, l, strategy.Query{Session: "s", Item: "i", Category: "preference",
		Context: "batch"})
	for _, q := range []strategy.Query{
		{Session: "s", Item: "i", Category: "preference", Context: "batch"},
		{Session: "s", Item: "i", Category: "preference", Context: "planning"},
		{Session: "s", Item: "i", Category: "correction"},
		{Session: "s", Item: "i", Arms: []strategy.ArmID{first.Arm}},
	} {
		assert.Equal(t, first, choose(t, l, q))
	}
	for _, q := range []strategy.Query{{Session: "s", Item: "j"}, {Session: "r", Item: "i"},
		{Session: "si"}, {Item: "si"}} {
		assert.NotEqual(t, first.ID, choose(t, l, q).ID, "%v", q)
	}
}

// TestWithoutItemsASessionKeepsAChoiceASegment, and draws each for itself.
func TestWithoutItemsASessionKeepsAChoiceASegment(t *testing.T) {
	l := newLearner(t, strategy.Config{})
	texts, ids := make(map[string]bool), make(map[strategy.ChoiceID]bool)
	for range 3 {
		for n := range 20 {
			q := strategy.Query{Session: "s", Category: fmt.Sprint(n / 4), Context: fmt.Sprint(n % 4)}
			c := choose(t, l, q)
			assert.Equal(t, []string{q.Category, q.Context}, []string{c.Category, c.Context})
			texts[drawn(c)], ids[c.ID] = true, true
		}
	}
	assert.Len(t, ids, 20)
	assert.Len(t, texts, 20)
}

func TestASessionKeepsItsChoiceWhateverIsLearned(t *testing.T) {
	l := newLearner(t, strategy.Config{})
	q := strategy.Query{Session: "s", Item: "i"}
	first := choose(t, l, q)
	for i := range 50 {
		_, err := l.Observe(ctx, strategy.Outcome{Choice: first, ID: fmt.Sprint(i), Value: -1,
			Confidence: 1})
		require.NoError(t, err)
	}
	assert.Equal(t, first, choose(t, l, q))
	q.Session = "another"
	assert.NotEqual(t, first.Arm, choose(t, l, q).Arm)
}

func TestEndSessionForgetsItsChoices(t *testing.T) {
	l := newLearner(t, strategy.Config{})
	ids := make(map[strategy.ChoiceID]bool)
	var other strategy.Choice
	for range 2 {
		for _, item := range []string{"i", "j"} {
			ids[choose(t, l, strategy.Query{Session: "s", Item: item}).ID] = true
		}
		other = choose(t, l, strategy.Query{Session: "r", Item: "i"})
		assert.NoError(t, l.EndSession(ctx, "s"))
		assert.NoError(t, l.EndSession(ctx, "nobody's"))
	}
	assert.Len(t, ids, 4)
	assert.Equal(t, other, choose(t, l, strategy.Query{Session: "r", Item: "i"}))
	assert.Equal(t, 1, l.Remembered())
}

// A session that ends while a choice is being made for it chooses again afterwards, wherever the
// end comes in between.
func TestASessionEndsDuringAChoice(t *testing.T) {
	q := strategy.Query{Session: "s", Item: "i"}
	ends := map[string]func(*strategy.Learner) error{
		"EndSession": func(l *strategy.Learner) error { return l.EndSession(ctx, "s") },
		"ObserveAll": func(l *strategy.Learner) error {
			_, err := l.ObserveAll(ctx, nil, "id", "s")
			return err
		},
	}
	chooses := map[string]func(testing.TB, *strategy.Learner) strategy.Choice{
		"Select": func(t testing.TB, l *strategy.Learner) strategy.Choice { return choose(t, l, q) },
		"SelectIn": func(t testing.TB, l *strategy.Learner) strategy.Choice {
			c, _ := chooseIn(t, l, q)
			return c
		},
		"SelectIn after a reading": func(t testing.TB, l *strategy.Learner) (c strategy.Choice) {
			require.NoError(t, store.Do(ctx, l.Config().Store, func(tx *store.Tx) (err error) {
				tx.Want(l.Wants(q))
				require.NoError(t, tx.Fetch())
				c, err = l.SelectIn(tx, q)
				return err
			}))
			return c
		},
	}
	for how, end := range ends {
		for with, choose := range chooses {
			for _, method := range []string{"Read", "Commit"} {
				for _, unrecorded := range []bool{false, true} {
					if unrecorded && (method == "Commit" || with == "SelectIn after a reading") {
						continue // it has no commit, and what it reads first is not the session's
					}
					t.Run(fmt.Sprint(how, with, method, unrecorded), func(t *testing.T) {
						endDuring(t, unrecorded, method, end, choose)
					})
				}
			}
		}
	}
}

func endDuring(t *testing.T, unrecorded bool, method string, end func(*strategy.Learner) error,
	choice func(testing.TB, *strategy.Learner) strategy.Choice,
) {
	c := &clock{}
	st := &fragile{Store: newStore(t, c.Now)}
	l := newLearner(t, strategy.Config{Store: st, Now: c.Now, Unrecorded: unrecorded})
	choose(t, l, strategy.Query{Item: "i"}) // it loads the segment
	ended := false
	st.after = map[string]func(){method: func() {
		ended = true
		assert.NoError(t, end(l))
	}}
	before := choice(t, l)
	require.True(t, ended)
	after := choice(t, l)
	assert.NotEqual(t, before.ID, after.ID)
	assert.Equal(t, after.ID, choice(t, l).ID, "it is kept")
	assert.Equal(t, 1, l.Remembered())
}

func TestAChoiceIsRememberedForAnHour(t *testing.T) {
	for _, test := range []struct {
		ttl, want  time.Duration
		unrecorded bool
	}{{0, 3600 * time.Second, false}, {time.Minute, time.Minute, false}, {0, time.Hour, true}} {
		c := &clock{}
		l := newLearner(t, strategy.Config{
			Now: c.Now, Cache: strategy.Cache{TTL: test.ttl}, Unrecorded: test.unrecorded,
		})
		q := strategy.Query{Session: "s", Item: "i"}
		first := choose(t, l, q)
		c.Advance(test.want - 1)
		assert.Equal(t, first.Record(), choose(t, l, q).Record(), "being asked for does not prolong it")
		c.Advance(1)
		second := choose(t, l, q)
		assert.NotEqual(t, first.ID, second.ID)
		assert.Equal(t, c.Now(), second.At)
		assert.NotEqual(t, drawn(first), drawn(second), "made anew, it is drawn again")
	}
}

func TestRememberedChoicesAreBounded(t *testing.T) {
	t.Run("the least used go first", func(t *testing.T) {
		const size = 100
		l := newLearner(t, strategy.Config{Unrecorded: true, Cache: strategy.Cache{Size: size}})
		ids := make([]strategy.ChoiceID, 1000)
		query := func(i int) strategy.Query { return strategy.Query{Session: fmt.Sprint(i), Item: "i"} }
		for i := range ids {
			ids[i] = choose(t, l, query(i)).ID
			require.LessOrEqual(t, l.Remembered(), size)
		}
		for i := len(ids) - 1; i >= 0; i-- {
			assert.Equal(t, i >= len(ids)-size, choose(t, l, query(i)).ID == ids[i], i)
		}
	})
	t.Run("sessions that never end", func(t *testing.T) {
		for size, sessions := range map[int]int{0: 20_000, 1: 1000, 2000: 5000} {
			l := newLearner(t, strategy.Config{Unrecorded: true, Cache: strategy.Cache{Size: size}})
			for i := range sessions {
				choose(t, l, strategy.Query{Session: fmt.Sprint(i), Item: fmt.Sprint(i % 3)})
			}
			most := l.Config().Cache.Size
			assert.LessOrEqual(t, l.Remembered(), most)
			assert.Greater(t, 2*l.Remembered(), most, "and most of the room is used")
		}
	})
}

// TestARaceForAChoiceHasOneWinner lets a hundred goroutines ask for the same choices, with and
// without records. All get the same choices, and the observer
// receives each choice once.
func TestARaceForAChoiceHasOneWinner(t *testing.T) {
	for _, unrecorded := range []bool{false, true} {
		raceForChoices(t, unrecorded)
	}
}

func raceForChoices(t *testing.T, unrecorded bool) {
	const callers, keys = 100, 20
	var told atomic.Uint64
	l := newLearner(t, strategy.Config{
		Unrecorded: unrecorded,
		Observer: func(_ context.Context, e heed.Notice) {
			if _, ok := e.(heed.Selected); ok {
				told.Add(1)
			}
		},
	})
	var got [callers][keys]strategy.ChoiceID
	begin := make(chan struct{})
	var wait sync.WaitGroup
	for i := range callers {
		wait.Go(func() {
			<-begin
			for j := range keys {
				c, err := l.Select(ctx, strategy.Query{Session: fmt.Sprint("s", j%7), Item: fmt.Sprint(j)})
				assert.NoError(t, err)
				got[i][j] = c.ID
			}
		})
	}
	close(begin)
	wait.Wait()
	assert.EqualValues(t, keys, told.Load())
	for i := range callers {
		assert.Equal(t, got[0], got[i])
	}
	assert.Equal(t, keys, l.Remembered())
	if !unrecorded {
		assert.Len(t, historyOf(t, l, strategy.ChoiceFilter{}), keys)
	}
}

func TestWithoutASessionNothingIsRemembered(t *testing.T) {
	l := newLearner(t, strategy.Config{})
	seen := make(map[strategy.ChoiceID]bool)
	arms := make(map[strategy.ArmID]bool)
	for range 100 {
		c := choose(t, l, strategy.Query{Item: "i"})
		seen[c.ID], arms[c.Arm] = true, true
	}
	assert.Len(t, seen, 100)
	assert.Len(t, arms, 4, "each is drawn for itself")
	assert.Zero(t, l.Remembered())
}

func TestOnlyPermittedArmsAreChosen(t *testing.T) {
	l := newLearner(t, strategy.Config{})
	for _, permitted := range [][]strategy.ArmID{{"b"}, {"d", "a"}, {"d", "c", "b"}} {
		share := shares(t, l, strategy.Query{Item: "i", Arms: permitted}, 200)
		for arm := range share {
			assert.Contains(t, permitted, arm)
		}
		for _, arm := range permitted {
			assert.Positive(t, share[arm], "%v of %v", arm, permitted)
		}
		c := choose(t, l, strategy.Query{Item: "i", Arms: permitted})
		for _, d := range c.Record().Draws {
			assert.Contains(t, permitted, d.Arm)
		}
	}
	for _, all := range [][]strategy.ArmID{nil, {}} {
		assert.Len(t, shares(t, l, strategy.Query{Item: "i", Arms: all}, 200), 4)
	}
}

func TestAChoiceNoLongerPermittedIsMadeAnew(t *testing.T) {
	l := newLearner(t, strategy.Config{})
	q := strategy.Query{Session: "s", Item: "i"}
	first := choose(t, l, q)
	for _, arm := range []strategy.ArmID{"a", "b", "c", "d"} {
		if arm == first.Arm {
			continue
		}
		q.Arms = []strategy.ArmID{arm}
		second := choose(t, l, q)
		assert.Equal(t, arm, second.Arm)
		assert.NotEqual(t, first.ID, second.ID)
		q.Arms = nil
		assert.Equal(t, second, choose(t, l, q), "and takes the place of the other")
	}
	assert.Equal(t, 1, l.Remembered())
}

func TestSelectNamesWhatIsWrongWithAQuery(t *testing.T) {
	long := strings.Repeat("x", 1025)
	for field, queries := range map[string][]strategy.Query{
		"Arms": {{Arms: []strategy.ArmID{"e"}}, {Arms: []strategy.ArmID{"a", ""}},
			{Session: "s", Arms: []strategy.ArmID{"A"}}},
		"Session": {{Session: long}, {Session: "\x00"}, {Session: "\xff"}},
		"Item":    {{Item: long}, {Item: "a\x00b"}, {Item: "\xc3\x28"}},
		"Category": {
			{Category: long}, {Category: "\x00"}, {Category: "\xff"},
			{Category: strings.Repeat("x", 600), Context: strings.Repeat("x", 600)},
			{Category: strings.Repeat(`"`, 600)},
		},
		"Context": {{Context: long}, {Context: "\x00"}, {Context: "\xff"}},
	} {
		for _, q := range queries {
			l := newLearner(t, strategy.Config{})
			c, err := l.Select(ctx, q)
			assertInputError(t, err, field)
			assert.Zero(t, c)
			assert.Zero(t, l.Remembered())
			if field != "Arms" && field != "Session" {
				_, err = l.Beliefs(ctx, q)
				assertInputError(t, err, field)
			}
			if len(q.Category)+len(q.Context) < 600 && field != "Arms" && field != "Session" {
				_, err = outcomes(l, q, 0)
				assertInputError(t, err, field)
			}
		}
	}
}

// TestChoicesDependOnSeedSessionAndItemAlone asks learners with one seed for the same choices, in
// another order, among other choices, and from many goroutines.
func TestChoicesDependOnSeedSessionAndItemAlone(t *testing.T) {
	const sessions, items = 20, 10
	type key struct{ session, item int }
	query := func(k key) strategy.Query {
		return strategy.Query{Session: fmt.Sprint(k.session), Item: fmt.Sprint(k.item),
			Category: "preference"}
	}
	with := func(source rand.Source) *strategy.Learner {
		return newLearner(t, strategy.Config{Arms: injection.Arms(), Seed: source})
	}
	var keys []key
	want := make(map[key]string)
	l := with(rand.NewPCG(3, 4))
	for s := range sessions {
		for i := range items {
			keys = append(keys, key{s, i})
			want[key{s, i}] = drawn(choose(t, l, query(key{s, i})))
		}
	}
	different := make(map[string]bool)
	for _, text := range want {
		different[text] = true
	}
	assert.Len(t, different, len(keys), "no two are drawn alike")

	l = with(rand.NewPCG(3, 4))
	rand.New(rand.NewPCG(5, 6)).Shuffle(len(keys),
		func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, k := range keys {
		choose(t, l, strategy.Query{Item: "of no session"})
		assert.Equal(t, want[k], drawn(choose(t, l, query(k))))
	}

	l = with(rand.NewPCG(3, 4))
	var wait sync.WaitGroup
	for g := range 8 {
		wait.Go(func() {
			for i := range keys {
				k := keys[(i+g*29)%len(keys)]
				c, err := l.Select(ctx, query(k))
				assert.NoError(t, err)
				assert.Equal(t, want[k], drawn(c))
			}
		})
	}
	wait.Wait()

	for _, other := range []rand.Source{rand.NewPCG(3, 5), rand.NewPCG(4, 3),
		rand.NewChaCha8([32]byte{1})} {
		l, same := with(other), 0
		for k, text := range want {
			if drawn(choose(t, l, query(k))) == text {
				same++
			}
		}
		assert.Zero(t, same)
	}
}

func TestWithoutASourceLearnersDiffer(t *testing.T) {
	text := make(map[string]bool)
	for range 3 {
		cfg := withFixtures(t, strategy.Config{})
		cfg.Seed = nil
		l, err := strategy.New(ctx, cfg)
		require.NoError(t, err)
		text[drawn(choose(t, l, strategy.Query{Session: "s", Item: "i"}))] = true
	}
	assert.Len(t, text, 3)
}

// countingSource counts how many numbers are taken of it.
type countingSource struct{ taken int }

func (s *countingSource) Uint64() uint64 {
	s.taken++
	return uint64(s.taken)
}

func TestIDsDoNotComeFromTheSeed(t *testing.T) {
	ids := make(map[strategy.ChoiceID]bool)
	for range 2 {
		source := &countingSource{}
		l := newLearner(t, strategy.Config{Seed: source})
		taken := source.taken
		for i := range 100 {
			id := choose(t, l, strategy.Query{Session: fmt.Sprint(i)}).ID
			ids[id] = true
			assert.Equal(t, byte(4), id[6]>>4, "the version")
			assert.Equal(t, byte(2), id[8]>>6, "the variant")
		}
		assert.Equal(t, taken, source.taken, "New alone takes numbers of the source")
	}
	assert.Len(t, ids, 200)
}

func TestDrawsTellWhyTheArmWasChosen(t *testing.T) {
	l := newLearner(t, strategy.Config{Exploration: strategy.Exploration{Bonus: 0.3}})
	for i := range 200 {
		c := choose(t, l, strategy.Query{Item: fmt.Sprint(i % 10)})
		var best answer.Draw
		var arms []strategy.ArmID
		for _, d := range c.Record().Draws {
			arms = append(arms, d.Arm)
			if len(arms) == 1 || d.Sample > best.Sample {
				best = d
			}
		}
		assert.Equal(t, []strategy.ArmID{"a", "b", "c", "d"}, arms)
		assert.Equal(t, best.Arm, c.Arm)
		credit(t, l, c, float64(i%3)-1)
	}
}

func TestOfEqualDrawsTheEarlierArmWins(t *testing.T) {
	rng := chance.Rand{State: 1}
	sure, hopeless := evidence.Beta{Alpha: 1e300, Beta: 1e-300},
		evidence.Beta{Alpha: 1e-300, Beta: 1e300}
	for _, test := range []struct {
		levels []evidence.Beta
		want   int
	}{
		{[]evidence.Beta{sure, sure, sure}, 0},
		{[]evidence.Beta{hopeless, sure, sure}, 1},
		{[]evidence.Beta{hopeless, hopeless}, 0},
	} {
		var draws []answer.Draw
		for _, level := range test.levels {
			draws = append(draws, answer.Draw{Belief: evidence.Belief{Level: level}})
		}
		for range 10 {
			assert.Equal(t, test.want, strategy.DrawArms(draws, &rng))
		}
	}
}

func TestACancelledContextEndsEveryCall(t *testing.T) {
	st := newStore(t, (&clock{}).Now)
	l := newLearner(t, strategy.Config{Store: st})
	q := strategy.Query{Session: "s", Item: "i"}
	loose := choose(t, l, strategy.Query{Item: "i"})
	cause := errors.New("the user went home")
	cancelled, cancel := context.WithCancelCause(ctx)
	cancel(cause)

	c, err := l.Select(cancelled, q)
	assert.ErrorIs(t, err, context.Canceled)
	assert.Zero(t, c)
	disposition, err := l.Observe(cancelled, strategy.Outcome{Choice: loose, Value: 1, Confidence: 1})
	assert.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, disposition)
	_, err = l.Beliefs(cancelled, q)
	assert.ErrorIs(t, err, context.Canceled)
	for _, err := range l.History(cancelled, strategy.ChoiceFilter{Evidence: true}) {
		assert.ErrorIs(t, err, context.Canceled)
	}
	assert.ErrorIs(t, l.Refresh(cancelled), context.Canceled)

	assert.Empty(t, everything(t, st, q))
	assert.Zero(t, l.Remembered())
}

// Outcomes of one confidence count as one each, for the values of a parameter as well.
func TestParametersCountUnsureOutcomesAsOneEach(t *testing.T) {
	var chosen [2][]string
	for i, confidence := range []float64{1, 0.4} {
		l := newLearner(t, strategy.Config{Arms: []strategy.Arm{{ID: "a",
			Parameters: []strategy.Parameter{{Name: "n", Values: []string{"1", "2", "3"}}}}}})
		for n := range 60 {
			c := choose(t, l, strategy.Query{Key: fmt.Sprint(n)})
			chosen[i] = append(chosen[i], c.Parameter("n"))
			value := -0.2
			if c.Parameter("n") == "2" {
				value = 0.2
			}
			_, err := l.Observe(ctx, strategy.Outcome{Choice: c, Value: value, Confidence: confidence})
			require.NoError(t, err)
		}
	}
	assert.Equal(t, chosen[0], chosen[1])
}

// A context that has ended is an error of each method, also where it would not need the store.
func TestAnEndedContextIsAnError(t *testing.T) {
	done, cancel := contextDone()
	defer cancel()
	for _, cfg := range []strategy.Config{{}, {Unrecorded: true}, {Disabled: true}} {
		l := newLearner(t, cfg)
		c := choose(t, l, strategy.Query{Session: "s"})
		for method, call := range map[string]func() error{
			"EndSession, no session": func() error { return l.EndSession(done, "") },
			"EndSession":             func() error { return l.EndSession(done, "s") },
			"Select": func() error {
				_, err := l.Select(done, strategy.Query{Session: "s"})
				return err
			},
			"Record": func() error {
				_, err := l.Record(done, strategy.Query{Session: "s"}, c.Arm, 1)
				return err
			},
			"Observe": func() error {
				_, err := l.Observe(done, strategy.Outcome{Choice: c, Confidence: 1})
				return err
			},
			"Observe, dropped": func() error {
				_, err := l.Observe(done, strategy.Outcome{Choice: c, Confidence: 0.1})
				return err
			},
			"ObserveAll, none": func() error {
				_, err := l.ObserveAll(done, nil, "", "")
				return err
			},
			"Sweep":   func() error { return l.Sweep(done, time.Time{}) },
			"Retract": func() error { return l.Retract(done, c, []string{""}, "", "") },
		} {
			assert.ErrorIs(t, call(), context.Canceled, "%s %+v", method, cfg)
		}
	}
}
