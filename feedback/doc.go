// Package feedback turns what reviewers decide about an agent's work into rules for that agent, which other people approve
// before it sees them.
//
// # The model
//
//	decision → Feedback → Evaluate → proposal → Review by two people → rule → Inject → measured effect
//
// A [Feedback] is one reviewer's decision: approved, rejected, approved with changes, with what they said. [Service.Record]
// keeps it before anything else happens, once for each decision id. [Service.Evaluate] classifies it. A correction joins
// the cluster of those that say the same; three of them, or two reviewers, make the cluster [GeneralizableHigh], and a
// correction that contradicts what was said before is [Ambiguous], for a person to resolve ([Service.Resolve]), however many
// agree with it. The confidence of a cluster is
//
//	1 − 2^(−0.8·(Σ links + reviewers − 1))
//
// with the link of each correction how alike it is to the others: it never falls when a correction or a reviewer comes.
// From [Config].Expedite on a cluster is proposed as a rule at once; the others wait for [Service.Flush]. A cluster has one
// proposal at a time, whatever its words; once it was rejected, only fresh evidence opens another.
//
// # What says the same
//
// A [heed.Similarity] says how alike texts are: [heed.Trigrams], which needs no model, or a [heed.Embedder]. From
// [Config].Threshold on, texts are alike. No similarity tells a text from its opposite, which shares nearly all of its words.
// So heed also looks for oppositions before it treats two texts as one: negations, numbers with their units, antonyms,
// exchanged sides, other names, and single words that were exchanged ([Match].Opposed).
//
// # The gate
//
// Nobody changes a prompt alone. A rule is made when two people have approved it, none of whom proposed or edited it, and
// not both of whom gave the feedback that it was made of ([Gate]). An approval is bound to the hash of the words, the
// agents and the place; editing makes a new version without approvals. When the rule is made, its conflicts with active
// rules are checked again in the same step of the store, and a contradiction has to be overridden by each approver. Every
// decision has a reason, and is in the audit log with who, what and when, refusals among them.
//
// Who somebody is, and who may do what, the host knows: [Config].Canonical brings ids into one form, [Authorizer] is asked
// first. Approved rules stay until somebody revokes or retires them; proposals expire.
//
// # In the prompt
//
// [Rules.Inject] puts an agent's rules after its instructions and before its task: at most twenty, in a budget of
// characters, each whole and on a line of its own, in an order that is the same each time. Without rules, the prompt is what
// it was. What was put in is known again, so that building twice does not double it and a reviewer who quotes it is not taken
// at its word. [Rules.ByPlace] is for hosts that place rules themselves.
//
// # Effect
//
// A rule that was made of feedback should end it: [Effect] compares how often its cluster recurs before and after, and, for
// rules that somebody proposed, how often the agent was corrected. [Service.Sweep] measures all rules and marks those that
// should be retired. Rates are counted with package evidence. A rule is proposed when what it is about has just come up often,
// so some of the fall would have come without it; Shift.Certainty speaks of the numbers, not of the cause.
//
// # What is for the host
//
// Heed starts no goroutine. A host calls Feedback and Evaluate (or runs a [Consumer]) when decisions come, has [heed.Run] call
// [Service.Sweep], which knows what is due, and shows people what [Rules.Proposals] lists.
//
// All is kept in a [store.Store], as records of the kinds "feedback.record", "feedback.proposal" and "feedback.rule", and in
// its audit log. An approval, the rule that it completes and their audit entries are one commit. Several services, in several
// processes, may share a store. It keeps the latest 100,000 decisions and as many proposals, unless its own configuration says
// otherwise; a rule is never dropped, and one more than 100,000 is refused.
//
// # Implementing the interfaces
//
// [heed.Similarity], [Evaluator] and [Drafter] may ask a model: their answers are checked, their errors leave the feedback to be
// evaluated again, and their panics are errors.
package feedback
