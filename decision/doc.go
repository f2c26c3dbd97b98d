// Package decision answers an event: with a heuristic that is trusted, else with a language model, else not at all. It
// remembers how each answer came about, so that what people make of it reaches the heuristic that earned it.
//
// # Deciding
//
// A [Strategy] takes a [Request] and returns a [Result]. [HeuristicFirst] looks at the best candidate: it answers if its
// confidence is at least
//
//	clamp(threshold + bias - urgency·reduction, 0.30, 0.95)
//
// and costs nothing then. Otherwise the model is asked, if there is one and the event is immediate. The prompt shows it a few
// candidates, in random order and by nothing but their condition and action, and says that they may be ignored: scores would
// be an anchor. A second call asks what is to be expected of the answer; what the model claims of itself is believed up to a
// ceiling. [AlwaysLLM] skips the first step.
//
// The [Path] of a result says which way it went. Whatever a model does (errors, nonsense, silence, hanging, panics), the
// result is a path and a [Reason] and never an error, and it is there when [Config].Timeout is over (and that of [Converge],
// where texts are compared). A strategy runs each call of a model on a goroutine of its own for that; a model that heeds its
// context leaves none behind, and of one that does not there are at most [Config].MaxInFlight.
//
// Candidates, their confidences and the goals come with each request. Nothing is cached, so that what was learned counts at
// once. What comes from outside gets into a prompt by package prompt only.
//
// # Learning from what happens
//
//   - [Reactions.Feedback] turns a reaction to an answer into a [Credit]: which heuristic earned it, and how much it is
//     worth. Package learning takes it from there.
//   - [Extractor.Extract] has the model write a new heuristic from an answer that was praised.
//   - A result's [Convergence] tells which candidates say what the model said. An [Endorser] makes a little credit of it.
//   - [Reevaluate] asks the model about heuristics, without showing them, when there is nothing else to do.
//   - An [Experiment] runs strategies on the same traffic, split or in shadow, and says which is better.
//
// # What a host implements
//
// [LLM] is one method, and [LLMFunc] makes one of a closure. [heed.Similarity] compares texts; [heed.Embedder] and [heed.Trigrams] are
// two. For a strategy of your own, package decisiontest has the contract as a test suite, and package llmtest has that of a
// model, and a model that answers from a script for your tests.
//
// # What is stored
//
// All is in one [store.Store]: traces of answers, what was said of them, how a person's reactions run, what endorsements
// gave, and the outcomes of experiments. [Request].Commit and [Reaction].Commit have an answer or a reaction committed
// together with what another package or the host makes of it, so that neither is ever there without the other. The store's
// Sweep drops what is past its time; this package has no other work that is due.
//
// # Testing
//
// Time, randomness and ids come from [Config]. With the same seed, a request is always decided alike, whatever else is
// decided meanwhile.
package decision
