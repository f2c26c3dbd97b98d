// Package learning turns what users do into a heuristic's confidence.
//
// # The model
//
// A heuristic is a rule that a host has learned: in such a situation, do that. Its confidence says how far to trust it. It moves in
// three steps:
//
//   - Something happens. An answer is shown ([Fire]), a message comes in ([Message]), a person judges an answer ([Judgement]), or
//     nobody says anything ([Module.Sweep]).
//   - A [Strategy] interprets that as a [Signal]: positive, negative or neutral, with a channel and a magnitude. [NewBayesian] is the
//     default.
//   - A [Module] turns signals into evidence, in this order:
//
// A locked heuristic takes no signal. Otherwise
//
//	weight     = magnitude · feedback weight · 1/(1 + k·n)
//	confidence = mean of Beta(s·c₀ + Σ positive weights, s·(1-c₀) + Σ negative weights), held within bounds
//
// where c₀ is the heuristic's initial confidence, s the strength of that prior, n how often the heuristic was judged the same way before
// (judgements only), and k [Config.Diminish], 0 by default. A negative signal never raises a confidence, and a positive one never
// lowers it. (With several caps, or a share, it can: see [Config.Caps].) Each signal is answered with a [Change]: the confidence before
// and after, and what limited it.
//
// Bounds hold the reported confidence and not the sums below it, so that evidence adds up in any order. A confidence far beyond a
// bound takes as much evidence to come back. [Config.HalfLife] lets old evidence fade.
//
// # What counts once
//
// An answer is one heuristic on one event. It earns at most one implicit signal, the first that comes: the outcome of an
// [Expectation], an undo, being ignored, or silence. An undo replaces the silence that was counted before. Only an answer that was shown
// earns a signal. Heuristics that were only considered are counted apart ([Module.Consider]).
//
// Judgements are independent of the implicit signal. They have no time limit and need no fire. The last click of a person on an answer
// replaces the one before, as if that had never been made.
//
// # Three numbers
//
// How well a situation matches, the host knows. How far a heuristic is trusted is [Standing].Confidence. How often it worked is
// Standing.Successes and Failures: fires that ended well or badly, without weights or prior. [Module.Calibration] compares the
// predictions that were made with fires with how they ended.
//
// # Wiring
//
// A module keeps everything in a [store.Store], of package memstore or sqlstore. Any number of modules of one name may use a store, in any
// number of processes, and a restart forgets nothing.
//
// Put heuristics with [Module.Put]. Call [Module.Hear] for each message before the heuristics that answer it fire, [Module.Fire] when
// an answer is shown, [Module.Judge] when a person judges one, and [Module.Sweep] now and then, which [heed.Run] does.
//
// A signal, the confidence, and the end of the answer are one commit. A call that fails has changed nothing, or everything, and can be
// made again.
package learning
