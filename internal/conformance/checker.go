package conformance

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heedhq/heed/internal/host"
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

// AtOnce calls a function in as many goroutines as there are callers, and waits for all. A panic is
// a failure.
func (c *Checker) AtOnce(callers int, call func(caller int)) {
	var wait sync.WaitGroup
	for caller := range callers {
		wait.Go(func() {
			defer contain(c.TB)
			call(caller)
		})
	}
	wait.Wait()
}

// EndsInTime makes a call whose context ends after 50 ms, and returns the call's error. It ends the
// check if the call has not returned five seconds later.
func (c *Checker) EndsInTime(call func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err = host.Call("the implementation", func() error { return call(ctx) })
	}()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		c.Fatalf("it has not returned 5 s after its context was done")
	}
	return err
}

// Checked makes a rule whose check reports by a Checker.
func Checked[S any](name string, check func(*Checker, S)) Rule[S] {
	return Rule[S]{Name: name, Check: func(t testing.TB, subject S) {
		check(&Checker{TB: t}, subject)
	}}
}
