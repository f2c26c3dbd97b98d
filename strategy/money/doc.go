// Package money weighs what choices are worth against what they cost, and reports what was saved.
//
// A [Reward] takes cost and latency off an outcome's value, at stated prices. A [Frugal] chooses
// the cheapest arm that is good enough. [Saved] compares what a learner's choices cost with what
// each arm alone would have cost, from the records of the choices and their propensities.
package money
