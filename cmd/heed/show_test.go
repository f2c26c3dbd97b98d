package main

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/strategy"
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

// hostPooling is a pooling of an application's own.
type hostPooling struct{ strategy.Alone }

// A page says once that the application believes something else.
func TestShowWithAPoolingOfTheApplication(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	w := host(t, db)
	learner, err := strategy.New(ctx, strategy.Config{
		Store: w.store, Now: w.clock, Name: "own", Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}},
		Pooling: hostPooling{}, Seed: rand.NewPCG(1, 2),
	})
	require.NoError(t, err)
	choice, err := learner.Select(ctx, strategy.Query{Session: "s", Item: "i", Category: "c"})
	require.NoError(t, err)
	_, err = learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: 1, Confidence: 1})
	require.NoError(t, err)
	for _, of := range []string{"show", "distributions"} {
		out := call{args: at(db, "strategy", "--learner", "own", of)}.run(t).out
		assert.Equal(t, 1, strings.Count(out, "main.hostPooling, which heed does not have"), out)
		assert.NotContains(t, call{args: at(db, "strategy", "--learner", "strategy", of)}.run(t).out,
			"which heed does not have")
	}
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
