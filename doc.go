// Package heed makes an AI-agent application learn from what happens to it.
//
// heed is a library to embed. The host keeps its agent, its model client and its database. heed
// supplies the parts that decide, remember and improve, and the host wires them together. heed does
// not send data anywhere by itself, and its code runs only if the host calls it.
//
// # The idea
//
// Everything learned is a sum of evidence. An observation records that a thing earned a reward,
// with a weight, from a source, at a time, under an id. A belief is a prior plus that sum, read at
// a moment. Sums commute, so the order of arrival does not matter. An observation that is delivered
// twice counts once. Many processes can add to one belief. A source can be limited or taken out
// afterwards. A list of the observations explains the belief.
//
// # The packages
//
//   - [github.com/heedhq/heed/evidence] is the arithmetic of belief that all others share:
//     observations, tallies that fade, Beta posteriors with an exact sampler, and limits on single
//     sources.
//   - [github.com/heedhq/heed/store] is the one interface to the place where everything is kept,
//     evidence and records. [github.com/heedhq/heed/store/storetest] tests a store of your own
//     against its contract.
//   - [github.com/heedhq/heed/stream] has the interfaces to the sources and the sinks of events,
//     with [github.com/heedhq/heed/stream/streamtest] for your own.
//   - [github.com/heedhq/heed/loop] closes the whole loop of an agent with the packages below:
//     begin here.
//   - [github.com/heedhq/heed/strategy] learns by Thompson sampling which of several ways works:
//     models, prompts, tools, or ways of bringing a learning into a session.
//     [github.com/heedhq/heed/strategy/strategytest] tests a pooling of your own.
//   - [github.com/heedhq/heed/learning] turns what users do into the confidence of a heuristic: an
//     undo, a click, silence. [github.com/heedhq/heed/learning/learningtest] tests a strategy of
//     your own.
//   - [github.com/heedhq/heed/decision] answers an event with a trusted heuristic, otherwise with
//     the model, otherwise not at all, and records who earns the credit.
//   - [github.com/heedhq/heed/prompt] brings untrusted text into a prompt without letting it look
//     like a part of it.
//   - [github.com/heedhq/heed/patterns] learns from unrated outcomes which ways of working to
//     follow, and which to avoid.
//   - [github.com/heedhq/heed/feedback] turns what reviewers decide into rules that other people
//     approve before an agent sees them.
//   - [github.com/heedhq/heed/memstore] is the store in memory, and
//     [github.com/heedhq/heed/sqlstore] the one in SQLite and PostgreSQL.
//   - [github.com/heedhq/heed/llm] names the ways in which a model fails.
//   - [github.com/heedhq/heed/web] serves pages on which people see what was learned and decide
//     about rules, and an API in JSON for programs in other languages.
//
// Adapters for models, agent frameworks and brokers are modules of their own, below adapter/.
//
// The README has a page for each task, and a picture of how the packages work together; the
// programs in examples/ show the wiring.
//
// # How they work together
//
// An event leads to a decision, which takes the confidence of its heuristics from learning, an arm
// from strategy, and for its prompt the plan of patterns and the rules of feedback. Reactions of
// people and results of tools go back to each of them as evidence. Each package is of use alone,
// and does not import the others. Plain values go from one to the next, in lines of the host's own
// or in package loop. The program in lab/agent has all of them in one loop, and the command in
// cmd/heed shows a store that an application has filled.
//
// This package holds only what the others share, such as the errors, and [Run], which calls their
// sweeps.
//
// # Compatibility
//
// heed is v0: a release may change the API, and the changelog then explains how. The two latest
// releases of Go are supported.
package heed
