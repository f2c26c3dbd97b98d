// Package env reads a configuration from environment variables and reports all faults together.
package env

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedhq/heed/internal/faults"
)

// A Reader reads the variables whose names begin with a prefix. A variable that is not set, is blank or is wrong leaves its
// field as it is. A Reader must not be used concurrently.
type Reader struct {
	Prefix string                      // as "LEARNING_"
	Lookup func(string) (string, bool) // as [os.LookupEnv]
	Faults faults.List                 // each with the whole name of the variable

	known []string
}

// Text returns a variable's value without blanks around it, and its whole name.
func (r *Reader) Text(name string) (value, variable string) {
	variable = r.Prefix + name
	r.known = append(r.known, variable)
	value, _ = r.Lookup(variable)
	return strings.TrimSpace(value), variable
}

// Number reads a number for which ok is true. NaN is never read.
func (r *Reader) Number(name string, x *float64, reason string, ok func(float64) bool) {
	value, variable := r.Text(name)
	if value == "" {
		return
	}
	read, err := strconv.ParseFloat(value, 64)
	if err != nil || read != read || !ok(read) {
		r.Faults.Check(false, variable, value, reason)
		return
	}
	*x = read
}

// Count reads a whole number from least to most.
func (r *Reader) Count(name string, n *int, least, most int) {
	value, variable := r.Text(name)
	if value == "" {
		return
	}
	read, err := strconv.Atoi(value)
	if err != nil || read < least || read > most {
		r.Faults.Check(false, variable, value, fmt.Sprintf("must be a whole number from %d to %d", least, most))
		return
	}
	*n = read
}

// Duration reads a number of units from least to most. The result is in whole microseconds.
func (r *Reader) Duration(name string, d *time.Duration, unit, least, most time.Duration) {
	x := -1.0
	r.Number(name, &x, fmt.Sprintf("must be a time from %s to %s", least, most), func(x float64) bool {
		return x*float64(unit) >= float64(least) && x*float64(unit) <= float64(most)
	})
	if x >= 0 {
		*d = time.Duration(x * float64(unit)).Round(time.Microsecond)
	}
}

// Boolean reads what [strconv.ParseBool] reads.
func (r *Reader) Boolean(name string, b *bool) {
	value, variable := r.Text(name)
	if value == "" {
		return
	}
	read, err := strconv.ParseBool(value)
	if err != nil {
		r.Faults.Check(false, variable, value, "must be true or false")
		return
	}
	*b = read
}

// CheckUnknown reports each variable of the environment, as [os.Environ] lists it, that has the prefix and was not read.
func (r *Reader) CheckUnknown(environ []string) {
	for _, variable := range environ {
		variable, _, _ = strings.Cut(variable, "=")
		ok := !strings.HasPrefix(variable, r.Prefix) || slices.Contains(r.known, variable)
		r.Faults.Check(ok, variable, "set", "is not a known variable")
	}
}
