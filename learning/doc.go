// Package learning turns what users do into a heuristic's confidence.
//
// # The model
//
// A heuristic is a rule that a host has learned: in such a situation, do that. Its confidence says how much it is to be
// trusted, and moves with what comes of it. There are three steps, each with a type of its own:
//
//   - Something happens: a heuristic is shown ([Fire]), an event comes in ([Message]), somebody judges an answer
//     ([Judgement]), or nobody says a word ([Module.Sweep]).
//   - A [Strategy] interprets that as a [Signal]: positive, negative or neutral, with a source and a magnitude. [Bayesian]
//     is the one that comes with the package.
//   - A [Module] turns signals into evidence, in a fixed order:
//
// A locked heuristic takes no signal. Otherwise
//
//	weight     = magnitude · feedback weight · 1/(1 + k·n)
//	confidence = mean of Beta(s·c₀ + Σ positive weights, s·(1-c₀) + Σ negative weights), held within bounds
//
// where c₀ is the heuristic's initial confidence, s the strength of that prior, n how often the heuristic was judged the
// same way before (explicit feedback only), and k [Config.Diminish], 0 by default. As the prior is made of the initial
// confidence, a negative signal never raises a confidence and a positive one never lowers it. Every signal is answered
// with a [Change]: the confidence before and after, and what limited it.
//
// Bounds hold what is reported and not the sums beneath, so that evidence still adds up in any order. A confidence that
// has gone far beyond a bound takes as much evidence to come back; [Config.HalfLife] lets the old fade.
//
// # What counts once
//
// An answer is one heuristic on one event. Each answer earns at most one implicit signal, whichever comes first: an
// outcome that a [Expectation] waits for, an undo, being ignored, or silence. An undo that comes after the silence was counted
// takes its place. Only what was shown earns any: what was only considered is counted apart ([Module.Consider]).
//
// Explicit feedback is a channel of its own, beside the implicit one. It has no time limit and needs no fire to be known;
// the last click of a person on an answer replaces the one before exactly, as if that had never been made.
//
// # Three numbers that are not one
//
// How well a situation matches is the host's to know. How far a heuristic is trusted is [Standing].Confidence. How often
// it has worked is [Standing.SuccessRate]: of the fires that came to an end, the share that ended well, without weights or
// prior. Predictions that were made with fires are held against how they ended by [Module.Calibration].
//
// # Wiring
//
// A module keeps everything in a [store.Store]; package memstore has one in memory, and sqlstore in a database. Any number of
// modules of one name may use a store, in any number of processes: each hears of the others' answers. A restart forgets nothing.
//
// The host puts its heuristics with [Module.Put]. It calls [Module.Hear] for every event before the heuristics that answer it
// are fired, [Module.Fire] when an answer is shown, [Module.Judge] when somebody judges one, and [Module.Sweep] now and then,
// which [heed.Run] does.
//
// What belongs together is one commit: a signal, the confidence, and the end of the answer. A call that fails has changed
// nothing, or all of it, and can be made again.
//
// # Writing a strategy
//
// Implement the six methods of [Strategy] and run learningtest.RunStrategy against it. A strategy is asked outside of all
// locks; if it panics, the call that asked it returns an error. What it returns is checked before it counts.
package learning
