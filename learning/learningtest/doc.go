// Package learningtest is the contract of [learning.Strategy] in executable form. Run it from the tests of your own:
//
//	func TestStrategy(t *testing.T) { learningtest.RunStrategy(t, mystrategy.New()) }
//
// It needs nothing but the standard library. Later versions of the suite may test more of what the contract says.
package learningtest
