// Package valid has what checks of what hosts give share: the faults of a configuration, collected
// so that all are reported together, and the limits of times and half-lives.
package valid

import (
	"strings"

	"github.com/heedhq/heed"
)

// Faults holds faults in the order in which they were found. The zero value is ready to use; it
// must not be used concurrently.
type Faults struct{ all []error }

// Check adds a fault unless ok.
func (l *Faults) Check(ok bool, field string, value any, reason string) {
	if !ok {
		l.all = append(l.all, &heed.ConfigError{Field: field, Value: value, Reason: reason})
	}
}

// Add adds the faults of one part of the configuration, with the part's name before theirs.
func (l *Faults) Add(part string, err error) {
	for fault := range heed.ConfigErrors(err) {
		l.all = append(l.all, &heed.ConfigError{Field: part + "." + fault.Field, Value: fault.Value,
			Reason: fault.Reason})
	}
}

// Join adds faults that name their fields as this configuration does.
func (l *Faults) Join(err error) {
	if err != nil {
		l.all = append(l.all, err)
	}
}

// Err returns the faults joined, each a [*heed.ConfigError], or nil without faults.
func (l *Faults) Err() error {
	if len(l.all) == 0 {
		return nil
	}
	return joined(l.all)
}

// joined prints on one line, so that a prefix applies to all faults.
type joined []error

func (j joined) Error() string {
	var all strings.Builder
	for i, err := range j {
		if i > 0 {
			all.WriteString("; ")
		}
		all.WriteString(err.Error())
	}
	return all.String()
}

func (j joined) Unwrap() []error { return j }
