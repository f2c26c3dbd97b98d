// Package patterns learns from unrated outcomes: which ways of working to follow, and
// which to avoid.
//
// A pattern is a way of doing things that has a name: a strategy of decomposition, a rule of thumb,
// a habit. When a task is over, its [Outcome] records what was followed and what can be counted:
// how long it took, errors, retries, success. [Outcome.Score] makes a score in hundredths and a
// class of it:
//
//	score = 0.4·success + 0.2·duration + 0.2·errors + 0.2·retries
//	helpful from 70 on, harmful up to 40, else neutral
//
// [Recorder.Record] turns an outcome into evidence (package [github.com/heedhq/heed/evidence]) on
// the patterns and criteria that it names. Evidence counts once, fades with a half-life from when
// it happened, and is never overwritten. The state of a pattern ([Recorder.Standing]) and the
// weight of a criterion ([Recorder.Criteria]) are computed when they are read:
//
//	candidate     fewer than 3 observations                                              × 0.5
//	established   it has a record                                                        × 1
//	proven        5 helpful ones, less than 15 % harmful, helped within one half-life    × 1.5
//	deprecated    more than 30 % harmful                                                 × 0
//	inverted      60 % of its observations are failures; its anti-pattern warns of it    × 0
//
// A decision of a person ([Recorder.Promote], [Recorder.Deprecate]) holds until [Recorder.Reset].
// Every change is a [Transition] with its cause.
//
// The numbers come from the learning-systems design. That design puts all gates on faded mass, so
// that a pattern leaves proven within hours without any new evidence. [SpecConfig] has the
// arithmetic of that design.
//
// [Recorder.Plan] gathers what the next prompt needs, [Recorder.Rank] scores the patterns that a
// host could follow, [Recorder.Extract] finds the approaches that a text mentions,
// and [Recorder.Errors] returns the errors of a task for its next attempt. Everything is in one
// [github.com/heedhq/heed/store.Store], which recorders of many processes may share.
//
// A host that records something else in the same commit calls [Recorder.RecordIn] in a step of
// [github.com/heedhq/heed/store.Do].
package patterns
