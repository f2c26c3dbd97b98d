// Package patternstest is the contract of [patterns.Store] and of [patterns.ErrorStore] in executable form. Run it from the
// tests of your store:
//
//	func TestStore(t *testing.T) {
//		patternstest.RunStore(t, func() (patterns.Store, error) { return mystore.Open(t.TempDir()) })
//	}
//
// It needs nothing but the standard library. Later versions of the suite may test more of what the contract says.
package patternstest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"testing"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/conformance"
	"github.com/heedhq/heed/patterns"
)

// NewStore returns a fresh, empty store that keeps at least 1,000 of everything.
type NewStore func() (patterns.Store, error)

// NewErrorStore returns a fresh, empty store that keeps at least 1,000 errors of a task, and 100 tasks.
type NewErrorStore func() (patterns.ErrorStore, error)

// RunStore runs the suite for stores, a subtest a rule, each with a store of its own.
func RunStore(t *testing.T, newStore NewStore) { conformance.Run(t, storeRules, newStore) }

// CheckStore runs the suite for stores outside a test and returns all failures, joined: each begins with the name of its
// rule.
func CheckStore(newStore NewStore) error { return conformance.Check(storeRules, newStore) }

// RunErrorStore runs the suite for stores of errors, a subtest a rule, each with a store of its own.
func RunErrorStore(t *testing.T, newStore NewErrorStore) { conformance.Run(t, errorRules, newStore) }

// CheckErrorStore runs the suite for stores of errors outside a test and returns all failures, joined: each begins with the
// name of its rule.
func CheckErrorStore(newStore NewErrorStore) error { return conformance.Check(errorRules, newStore) }

type tb = conformance.TB

var background = context.Background()

// start has more digits than a store has to keep, and a zone that it must not.
var (
	start  = time.Date(2026, 2, 3, 4, 5, 6, 7_008_900, time.FixedZone("", 3600))
	stored = time.Date(2026, 2, 3, 3, 5, 6, 7_008_000, time.UTC)
)

func open[S any](t tb, newStore func() (S, error)) S {
	t.Helper()
	s, err := newStore()
	if err != nil {
		t.Fatalf("there is no store: %v", err)
	}
	return s
}

func collect[T any](t tb, seq iter.Seq2[T, error]) (all []T) {
	t.Helper()
	for one, err := range seq {
		if err != nil {
			t.Fatalf("the loop ended with %v", err)
		}
		all = append(all, one)
	}
	return all
}

func must(t tb, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected: %v", err)
	}
}

func expect[T any](t tb, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

func expectIs(t tb, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: the error is %v, and not %v", what, err, want)
	}
}

func expectInput(t tb, what string, err error) {
	t.Helper()
	if fault := (*heed.InputError)(nil); !errors.As(err, &fault) {
		t.Errorf("%s: the error is %v, and no InputError", what, err)
	}
}

// done returns a context that is over.
func done() context.Context {
	ctx, cancel := context.WithCancel(background)
	cancel()
	return ctx
}

// loops checks that a listing can be left early, can be used again, and gives way to calls of the store in its midst.
func loops[T any](t tb, what string, n int, list func(context.Context) iter.Seq2[T, error], inside func() error) {
	t.Helper()
	for range list(background) {
		break
	}
	seen := 0
	for _, err := range list(background) {
		must(t, err)
		must(t, inside())
		seen++
	}
	expect(t, what, seen, n)
	seen = 0
	for _, err := range list(done()) {
		expectIs(t, what, err, context.Canceled)
		seen++
	}
	expect(t, what+" of a context that is over", seen, 1)
}

func number(prefix string, i int) string { return fmt.Sprintf("%s-%03d", prefix, i) }
