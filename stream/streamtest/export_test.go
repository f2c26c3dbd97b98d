package streamtest

import "github.com/heedhq/heed/internal/conformance"

// Check runs the suite outside a test and returns all failures, joined: each begins with the name
// of its rule.
func Check(newHarness NewHarness) error { return conformance.Check(rules, newHarness) }
