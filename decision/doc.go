// Package decision answers an event: with a trusted heuristic, else with a language model, else not
// at all. It records how each answer came about, so that a reaction reaches the heuristic that gave
// the answer.
//
// # Deciding
//
// A [Strategy] takes a [Request] and returns a [Result]. The [Decider] of this package looks at the
// best candidate first. The candidate answers if its confidence (package learning) is at least
// [Config].Threshold, shifted:
//
//	clamp(threshold + bias - urgency·reduction, 0.30, 0.95)
//
// and no model is called then. Otherwise the model is asked, if there is one and the event can't
// wait. A prompt shows at most a few candidates in random order, by their condition and action
// alone, and states that they may be ignored. Scores are not shown, because the model would lean on
// them. With the strategy "always_llm" a heuristic never answers.
//
// Candidates below the threshold are withheld from the prompt ([Config].Withhold). The model's
// answer is then compared with their texts ([Result].Compared). Because the model had not seen
// them, its agreement is evidence, and a new heuristic can earn trust before it answers a user.
//
// A model may be asked how probable it is that its answer succeeds ([Config].Prediction). It is
// believed up to a ceiling. Thoughts of a reasoning model are in [Result].Thoughts alone.
//
// A model may fail, talk nonsense, hang or panic. The result is then a [Path] with a reason, and
// no error. It is there at the latest when [Config].Timeout is over, plus a second if
// texts are compared. Each call of a model has its own goroutine, which ends with the call. Of
// calls that ignore their context, at most [Config].MaxInFlight stay.
//
// Candidates, their confidences and the goals come with each request. They are not cached, so what
// was learned counts at once. Texts from outside enter a prompt through package prompt only.
//
// # In parts
//
// [Decider.Decide] does everything. A host whose framework calls the model itself, or that stores
// the answer with its own records, uses the parts of one Decider instead:
//
//   - [Decider.Trusted] returns the answer of a trusted heuristic, if there is one.
//   - [Decider.Ask] returns the question for a model.
//   - [Decider.Reply] asks any model, or takes an answer that is already there.
//   - [Decider.TraceIn] adds the trace to a step of the host's ([store.Do]).
//   - [Decider.Notify] notifies the observer.
//
// [Request].AskModel does for one request what the strategy "always_llm" does for all. With
// ShowNone the prompt has no candidate.
//
// # Learning
//
//   - [Decider.Feedback] returns a reaction as a statement about the heuristic that earns it, with
//     the trace of the answer. Package learning counts the statement, and [Factors] weigh it.
//   - [Decider.Extract] has the model write a new heuristic from an answer that was praised.
//   - [Result].Compared lists which withheld candidates the model agreed with. Pass them on in
//     learning.Fire.
//   - A request without candidates asks the model about a heuristic's situation without showing the
//     heuristic. While a host is idle, it may compare the two: see the example SleepCycle of
//     [Decider.Decide].
//   - An [Experiment] runs strategies side by side on the same traffic, split or in shadow.
//
// # What a host implements
//
// [LLM] has one method, and [LLMFunc] makes one of a closure. A [heed.Similarity] compares texts.
// Package decisiontest provides the contract of a strategy as a test suite. Package llmtest
// provides the contract of a model, and a scripted model for tests.
//
// # What is stored
//
// One [store.Store] has the traces of answers. [Decider.TraceIn] lets a host commit a trace
// together with its own changes. The store's Sweep drops expired records.
//
// Time, randomness and ids come from [Config]. With the same seed a request is always decided
// alike.
package decision
