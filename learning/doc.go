// Package learning turns what users do into a heuristic's confidence.
//
// # The model
//
// A heuristic is a rule that a host learned: in such a situation, do that. Its confidence is how
// far to trust it. It moves in three steps:
//
//   - Something happens. An answer is shown ([Fire]), a message comes in ([Message]), a person
//     judges an answer ([Judgement]), or silence passes ([Module.Sweep]).
//   - A [Strategy] interprets that as a [Signal]: what it is worth, for or against the heuristic,
//     and its channel. [NewBayesian] is the default. [BayesianConfig] sets how much each signal is
//     worth: by default a thumb 0.8, an undo 1.
//   - A [Module] turns signals into evidence, as follows.
//
// A locked heuristic takes no signal. Otherwise
//
//	weight     = |worth| · feedback weight · 1/(1 + k·n)
//	confidence = mean of Beta(s·c₀ + Σ positive weights, s·(1-c₀) + Σ negative weights)
//
// where c₀ is the heuristic's initial confidence, s the strength of that prior, n how often the
// heuristic was judged the same way before (judgements only), and k [Config.Diminish], 0 by
// default. A negative signal never raises a confidence, and a positive signal never lowers it,
// except where it replaces another one: praise that is worth less than the silence before lowers
// the confidence, and a complaint that is weaker than the person's last one raises it. (With more
// than two people, or a limit on silence, both can happen: see [Config.Trust].) Each signal returns
// a [Change]: the confidence before and after, and what limited it.
//
// Bounds hold the reported confidence and not the sums below it, so that evidence adds up in any
// order. If the sums are far past a bound, as much opposite evidence must come before the reported
// confidence moves. [Config.HalfLife] lets old evidence fade.
//
// # What counts for an answer
//
// An answer is a record of package answer, with all statements about it: judgements, reported
// outcomes, an undo, the outcome of an [Expectation], being ignored, and silence ([Module.Sweep]).
// The signals that count follow from the statements, so the order in which they came does not
// matter. At most one implicit signal counts for each heuristic that answered. docs/trust.md has
// the rules. Only an answer that was shown earns an implicit signal.
//
// Judgements need no fire, and can come as long as the store keeps the answer. The last judgement
// of a person on an answer, on one channel, replaces the one before, which then does not count at
// all.
//
// How people receive the model's answer counts for the heuristics that it was compared with: see
// [Fire].Compared.
//
// # Three numbers
//
// How well a situation matches is for the host to decide. [Standing].Confidence is how far to trust
// a heuristic. Standing.Successes and Failures count how often it worked: fires that people
// received well or badly, without weights or prior.
//
// # What is stored about people
//
// Evidence is kept by source, so that each person can be limited, and forgotten: [store.Job]
// removes what a person caused, and the confidences follow. The record of an answer contains who
// asked, and who stated something about it. Pins contain who decided them. How many people there
// are in a domain is counted in 64 places by a hash, without names.
//
// # A strategy of your own
//
// Embed what [NewBayesian] returns, and override the methods whose rule differs: for example
// Windows, if the effects of answers in one domain show only after an hour, or IsThanks for another
// language. Package learningtest tests what a [Module] relies on.
//
// # Wiring
//
// A module keeps everything in a [store.Store], of package memstore or sqlstore. Any number of
// modules of one name may use a store, in any number of processes, and learned evidence survives a
// restart.
//
// Put heuristics with [Module.Put]. Call [Module.Hear] for each message before the heuristics that
// answer it fire, [Module.Fire] when an answer is shown, [Module.Judge] when a person judges one,
// and [Module.Sweep] now and then, which [heed.Run] does.
//
// A signal, the confidence, and the answer are one commit. A failed call made all of its changes or
// not one of them, and can be made again. A host that wants records of other kinds in the same
// commit, or several calls in one, uses [store.Do] with the methods that end in "In".
package learning
