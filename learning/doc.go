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
//   - A [Module] turns signals into evidence, as follows. [BayesianConfig] says how much each is worth: by default a click 0.8, an undo 1.
//
// A locked heuristic takes no signal. Otherwise
//
//	weight     = magnitude · feedback weight · 1/(1 + k·n)
//	confidence = mean of Beta(s·c₀ + Σ positive weights, s·(1-c₀) + Σ negative weights), held within bounds
//
// where c₀ is the heuristic's initial confidence, s the strength of that prior, n how often the heuristic was judged the same way before
// (judgements only), and k [Config.Diminish], 0 by default. A negative signal never raises a confidence. A positive one
// never lowers it, but for praise that is worth less than the silence whose place it takes. (With several caps, or a share, both can happen:
// see [Config.Caps].) Each signal is answered with a [Change]: the confidence before
// and after, and what limited it.
//
// Bounds hold the reported confidence and not the sums below it, so that evidence adds up in any order. If the sums are far past
// a bound, as much opposite evidence must come before the reported confidence moves. [Config.HalfLife] lets old evidence fade.
//
// # What counts for an answer
//
// An answer is one heuristic on one event. heed keeps the facts about it: the judgements that stand, an undo, the outcome of an
// [Expectation], being ignored, and silence ([Module.Timeouts]). The signals that count follow from these facts. The order in which they came does not matter. At most one
// implicit signal counts. Said beats seen: a complaint takes silence away, and praise an ignore. An undo is a command, and nothing sets it
// aside. docs/confidence.md has the table. Only an answer that was shown earns a signal. Heuristics that were only considered are
// counted apart ([Module.Consider]).
//
// Judgements have no time limit and need no fire. The last click of a person on an answer, on one channel, replaces the one before, as if
// that had never been made.
//
// The fate of the model's answer counts for the heuristics that it was compared with: see [Fire].Compared.
//
// # Three numbers
//
// The host knows how well a situation matches. [Standing].Confidence is how far to trust a heuristic. Standing.Successes and
// Failures say how often it worked: fires that people received well or badly, without weights or prior. [Module.Calibration] compares the
// predictions given with fires and the ways in which those fires ended.
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
