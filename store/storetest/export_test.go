package storetest

import (
	"fmt"

	"github.com/heedhq/heed/internal/conformance"
)

// CheckRule checks one rule of the suite.
func CheckRule(s Subject, name string) error {
	for _, r := range suite() {
		if r.Name == name {
			return conformance.Check([]conformance.Rule[Subject]{r}, s)
		}
	}
	return fmt.Errorf("there is no rule %q", name)
}

// Rules returns the names of all rules.
func Rules() (names []string) {
	for _, r := range suite() {
		names = append(names, r.Name)
	}
	return names
}

// Check runs the suite outside a test and returns all failures, joined. Each begins with the name
// of its rule.
func Check(s Subject) error { return conformance.Check(suite(), s) }
