// Package evidence is the arithmetic of belief that the other packages share.
//
// # The model
//
// Everything learned is a sum of evidence. An [Observation] says that a [Cell] (an arm, a heuristic, a pattern) earned a
// reward in [0, 1], with a weight, from a source, at a time, under an id. A belief is a prior plus the sum, read at a
// moment:
//
//	belief(cell, now) = prior + Σ over its parts  cap( fade( Σ weight·(reward, 1-reward), now ) )
//
// Sums commute. So the order of arrival does not matter; what is delivered twice is recognised by its id and counts once;
// many machines add to one cell without a lock; the influence of one source is limited ([Caps]) or removed
// (Batch.Expunge) afterwards; fading with a half-life costs the same whatever the history ([Tally]); and a belief is
// explained by listing what went into it. The prior never fades and is never mixed into the sums: with no evidence left, a
// belief is the prior again.
//
// # Reading
//
// A [Part] is the tally of one origin of a cell. [Caps.Pool] reads the parts at a moment and adds them up to [Sums]. From
// there, [Sums.Posterior] is the belief in which mass counts as given, and [Sums.Effective] and [Spread.Dispersion] say for
// how many equal observations the sums stand and how much more each tells than a coin toss. [Beta] is the posterior: its mean,
// its interval, a draw from it ([Sampler]), and [ProbBest], the probability that each of several is the best.
//
// # Stores
//
// Package store is the seam to where evidence is kept. It takes deltas and never states.
package evidence
