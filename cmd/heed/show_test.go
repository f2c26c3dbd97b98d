package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/view"
)

func TestSharesOfAnArm(t *testing.T) {
	t.Parallel()
	all := read[[]view.SegmentDetail](t, at(sqliteFile(t), "strategy", "--agent", "strategy",
		"show", "correction")...)
	require.Len(t, all, 2)
	for _, d := range all {
		var best, chosen float64
		for _, arm := range d.Arms {
			best += arm.Best
			chosen += *arm.Chosen
		}
		assert.InDelta(t, 1, best, 1e-9)
		assert.InDelta(t, 1, chosen, 1e-9)
	}
}
