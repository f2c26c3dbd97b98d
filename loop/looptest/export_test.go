package looptest

import "github.com/heedhq/heed/internal/conformance"

// CheckRule checks one rule. It reports whether there is such a rule.
func CheckRule(name string, s Subject) (is bool, err error) {
	for i := range rules {
		if rules[i].Name == name {
			return true, conformance.Check(rules[i:i+1], s)
		}
	}
	return false, nil
}

// Rules returns the names of the rules.
func Rules() (names []string) {
	for _, rule := range rules {
		names = append(names, rule.Name)
	}
	return names
}

// Check runs the suite outside a test and returns all failures, joined. Each begins with the name
// of its rule.
func Check(s Subject) error { return conformance.Check(rules, s) }
