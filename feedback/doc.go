// Package feedback turns what reviewers decide about an agent's work into rules for that agent.
// Other people approve a rule before the agent sees it.
//
//	decision → Record → Evaluate → proposal → Review by two people → rule → Inject → measured effect
//
// [Service.Record] keeps a reviewer's decision, once for each ID. [Service.Evaluate] classifies it.
// A correction joins the cluster of corrections that mean the same. Three corrections, or two
// reviewers, make the cluster [GeneralizableHigh]. A correction that contradicts an earlier one is
// [Ambiguous], and a person resolves it ([Service.Resolve]). The confidence of a cluster is
//
//	1 − 2^(−0.8·(Σ links + reviewers − 1))
//
// where the link of a correction is how alike it is to the others. It never falls when a correction
// or a reviewer is added. From a confidence of 0.7 on a cluster is proposed as a rule at once. The
// others wait for [Service.Flush].
//
// # Which texts mean the same
//
// A [heed.Similarity] measures how alike texts are. No similarity distinguishes a text from its
// opposite, because the two share nearly all of their words. So heed also looks for oppositions
// before it treats two texts as one: negations, numbers with their units, antonyms, exchanged
// sides, other names, and single words that were exchanged ([Match].Opposed). No list of words
// finds all of them, and the lists also find oppositions between texts that agree. So heed asks
// [Config].Evaluator about each opposition it finds, and without an Evaluator it asks a person.
//
//   - By words alone, texts with the same words in another order or form are brought together.
//     Other texts are kept apart.
//   - A similarity that compares meanings brings texts together that share few words. Where they
//     share many and are not the same, the later one is [Ambiguous].
//   - Both may be wrong ([Evaluation].Worded), so that what they bring together is never proposed
//     at once. Approvers read the sources side by side ([Rules.Sources]), and take out what does
//     not belong ([Service.Split]).
//   - An evaluator's verdict on two texts counts, whatever their words are.
//
// [Evaluation].Near lists corrections that were kept apart and may mean the same. A person joins
// them ([Service.Join]).
//
// # The gate
//
// No person can put words into a prompt alone. A rule needs two approvals of people who neither
// proposed nor edited it, and at least one of them did not give any of the feedback behind it
// ([Gate]). To restore, pin or unpin a rule needs them too ([Draft].Change). One person can take a
// rule out ([Rules.Move]). An approval is bound to the hash of the draft. Editing makes a new
// version without approvals. When a rule is made, its conflicts with active rules are checked again
// in the same step of the store, and each approver must override a contradiction. Every decision
// needs a reason. Decisions and refusals are recorded in the audit log.
//
// People and their rights are defined by the host: see [Feedback].Reviewer and [Config].Authorize.
//
// # The effect
//
// A rule that was made of feedback should end it. [Effect] compares how often its cluster recurs
// before and after the rule, and for other rules how often the agent was corrected. A rule is
// proposed when its subject just came up often. So some of the fall would have come without it:
// Effect.Certainty is about the numbers, not about the cause.
//
// # The host's part
//
// Heed starts no goroutine. A host calls Record and Evaluate, or [Service.Consume], when decisions
// come. It has [heed.Run] call [Service.Sweep], and shows people the proposals that
// [Rules.Proposals] lists.
//
// A host that records something else in the same commit calls [Service.RecordIn],
// [Rules.InjectIn] and [Rules.CheckIn] in a step of [store.Do]. [Rules.Wants] names what the last
// two read, so that it is read together with the host's records.
//
// Everything is in a [store.Store], as records of the kinds "feedback.record", "feedback.proposal"
// and "feedback.rule", and in its audit log. An approval, the rule that it completes and their
// audit entries are one commit. Several services, in several processes, may share a store. It keeps
// the latest 100,000 decisions and as many proposals, unless its own configuration sets other
// limits. A rule is never dropped, and one more than 100,000 is refused.
package feedback
