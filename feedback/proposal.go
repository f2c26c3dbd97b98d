package feedback

import (
	"fmt"
	"slices"
	"time"
)

// A Proposal is a draft on its way through the gate, with the evidence for it.
type Proposal struct {
	ID string `json:"proposal_id"`
	Draft
	// Cluster names the cluster that it was made of, and is "" if a person proposed it. A cluster has one proposal at a time.
	Cluster string `json:"cluster,omitempty"`
	// Evidence has the ids of the feedback behind it, sorted, with those of erased feedback. Occurrences and Reviewers say how much
	// feedback there was, and Summary says it in words. Confidence is in [0, 1].
	Evidence    []string `json:"created_from_feedback_ids,omitempty"`
	Occurrences int      `json:"occurrences"`
	Reviewers   int      `json:"reviewers"`
	Summary     string   `json:"evidence_summary"`
	Confidence  float64  `json:"classification_confidence"`
	// Authors are the reviewers of the evidence, and Writers those who proposed and edited it, in canonical form.
	Authors []string `json:"authors,omitempty"`
	Writers []string `json:"writers,omitempty"`

	Warnings  []string   `json:"warnings,omitempty"`  // what approvers should know
	Conflicts []Conflict `json:"conflicts,omitempty"` // with active rules and pending proposals, when it was proposed
	Status    State      `json:"status"`
	Approvals []Approval `json:"approvals,omitempty"` // of people who are for it, in their order
	// Previous is the proposal that this one replaces, or the cluster's last proposal before this one.
	Previous string    `json:"previous,omitempty"`
	Created  time.Time `json:"created_at"`
	Expires  time.Time `json:"expires_at"`
	// Decided is when it was closed, Decider who did so, and Reason why.
	Decided  time.Time `json:"decided_at,omitzero"`
	Decider  string    `json:"decided_by,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Revision uint64    `json:"-"` // the store's; an [Archive] has none
}

// An Approval is one person's consent.
type Approval struct {
	Actor    string    `json:"actor"` // in canonical form
	Reason   string    `json:"reason"`
	Hash     string    `json:"hash"`               // of the draft that was approved
	Override []string  `json:"override,omitempty"` // the active rules that it may contradict
	At       time.Time `json:"at"`
}

// A State is where a proposal or a rule stands. Of a proposal, all but StatePending are final.
type State string

// The states. A proposal is pending, and then approved, rejected, expired, superseded or documented. A rule is active,
// retired, revoked or superseded.
const (
	StatePending    State = "PENDING"
	StateApproved   State = "APPROVED"   // it is a rule, which has the proposal's id
	StateRejected   State = "REJECTED"   // one person was against it
	StateExpired    State = "EXPIRED"    // nobody decided in time
	StateDocumented State = "DOCUMENTED" // its action is DocumentOnly, and it is recorded
	StateActive     State = "ACTIVE"     // it is in use
	StateRetired    State = "RETIRED"    // taken out of use; it can be restored
	StateRevoked    State = "REVOKED"    // withdrawn for good; it would have to pass the gate anew
	// StateSuperseded of a proposal means that it was edited: see the proposal whose Previous it is. Another rule took the place
	// of a superseded rule.
	StateSuperseded State = "SUPERSEDED"
)

func (p Proposal) at(revision uint64) Proposal {
	p.Revision = revision
	p.Draft = p.Draft.clone()
	p.Evidence, p.Authors, p.Writers = slices.Clone(p.Evidence), slices.Clone(p.Authors), slices.Clone(p.Writers)
	p.Warnings, p.Conflicts = slices.Clone(p.Warnings), slices.Clone(p.Conflicts)
	p.Approvals = cloneApprovals(p.Approvals)
	return p
}
func (p Proposal) revision() uint64 { return p.Revision }

// people are all whom the proposal names.
func (p *Proposal) people() []string {
	return append(actors(p.Approvals), slices.Concat(p.Authors, p.Writers, []string{p.Decider})...)
}

// maxPeople is how many people a proposal may name. A store finds it by each of them.
const maxPeople = 100

// checkPeople reports a proposal that names more people than a store finds it by.
func (p *Proposal) checkPeople() error {
	if len(personKeys(p.people()...)) > maxPeople {
		return ineligible(fmt.Sprintf("a proposal can name %d people, and no more", maxPeople))
	}
	return nil
}

// actors are those who approve.
func actors(approvals []Approval) (names []string) {
	for i := range approvals {
		names = append(names, approvals[i].Actor)
	}
	return names
}

func (d *Draft) clone() Draft {
	c := *d
	c.Agents, c.Supersedes = slices.Clone(d.Agents), slices.Clone(d.Supersedes)
	return c
}

func cloneApprovals(approvals []Approval) []Approval {
	approvals = slices.Clone(approvals)
	for i := range approvals {
		approvals[i].Override = slices.Clone(approvals[i].Override)
	}
	return approvals
}
