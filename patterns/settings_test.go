package patterns_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/settings"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
)

// audited returns the actions that the store's audit has, the last first.
func audited(t testing.TB, st store.Store) (all []string) {
	for e, err := range store.AuditEntries(ctx, st, store.Query{}) {
		require.NoError(t, err)
		all = append(all, e.Action+" "+e.Subject)
	}
	return all
}

func TestHalfLivesAreKept(t *testing.T) {
	w := newWorld(t, patterns.Config{HalfLife: 30 * day})
	o := good("p")
	o.Criteria = []string{"c"}
	w.record(o)
	open := func(cfg patterns.Config) (*patterns.Recorder, error) {
		cfg.Store, cfg.Now = w.store, w.clock.Now
		return patterns.New(ctx, cfg)
	}

	same, err := open(patterns.Config{})
	require.NoError(t, err)
	assert.Equal(t, 30*day, same.Config().HalfLife, "what is not set is the stored one")
	assert.Empty(t, audited(t, w.store), "nothing was changed")

	_, err = open(patterns.Config{HalfLife: day})
	var refused *heed.SettingsError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, "maturity.half_life", refused.Field)
	assert.Equal(t, "patterns/patterns", refused.Component)
	assert.ErrorIs(t, err, heed.ErrConflict)

	other, err := open(patterns.Config{Name: "other", HalfLife: day})
	require.NoError(t, err, "recorders of another name have settings of their own")
	_, err = other.Record(ctx, patterns.Outcome{ID: "y", Task: "t",
		Patterns: []patterns.PatternID{"q"}, Success: true})
	require.NoError(t, err)
	_, err = w.Standing(ctx, "q")
	assert.ErrorIs(t, err, heed.ErrNotFound, "and patterns of their own")
	_, err = other.Standing(ctx, "p")
	assert.ErrorIs(t, err, heed.ErrNotFound)
}

func TestOtherSettingsAreTakenOver(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	for range 3 {
		w.record(good("p"))
	}
	cfg := patterns.SpecConfig()
	cfg.Store, cfg.Now, cfg.Instruments = w.store, w.clock.Now, []string{"ci"}
	strict, err := patterns.New(ctx, cfg)
	require.NoError(t, err)
	var changes []map[string]string
	for e, err := range store.AuditEntries(ctx, w.store, store.Query{}) {
		require.NoError(t, err)
		changes = append(changes, e.Details)
	}
	require.Len(t, changes, 1)
	assert.Equal(t, "false -> true", changes[0]["literal"])
	assert.Contains(t, changes[0], "instruments")

	tool, err := patterns.Open(ctx, patterns.Config{Store: w.store, Now: w.clock.Now,
		Instruments: []string{"tool"}})
	require.NoError(t, err)
	assert.True(t, strict.Config().Literal())
	assert.True(t, tool.Config().Literal(), "a tool reads as the host does")
	assert.Equal(t, []string{"ci"}, tool.Config().Instruments)
	assert.Len(t, audited(t, w.store), 1, "and changes none")
	_, err = patterns.Open(ctx, patterns.Config{Store: w.store, Name: "none"})
	assert.ErrorIs(t, err, heed.ErrNotFound)
	names, err := settings.Names("patterns/")(ctx, w.store)
	require.NoError(t, err)
	assert.Equal(t, []string{"patterns"}, names)
}

func TestRebuild(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	for i := range 3 {
		o := good("p", "q")
		o.Criteria, o.At = []string{"c"}, start.Add(-time.Duration(10*i)*day)
		w.record(o)
	}
	cfg := patterns.Config{Store: w.store, Now: w.clock.Now, HalfLife: 10 * day}
	_, err := patterns.New(ctx, cfg)
	require.ErrorIs(t, err, heed.ErrConflict)
	_, err = patterns.Rebuild(ctx, cfg, "ada", "")
	assertInputError(t, err, "By.Reason")
	_, err = patterns.Rebuild(ctx, cfg, by.Actor, by.Reason)
	require.NoError(t, err)
	r, err := patterns.New(ctx, cfg)
	require.NoError(t, err)
	s, err := r.Standing(ctx, "p")
	require.NoError(t, err)
	assert.InDelta(t, 1.75, s.Helpful, 1e-9, "a third counts half, a third a quarter")
	c, err := r.Criteria(ctx, "c")
	require.NoError(t, err)
	assert.Equal(t, []patterns.Criterion{w.criterion("c")}, c)
	assert.Equal(t, []string{"patterns.rebuild patterns"}, audited(t, w.store))
	_, err = w.Record(ctx, patterns.Outcome{ID: "x", Task: "t", Patterns: []patterns.PatternID{"p"},
		Duration: time.Second, Success: true})
	var policy *heed.SettingsError
	require.ErrorAs(t, err, &policy, "a recorder that was open has to be opened again")
	_, err = r.Record(ctx, patterns.Outcome{ID: "x", Task: "t", Patterns: []patterns.PatternID{"p"},
		Duration: time.Second, Success: true})
	require.NoError(t, err)

	tool, err := patterns.Open(ctx, patterns.Config{Store: w.store})
	require.NoError(t, err)
	assert.Equal(t, 10*day, tool.Config().HalfLife)
}

// Where the history is not whole, nothing changes; what was learned can be reset.
func TestRebuildWithoutHistory(t *testing.T) {
	c := &clock{}
	st,
		err := memstore.New(memstore.Config{Now: c.Now, Retention: store.Retention{HistoryPerCell: 1}})
	require.NoError(t, err)
	w := newWorld(t, patterns.Config{Store: st, Now: c.Now})
	for range 2 {
		o := good("p")
		o.Criteria = []string{"c"}
		w.record(o)
	}
	cfg := patterns.Config{Store: st, Now: c.Now, HalfLife: day}
	_, err = patterns.Rebuild(ctx, cfg, by.Actor, by.Reason)
	require.ErrorIs(t, err, evidence.ErrForgotten)
	_, err = patterns.New(ctx, cfg)
	require.ErrorIs(t, err, heed.ErrConflict, "the settings are as they were")
	assert.EqualValues(t, 2, w.standing("p").Counts.Successes)

	old, err := patterns.Open(ctx, cfg)
	require.NoError(t, err)
	_, err = old.Reset(ctx, patterns.Reset{Pattern: "p", By: by})
	require.NoError(t, err)
	_, err = patterns.Rebuild(ctx, cfg, by.Actor, by.Reason)
	require.ErrorIs(t, err, evidence.ErrForgotten, "of the criterion")
	require.NoError(t, reset(old.Reset(ctx, patterns.Reset{Criterion: "c", By: by})))
	require.NoError(t, reset(old.Reset(ctx, patterns.Reset{Criterion: "c", By: by})),
		"once is enough")
	fresh, err := patterns.Rebuild(ctx, cfg, by.Actor, by.Reason)
	require.NoError(t, err)
	_, err = fresh.Record(ctx, patterns.Outcome{ID: "x", Task: "t",
		Patterns: []patterns.PatternID{"p"}, Criteria: []string{"c"}, Success: true})
	require.NoError(t, err)
	assert.Equal(t, []string{"patterns.rebuild patterns", "patterns.reset_criterion c",
		"patterns.reset p"}, audited(t, st))
}

// With the default history of a store, a hundred and more outcomes can be moved elsewhere, and
// the same ids stay known there.
func TestMovesWithItsHistoryCutShort(t *testing.T) {
	c := &clock{}
	st, err := memstore.New(memstore.Config{Now: c.Now})
	require.NoError(t, err)
	w := newWorld(t, patterns.Config{Store: st, Now: c.Now})
	for i := range 150 {
		o := good("p")
		o.ID, o.Task = fmt.Sprint(i), "t"
		w.record(o)
	}
	_, err = w.Reset(ctx, patterns.Reset{Pattern: "p", By: by})
	require.NoError(t, err)
	w.record(good("p"))
	var dumped bytes.Buffer
	require.NoError(t, st.Dump(ctx, &dumped))
	elsewhere, err := memstore.New(memstore.Config{Now: c.Now})
	require.NoError(t, err)
	require.NoError(t, elsewhere.Load(ctx, &dumped))
	moved := newWorld(t, patterns.Config{Store: elsewhere, Now: c.Now})
	assert.Equal(t, w.standing("p"), moved.standing("p"))
	old := good("p")
	old.ID, old.Task = "0", "t"
	assert.True(t, moved.record(old).Duplicate,
		"an outcome from before the reset does not count again")
	assert.Equal(t, patterns.Observations{Successes: 1}, moved.standing("p").Counts)
}
