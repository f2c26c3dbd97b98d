package settings_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/settings"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

var now = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)

// A host is a configuration as a component has it: zero fields mean the default.
type host struct {
	HalfLife  time.Duration
	Threshold float64
}

// open opens a component whose defaults are given, and returns the configuration in force.
func (h host) open(st store.Store, defaults host) (host, error) {
	set := h
	if h.HalfLife == 0 {
		h.HalfLife = defaults.HalfLife
	}
	if h.Threshold == 0 {
		h.Threshold = defaults.Threshold
	}
	err := settings.Open(context.Background(), st, now, h.component(set))
	return h, err
}

func (h *host) component(set host) settings.Component {
	return settings.Component{Name: "learning/home", Fields: []settings.Field{
		{Name: "HalfLife", Value: &h.HalfLife, Set: set.HalfLife != 0, Fixed: true},
		{Name: "Threshold", Value: &h.Threshold},
	}}
}

var defaults = host{HalfLife: 24 * time.Hour, Threshold: 0.5}

func audit(t *testing.T, st store.Store) (entries []store.AuditEntry) {
	for e, err := range store.AuditEntries(t.Context(), st, store.Query{}) {
		require.NoError(t, err)
		entries = append(entries, e)
	}
	return entries
}

func TestFixedSettings(t *testing.T) {
	var st memstore.Store
	_, err := host{HalfLife: time.Hour}.open(&st, defaults)
	require.NoError(t, err)

	t.Run("another value is refused", func(t *testing.T) {
		_, err := host{HalfLife: 2 * time.Hour}.open(&st, defaults)
		var fault *heed.SettingsError
		require.ErrorAs(t, err, &fault)
		require.Equal(t, heed.SettingsError{Component: "learning/home", Field: "HalfLife",
			Stored: "1h0m0s", Wanted: "2h0m0s"}, *fault)
		require.ErrorIs(t, err, heed.ErrConflict)
		require.EqualError(t, fault,
			"settings: HalfLife of learning/home is 1h0m0s in the store and 2h0m0s here: "+
				"leave HalfLife out to keep the stored one, or call Rebuild, or reset")
	})
	t.Run("a host that sets nothing gets the stored one", func(t *testing.T) {
		got, err := host{}.open(&st, defaults)
		require.NoError(t, err)
		require.Equal(t, time.Hour, got.HalfLife)
	})
	t.Run("a stored one that can't be read is an error", func(t *testing.T) {
		err := settings.Open(t.Context(), &st, now,
			settings.Component{Name: "learning/home",
				Fields: []settings.Field{{Name: "HalfLife", Value: new([]string), Fixed: true}}})
		require.ErrorContains(t, err, "settings: HalfLife: ")
	})
	t.Run("a refusal changes nothing", func(t *testing.T) {
		stored, err := settings.Stored(t.Context(), &st, "learning/home")
		require.NoError(t, err)
		require.Equal(t, "3600000000000", string(stored["HalfLife"].Value))
		require.Empty(t, audit(t, &st))
	})
	t.Run("rebuilding makes it the stored one, once", func(t *testing.T) {
		h := host{HalfLife: 2 * time.Hour, Threshold: 0.5}
		c := h.component(h)
		for range 2 {
			err := c.Rebuild(t.Context(), &st, store.AuditEntry{At: now, Action: "rebuild"},
				map[string]evidence.Policy{"cells": {HalfLife: h.HalfLife}})
			require.NoError(t, err)
			require.Len(t, audit(t, &st), 1)
		}
		var err error
		_, err = host{HalfLife: 2 * time.Hour}.open(&st, defaults)
		require.NoError(t, err)
		_, err = host{HalfLife: time.Hour}.open(&st, defaults)
		require.ErrorAs(t, err, new(*heed.SettingsError))
	})
}

func TestDefaultThatChanges(t *testing.T) {
	var st memstore.Store
	_, err := host{}.open(&st, defaults)
	require.NoError(t, err)

	newer := host{HalfLife: 48 * time.Hour, Threshold: 0.7}
	got, err := host{}.open(&st, newer)
	require.NoError(t, err, "a new default breaks no upgrade")
	require.Equal(t, defaults.HalfLife, got.HalfLife, "what is stored goes on as it is")
	require.Equal(t, newer.Threshold, got.Threshold, "what applies at read is the new default")
}

func TestSettingsAtRead(t *testing.T) {
	var st memstore.Store
	_, err := host{Threshold: 0.9}.open(&st, defaults)
	require.NoError(t, err)
	require.Empty(t, audit(t, &st), "the first settings are no change")
	got, err := host{Threshold: 0.4}.open(&st, defaults)
	require.NoError(t, err)
	require.InDelta(t, 0.4, got.Threshold, 0)
	entries := audit(t, &st)
	require.Len(t, entries, 1)
	require.Equal(t, "settings", entries[0].Action)
	require.Equal(t, "learning/home", entries[0].Subject)
	require.Equal(t, map[string]string{"Threshold": "0.9 -> 0.4"}, entries[0].Details)
	_, err = host{Threshold: 0.4}.open(&st, defaults)
	require.NoError(t, err)
	require.Len(t, audit(t, &st), 1, "the same settings again are no change")
	_, err = host{}.open(&st, defaults)
	require.NoError(t, err)
	stored, err := settings.Stored(t.Context(), &st, "learning/home")
	require.NoError(t, err)
	require.Equal(t, settings.Value{Value: []byte("0.5")}, stored["Threshold"])
}

// TestOpenThatFails lets each call of the store fail, before and after its effect: no settings are
// in force then, and opening again comes to the same.
func TestOpenThatFails(t *testing.T) {
	reached := 0
	storetest.FailEach(func(at int, after bool) bool {
		var st memstore.Store
		_, err := host{Threshold: 0.9}.open(&st, defaults)
		require.NoError(t, err)
		broken := &storetest.Failing{Store: &st, At: at, After: after}
		_, err = host{Threshold: 0.4}.open(broken, defaults)
		if !broken.Failed() {
			require.NoError(t, err)
			return false
		}
		reached++
		if err != nil || !after {
			require.ErrorIs(t, err, storetest.ErrFailed)
		}
		_, err = host{Threshold: 0.4}.open(&st, defaults)
		require.NoError(t, err)
		require.Len(t, audit(t, &st), 1)
		return true
	})
	require.Equal(t, 2*3, reached, "Declare, Read and Commit")
}

func TestNames(t *testing.T) {
	var st memstore.Store
	for _, name := range []string{"strategy/a", "strategy/c", "learning", "strategy/b"} {
		require.NoError(t, settings.Open(t.Context(), &st, now, settings.Component{Name: name}))
	}
	names, err := settings.Names("strategy/")(t.Context(), &st)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c"}, names)
	err = settings.Adopt(t.Context(), &st, settings.Component{Name: "strategy/d"})
	require.ErrorIs(t, err, heed.ErrNotFound)
	require.ErrorContains(t, err, "strategy/d: ")
	_, err = settings.Stored(t.Context(), &st, "patterns")
	require.ErrorIs(t, err, heed.ErrNotFound)
	away := &storetest.Failing{Store: &st}
	away.SetAway(true)
	_, err = settings.Names("")(t.Context(), away)
	require.ErrorIs(t, err, storetest.ErrFailed)
}

// A tool takes over what is stored. What it cannot read is an error, and what is stored stays.
func TestAdopt(t *testing.T) {
	var st memstore.Store
	_, err := host{HalfLife: time.Hour, Threshold: 0.9}.open(&st, defaults)
	require.NoError(t, err)
	tool := defaults
	require.NoError(t, settings.Adopt(t.Context(), &st, tool.component(host{})))
	require.Equal(t, host{HalfLife: time.Hour, Threshold: 0.9}, tool)
	of := func(name string, fixed bool, value any) settings.Component {
		return settings.Component{Name: "learning/home",
			Fields: []settings.Field{{Name: name, Value: value, Fixed: fixed}}}
	}
	require.ErrorContains(t, settings.Adopt(t.Context(), &st, of("HalfLife", true, new([]int))),
		"HalfLife")
	require.ErrorContains(t, settings.Open(t.Context(), &st, now, of("HalfLife", true, new([]int))),
		"HalfLife")
	require.ErrorContains(t, settings.Open(t.Context(), &st, now, of("x", false, new(func()))), "x")
	require.NoError(t, settings.Adopt(t.Context(), &st, tool.component(host{})))
	require.Equal(t, host{HalfLife: time.Hour, Threshold: 0.9}, tool)
}

// What an earlier version wrote in another form is the same setting: a field that is gone is no
// change, and no host is refused for it.
func TestAnEarlierForm(t *testing.T) {
	type before struct{ A, Gone int }
	type today struct{ A int }
	var st memstore.Store
	open := func(value any) error {
		return settings.Open(t.Context(), &st, now, settings.Component{Name: "c",
			Fields: []settings.Field{{Name: "Fixed", Value: value, Set: true, Fixed: true},
				{Name: "Free", Value: value}}})
	}
	require.NoError(t, open(&before{A: 1}))
	require.NoError(t, open(&today{A: 1}))
	require.Empty(t, audit(t, &st))
	stored, err := settings.Stored(t.Context(), &st, "c")
	require.NoError(t, err)
	require.JSONEq(t, `{"A":1}`, string(stored["Free"].Value))
	require.ErrorAs(t, open(&today{A: 2}), new(*heed.SettingsError))
}

// Opening writes if a setting, or how it is kept, differs from what is stored, and not otherwise.
func TestOpeningWritesWhatDiffers(t *testing.T) {
	type setting struct {
		name  string
		value int
		fixed bool
	}
	for name, test := range map[string]struct {
		first, second []setting
		writes        bool
	}{
		"the same":      {[]setting{{"a", 1, false}}, []setting{{"a", 1, false}}, false},
		"no fields":     {nil, nil, false},
		"another value": {[]setting{{"a", 1, false}}, []setting{{"a", 2, false}}, true},
		"fixed now":     {[]setting{{"a", 1, false}}, []setting{{"a", 1, true}}, true},
		"one more field": {[]setting{{"a", 1, false}},
			[]setting{{"a", 1, false}, {"b", 1, true}}, true},
		"one field less": {[]setting{{"a", 1, false}, {"b", 1, false}},
			[]setting{{"a", 1, false}}, true},
		"no fields now": {[]setting{{"a", 1, false}}, nil, true},
	} {
		st := &storetest.Failing{Store: &memstore.Store{}}
		open := func(all []setting) {
			var fields []settings.Field
			for i := range all {
				fields = append(fields, settings.Field{Name: all[i].name, Value: &all[i].value,
					Fixed: all[i].fixed})
			}
			require.NoError(t, settings.Open(t.Context(), st, now,
				settings.Component{Name: "c", Fields: fields}))
		}
		open(test.first)
		before := st.Calls("Commit")
		open(test.second)
		require.Equal(t, test.writes, st.Calls("Commit") > before, name)
	}
}

// Evidence that is kept under another policy is made again, also if the settings agree, and each
// call may fail and be repeated.
func TestRebuildOfEvidence(t *testing.T) {
	hours := func(n int) evidence.Policy {
		return evidence.Policy{HalfLife: time.Duration(n) * time.Hour}
	}
	for name, test := range map[string]struct {
		set, kept int // hours
		rebuilt   bool
	}{
		"nothing to do":          {1, 1, false},
		"the evidence is behind": {1, 2, true},
		"the settings are":       {2, 1, true},
		"both are":               {2, 2, true},
	} {
		storetest.FailEach(func(at int, after bool) bool {
			var st memstore.Store
			_, err := host{HalfLife: time.Duration(test.set) * time.Hour}.open(&st, defaults)
			require.NoError(t, err)
			cell := evidence.Cell{Kind: "cells", Item: "i"}
			_, err = st.Commit(t.Context(), store.Batch{
				Policies: map[string]evidence.Policy{"cells": hours(test.kept)},
				Observations: []evidence.Observation{
					{ID: "1", Cell: cell, Reward: 1, Weight: 1, At: now.Add(-time.Hour)}},
			})
			require.NoError(t, err)
			broken := &storetest.Failing{Store: &st, At: at, After: after}
			h := host{HalfLife: time.Hour, Threshold: 0.5}
			c := h.component(h)
			rebuild := func(st store.Store) error {
				return c.Rebuild(t.Context(), st, store.AuditEntry{At: now, Action: "rebuild"},
					map[string]evidence.Policy{"cells": hours(1)})
			}
			if err = rebuild(broken); broken.Failed() {
				if !after || err != nil {
					require.ErrorIs(t, err, storetest.ErrFailed, "%s, %d", name, at)
				}
				err = rebuild(&st)
			}
			require.NoError(t, err)
			require.Equal(t, test.rebuilt, len(audit(t, &st)) == 1, name)
			for part, err := range st.List(t.Context(), store.CellQuery{Kind: "cells"}) {
				require.NoError(t, err)
				require.Equal(t, time.Hour, part.Tally.HalfLife, name)
			}
			return broken.Failed()
		})
	}
}
