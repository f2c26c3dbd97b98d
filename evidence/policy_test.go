package evidence_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

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
