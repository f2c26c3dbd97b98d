// Package evidence is the arithmetic of belief that the other packages share.
//
// # The model
//
// Everything learned is a sum of evidence. An [Observation] records that a [Cell] (an arm, a
// heuristic, a pattern) earned a reward in [0, 1], with a weight, from a source, at a time, under
// an id. A belief is a prior plus that sum, read at a moment:
//
//	belief(cell, now) = prior + Σ over its parts  cap( fade( Σ weight·(reward, 1-reward), now ) )
//
// Sums commute. So the order of arrival does not matter, duplicates are known by their id for as
// long as the store keeps ids (IDsFor in the store's Config, 30 days by default), many machines add
// to one cell without a lock, and people can be limited ([Trust]) or removed later (store.Job).
// Fading costs the same whatever the history ([Tally]). The prior never fades: without evidence, a
// belief is the prior again.
//
// # Reading
//
// A [Part] is the tally of one origin of a cell. [Trust] limits people's parts (the arithmetic is
// in internal/fair: crowd.go for arms, counted.go for heuristics), which add up to [Sums].
// [Sums.Posterior] is the belief, a [Beta], with its mean and its interval. Package strategy draws
// from it.
//
// Package store is the seam to where evidence is kept.
package evidence
