// Package heed makes an AI-agent application learn from what happens to it.
//
// heed is a library to embed. The host keeps its agent, its model client and its database; heed supplies the parts that
// decide, remember and improve, and the host wires them together. Nothing in it phones home, and nothing runs unless the
// host calls it.
//
// # The idea
//
// Everything learned is a sum of evidence: an observation says that a thing earned a reward, with a weight, from a source,
// at a time, under an id. A belief is a prior plus that sum, read at a moment. Sums commute; so the order of arrival does
// not matter, what is delivered twice counts once, many processes can add to one belief, a source can be limited or taken
// out afterwards, and a belief is explained by listing what went into it.
//
// # The packages
//
//   - [github.com/heedhq/heed/evidence] is the arithmetic of belief that all others share: observations, tallies that
//     fade, Beta posteriors with an exact sampler, and limits on single sources.
//   - [github.com/heedhq/heed/store] is the one seam to where everything is kept, evidence and records, and
//     [github.com/heedhq/heed/store/storetest] is its contract in executable form, for your own store.
//   - [github.com/heedhq/heed/stream] is the seam to where events come from and go to, with
//     [github.com/heedhq/heed/stream/streamtest] for your own.
//   - [github.com/heedhq/heed/loop] closes the whole loop of an agent with the packages below: begin here.
//   - [github.com/heedhq/heed/strategy] learns by Thompson sampling which of several ways works: models, prompts, tools,
//     or ways of bringing a learning into a session.
//   - [github.com/heedhq/heed/strategy/strategytest] has the contract of a pooling, for your own.
//   - [github.com/heedhq/heed/learning] turns what users do into the confidence of a heuristic: an undo, a click, silence.
//   - [github.com/heedhq/heed/learning/learningtest] is the contract of its strategies, for your own.
//   - [github.com/heedhq/heed/decision] answers an event with a heuristic that is trusted, else with the model, else not at
//     all, and says who earns what people make of the answer.
//   - [github.com/heedhq/heed/prompt] brings untrusted text into a prompt without letting it look like a part of it.
//   - [github.com/heedhq/heed/patterns] learns from outcomes that nobody rated which ways of working to follow, and which
//     to avoid.
//   - [github.com/heedhq/heed/feedback] turns what reviewers decide into rules that other people approve before an agent
//     sees them.
//   - [github.com/heedhq/heed/memstore] is the store in memory, and [github.com/heedhq/heed/sqlstore] the one in SQLite and
//     PostgreSQL.
//   - [github.com/heedhq/heed/llm/openaicompat] asks a model through a chat-completions endpoint, for decisions.
//
// The README has a page for each task, and a picture of how the packages work together; the programs in examples/ show the
// wiring.
//
// # How they work together
//
// An event leads to a decision, which takes the confidence of its heuristics from learning, an arm from strategy, and for
// its prompt the plan of patterns and the rules of feedback. What people and tools make of the answer is credited by decision,
// and goes back to each of them as evidence. Each is of use alone, and none imports another: what goes from one to the next
// is plain values, in lines of the host's own. The program in examples/agent has all of them in one loop,
// and the command in cmd/heed looks into a store that an application has filled.
//
// This package itself holds only what the others share: the errors, and [Run], which has all that is due done.
//
// # Compatibility
//
// heed is v0: a release may change the API, and the changelog then says how. The two latest releases of Go are supported.
package heed
