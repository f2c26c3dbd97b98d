package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/learning/learningtest"
)

func Example() {
	main()
	// Output:
	// bayesian   blinds 0.40  heating 0.40
	// last_only  blinds 0.60  heating 0.40
}

// TestLastOnlyKeepsTheContract holds the strategy to what the module expects of one.
func TestLastOnlyKeepsTheContract(t *testing.T) {
	s, err := newLastOnly(learning.BayesianConfig{})
	require.NoError(t, err)
	learningtest.RunStrategy(t, s)
	assert.Equal(t, "last_only", s.Config()["strategy"])
}
