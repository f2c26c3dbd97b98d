package strategy_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/injection"
)

func TestDefaults(t *testing.T) {
	l, err := strategy.New(ctx, strategy.Config{Store: &memstore.Store{},
		Arms: injection.Arms()})
	require.NoError(t, err)
	cfg := l.Config()
	assert.Equal(t, "strategy", cfg.Name)
	assert.Equal(t, strategy.TwoLevel{}, cfg.Pooling)
	assert.Equal(t, evidence.Beta{Alpha: 1, Beta: 1}, cfg.Prior)
	assert.Equal(t, strategy.Exploration{}, cfg.Exploration)
	assert.Zero(t, cfg.HalfLife)
	assert.Equal(t, evidence.Trust{}, cfg.Trust)
	assert.Equal(t, 0.3, cfg.MinConfidence)
	assert.Equal(t, injection.Deferred, cfg.Default)
	assert.Equal(t, strategy.Cache{TTL: 3600 * time.Second, Size: 10_000}, cfg.Cache)
	assert.Equal(t, 10*time.Minute, cfg.Refresh)
	assert.WithinDuration(t, time.Now(), cfg.Now(), time.Minute)
	one, two := cfg.NewID(), cfg.NewID()
	assert.NotEqual(t, one, two)
	assert.Nil(t, cfg.Seed)
}

func TestDefaultsThatFollowFromOthers(t *testing.T) {
	for _, test := range []struct {
		name string
		cfg  strategy.Config
		got  func(strategy.Config) any
		want any
	}{
		{"the greatest weight", strategy.Config{Arms: []strategy.Arm{{ID: "a", Weight: 1},
			{ID: "b", Weight: 3}, {ID: "c", Weight: 3}}},
			func(c strategy.Config) any { return c.Default }, strategy.ArmID("b")},
		{"the first of equals", strategy.Config{}, func(c strategy.Config) any { return c.Default },
			strategy.ArmID("a")},
		{"as it is set", strategy.Config{Default: "c"},
			func(c strategy.Config) any { return c.Default }, strategy.ArmID("c")},
		{"a sixteenth of the half-life", strategy.Config{HalfLife: 16 * time.Minute},
			func(c strategy.Config) any { return c.Refresh }, time.Minute},
		{"at most ten minutes", strategy.Config{HalfLife: 1000 * time.Hour},
			func(c strategy.Config) any { return c.Refresh }, 10 * time.Minute},
		{"as it is set", strategy.Config{HalfLife: time.Hour, Refresh: time.Hour},
			func(c strategy.Config) any { return c.Refresh }, time.Hour},
		{"five samples of a bonus", strategy.Config{Exploration: strategy.Exploration{Bonus: 0.2}},
			func(c strategy.Config) any { return c.Exploration },
			strategy.Exploration{Bonus: 0.2, MinSamples: 5}},
	} {
		assert.Equal(t, test.want, test.got(newLearner(t, test.cfg).Config()), test.name)
	}
}

func TestSpecConfigHasTheDesignsDefaults(t *testing.T) {
	cfg := strategy.SpecConfig()
	cfg.Arms = injection.Arms()
	cfg = newLearner(t, cfg).Config()
	assert.Equal(t, strategy.Copy{Sessions: 20, MinConfidence: 0.6}, cfg.Pooling)
	assert.Equal(t, strategy.Exploration{Bonus: 0.1, MinSamples: 5}, cfg.Exploration)
	assert.Equal(t, evidence.Beta{Alpha: 1, Beta: 1}, cfg.Prior)
	assert.Equal(t, 0.3, cfg.MinConfidence)
	assert.Equal(t, time.Hour, cfg.Cache.TTL)
	assert.Equal(t, injection.Deferred, cfg.Default)
	assert.Equal(t, newLearner(t, strategy.Config{Pooling: strategy.Copy{}}).Config().Prior,
		cfg.Prior)
}

// TestEveryFaultIsReported, at once and by its field.
func TestEveryFaultIsReported(t *testing.T) {
	l, err := strategy.New(ctx, strategy.Config{
		Name: strings.Repeat("n", 1000),
		Arms: []strategy.Arm{{ID: "a", Weight: -1},
			{ID: "a", Parameters: []strategy.Parameter{{Name: "x=y"},
				{Name: "z", Values: []string{"1", "1", "\x00"}}}}, {}},
		Pooling:       strategy.Copy{Sessions: -1, MinConfidence: 2},
		Prior:         evidence.Beta{Alpha: math.NaN(), Beta: 1},
		Exploration:   strategy.Exploration{Bonus: math.Inf(1), MinSamples: -1},
		HalfLife:      time.Millisecond,
		Trust:         evidence.Trust{Instruments: []string{""}},
		MinConfidence: 1.5,
		Default:       "b",
		Cache:         strategy.Cache{TTL: -1, Size: -1},
		Refresh:       -1,
	})
	assert.Nil(t, l)
	assert.Equal(t, []string{
		"Store", "Name", "Prior", "Exploration.Bonus", "Exploration.MinSamples", "HalfLife",
		"Trust.Instruments", "MinConfidence", "Default", "Cache.TTL", "Cache.Size", "Refresh",
		"Pooling.Sessions",
		"Pooling.MinConfidence", "Arms[0].Weight", "Arms[1].ID", "Arms[1].Parameters[0].Name",
		"Arms[1].Parameters[0].Values",
		"Arms[1].Parameters[1].Values", "Arms[1].Parameters[1].Values", "Arms[2].ID",
	}, fields(err))
	for _, field := range fields(err) {
		assert.ErrorContains(t, err, field+" is ")
	}
}

func TestAConfigurationWithoutArmsIsOneLine(t *testing.T) {
	_, err := strategy.New(ctx, strategy.Config{})
	assert.EqualError(t, err,
		"strategy: config: Store is <nil>: must be set; config: Arms is 0: must have at least one")
}

func TestEachFaultIsNamed(t *testing.T) {
	two := func(one, two strategy.Arm) strategy.Config {
		return strategy.Config{
			Arms: []strategy.Arm{one, two}}
	}
	for _, test := range []struct {
		field string
		cfg   strategy.Config
	}{
		{"Arms", two(strategy.Arm{ID: "a", Weight: 1}, strategy.Arm{ID: "b"})},
		{"Arms[1].Weight", two(strategy.Arm{ID: "a", Weight: 1},
			strategy.Arm{ID: "b", Weight: math.NaN()})},
		{"Arms[1].Weight", two(strategy.Arm{ID: "a", Weight: 1e9},
			strategy.Arm{ID: "b", Weight: 0.99e-9})},
		{"Arms[0].Weight", two(strategy.Arm{ID: "a", Weight: 1.01e9},
			strategy.Arm{ID: "b", Weight: 1e-9})},
		{"Arms[1].Weight", two(strategy.Arm{ID: "a", Weight: 1},
			strategy.Arm{ID: "b", Weight: math.Inf(1)})},
		{"Arms[1].Weight", two(strategy.Arm{ID: "a", Weight: 1},
			strategy.Arm{ID: "b", Weight: 5e-324})},
		{"Arms[0].ID", two(strategy.Arm{ID: "\xff"}, strategy.Arm{ID: "b"})},
		{"Arms[0].Parameters[1].Name", two(strategy.Arm{ID: "a",
			Parameters: []strategy.Parameter{{Name: "n", Values: []string{""}},
				{Name: "n", Values: []string{""}}}}, strategy.Arm{ID: "b"})},
		{"Name", strategy.Config{Name: "\x00"}},
		{"Prior", strategy.Config{Prior: evidence.Beta{Alpha: 1}}},
		{"Prior", strategy.Config{Prior: evidence.Beta{Alpha: -1, Beta: 1}}},
		{"Exploration.Bonus", strategy.Config{Exploration: strategy.Exploration{Bonus: -0.1}}},
		{"Exploration.Bonus", strategy.Config{Exploration: strategy.Exploration{Bonus: math.NaN()}}},
		{"Exploration.MinSamples", strategy.Config{Exploration: strategy.Exploration{MinSamples: 5}}},
		{"HalfLife", strategy.Config{HalfLife: -time.Hour}},
		{"HalfLife", strategy.Config{HalfLife: time.Second + 1}},
		{"MinConfidence", strategy.Config{MinConfidence: -0.1}},
		{"MinConfidence", strategy.Config{MinConfidence: math.NaN()}},
		{"Default", strategy.Config{Default: "e"}},
		{"Cache.TTL", strategy.Config{Cache: strategy.Cache{TTL: -time.Hour}}},
		{"Cache.Size", strategy.Config{Cache: strategy.Cache{Size: -1}}},
		{"Refresh", strategy.Config{Refresh: -1}},
		{"Pooling.MinConfidence", strategy.Config{Pooling: strategy.Copy{MinConfidence: 1}}},
	} {
		_, err := strategy.New(ctx, withFixtures(t, test.cfg))
		assert.Equal(t, []string{test.field}, fields(err), "%v", err)
	}
	_, err := strategy.New(ctx, strategy.Config{})
	assert.Equal(t, []string{"Store", "Arms"}, fields(err))
}

// Later changes to the given configuration, or to a returned one, change nothing.
func TestAConfigurationIsTheLearnersOwn(t *testing.T) {
	given := withFixtures(t, strategy.Config{
		Arms: []strategy.Arm{{ID: "a", Parameters: []strategy.Parameter{{Name: "n",
			Values: []string{"1"}}}}, {ID: "b"}},
		Trust: evidence.Trust{Instruments: []string{"ci"}, Silence: []string{"timeout"}},
	})
	l := newLearner(t, given)
	scribble := func(cfg strategy.Config) {
		cfg.Arms[0].Parameters[0].Values[0] = "changed"
		cfg.Arms[0].Parameters[0].Name = "changed"
		cfg.Arms[0].ID, cfg.Arms[1] = "changed", strategy.Arm{ID: "changed too", Weight: 9}
		cfg.Trust.Silence[0], cfg.Trust.Instruments[0] = "changed", "changed"
	}
	want := l.Config()
	scribble(given)
	scribble(l.Config())
	got := l.Config()
	assert.Equal(t, want.Arms, got.Arms)
	assert.Equal(t, strategy.ArmID("a"), got.Arms[0].ID)
	assert.Equal(t, []string{"timeout"}, got.Trust.Silence)
	assert.Equal(t, []string{"ci"}, got.Trust.Instruments)
	c := choose(t, l, strategy.Query{Arms: []strategy.ArmID{"a"}})
	assert.Equal(t, "1", c.Parameter("n"))
}

// It is on the draws of those that have fewer in their segment, of whatever item.
func TestTheBonusIsForArmsWithFewOutcomes(t *testing.T) {
	for _, test := range []struct {
		exploration strategy.Exploration
		from        int // outcomes from which there is none
	}{
		{strategy.Exploration{}, 0},
		{strategy.Exploration{Bonus: 0.1}, 5},
		{strategy.Exploration{Bonus: 0.25, MinSamples: 3}, 3},
	} {
		c := &clock{}
		l := newLearner(t, strategy.Config{Now: c.Now, Exploration: test.exploration})
		q := strategy.Query{Category: "c"}
		for n := range 8 {
			for _, d := range choose(t, l, q).Record().Draws {
				want := 0.
				if d.Arm != "b" || n < test.from {
					want = test.exploration.Bonus
				}
				assert.Equal(t, want, d.Bonus, "of %s after %d", d.Arm, n)
			}
			q.Item = string(rune('i' + n))
			try(t, l, q, "b", 0)
			if n == 3 {
				c.Advance(time.Hour) // the segment is read from the store again, and the count with it
			}
		}
		for _, d := range choose(t, l, strategy.Query{Category: "another"}).Record().Draws {
			assert.Equal(t, test.exploration.Bonus, d.Bonus)
		}
	}
}

func TestTheBonusRaisesTheShareOfArmsWithFewOutcomes(t *testing.T) {
	share := func(bonus float64) float64 {
		l := newLearner(t, strategy.Config{Arms: plain("a", "b"),
			Exploration: strategy.Exploration{Bonus: bonus}})
		for range 10 {
			try(t, l, strategy.Query{Item: "i"}, "a", 0.4)
		}
		for range 2 {
			try(t, l, strategy.Query{Item: "i"}, "b", -0.4)
		}
		return shares(t, l, strategy.Query{Item: "i"}, 4000)["b"]
	}
	assert.Greater(t, share(0.2), share(0)+0.1)
}
