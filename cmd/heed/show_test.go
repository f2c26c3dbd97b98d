package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Without an argument, strategy show shows the only category, or lists all of them.
func TestShowWithoutACategory(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	run := func(args ...string) string {
		r := call{args: append([]string{"--db", db, "strategy", "--learner"}, args...), env: []string{"HEED_NOW=" + asOf}}.run(t)
		require.Zero(t, r.code, r.err)
		return r.out
	}
	assert.Equal(t, run("models", "show", "law"), run("models", "show"))
	assert.Equal(t, run("strategy", "distributions"), run("strategy", "show"))
}
