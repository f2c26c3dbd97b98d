package heed

import (
	"errors"
	"fmt"
	"iter"
)

// The sentinels that every package of heed and every store of it shares. Compare with [errors.Is]:
// what a method returns wraps them with what was being done.
var (
	// ErrNotFound reports that there is no record of that name.
	ErrNotFound = errors.New("not found")
	// ErrConflict reports that the stored value is no longer the one that the caller expected, for
	// example because another process changed it. Read again and decide again.
	ErrConflict = errors.New("conflict")
	// ErrDamaged means that the store holds a row that can't be decoded, because something else than
	// heed wrote it. The error names the row. Restore the store from a copy.
	ErrDamaged = errors.New("damaged record")
	// ErrOutcomeUnknown means that it is unknown whether a store applied a commit, for example
	// because the connection broke before the reply. The commit was applied as a whole or not at all.
	// store.Do reads again and repeats the step.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrUnavailable means that the store could not be reached, and that package loop noticed it. Bad
	// input, a conflict, damaged records, and a context of the caller's that ended are other errors.
	ErrUnavailable = errors.New("unavailable")
)

// A SizeError reports a record or a commit that is larger than stores accept. The call that
// returned it had no effect.
type SizeError struct {
	What string // what is too large, such as "Records[3].Body"
	Size int    // in bytes of a body, or changes of a commit
	Most int    // the largest size that is accepted
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("%s: has a size of %d, may have %d", e.What, e.Size, e.Most)
}

// A ConfigError is one fault of a configuration. A constructor reports all faults at once, in one
// error: see [ConfigErrors].
type ConfigError struct {
	Field  string // the field at fault, with its path: "Prior.Alpha"
	Value  any    // what it was set to
	Reason string // what it may be
}

func (e *ConfigError) Error() string {
	value := fmt.Sprint(e.Value)
	if value == "" {
		value = "empty"
	}
	return fmt.Sprintf("config: %s is %s: %s", e.Field, value, e.Reason)
}

// An InputError is one fault of a value that was handed to a method: an observation, a query, an
// outcome. The call that returned it had no effect. The value itself is not kept, because it may be
// private.
type InputError struct {
	Field  string // the field at fault, with its path: "Observations[2].Reward"
	Reason string // what it may be
}

func (e *InputError) Error() string { return e.Field + ": " + e.Reason }

// A SettingsError reports that a setting of a component differs from the setting under which its
// stored evidence was learned, for example another half-life. It is an [ErrConflict]. To go on,
// leave the field out, which keeps the stored setting; or call the package's Rebuild, if the store
// still has the whole history; or reset what was learned.
type SettingsError struct {
	Component string // as "strategy/routing"
	Field     string
	Stored    string // for people to read, for example "1h0m0s", "none" or "true"
	Wanted    string // the same
}

func (e *SettingsError) Error() string {
	return fmt.Sprintf("settings: %s of %s is %s in the store and %s here: leave %s out to keep "+
		"the stored one, or call Rebuild, or reset",
		e.Field, e.Component, e.Stored, e.Wanted, e.Field)
}

func (e *SettingsError) Unwrap() error { return ErrConflict }

// A PanicError reports that code of the host panicked, or ended its goroutine, while heed called
// it.
type PanicError struct {
	Who   string // the code that was called, for example "the model"
	Value any    // the panic's value; nil where the code ended its goroutine
	Stack []byte
}

func (e *PanicError) Error() string {
	if e.Value == nil {
		return e.Who + " ended its goroutine"
	}
	return fmt.Sprintf("%s panicked: %v", e.Who, e.Value)
}

// ConfigErrors returns an iterator over every [ConfigError] in err, in the order in which they were
// found, so that a host can show them to its own users.
func ConfigErrors(err error) iter.Seq[*ConfigError] {
	return func(yield func(*ConfigError) bool) { walkConfigErrors(err, yield) }
}

func walkConfigErrors(err error, yield func(*ConfigError) bool) bool {
	switch e := err.(type) { //nolint:errorlint // this is the walk that errors.As makes, over all branches
	case nil:
		return true
	case *ConfigError:
		return yield(e)
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if !walkConfigErrors(err, yield) {
				return false
			}
		}
		return true
	case interface{ Unwrap() error }:
		return walkConfigErrors(e.Unwrap(), yield)
	default:
		return true
	}
}
