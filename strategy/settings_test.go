package strategy_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/settings"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/injection"
)

// A learner that sets none of those that change what is stored gets the stored ones, and one
// that sets others is told both values before it does anything.
func TestSettingsOfTheStoreAreKept(t *testing.T) {
	c := &clock{}
	cfg := withFixtures(t, strategy.Config{Now: c.Now, HalfLife: 48 * time.Hour})
	first := newLearner(t, cfg)
	from(t, first, 1, map[string]int{"one": 1, "two": 1})

	unset := cfg
	unset.HalfLife = 0
	second := newLearner(t, unset)
	assert.Equal(t, 48*time.Hour, second.Config().HalfLife)
	assert.Equal(t, 10*time.Minute, second.Config().Refresh)
	from(t, second, 1, map[string]int{"three": 1})
	assert.Len(t, kept(t, cfg.Store, strategy.Query{}, "arm"), 3)

	other := cfg
	other.HalfLife = time.Hour
	_, err := strategy.New(ctx, other)
	var fault *heed.SettingsError
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, heed.SettingsError{
		Component: "strategy/strategy", Field: "HalfLife", Stored: "48h0m0s", Wanted: "1h0m0s",
	}, *fault)
}

// TestOtherSettingsAreTakenOver and audited: they apply when evidence is read.
func TestOtherSettingsAreTakenOver(t *testing.T) {
	cfg := withFixtures(t, strategy.Config{})
	newLearner(t, cfg)
	newLearner(t, cfg)
	assert.Empty(t, audited(t, cfg.Store))
	cfg.Trust.Instruments, cfg.MinConfidence = []string{"ci"}, 0.5
	assert.Equal(t, 0.5, newLearner(t, cfg).Config().MinConfidence)
	entries := audited(t, cfg.Store)
	require.Len(t, entries, 1)
	assert.Equal(t, "strategy/strategy", entries[0].Subject)
	assert.Equal(t, "0.3 -> 0.5", entries[0].Details["MinConfidence"])
}

// TestRebuild makes the sums of a whole history again: they are what they would be had the settings
// never been others.
func TestRebuild(t *testing.T) {
	for _, pooling := range []strategy.Pooling{strategy.TwoLevel{}, strategy.Copy{Sessions: 2}} {
		t.Run(fmt.Sprint(pooling), func(t *testing.T) {
			q := strategy.Query{Item: "i", Category: "c"}
			lived := func(halfLife time.Duration) (strategy.Config, *strategy.Learner, *clock) {
				c := &clock{}
				cfg := withFixtures(t, strategy.Config{
					Now: c.Now, Pooling: pooling, HalfLife: halfLife,
					Arms: injection.Arms(),
				})
				l := newLearner(t, cfg)
				for n := range 8 {
					q := q
					q.Item, q.Session = fmt.Sprint("i", n%2), fmt.Sprint(n)
					try(t, l, q, injection.MainContext, float64(n%3-1))
					c.Advance(time.Hour)
				}
				return cfg, l, c
			}
			cfg, _, _ := lived(0)
			_, want, _ := lived(6 * time.Hour)
			cfg.HalfLife = 6 * time.Hour
			_, err := strategy.New(ctx, cfg)
			require.ErrorIs(t, err, heed.ErrConflict)
			got, err := strategy.Rebuild(ctx, cfg, "ann", "outcomes fade now")
			require.NoError(t, err)
			require.NoError(t, want.Refresh(ctx))
			if pooling == (strategy.TwoLevel{}) { // a copy is as it was made
				assert.InDeltaSlice(t, means(t, want, q), means(t, got, q), 1e-12)
			}
			assert.Equal(t, cfg.HalfLife, newLearner(t, cfg).Config().HalfLife)
			try(t, got, q, injection.MainContext, 1)
			assert.Equal(t, "strategy.rebuild", audited(t, cfg.Store)[0].Action)
			assert.Equal(t, "ann", audited(t, cfg.Store)[0].Actor)
		})
	}
}

// A configuration with a fault is not taken over by the store.
func TestRebuildNeedsAValidConfiguration(t *testing.T) {
	cfg := withFixtures(t, strategy.Config{})
	newLearner(t, cfg)
	cfg.HalfLife = time.Millisecond
	l, err := strategy.Rebuild(ctx, cfg, "ann", "r")
	assert.Equal(t, []string{"HalfLife"}, fields(err))
	assert.Nil(t, l)
	assert.Empty(t, audited(t, cfg.Store))
}

// A learner looks again as often as the half-life in force demands, which may be the stored one,
// unless its host chose otherwise.
func TestRefreshFollowsTheHalfLifeInForce(t *testing.T) {
	cfg := withFixtures(t, strategy.Config{HalfLife: 32 * time.Minute})
	newLearner(t, cfg)
	cfg.HalfLife = 0
	for refresh, want := range map[time.Duration]time.Duration{
		0: 2 * time.Minute, 7 * time.Minute: 7 * time.Minute,
	} {
		cfg.Refresh = refresh
		for name, open := range map[string]func() (*strategy.Learner, error){
			"New":  func() (*strategy.Learner, error) { return strategy.New(ctx, cfg) },
			"Open": func() (*strategy.Learner, error) { return strategy.Open(ctx, cfg) },
		} {
			l, err := open()
			require.NoError(t, err, name)
			assert.Equal(t, 32*time.Minute, l.Config().HalfLife, name)
			assert.Equal(t, want, l.Config().Refresh, name)
		}
	}
	cfg.HalfLife, cfg.Refresh = 16*time.Minute, 0
	l, err := strategy.Rebuild(ctx, cfg, "ann", "outcomes fade faster")
	require.NoError(t, err)
	assert.Equal(t, time.Minute, l.Config().Refresh)
}

// TestRebuildNeedsTheWholeHistory, and changes nothing without it; a reset mends what a rebuild
// can't.
func TestRebuildNeedsTheWholeHistory(t *testing.T) {
	c := &clock{}
	st,
		err := memstore.New(memstore.Config{Now: c.Now, Retention: store.Retention{HistoryPerCell: 2}})
	require.NoError(t, err)
	cfg := withFixtures(t, strategy.Config{Now: c.Now, Store: st})
	l := newLearner(t, cfg)
	for range 3 {
		try(t, l, strategy.Query{Item: "i", Category: "c"}, "a", 1)
	}
	before := everything(t, st, strategy.Query{Category: "c"})
	fading := cfg
	fading.HalfLife = time.Hour
	_, err = strategy.Rebuild(ctx, fading, "ann", "outcomes fade now")
	require.ErrorIs(t, err, evidence.ErrForgotten)
	assert.Equal(t, before, everything(t, st, strategy.Query{Category: "c"}))
	newLearner(t, cfg)

	require.NoError(t, l.Reset(ctx, strategy.Reset{Category: "c", Reason: "outcomes fade now"}))
	mended, err := strategy.Rebuild(ctx, fading, "ann", "outcomes fade now")
	require.NoError(t, err)
	try(t, mended, strategy.Query{Item: "i", Category: "c"}, "a", 1)
	assert.Equal(t, time.Hour, kept(t, st, strategy.Query{Category: "c"}, "arm")[0].Tally.HalfLife)
}

// A tool that knows a learner's name alone believes what its host believes, and writes nothing.
func TestOpen(t *testing.T) {
	for _, pooling := range []strategy.Pooling{strategy.TwoLevel{},
		strategy.Copy{Sessions: 2, MinConfidence: 0.5}, strategy.Alone{}} {
		c := &clock{}
		cfg := withFixtures(t, strategy.Config{
			Now: c.Now, Name: "models", Answers: "desk.answer", Pooling: pooling,
			Prior: evidence.Beta{Alpha: 2, Beta: 1}, Trust: evidence.Trust{Instruments: []string{"ci"}},
			MinConfidence: 0.2, HalfLife: time.Hour, Exploration: strategy.Exploration{Bonus: 0.1},
			Arms: injection.Arms(),
		})
		host := newLearner(t, cfg)
		q := strategy.Query{Item: "i", Category: "c"}
		for n := range 5 {
			q.Session = fmt.Sprint(n)
			try(t, host, q, injection.Subagent, 1)
		}
		require.NoError(t, host.Refresh(ctx))
		st := &fragile{Store: cfg.Store, before: func(context.Context,
			store.Batch) error {
			return errStore
		}}
		tool, err := strategy.Open(ctx, strategy.Config{Store: st, Name: "models", Now: c.Now})
		require.NoError(t, err)
		assert.Equal(t, beliefs(t, host, q), beliefs(t, tool, q))
		assert.Equal(t, reported(t, host), reported(t, tool))
		assert.Equal(t, host.Config().Arms, tool.Config().Arms)
		assert.Equal(t, time.Hour/16, tool.Config().Refresh, "it follows the stored half-life")
		choices := 0
		for r, err := range tool.History(ctx, strategy.ChoiceFilter{Item: "i"}) {
			require.NoError(t, err)
			assert.Equal(t, injection.Subagent, r.Choice.Arm)
			choices++
		}
		assert.Equal(t, 5, choices, "the records are where the host's settings say")

		names, err := settings.Names("strategy/")(ctx, cfg.Store)
		require.NoError(t, err)
		assert.Equal(t, []string{"models"}, names)
		_, err = strategy.Open(ctx, strategy.Config{Name: "models"})
		require.Equal(t, []string{"Store"}, fields(err))
		_, err = strategy.Open(ctx, strategy.Config{Store: st, Name: "nobody"})
		assert.ErrorIs(t, err, heed.ErrNotFound)
	}
}

// Whichever call of the store fails, the functions that make a learner return the error.
func TestALearnerWithoutItsStore(t *testing.T) {
	for name, of := range map[string]func(strategy.Config) (*strategy.Learner, error){
		"New": func(c strategy.Config) (*strategy.Learner, error) {
			c.MinConfidence = 0.5
			return strategy.New(ctx, c)
		},
		"Open": func(c strategy.Config) (*strategy.Learner, error) { return strategy.Open(ctx, c) },
		"Rebuild": func(c strategy.Config) (*strategy.Learner, error) {
			c.HalfLife = time.Hour
			return strategy.Rebuild(ctx, c, "ann", "r")
		},
	} {
		storetest.FailEach(func(at int, late bool) bool {
			cfg := withFixtures(t, strategy.Config{Topic: "t"})
			try(t, newLearner(t, cfg), strategy.Query{Session: "s", Item: "i"}, "a", 1)
			st := &storetest.Failing{Store: cfg.Store}
			cfg.Store = st
			st.Fail(at, late)
			l, err := of(cfg)
			if failed := st.Failed(); !failed {
				require.NoError(t, err, name)
				return false
			}
			if err != nil { // else it is a commit that took effect
				require.ErrorIs(t, err, storetest.ErrFailed, "%s, call %d", name, at)
			} else {
				require.True(t, late, "%s, call %d", name, at)
			}
			require.Equal(t, err == nil, l != nil)
			return true
		})
	}
}

// A learner without records declares no kind for them, because the host may use the same name for
// other records.
func TestALearnerWithoutRecordsDeclaresNone(t *testing.T) {
	for unrecorded, want := range map[bool]bool{true: false, false: true} {
		st := &declaring{Store: newStore(t, (&clock{}).Now)}
		newLearner(t, strategy.Config{Store: st, Unrecorded: unrecorded})
		assert.Equal(t, want, slices.Contains(st.kinds, "strategy.answer"))
		assert.Equal(t, want, slices.Contains(st.kinds, "strategy.session"))
		assert.Contains(t, st.kinds, "strategy.arm")
	}
}

// A declaring store notes which kinds were declared.
type declaring struct {
	store.Store
	kinds []string
	all   []store.Kind
}

func (d *declaring) Declare(ctx context.Context, kinds ...store.Kind) error {
	d.all = append(d.all, kinds...)
	for _, k := range kinds {
		d.kinds = append(d.kinds, k.Name)
	}
	return d.Store.Declare(ctx, kinds...)
}

// The evidence of arms and of parameters can be taken back for 10,000 outcomes of each. The record
// of a session is kept for a day longer than the choices that it ends.
func TestWhatALearnerKeeps(t *testing.T) {
	st := &declaring{Store: newStore(t, (&clock{}).Now)}
	newLearner(t, strategy.Config{Store: st})
	all := make(map[string]store.Kind)
	for _, k := range st.all {
		all[k.Name] = k
	}
	assert.Equal(t, 10_000, all["strategy.arm"].History)
	assert.Equal(t, 10_000, all["strategy.parameter"].History)
	sessions, choices := all["strategy.session"].Limits.For, all["strategy.answer"].Limits.For
	assert.Equal(t, 24*time.Hour, sessions-choices)
}
