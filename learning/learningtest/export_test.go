package learningtest

import (
	"github.com/heedhq/heed/internal/conformance"
	"github.com/heedhq/heed/learning"
)

// CheckStrategy runs the suite outside a test and returns all failures, joined: each begins with
// the name of its rule.
func CheckStrategy(strategy learning.Strategy) error {
	return conformance.Check(strategyRules, strategy)
}
