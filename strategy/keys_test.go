package strategy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/stream"
)

// keys returns the names of all fields of a configuration, those of nested ones with a dot.
func keys(of reflect.Type, prefix string) (names []string) {
	for i := range of.NumField() {
		field := of.Field(i)
		if !field.IsExported() {
			continue
		}
		switch field.Name {
		case "Exploration", "Trust", "Cache", "Silence":
			if field.Type.Kind() == reflect.Struct {
				names = append(names, keys(field.Type, prefix+field.Name+".")...)
				continue
			}
		}
		names = append(names, prefix+field.Name)
	}
	return names
}

// from observes outcomes of arm a for item i. The map has the number for each source or channel.
func from(t testing.TB, l *strategy.Learner, value float64, sources map[string]int) {
	for source, n := range sources {
		for i := range n {
			c := choose(t, l, strategy.Query{Item: "i", Arms: []strategy.ArmID{"a"}})
			_, err := l.Observe(ctx, strategy.Outcome{Choice: c, ID: fmt.Sprint(i), Value: value,
				Confidence: 1, Source: source, Channel: source})
			require.NoError(t, err)
		}
	}
}

// TestEveryKeyHasAnEffect compares, for each key of the configuration, what a learner does with it
// and without.
func TestEveryKeyHasAnEffect(t *testing.T) {
	var keyWitness witness
	type cfg = strategy.Config
	item := strategy.Query{Item: "i"}
	swept := func(observe func(*strategy.Learner) any) func(*strategy.Learner, *clock) any {
		return func(l *strategy.Learner, c *clock) any {
			choose(t, l, item)
			c.Advance(25 * time.Hour)
			assert.Equal(t, 1, sweep(t, l))
			return observe(l)
		}
	}
	tally := func(l *strategy.Learner) any {
		parts := kept(t, l.Config().Store, item, "arm")
		if len(parts) == 0 {
			return nil
		}
		return []float64{parts[0].Tally.Mass, parts[0].Tally.Reward}
	}
	changing := func(l *strategy.Learner, c *clock) any {
		for n := range 80 {
			c.Advance(time.Second)
			try(t, l, item, "a", map[bool]float64{true: 1, false: -1}[n < 40])
		}
		return math.Round(means(t, l, item)[0]*10) / 10
	}
	bonuses := func(l *strategy.Learner, _ *clock) any {
		try(t, l, item, "a", 1)
		var all []float64
		for _, d := range choose(t, l, item).Record().Draws {
			all = append(all, d.Bonus)
		}
		return all
	}
	shared := newStore(t, func() time.Time { return start.Add(1000 * time.Hour) })
	try(t, newLearner(t, cfg{Store: shared}), item, "b", 1)

	table := map[string]struct {
		base, set     func(*cfg)
		observe       func(*strategy.Learner, *clock) any
		without, with any
	}{
		"Store": {set: func(c *cfg) { c.Store = shared },
			observe: func(l *strategy.Learner, _ *clock) any {
				return means(t, l, item)[1] > 0.5
			}, without: false, with: true},
		"Arms": {set: func(c *cfg) { c.Arms = plain("x") },
			observe: func(l *strategy.Learner, _ *clock) any {
				return len(means(t, l, item))
			}, without: 4, with: 1},
		"Answers": {set: func(c *cfg) {
			c.Answers = "n"
		}, observe: func(l *strategy.Learner, _ *clock) any {
			choose(t, l, item)
			n := 0
			for _, err := range l.Config().Store.Find(ctx, store.Query{Kind: "n"}) {
				require.NoError(t, err)
				n++
			}
			return n
		}, without: 0, with: 1},
		"Name": {set: func(c *cfg) { c.Name = "n" }, observe: func(l *strategy.Learner, _ *clock) any {
			return choose(t, l, item).Cells()[0].Kind
		}, without: "strategy.arm", with: "n.arm"},
		"Pooling": {set: func(c *cfg) { c.Pooling = strategy.Alone{} },
			observe: func(l *strategy.Learner, _ *clock) any {
				try(t, l, item, "a", 1)
				return means(t, l, strategy.Query{Item: "new"})[0] > 0.5
			}, without: true, with: false},
		"Prior": {set: func(c *cfg) { c.Prior = evidence.Beta{Alpha: 3, Beta: 1} },
			observe: func(l *strategy.Learner, _ *clock) any {
				return means(t, l, item)[0]
			}, without: 0.5, with: 0.75},
		"Exploration.Bonus": {
			set: func(c *cfg) { c.Exploration.Bonus = 0.2 }, observe: bonuses,
			without: []float64{0, 0, 0, 0}, with: []float64{0.2, 0.2, 0.2, 0.2},
		},
		"Exploration.MinSamples": {
			base: func(c *cfg) { c.Exploration.Bonus = 0.2 },
			set:  func(c *cfg) { c.Exploration.MinSamples = 1 }, observe: bonuses,
			without: []float64{0.2, 0.2, 0.2, 0.2}, with: []float64{0, 0.2, 0.2, 0.2},
		},
		"HalfLife": {
			base: func(c *cfg) { c.Pooling = strategy.Copy{} },
			set:  func(c *cfg) { c.HalfLife = time.Hour },
			observe: func(l *strategy.Learner, c *clock) any {
				try(t, l, item, "a", 1)
				c.Advance(time.Hour)
				require.NoError(t, l.Refresh(ctx))
				return means(t, l, item)[0]
			}, without: 2. / 3, with: 0.6,
		},
		"Trust.Instruments": {
			base: func(c *cfg) { c.Pooling = strategy.Copy{} },
			set:  func(c *cfg) { c.Trust.Instruments = []string{"one"} },
			observe: func(l *strategy.Learner, _ *clock) any { // as one of three, it counts for ten
				from(t, l, 1, map[string]int{"one": 97, "two": 1, "three": 1})
				return means(t, l, item)[0]
			}, without: 13. / 14, with: 100. / 101,
		},
		"Trust.Silence": {
			base: func(c *cfg) { c.Pooling = strategy.Copy{} },
			set:  func(c *cfg) { c.Trust.Silence = []string{"quiet"} },
			observe: func(l *strategy.Learner, _ *clock) any {
				from(t, l, 1, map[string]int{"quiet": 8})
				return means(t, l, item)[0]
			}, without: 0.9, with: 2. / 3,
		},
		"MinConfidence": {set: func(c *cfg) { c.MinConfidence = 0.6 },
			observe: func(l *strategy.Learner, _ *clock) any {
				disposition, err := l.Observe(ctx, strategy.Outcome{Choice: choose(t, l, item), Value: 1,
					Confidence: 0.5})
				require.NoError(t, err)
				return disposition
			}, without: strategy.Applied, with: strategy.Dropped},
		"Reward": {set: func(c *cfg) {
			c.Reward = func(
				o strategy.Outcome) float64 {
				return o.Value - 1
			}
		},
			observe: func(l *strategy.Learner, _ *clock) any {
				try(t, l, item, "a", 1)
				return tally(l)
			}, without: []float64{1, 1}, with: []float64{1, 0.5}},
		"Disabled": {set: func(c *cfg) { c.Disabled = true },
			observe: func(l *strategy.Learner, _ *clock) any {
				return choose(t, l, item).Record().Fallback
			}, without: false, with: true},
		"Default": {
			base: func(c *cfg) { c.Disabled = true }, set: func(c *cfg) { c.Default = "c" },
			observe: func(l *strategy.Learner, _ *clock) any { return choose(t, l, item).Arm },
			without: strategy.ArmID("a"), with: strategy.ArmID("c"),
		},
		"Cache.TTL": {set: func(c *cfg) { c.Cache.TTL = time.Minute },
			observe: func(l *strategy.Learner, c *clock) any {
				q := strategy.Query{Session: "s"}
				first := choose(t, l, q)
				c.Advance(time.Minute)
				return first.ID == choose(t, l, q).ID
			}, without: true, with: false},
		"Cache.Size": {set: func(c *cfg) { c.Cache.Size = 2 },
			observe: func(l *strategy.Learner, _ *clock) any {
				for n := range 5 {
					choose(t, l, strategy.Query{Session: fmt.Sprint(n)})
				}
				return l.Remembered()
			}, without: 5, with: 2},
		"Unrecorded": {set: func(c *cfg) { c.Unrecorded = true },
			observe: func(l *strategy.Learner, _ *clock) any {
				c := choose(t, l, strategy.Query{Session: "s"})
				found, err := l.Find(ctx, "s", "", time.Time{})
				return err == nil && found.Choice.ID == c.ID
			}, without: true, with: false},
		"Shared": {set: func(c *cfg) { c.Shared = true },
			observe: func(l *strategy.Learner, _ *clock) any {
				try(t, l, item, "a", 1)
				require.NoError(t, l.Refresh(ctx))
				rows := (&town{T: t, store: l.Config().Store}).rows()
				return len(rows)
			}, without: 0, with: 1},
		"Silence.After": {set: func(c *cfg) { c.Silence.After = time.Hour },
			observe: func(l *strategy.Learner, c *clock) any {
				choose(t, l, item)
				c.Advance(2 * time.Hour)
				return sweep(t, l)
			}, without: 0, with: 1},
		"Silence.Confidence": {
			set: func(c *cfg) { c.Silence.Confidence = 0.5 }, observe: swept(tally),
			without: nil, with: []float64{0.5, 0},
		},
		"IgnoreChanges": {
			base: func(c *cfg) { c.Pooling = strategy.Alone{} },
			set:  func(c *cfg) { c.IgnoreChanges = true }, observe: changing,
			without: 0., with: 0.5,
		},
		"Topic": {set: func(c *cfg) { c.Topic = "t" },
			observe: func(l *strategy.Learner, _ *clock) any {
				choose(t, l, item)
				topics := []string{}
				for e, err := range stream.Waiting(ctx, l.Config().Store) {
					require.NoError(t, err)
					topics = append(topics, e.Topic)
				}
				return topics
			}, without: []string{}, with: []string{"t"}},
		"Refresh": {set: func(c *cfg) { c.Refresh = time.Minute },
			observe: func(l *strategy.Learner, c *clock) any {
				before := means(t, l, strategy.Query{Item: "new"})
				try(t, newLearner(t, cfg{Store: l.Config().Store, Now: c.Now}), item, "a", 1)
				c.Advance(time.Minute)
				return reflect.DeepEqual(before, means(t, l, strategy.Query{Item: "new"}))
			}, without: true, with: false},
		"Now": {set: func(c *cfg) { c.Now = func() time.Time { return start.Add(time.Second) } },
			observe: func(l *strategy.Learner, _ *clock) any {
				return choose(t, l, item).At
			}, without: start, with: start.Add(time.Second)},
		"Seed": {set: func(c *cfg) { c.Seed = rand.NewPCG(3, 4) },
			observe: func(l *strategy.Learner, _ *clock) any {
				return drawn(choose(t, l, item)) == drawn(choose(t, newLearner(t, cfg{}), item))
			}, without: true, with: false},
		"Observer": {set: func(c *cfg) { c.Observer = keyWitness.observe },
			observe: func(l *strategy.Learner, _ *clock) any {
				choose(t, l, item)
				return len(keyWitness.since())
			}, without: 0, with: 1},
		"NewID": {set: func(c *cfg) {
			c.NewID = func() strategy.ChoiceID {
				return strategy.ChoiceID{
					1}
			}
		}, observe: func(l *strategy.Learner, _ *clock) any {
			return choose(t, l, item).ID == strategy.ChoiceID{1}
		}, without: false, with: true},
	}
	all := keys(reflect.TypeFor[strategy.Config](), "")
	assert.Len(t, table, len(all))
	for _, key := range all {
		t.Run(key, func(t *testing.T) {
			test, ok := table[key]
			require.True(t, ok, "the key has no test")
			for _, set := range []bool{false, true} {
				c := &clock{}
				config := withFixtures(t, cfg{Now: c.Now})
				if test.base != nil {
					test.base(&config)
				}
				want := test.without
				if set {
					test.set(&config)
					want = test.with
				}
				l := newLearner(t, config)
				got := test.observe(l, c)
				if f, ok := want.(float64); ok {
					assert.InDelta(t, f, got, 1e-9, "set: %v", set)
				} else {
					assert.Equal(t, want, got, "set: %v", set)
				}
				assertReadsBack(t, config, l.Config())
			}
		})
	}
}

// assertReadsBack checks that every key that was set is read back as it was set.
func assertReadsBack(t testing.TB, set, read strategy.Config) {
	t.Helper()
	var compare func(set, read reflect.Value, key string)
	compare = func(set, read reflect.Value, key string) {
		for i := range set.NumField() {
			s, r, name := set.Field(i), read.Field(i), key+set.Type().Field(i).Name
			switch {
			case s.IsZero():
			case s.Kind() == reflect.Struct:
				compare(s, r, name+".")
			case s.Kind() == reflect.Func:
				assert.Equal(t, s.Pointer(), r.Pointer(), name)
			default:
				assert.Equal(t, s.Interface(), r.Interface(), name)
			}
		}
	}
	compare(reflect.ValueOf(set), reflect.ValueOf(read), "")
}

// Each has a value that is refused by its name alone, but for those that can't be wrong.
func TestEveryKeyThatCanBeWrongIsNamed(t *testing.T) {
	nan := math.NaN()
	type cfg = strategy.Config
	named := make(map[string]bool)
	for _, test := range []struct {
		field string
		spoil func(*cfg)
	}{
		{"Store", func(c *cfg) { c.Store = nil }},
		{"Arms", func(c *cfg) { c.Arms = []strategy.Arm{{ID: "a", Weight: 1}, {ID: "b"}} }},
		{"Name", func(c *cfg) { c.Name = "\xff" }},
		{"Answers", func(c *cfg) { c.Answers = "\xff" }},
		{"Pooling.Sessions", func(c *cfg) { c.Pooling = strategy.Copy{Sessions: -1} }},
		{"Prior", func(c *cfg) { c.Prior = evidence.Beta{Alpha: 1, Beta: 1e7} }},
		{"Exploration.Bonus", func(c *cfg) { c.Exploration.Bonus = 1.1 }},
		{"Exploration.MinSamples", func(c *cfg) {
			c.Exploration = strategy.Exploration{Bonus: 0.1,
				MinSamples: -1}
		}},
		{"HalfLife", func(c *cfg) { c.HalfLife = time.Second }},
		{"Trust.Instruments", func(c *cfg) { c.Trust.Instruments = []string{""} }},
		{"MinConfidence", func(c *cfg) { c.MinConfidence = 1.1 }},
		{"Default", func(c *cfg) { c.Default = "A" }},
		{"Cache.TTL", func(c *cfg) { c.Cache.TTL = -1 }},
		{"Cache.Size", func(c *cfg) { c.Cache.Size = -1 }},
		{"Silence", func(c *cfg) { c.Unrecorded = true; c.Silence.After = time.Hour }},
		{"Silence", func(c *cfg) { c.Unrecorded = true; c.Silence.Confidence = 0.1 }},
		{"Silence", func(c *cfg) { c.Answers = "host.answer"; c.Silence.Confidence = 0.1 }},
		{"Silence.After", func(c *cfg) { c.Silence.After = -1 }},
		{"Silence.Confidence", func(c *cfg) { c.Silence.Confidence = 1.1 }},
		{"Silence.Confidence", func(c *cfg) { c.Silence.Confidence = -0.1 }},
		{"Silence.Confidence", func(c *cfg) { c.Silence.Confidence = nan }},
		{"Topic", func(c *cfg) { c.Topic = "\x00" }},
		{"Topic", func(c *cfg) { c.Topic = strings.Repeat("x", 1025) }},
		{"Refresh", func(c *cfg) { c.Refresh = -1 }},
	} {
		config := withFixtures(t, cfg{})
		test.spoil(&config)
		_, err := strategy.New(ctx, config)
		assert.Equal(t, []string{test.field}, fields(err), "%v", err)
		named[test.field] = true
	}
	neverWrong := []string{"Pooling", "Reward", "Disabled", "Unrecorded", "Trust.Silence", "Observer",
		"Now", "Seed", "Shared", "NewID", "IgnoreChanges"}
	for _, key := range keys(reflect.TypeFor[strategy.Config](), "") {
		if !named[key] {
			assert.Contains(t, neverWrong, key)
		}
	}
}

func TestDefaultsOfRecordsAndChanges(t *testing.T) {
	cfg := newLearner(t, strategy.Config{}).Config()
	assert.False(t, cfg.Unrecorded)
	assert.Equal(t, strategy.Silence{After: 24 * time.Hour}, cfg.Silence)
	assert.False(t, cfg.IgnoreChanges)
	assert.Empty(t, cfg.Topic)
	assert.Zero(t, newLearner(t, strategy.Config{Unrecorded: true}).Config().Silence)
	assert.Zero(t, newLearner(t, strategy.Config{Answers: "host.answer"}).Config().Silence)
	cfg = newLearner(t, strategy.Config{Silence: strategy.Silence{Confidence: 0.1}}).Config()
	assert.Equal(t, strategy.Silence{After: 24 * time.Hour, Confidence: 0.1}, cfg.Silence)
}
