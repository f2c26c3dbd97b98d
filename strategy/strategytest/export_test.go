package strategytest

import (
	"github.com/heedhq/heed/internal/conformance"
	"github.com/heedhq/heed/strategy"
)

// CheckPooling runs the suite outside a test and returns all failures, joined: each begins with the
// name of its rule.
func CheckPooling(pooling strategy.Pooling) error {
	return conformance.Check(poolingRules,
		pooling)
}
