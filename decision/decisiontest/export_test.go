package decisiontest

import "github.com/heedhq/heed/internal/conformance"

// CheckStrategy runs the suite outside a test and returns all failures, joined. Each begins with
// the name of its rule.
func CheckStrategy(newStrategy NewStrategy) error {
	return conformance.Check(strategyRules, newStrategy)
}
