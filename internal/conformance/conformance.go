// Package conformance runs the suites that test whether an implementation keeps an interface's
// contract.
package conformance

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
)

// A Rule is one demand of a contract, with its check. S is what is checked, or makes it.
type Rule[S any] struct {
	// Name is a sentence of the contract, and names the subtest.
	Name string
	// Check may call Helper, Errorf, Fatalf and Skip, and no other method.
	Check func(testing.TB, S)
}

// Run checks each rule in a subtest.
func Run[S any](t *testing.T, rules []Rule[S], subject S) {
	for _, rule := range rules {
		t.Run(rule.Name, func(t *testing.T) { rule.check(t, subject) })
	}
}

// check checks the rule. A panic of the implementation is a failure of the rule.
func (r Rule[S]) check(t testing.TB, subject S) {
	defer contain(t)
	r.Check(t, subject)
}

// contain is deferred to report a panic as a failure.
func contain(t testing.TB) {
	if value := recover(); value != nil {
		t.Errorf("panic: %v\n%s", value, debug.Stack())
	}
}

// Check checks the rules outside of a test and returns all failures, joined: each begins with the
// name of its rule.
func Check[S any](rules []Rule[S], subject S) error {
	var failures []error
	for _, rule := range rules {
		var r recorder
		done := make(chan struct{})
		go func() { // which Fatalf can end
			defer close(done)
			rule.check(&r, subject)
		}()
		<-done
		for _, failure := range r.failures {
			failures = append(failures, fmt.Errorf("%s: %s", rule.Name, failure))
		}
	}
	return errors.Join(failures...)
}

// recorder is a TB outside of a test, for suites that are run against broken implementations. It is
// safe for concurrent use, like a test's.
type recorder struct {
	testing.TB // nil
	mu         sync.Mutex
	failures   []string
}

// Helper does nothing, because a recorder has no lines of its caller.
func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// Skip ends the goroutine of the check, as a test's Skip does.
func (r *recorder) Skip(...any) { runtime.Goexit() }

// Fatalf ends the goroutine of the check, as a test's Fatalf does.
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}
