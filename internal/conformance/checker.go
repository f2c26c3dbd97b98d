package conformance

import (
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// A Checker is a TB with the verbs of checks, which fixtures embed. Its messages begin with the
// line of the rule and with Prefix.
type Checker struct {
	testing.TB
	// Prefix names what is checked, for example one of several stores.
	Prefix string
}

// place returns the line of the rule that is running: the nearest caller outside of methods and
// of files that are named fixture.go. A failure in a fixture, which many rules use, would name the
// same line for all of them otherwise. At most 64 callers are looked at; the outermost one stands
// in if none fits. It returns "" if the rule calls the Checker itself, because a test's Errorf
// writes that line.
func (c *Checker) place() string {
	callers, direct := make([]uintptr, 64), true
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	for {
		frame, more := frames.Next()
		file := filepath.Base(frame.File)
		verb := strings.Contains(frame.Function, ".(*") || file == "fixture.go" || file == "checker.go"
		if _, alone := c.TB.(*recorder); (!verb || !more) && direct && !alone {
			return ""
		} else if !verb || !more {
			return fmt.Sprintf("%s:%d: ", file, frame.Line)
		}
		direct = file == "checker.go"
	}
}

// Errorf reports a failure. The check goes on.
func (c *Checker) Errorf(format string, args ...any) {
	c.Helper()
	c.TB.Errorf("%s%s%s", c.place(), c.Prefix, fmt.Sprintf(format, args...))
}

// Fatalf reports a failure and ends the check.
func (c *Checker) Fatalf(format string, args ...any) {
	c.Helper()
	c.TB.Fatalf("%s%s%s", c.place(), c.Prefix, fmt.Sprintf(format, args...))
}

// Must ends the check if a call failed that had to succeed.
func (c *Checker) Must(call string, err error) {
	c.Helper()
	if err != nil {
		c.Fatalf("%s: %v", call, err)
	}
}

// Check reports a failure unless ok holds.
func (c *Checker) Check(ok bool, format string, args ...any) {
	c.Helper()
	if !ok {
		c.Errorf(format, args...)
	}
}

// Equal reports a failure unless two values are equal. An empty list is equal to nil, and a number
// to a constant of another type. So a rule may compare a uint64 with a plain 3.
func (c *Checker) Equal(what string, got, want any) {
	c.Helper()
	x, y := reflect.ValueOf(got), reflect.ValueOf(want)
	switch {
	case x.Kind() == reflect.Slice && x.Len() == 0 && (!y.IsValid() || y.Len() == 0):
		return
	case x.IsValid() && y.CanInt() && (x.CanInt() || x.CanUint() || x.CanFloat()):
		want = y.Convert(x.Type()).Interface()
	}
	c.Check(reflect.DeepEqual(got, want), "%s: %+v, want %+v", what, got, want)
}

// Checked makes a rule whose check reports by a Checker.
func Checked[S any](name string, check func(*Checker, S)) Rule[S] {
	return Rule[S]{Name: name, Check: func(t testing.TB, subject S) {
		check(&Checker{TB: t}, subject)
	}}
}
