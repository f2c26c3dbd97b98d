// Package patterns learns from outcomes that nobody rated: which ways of working to follow, and which to avoid.
//
// # The model
//
// A pattern is a way of doing things that has a name: a strategy of decomposition, a rule of thumb, a habit. When a task is
// over, its [Outcome] says what was followed and what can be counted: how long it took, errors, retries, success. [Scoring]
// makes a score in hundredths and a class of it:
//
//	score = 0.4·success + 0.2·duration + 0.2·errors + 0.2·retries      helpful from 70 on, harmful up to 40, else neutral
//
// [Recorder.Record] does everything that follows from an outcome. Each criterion that the outcome names gets evidence, as
// strong as the outcome was clear. Each pattern that it names gets an observation: a success if the outcome was helpful, a
// failure if it was harmful, and none if it was neutral. A pattern that the agent was merely shown is not credited.
//
// Both are evidence (package [github.com/heedhq/heed/evidence]). It counts once, it fades with a half-life from when it
// happened, and it is never overwritten. The weight of a criterion ([Criteria]) and the state of a pattern ([Maturity]) are
// computed when they are read.
//
// # The life of a pattern
//
// Gates of evidence are on counts, which do not fade. Shares are of masses, which fade.
//
//	candidate     fewer than 3 observations                                              × 0.5
//	established   it has a record                                                        × 1
//	proven        5 helpful ones, less than 15 % harmful, helped within one half-life    × 1.5
//	deprecated    more than 30 % harmful                                                 × 0
//	inverted      60 % of its observations are failures; its anti-pattern warns of it    × 0
//
// An inversion ([Inversion]) happens once, and makes the anti-pattern in the same commit. An inverted pattern goes on
// collecting evidence, and later success rehabilitates it. A decision of a person ([Recorder.Promote], [Recorder.Deprecate])
// holds until [Recorder.Reset]. Every change is a [Transition] with its cause. [Standing] says which conditions a pattern
// misses. [Recorder.Sweep] stores the changes that time alone has made.
//
// The numbers come from the learning-systems design. That design puts all gates on faded mass, so that a pattern leaves
// proven within hours without any new evidence. Config.Literal has its arithmetic as it stands there.
//
// # Using it
//
// [Recorder.Plan] gathers what the next prompt needs. [Recorder.Rank] scores the patterns that a host could follow.
// [Recorder.Extract] finds the approaches that a text speaks of. [Recorder.Errors] has the errors of a task for the prompt of
// the next attempt. [Strikes] say when attempts should stop. Package [github.com/heedhq/heed/prompt] makes texts in prompts
// safe, and every section has limits and a fixed order.
//
// Everything is in one [github.com/heedhq/heed/store.Store], and recorders of many processes may share it. All that follows
// from an outcome is one commit.
package patterns
