package strategy_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/winner"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/injection"
)

// experienced returns a learner that has seen some of an item, more of others, and nothing of arm
// d.
func experienced(t testing.TB, cfg strategy.Config) (*strategy.Learner, strategy.Query) {
	l := newLearner(t, cfg)
	q := strategy.Query{Item: "i", Category: "c", Context: "x"}
	for n := range 24 {
		q.Session = fmt.Sprint(n)
		others := q
		others.Item = fmt.Sprint("other", n%4)
		try(t, l, others, "a", float64(n%3)/2)
		try(t, l, others, "b", float64(n%2))
		if n%3 == 0 {
			try(t, l, q, "a", float64(n%2))
			try(t, l, strategy.Query{Session: q.Session + "!", Item: "i", Category: "c", Context: "x"},
				"c", 0.3)
		}
	}
	q.Session = ""
	return l, q
}

// The propensity is the probability that the arm's rate is the greatest. The arm is chosen with
// that frequency.
func TestPropensityOfPlainBeliefsIsExact(t *testing.T) {
	for _, pooling := range []strategy.Pooling{strategy.Alone{}, strategy.Copy{},
		strategy.Copy{Sessions: 4}} {
		t.Run(fmt.Sprintf("%+v", pooling), func(t *testing.T) {
			t.Parallel()
			l, q := experienced(t, strategy.Config{Pooling: pooling})
			n := long(2_500, 20_000)
			share, propensity := make(map[strategy.ArmID]float64), make(map[strategy.ArmID]float64)
			var c strategy.Choice
			for range n {
				c = choose(t, l, q)
				if share[c.Arm]++; share[c.Arm] == 1 {
					propensity[c.Arm] = c.Propensity()
				}
			}
			best := winner.ProbBest(levels(beliefs(t, l, q)))
			var sum float64
			for i, arm := range []strategy.ArmID{"a", "b", "c", "d"} {
				require.Contains(t, propensity, arm)
				assert.InDelta(t, best[i], propensity[arm], 1e-12)
				assertShare(t, best[i], share[arm]/float64(n), n, 4, arm)
				sum += propensity[arm]
			}
			assert.InDelta(t, 1, sum, 1e-9)
		})
	}
}

// TestPropensityIsHowOftenTheArmIsChosen, where beliefs are not plain or have a bonus.
func TestPropensityIsHowOftenTheArmIsChosen(t *testing.T) {
	permitted := []strategy.ArmID{"a", "c", "d"}
	for _, test := range []struct {
		name string
		cfg  strategy.Config
		item string
		arms []strategy.ArmID
	}{
		{"two-level", strategy.Config{}, "i", nil},
		{"two-level, a new item", strategy.Config{}, "new", nil},
		{"two-level, some arms", strategy.Config{}, "i", permitted},
		{"two-level with a bonus", strategy.Config{Exploration: strategy.Exploration{Bonus: 0.2}}, "i",
			nil},
		{"alone with a bonus", strategy.Config{Pooling: strategy.Alone{},
			Exploration: strategy.Exploration{Bonus: 0.1, MinSamples: 20}}, "i", permitted},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l, q := experienced(t, test.cfg)
			q.Item, q.Arms = test.item, test.arms
			n := long(2_500, 20_000)
			share, propensity := make(map[strategy.ArmID]float64), make(map[strategy.ArmID]float64)
			for range n {
				c := choose(t, l, q)
				if share[c.Arm]++; share[c.Arm] == 1 {
					propensity[c.Arm] = c.Propensity()
					assert.Equal(t, propensity[c.Arm], c.Propensity(), "it is always the same")
				}
			}
			var sum float64
			for arm, p := range propensity {
				sum += p
				// a rare arm may come some times more
				se := math.Sqrt(max(p*(1-p), 4/float64(n)) / float64(n))
				assert.InDelta(t, p, share[arm]/float64(n), 4*se, arm)
			}
			assert.InDelta(t, 1, sum, 0.004, "a rare arm may not have been chosen")
		})
	}
}

func TestPropensityIsNeverNought(t *testing.T) {
	l := newLearner(t, strategy.Config{Arms: plain("a", "b")})
	q := strategy.Query{Item: "i"}
	for range 300 {
		try(t, l, q, "a", 1)
		try(t, l, q, "b", -1)
	}
	c := choose(t, l, q)
	require.Equal(t, strategy.ArmID("a"), c.Arm)
	assert.Less(t, c.Propensity(), 1.)
	unlikely := edited(t, c, "arm", "b").Propensity()
	assert.Positive(t, unlikely)
	assert.Less(t, unlikely, 1e-4)
}

func TestPropensityOfWhatWasNotDrawn(t *testing.T) {
	assert.True(t, math.IsNaN(strategy.Choice{}.Propensity()))
	assert.True(t, math.IsNaN(strategy.Choice{Arm: "a"}.Propensity()))
	l := newLearner(t, strategy.Config{})
	c := choose(t, l, strategy.Query{})
	assert.True(t, math.IsNaN(edited(t, c, "arm", "none of those that were drawn").Propensity()))
	assert.True(t, math.IsNaN(edited(t, c, "draws", nil).Propensity()))
	assert.Equal(t, 1., choose(t, l, strategy.Query{Arms: []strategy.ArmID{"b"}}).Propensity(),
		"of the only arm")
}

// TestAChoiceGoesThroughJSON and keeps all that it can tell.
func TestAChoiceGoesThroughJSON(t *testing.T) {
	for _, pooling := range poolings {
		for _, arms := range [][]strategy.Arm{plain("a", "b", "c", "d"),
			injection.Arms()} {
			l := newLearner(t, strategy.Config{Arms: arms, Pooling: pooling,
				Exploration: strategy.Exploration{Bonus: 0.1}, Now: func() time.Time {
					return start.Add(123456789)
				}})
			q := strategy.Query{Item: "i <\u2028>", Session: `"s"`, Category: "a/b", Context: "ü"}
			for i := range 12 {
				q.Session += "'"
				c := choose(t, l, q)
				read := throughJSON(t, c)
				one, err := json.Marshal(c)
				require.NoError(t, err)
				two, err := json.Marshal(read)
				require.NoError(t, err)
				assert.Equal(t, string(one), string(two))
				assert.Equal(t, drawn(c), drawn(read))
				assert.Equal(t, c.Cells(), read.Cells())
				if i%4 == 0 {
					assert.Equal(t, c.Propensity(), read.Propensity())
				}
				assert.Equal(t, c.Record().Learner, read.Record().Learner)
				assert.Equal(t, c.Record().Fallback, read.Record().Fallback)
				assert.Equal(t, c.ID, read.ID)
				assert.Equal(t, c.At, read.At)
				assert.Equal(t, start.Add(123456*time.Microsecond), read.At,
					"in the precision that stores keep")
				assert.Equal(t, []string{q.Session, q.Item, q.Category, q.Context},
					[]string{read.Session, read.Item, read.Category, read.Context})
				disposition, err := l.Observe(ctx, strategy.Outcome{Choice: read, Value: float64(i%2)*2 - 1,
					Confidence: 1})
				require.NoError(t, err)
				assert.Equal(t, strategy.Applied, disposition)
			}
		}
	}
}

func TestAChoiceThatIsNotJSONIsAnError(t *testing.T) {
	for _, text := range []string{`[]`, `{"id":"x"}`, `{"id":1}`, `{"at":"yesterday"}`, `{"draws":[{"sample":"much"}]}`, `{"draws":{}}`} {
		var c strategy.Choice
		assert.Error(t, json.Unmarshal([]byte(text), &c), text)
		assert.Zero(t, c)
	}
	var c strategy.Choice
	require.NoError(t, json.Unmarshal([]byte(`{"id":"00000000-0000-0000-0000-000000000001","arm":"a","learner":"l","added later":[1]}`), &c))
	assert.Equal(t, "l", c.Record().Learner, "fields of later versions are left out")
	text, err := json.Marshal(strategy.Choice{})
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &c))
	assert.Empty(t, c.Record().Learner)
	assert.Empty(t, c.Parameter("position"))
}

func TestCellsAreThoseOfTheArmAndItsParameters(t *testing.T) {
	l := newLearner(t, strategy.Config{Name: "n", Arms: injection.Arms()})
	c := choose(t, l, strategy.Query{Session: "s", Item: "i", Category: "c", Context: "x",
		Arms: []strategy.ArmID{injection.MainContext}})
	assert.Equal(t, []evidence.Cell{
		{Kind: "n.arm", Scope: "c/x", Item: "i", Name: "main_context"},
		{Kind: "n.parameter", Scope: "c/x", Item: "main_context",
			Name: "position=" + c.Parameter("position")},
		{Kind: "n.parameter", Scope: "c/x", Item: "main_context",
			Name: "format=" + c.Parameter("format")},
	}, c.Cells())
}

func TestScopesTellCategoryAndContext(t *testing.T) {
	part := rapid.StringOf(rapid.RuneFrom([]rune(`/"\a `)))
	rapid.Check(t, func(t *rapid.T) {
		one := strategy.Choice{Category: part.Draw(t, "category"), Context: part.Draw(t, "context")}
		two := strategy.Choice{Category: part.Draw(t, "category"), Context: part.Draw(t, "context")}
		same := one.Category == two.Category && one.Context == two.Context
		if scopes := one.Cells()[0].Scope == two.Cells()[0].Scope; scopes != same {
			t.Fatalf("%q", one.Cells()[0].Scope)
		}
		if one.Cells()[0].Scope == "" {
			t.Fatal("no scope")
		}
	})
}

func TestChoiceIDsAreWrittenAsUUIDs(t *testing.T) {
	id := strategy.ChoiceID{0x12, 0x34, 15: 0xff}
	assert.Equal(t, "12340000-0000-0000-0000-0000000000ff", id.String())
	text, err := json.Marshal(map[strategy.ChoiceID]strategy.ChoiceID{id: id})
	require.NoError(t, err)
	assert.JSONEq(t, `{"12340000-0000-0000-0000-0000000000ff":"12340000-0000-0000-0000-0000000000ff"}`, string(text))
	var read map[strategy.ChoiceID]strategy.ChoiceID
	require.NoError(t, json.Unmarshal(text, &read))
	assert.Equal(t, map[strategy.ChoiceID]strategy.ChoiceID{id: id}, read)
	for _, bad := range []string{"", "x", "12340000-0000-0000-0000-0000000000f",
		"12340000-0000-0000-0000-0000000000fg"} {
		assert.Error(t, new(strategy.ChoiceID).UnmarshalText([]byte(bad)), strconv.Quote(bad))
	}
}

// The only permitted arm is chosen for certain, also if it has a bonus.
func TestTheOnlyArmIsCertain(t *testing.T) {
	for _, bonus := range []float64{0, 0.1} {
		l := newLearner(t, strategy.Config{Exploration: strategy.Exploration{Bonus: bonus}})
		c := choose(t, l, strategy.Query{Arms: []strategy.ArmID{"b"}})
		assert.Equal(t, 1., c.Propensity())
	}
}

// A parameter with a single value makes no draw, so that adding one does not change other choices.
func TestASingleValueMakesNoDraw(t *testing.T) {
	several := strategy.Parameter{Name: "n", Values: []string{"1", "2", "3"}}
	single := strategy.Parameter{Name: "only", Values: []string{"x"}}
	of := func(parameters ...strategy.Parameter) (values []string) {
		l := newLearner(t, strategy.Config{
			Arms: []strategy.Arm{{ID: "a", Parameters: parameters}},
		})
		for n := range 20 {
			values = append(values, choose(t, l, strategy.Query{Session: fmt.Sprint(n)}).Parameter("n"))
		}
		return values
	}
	assert.Equal(t, of(several), of(single, several))
}

// An arm that is taken by a share has a value for each of its parameters, as any other.
func TestAShareHasParameters(t *testing.T) {
	l := newLearner(t, strategy.Config{Arms: parametered})
	shares := make([]float64, len(parametered))
	shares[0] = 1
	c := choose(t, l, strategy.Query{Shares: shares})
	assert.NotEmpty(t, c.Parameter("n"))
}
