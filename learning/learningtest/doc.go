// Package learningtest is the contracts of [learning.Store] and [learning.Strategy] in executable form. Run them from the
// tests of your own:
//
//	func TestStore(t *testing.T) {
//		learningtest.RunStore(t, func() (learning.Store, error) { return mystore.Open(t.TempDir()) })
//	}
//
//	func TestStrategy(t *testing.T) { learningtest.RunStrategy(t, mystrategy.New()) }
//
// It needs nothing but the standard library. Later versions of the suites may test more of what the contracts say.
package learningtest
