// Package strategy learns, by Thompson sampling, which of several ways works: for each item, in
// each kind of situation, from the outcomes of its choices.
//
// A [Learner] holds arms. An [Arm] is anything with an id, such as a model, a prompt or a tool.
// [Learner.Select] draws a reward for each arm from the belief about it and chooses the greatest
// draw. So an arm is chosen more often the likelier it is to be the best. [Learner.Observe] credits
// the choice with its outcome: a value in [-1, 1], which becomes a reward in [0, 1] and is weighed
// by its confidence. Without evidence, arms are chosen in the shares of their weights. The values
// of an arm's parameters are learned in the same way. Rewards between 0 and 1 that vary little are
// more evidence than a yes or no, so each counts as several outcomes.
//
// A segment is a category and a context (elsewhere called the context of a bandit), such as the
// kind of a task and the kind of a session. Within a segment there are items, and a [Pooling] sets
// how much they share.
//
// Within a session an item keeps the arm that was chosen first. A [Choice] has all that is needed
// to credit it later. Each choice is also kept in the record of an answer, an answer.Answer. So an
// outcome that comes a day later, also after a restart, finds it by session and item: see
// [Learner.Find]. It counts like any other: see [Learner.Observe] and [Learner.CreditIn]. Limits on
// people apply when beliefs are read: see evidence.Trust. Choices whose outcome never comes expire:
// see [Silence]. Evidence fades with Config.HalfLife. Changes of the arms that are in use are
// found: see Config.IgnoreChanges.
//
// A host that keeps more in the same commit uses store.Do with the methods that end in "In", such
// as [Learner.SelectIn] and [Learner.ObserveIn]. [Learner.CreditIn] credits an arm with what the
// statements about an answer are worth.
//
// What happens to a learner can be put into its store's outbox as a [LearnerEvent], in the same
// commit as the evidence.
//
// Time and randomness come from [Config]. With the same seed, a choice depends on its session and
// item, on the number of their earlier choices that are still remembered, and on the beliefs.
// Choices without a session count in the order in which they are made.
//
// Package injection is a catalogue of arms for agents. Package attribution reads what sessions were
// worth from a stream. Package offpolicy estimates what another policy would have earned. Package
// best finds the best arm with a stated error, and package money weighs what choices cost. Package
// strategytest has the suite for a Pooling of your own.
package strategy
