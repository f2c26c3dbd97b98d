package storetest

import (
	"fmt"

	"github.com/heedhq/heed/internal/conformance"
	"github.com/heedhq/heed/store"
)

// CheckRule checks one rule of the suite.
func CheckRule(s Subject, name string) error {
	for _, r := range rulesFor(s) {
		if r.Name == name {
			return conformance.Check([]conformance.Rule[Subject]{r}, s)
		}
	}
	return fmt.Errorf("there is no rule %q", name)
}

// Rules returns the names of all rules.
func Rules() (names []string) {
	reopens := func(st store.Store, _ Options) (store.Store, error) { return st, nil }
	for _, r := range rulesFor(Subject{Reopen: reopens}) {
		names = append(names, r.Name)
	}
	return names
}

// Check runs the suite outside a test and returns all failures, joined. Each begins with the name
// of its rule.
func Check(s Subject) error { return conformance.Check(rulesFor(s), s) }
