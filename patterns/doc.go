// Package patterns learns from outcomes that nobody rated: which ways of working to follow, and which to avoid.
//
// # The model
//
// A pattern is a way of doing things that can be named: a strategy of decomposition, a rule of thumb, a habit. When a task
// is over, its [Outcome] says what was followed and what can be counted: how long it took, errors, retries, success.
// [Scoring] makes of it a score in hundredths and a class:
//
//	score = 0.4·success + 0.2·duration + 0.2·errors + 0.2·retries      helpful from 70 on, harmful up to 40, else neutral
//
// [Recorder.Record] does all that follows from an outcome. Each criterion that it names gets feedback, as strong as the
// outcome was clear. Each pattern that it names gets an observation: a success where it was helpful, a failure where it was
// harmful, and none where it was neutral. What was merely shown to the agent, and not named, is not credited.
//
// Both are evidence (package [github.com/heedhq/heed/evidence]): it counts once, fades with a half-life from when it
// happened, and is never written over. What a criterion weighs ([Criteria]) and where a pattern stands ([Maturity]) is
// worked out when it is read.
//
// # The life of a pattern
//
// Gates of evidence are on counts, which do not fade, and ratios are of masses, which do:
//
//	candidate     fewer than 3 observations                                              × 0.5
//	established   it has a record                                                        × 1
//	proven        5 helpful ones, less than 15 % harmful, helped within one half-life    × 1.5
//	deprecated    more than 30 % harmful                                                 × 0
//	inverted      60 % of its observations are failures: its anti-pattern warns of it    × 0
//
// An inversion ([Inversion]) happens once, together with the anti-pattern. An inverted pattern goes on collecting evidence,
// and is rehabilitated by later success. What people decide by hand, [Recorder.Promote] and [Recorder.Deprecate], sticks
// until [Recorder.Reset]. Every change is a [Transition] with its cause; [Recorder.Explain] says which gate a pattern misses.
// [Recorder.Sweep] stores what time alone has changed and archives what nothing was heard of for long.
//
// The learning-systems design, from which the numbers come, puts all gates on faded mass, so that a pattern leaves proven
// within hours, and deprecated within a day, without anyone saying a word. Config.Literal has its arithmetic as it stands there.
//
// # Using what was learned
//
// [Recorder.PlanContext] gathers what the next plan's prompt needs: past tasks like this one, proven and established
// patterns, anti-patterns. [Recorder.Rank] multiplies the scores of patterns that a host could follow, and leaves out those
// to avoid. [Recorder.Extract] finds in a description which strategies it speaks of. An [Accumulator] keeps the errors of a
// task, for the prompt of the next attempt and for the score; [Strikes] say when attempts should stop. Texts in prompts are
// made safe by package [github.com/heedhq/heed/prompt], and every section has limits and a fixed order.
//
// # The store
//
// All of it is in one [github.com/heedhq/heed/store.Store]: evidence in cells, and patterns, transitions, outcomes and errors
// in records. What follows from an outcome is one commit. Recorders of many processes share a store: each commit takes changes
// with the revision that they were made from, and is worked out anew where another was quicker. The half-lives of a recorder
// are kept in the store, as are its other settings: see [New] and [Rebuild].
package patterns
