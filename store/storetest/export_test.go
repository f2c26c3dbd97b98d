package storetest

import (
	"fmt"
	"slices"

	"github.com/heedhq/heed/internal/conformance"
)

// CheckRule checks one rule of the suite.
func CheckRule(s Subject, name string) error {
	for _, r := range slices.Concat(evidenceRules, recordRules, stepRules, reopenRules) {
		if r.Name == name {
			return conformance.Check([]rule{r}, s)
		}
	}
	return fmt.Errorf("there is no rule %q", name)
}

// Rules returns the names of all rules.
func Rules() (names []string) {
	for _, r := range slices.Concat(evidenceRules, recordRules, stepRules, reopenRules) {
		names = append(names, r.Name)
	}
	return names
}
