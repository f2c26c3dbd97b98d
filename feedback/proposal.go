package feedback

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/heedhq/heed/feedback/internal/oppose"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/prompt"
)

// A Proposal is a draft on its way through the gate, with the evidence for it.
type Proposal struct {
	// ID names the proposal, and later the rule that is made of it.
	ID string `json:"proposal_id"`
	Draft
	// Cluster names the cluster that it was made of, and is "" if a person proposed it. A cluster has
	// one proposal at a time.
	Cluster string `json:"cluster,omitempty"`
	// Evidence lists the ids of the feedback behind it, sorted, with the ids of erased feedback.
	// Occurrences and Reviewers count the feedback and its authors, and Summary describes both in
	// words. Confidence is in [0, 1].
	Evidence    []string `json:"created_from_feedback_ids,omitempty"`
	Occurrences int      `json:"occurrences"`
	Reviewers   int      `json:"reviewers"`
	Summary     string   `json:"evidence_summary"`
	Confidence  float64  `json:"classification_confidence"`
	// Authors are the reviewers of the evidence, also of what was evidence before an edit, in
	// canonical form. Writers are those who proposed and edited it, and who wrote the rules that it
	// changes or replaces. Proposer is who proposed or edited it last, and "" if heed proposed it.
	Authors  []string `json:"authors,omitempty"`
	Writers  []string `json:"writers,omitempty"`
	Proposer string   `json:"proposer,omitempty"`

	Warnings []string `json:"warnings,omitempty"` // for approvers
	// Conflicts are those with active rules and pending proposals when it was proposed. If heed
	// proposed it, the feedback that contradicted it is among them.
	Conflicts []Conflict `json:"conflicts,omitempty"`
	Status    State      `json:"status"`
	Approvals []Review   `json:"approvals,omitempty"` // of people who are for it, in their order
	// Previous is the proposal that this one replaces, or the cluster's last proposal before this
	// one. Was is the draft as it was first proposed, before all edits, and nil if it was not edited.
	Previous string `json:"previous,omitempty"`
	Was      *Draft `json:"was,omitempty"`
	// Created is when it was proposed. Expires is when it expires without a decision, seven days
	// later.
	Created time.Time `json:"created_at"`
	Expires time.Time `json:"expires_at"`
	// Decided is when it was closed, Decider who did so, and Reason why.
	Decided  time.Time `json:"decided_at,omitzero"`
	Decider  string    `json:"decided_by,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Revision uint64    `json:"-"` // the store's; not in files
	// Quorum is what a pending proposal lacks, set by the methods of [Rules]. It is not stored.
	Quorum *Quorum `json:"-"`
}

// A State is the state of a proposal or a rule. All states of a proposal except StatePending are
// final.
//
// A proposal is pending, and then approved, rejected, "EXPIRED" (it was not decided in time: one
// more correction proposes it again), "SUPERSEDED" (it was edited: see the proposal whose Previous
// it is), or "DOCUMENTED" (its Draft.Action is "DOCUMENT_ONLY", so it needs no approval). A rule is
// active, retired, revoked, or "SUPERSEDED" by another rule.
type State string

// The states that a person brings about or waits for.
const (
	// StatePending: it waits for approvals, for seven days.
	StatePending State = "PENDING"
	// StateApproved: it is a rule, which has the proposal's id, or its change was made.
	StateApproved State = "APPROVED"
	// StateRejected: one person was against it. It comes back with new evidence alone.
	StateRejected State = "REJECTED"
	// StateActive: the rule is in use.
	StateActive State = "ACTIVE"
	// StateRetired: the rule was taken out of use. A proposal can restore it.
	StateRetired State = "RETIRED"
	// StateRevoked: the rule was withdrawn for good. Its words would have to pass the gate again.
	StateRevoked State = "REVOKED"

	stateExpired    State = "EXPIRED"
	stateSuperseded State = "SUPERSEDED"
	stateDocumented State = "DOCUMENTED"
)

// at returns an independent copy with a revision, because what a store returns is shared. Revision
// 0 is the form in which it is stored.
func (p Proposal) at(revision uint64) Proposal {
	if p.Revision = revision; revision == 0 {
		p.Quorum = nil // as it is stored
	}
	p.Draft = p.Draft.clone()
	if p.Was != nil {
		was := p.Was.clone()
		p.Was = &was
	}
	p.Evidence, p.Authors, p.Writers = slices.Clone(p.Evidence), slices.Clone(p.Authors),
		slices.Clone(p.Writers)
	p.Warnings, p.Conflicts = slices.Clone(p.Warnings), slices.Clone(p.Conflicts)
	p.Approvals = cloneApprovals(p.Approvals)
	return p
}
func (p Proposal) revision() uint64 { return p.Revision }

// people are all whom the proposal names.
func (p *Proposal) people() []string {
	return append(actors(p.Approvals), slices.Concat(p.Authors, p.Writers,
		[]string{p.Decider, p.Proposer})...)
}

// maxPeople is how many people a proposal may name. A store finds it by each of them.
const maxPeople = 100

// checkPeople reports a proposal that names more people than a store finds it by.
func (p *Proposal) checkPeople() error {
	if len(stores.PersonKeys(p.people()...)) > maxPeople {
		return ineligible(fmt.Sprintf("a proposal can name %d people, and no more", maxPeople))
	}
	return nil
}

// actors are those who approve.
func actors(approvals []Review) (names []string) {
	for i := range approvals {
		names = append(names, approvals[i].Actor)
	}
	return names
}

// clone returns an independent copy of a draft.
func (d *Draft) clone() Draft {
	c := *d
	c.Agents, c.Supersedes = slices.Clone(d.Agents), slices.Clone(d.Supersedes)
	return c
}

// cloneApprovals returns independent copies.
func cloneApprovals(approvals []Review) []Review {
	approvals = slices.Clone(approvals)
	for i := range approvals {
		approvals[i].Override = slices.Clone(approvals[i].Override)
		approvals[i].Withhold = slices.Clone(approvals[i].Withhold)
	}
	return approvals
}

// A Rule is a draft that was approved. It has the id of its proposal.
type Rule struct {
	// ID is the id of the proposal that made it.
	ID string `json:"rule_id"`
	// Draft is what its Approvals are for: what made the rule, or restored it last.
	Draft
	Clusters []string `json:"clusters,omitempty"` // whose recurrence it should end, sorted
	// Authors, Writers and Approvals are as in [Proposal]. They decide who may approve a change of
	// the rule.
	Authors   []string `json:"authors,omitempty"`
	Writers   []string `json:"writers,omitempty"`
	Approvals []Review `json:"approvals"`
	Status    State    `json:"status"`
	// Pinned ranks it before all rules that are not pinned: see [Rules.Inject] and "PIN".
	Pinned bool `json:"pinned,omitempty"`
	// SupersededBy is the id of the rule that replaced it, and "" if it was not replaced.
	SupersededBy string `json:"superseded_by,omitempty"`
	// Activated is when it was approved. Since is when it came into effect last, and its effect is
	// measured from there.
	Activated time.Time `json:"deployed_at"`
	Since     time.Time `json:"since"`
	Left      time.Time `json:"left,omitzero"`   // when it was retired, revoked or superseded last
	Effect    Effect    `json:"effect,omitzero"` // as it was measured last
	Revision  uint64    `json:"-"`               // the store's; not in files
}

// at returns an independent copy with a revision, because what a store returns is shared.
func (r Rule) at(revision uint64) Rule {
	r.Revision = revision
	r.Draft = r.Draft.clone()
	r.Clusters, r.Authors, r.Writers = slices.Clone(r.Clusters), slices.Clone(r.Authors),
		slices.Clone(r.Writers)
	r.Approvals = cloneApprovals(r.Approvals)
	return r
}
func (r Rule) revision() uint64 { return r.Revision }

// people are all whom the rule names.
func (r *Rule) people() []string {
	return append(actors(r.Approvals), slices.Concat(r.Authors, r.Writers)...)
}

// The warnings that a proposal may carry for its approvers.
const (
	warnCleaned     = "the evidence has characters that a rule must not have"
	warnVerbatim    = "the text is that of a reviewer, word for word"
	warnInstruction = "the text or its evidence reads like an instruction against other instructions"
	warnSingle      = "a single reviewer is behind it"
	warnWords       = "its sources have other words: check that each of them means the same"
)

// warnings returns what approvers should notice in a draft. They inform approvers, and refuse no
// draft.
func warnings(d *Draft, evidence []Feedback, key text.PseudonymKey) []string {
	var found []string
	warn := func(ok bool, what string) {
		if ok && !slices.Contains(found, what) {
			found = append(found, what)
		}
	}
	reviewers := map[string]bool{}
	warn(oppose.AgainstInstructions(d.Text), warnInstruction)
	for i := range evidence {
		text := evidence[i].content()
		reviewers[key.Of(evidence[i].Reviewer)] = true
		warn(prompt.Check(strings.Join(strings.Fields(text), " ")) != nil, warnCleaned)
		warn(utf8.RuneCountInString(d.Text) >= 20 && strings.Contains(text, d.Text), warnVerbatim)
		warn(oppose.AgainstInstructions(text), warnInstruction)
		warn(evidence[i].Worded, warnWords)
	}
	warn(len(reviewers) == 1, warnSingle)
	slices.Sort(found)
	return found
}
