// Package attribution brings what sessions were worth to a learner. A [Consumer] reads reports from
// a [stream.Source], makes an outcome of each with a [Router], and has a [strategy.Learner] count
// it once, however often the report is delivered.
package attribution
