package heed_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

func TestVerdictsAreValidated(t *testing.T) {
	for _, good := range []heed.Verdict{
		{EventID: "e"},
		{HeuristicID: "h", EventID: "e", Person: "ann", Value: -1, Weight: evidence.MaxWeight, Target: heed.TargetRule},
		{HeuristicID: strings.Repeat("h", evidence.MaxText), EventID: "e", Value: 1, Target: heed.TargetResponse},
	} {
		require.NoError(t, good.Validate())
	}
	for field, bad := range map[string]heed.Verdict{
		"EventID":     {HeuristicID: "h"},
		"HeuristicID": {EventID: "e", HeuristicID: strings.Repeat("h", evidence.MaxText+1)},
		"Person":      {EventID: "e", Person: "\xff"},
		"Session":     {EventID: "e", Session: "\x00"},
		"Channel":     {EventID: "e", Channel: "\xff"},
		"Target":      {EventID: "e", Target: "author"},
		"Value":       {EventID: "e", Value: math.NaN()},
		"Weight":      {EventID: "e", Weight: 2 * evidence.MaxWeight},
	} {
		var fault *heed.InputError
		require.ErrorAs(t, bad.Validate(), &fault, field)
		assert.Equal(t, field, fault.Field)
		assert.NotEmpty(t, fault.Reason)
	}
	for _, bad := range []heed.Verdict{{EventID: "e", Value: 1.1}, {EventID: "e", Value: -1.1}, {EventID: "e", Weight: -1}, {EventID: "e", Weight: math.NaN()}} {
		require.Error(t, bad.Validate())
	}
}
