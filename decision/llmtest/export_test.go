package llmtest

import "github.com/heedhq/heed/internal/conformance"

// Check runs the suite outside a test and returns all failures, joined. Each begins with the name
// of its rule.
func Check(newAdapter NewAdapter) error { return conformance.Check(rules, newAdapter) }
