// Package raced leaves tests out of runs with the race detector.
package raced

import "testing"

// Skip skips a test if the race detector is on. It is for long tests without goroutines of their
// own, which take several times as long then. CI runs their packages without the race detector,
// too.
func Skip(t testing.TB) {
	t.Helper()
	if on {
		t.Skip("runs without the race detector")
	}
}
