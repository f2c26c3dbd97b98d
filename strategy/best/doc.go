// Package best finds the arm of a learner that is the best, with a stated error, and uses it from
// then on.
//
// A Race chooses among a [strategy.Learner]'s arms by top-two sampling: half of the choices go to
// the arm that seems best, and the other half to the one that may yet be better. It stops as soon
// as every other arm is surely worse, or at most by an indifference better. The stated error holds
// at all times together, so you may look after each outcome. Outcomes go to the learner as always.
// They may come late or never, and from several processes. All of a Race's state is in the
// learner's store.
package best
