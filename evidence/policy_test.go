package evidence_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// TestConflict says which field differs, in words that a person reads.
func TestConflict(t *testing.T) {
	stored := evidence.Policy{ByOrigin: true}
	for wanted, e := range map[evidence.Policy]heed.SettingsError{
		{HalfLife: time.Hour}: {Component: "cells of kind k", Field: "HalfLife",
			Stored: "none", Wanted: "1h0m0s"},
		{HalfLife: time.Hour, ByOrigin: true}: {Component: "cells of kind k", Field: "HalfLife",
			Stored: "none", Wanted: "1h0m0s"},
		{}: {Component: "cells of kind k", Field: "ByOrigin",
			Stored: "true", Wanted: "false"},
	} {
		err := stored.Conflict("k", wanted)
		assert.Equal(t, &e, err)
		assert.ErrorIs(t, err, heed.ErrConflict)
	}
}

func TestObservationsAreChecked(t *testing.T) {
	good := evidence.Observation{ID: "o", Cell: evidence.Cell{Kind: "arm", Item: "i"},
		At: time.Unix(1, 0)}
	nan := math.NaN()
	for field, one := range map[string]struct {
		of        func(*evidence.Observation) *float64
		good, bad []float64
	}{
		"Reward": {func(o *evidence.Observation) *float64 { return &o.Reward },
			[]float64{0, 0.5, 1}, []float64{-0.1, 1.1, nan}},
		"Weight": {func(o *evidence.Observation) *float64 { return &o.Weight },
			[]float64{0, 2, evidence.MaxWeight}, []float64{-1, 2 * evidence.MaxWeight, nan}},
		"Share": {func(o *evidence.Observation) *float64 { return &o.Share },
			[]float64{0, 0.5, 1}, []float64{-0.1, 1.1, nan}},
	} {
		for _, x := range one.good {
			o := good
			*one.of(&o) = x
			require.NoError(t, o.Validate(time.Unix(2, 0)), "%s %v", field, x)
		}
		for _, x := range one.bad {
			o := good
			*one.of(&o) = x
			var fault *heed.InputError
			require.ErrorAs(t, o.Validate(time.Unix(2, 0)), &fault, "%s %v", field, x)
			require.Equal(t, field, fault.Field)
		}
	}
	long := strings.Repeat("x", evidence.MaxText+1)
	for field, change := range map[string]func(*evidence.Observation){
		"ID":         func(o *evidence.Observation) { o.ID = "" },
		"Channel":    func(o *evidence.Observation) { o.Channel = "a\x00b" },
		"Source":     func(o *evidence.Observation) { o.Source = long },
		"Session":    func(o *evidence.Observation) { o.Session = "\xff" },
		"Cell.Kind":  func(o *evidence.Observation) { o.Cell.Kind = "" },
		"Cell.Scope": func(o *evidence.Observation) { o.Cell.Scope = long },
		"Cell.Name":  func(o *evidence.Observation) { o.Cell.Name = long },
		"Cell":       func(o *evidence.Observation) { o.Cell.Item = "" },
		"At":         func(o *evidence.Observation) { o.At = time.Unix(-1, 0) },
	} {
		o := good
		change(&o)
		var fault *heed.InputError
		require.ErrorAs(t, o.Validate(time.Unix(2, 0)), &fault, field)
		require.Equal(t, field, fault.Field)
	}
	require.NoError(t, evidence.CheckText("F", long[1:]))
	require.ErrorContains(t, evidence.CheckText("F", long), "F")
}

func TestPoliciesAreChecked(t *testing.T) {
	const century = 100 * 365 * 24 * time.Hour
	for _, good := range []time.Duration{0, time.Minute, century, time.Hour + time.Microsecond} {
		require.NoError(t, evidence.Policy{HalfLife: good}.Validate(), good)
	}
	for _, bad := range []time.Duration{
		-time.Hour, time.Minute - time.Microsecond, century + time.Microsecond, time.Hour + 1,
	} {
		require.ErrorContains(t, evidence.Policy{HalfLife: bad}.Validate(), "HalfLife", bad)
	}
}
