// Package strategy learns, by Thompson sampling, which of several ways works: for each item, in each kind of situation,
// from what came of the choices it made.
//
// # The model
//
// A [Learner] holds arms. An [Arm] is anything with an id: the four ways of bringing a learning into an agent's session
// ([Injection]), or a host's own models, prompts, tools. [Learner.Select] draws a reward for each arm from what is believed
// of it and chooses the greatest draw, so that an arm is chosen the more often the likelier it is to be the best.
// [Learner.Observe] credits the choice with its outcome: value in [-1, 1], mapped to a reward in [0, 1] once, weighed by
// its confidence.
//
// What is called the context of a bandit elsewhere is the segment here: a category and a context, such as the kind of a
// learning and the kind of a session. Within a segment there are items, and a [Pooling] says how much they share.
// [TwoLevel], the default, learns from the items how alike they are, and lets each start from what the others have shown.
//
// While nothing is known, arms are chosen in the shares of their weights: see [Arm]. An arm's parameters are learned as the
// arm is, each value from the choices that had it.
//
// A reward tells as much as rewards like it are seen to tell: where they are graded and vary less than tosses of a coin
// would, each counts for more than one toss, by the dispersion that the spread of rewards measures.
//
// # In a session, and after it
//
// Within a session an item keeps the arm that was chosen first. A [Choice] tells all about itself (what was believed, what
// was drawn, how probable it was), and is all that is needed to credit it later. With Config.Choices each is kept as a
// [Record] too, so that an outcome which comes a day later, and knows session and item alone, finds it ([Learner.Find]);
// choices whose outcome never comes expire ([Silence]).
//
// # When the world changes
//
// Evidence fades with Config.HalfLife. That costs something while nothing changes; a [Change] test costs next to nothing,
// and finds changes of the arms that are in use.
//
// # Events
//
// A [Consumer] reads what sessions were worth from a [Source], makes outcomes of it with a [Router], and has the learner
// count each once, however often it is delivered. What happens to a learner can be put into its store's outbox as events, in
// the same batch as the evidence, from where [Relay] brings it to a [Sink]; [Learner.Replay] makes of such a log what the
// store was.
//
// # Testing
//
// Time and randomness come from [Config]. With the same seed, a choice depends on its session and item, on how many choices
// they have had that are still remembered, and on what is believed, and not on what else is chosen meanwhile. Choices
// without a session are numbered in the order in which they are made.
package strategy
