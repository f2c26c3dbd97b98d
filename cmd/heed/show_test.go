package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/view"
)

// Without an argument, strategy show shows the only category, or lists all of them.
func TestShowWithoutACategory(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	run := func(args ...string) string {
		r := call{args: append([]string{"--db", db, "strategy", "--learner"}, args...),
			env: []string{"HEED_NOW=" + asOf}}.run(t)
		require.Zero(t, r.code, r.err)
		return r.out
	}
	assert.Equal(t, run("models", "show", "law"), run("models", "show"))
	assert.Equal(t, run("strategy", "distributions"), run("strategy", "show"))
}

func TestSharesOfAnArm(t *testing.T) {
	t.Parallel()
	all := read[[]view.SegmentDetail](t, at(sqliteFile(t), "strategy", "--learner", "strategy",
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
