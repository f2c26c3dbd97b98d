package feedback

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
)

// Store keeps feedback, proposals, rules and the audit log.
//
// Every value has a revision, and the store has named revisions besides, for what several values decide together: whoever
// writes says which revisions they have read, and where one of them is no longer current, nothing is written. So a decision
// of several people, its entry in the audit log and what follows from it stand or fall together, in one process or in many.
//
// An implementation must be safe for concurrent use by multiple goroutines. Every method honours its context: one that is
// done on entry gives its error and changes nothing. What goes in or comes out is copied. Times are kept to the microsecond.
// Package feedbacktest has the suite that says whether an implementation keeps this contract.
type Store interface {
	// Apply makes a change: all of it, or none of it and an error. What it made, every read that begins after its return
	// sees. Where a revision is not the one that is stored, the error is a [heed.ErrConflict].
	Apply(ctx context.Context, c Change) error

	// Revisions returns the named revisions in the order asked. One that was never raised is 0.
	Revisions(ctx context.Context, names ...string) ([]uint64, error)

	// Record returns a feedback, or [heed.ErrNotFound].
	Record(ctx context.Context, id string) (Record, error)

	// Records returns the feedback that a query selects, the newest first, and of one moment by id. Changes that are made
	// during the loop may be seen or not. The loop may call the store and may end early; after an error it ends.
	Records(ctx context.Context, q Query) iter.Seq2[Record, error]

	// Proposal returns a proposal, or [heed.ErrNotFound].
	Proposal(ctx context.Context, id string) (Proposal, error)

	// Proposals returns the proposals that a query selects, the newest first, and of one moment by id. The rules of Records
	// hold.
	Proposals(ctx context.Context, q ProposalQuery) iter.Seq2[Proposal, error]

	// Rule returns a rule, or [heed.ErrNotFound].
	Rule(ctx context.Context, id string) (Rule, error)

	// Rules returns the rules that a query selects, the newest first, and of one moment by id. The rules of Records hold.
	Rules(ctx context.Context, q RuleQuery) iter.Seq2[Rule, error]

	// Audit returns all entries of the audit log, the last recorded first. No entry is ever changed or dropped. The rules
	// of Records hold.
	Audit(ctx context.Context) iter.Seq2[evidence.AuditEntry, error]
}

// A Change is what stands or falls together. The revision of each value is the one that it was read with, 0 for a value
// that must not exist yet; the store keeps it with that number plus one. No value is in a change twice.
type Change struct {
	// Expect are named revisions as they were read. A change that is made raises each by one.
	Expect map[string]uint64

	Records   []Record
	Proposals []Proposal
	Rules     []Rule
	Audit     []evidence.AuditEntry // to be added; an entry whose id is known is left out
}

// A Record is a feedback as it is kept: with what was made of it.
type Record struct {
	Feedback
	Evaluation
	// Recorded is when it was first kept.
	Recorded time.Time `json:"recorded"`
	// Erased is when its content was deleted, of which the id alone is left so that it does not come back.
	Erased   time.Time `json:"erased,omitzero"`
	Revision uint64    `json:"revision"`
}

// Clone returns a copy that shares nothing.
func (r Record) Clone() Record {
	c := r
	c.Feedback = r.Feedback.clone()
	c.Similar = slices.Clone(r.Similar)
	return c
}

// A Query selects feedback. A field that is not set selects all. What was erased is selected by no query.
type Query struct {
	Agent, Gate string
	Class       Classification // or Unclassified
	Cluster     string
	Since       time.Time // this moment and later
	Until       time.Time // before this moment
}

// Unclassified selects, in a [Query], the feedback that is still to be evaluated.
const Unclassified Classification = "unclassified"

// Selects reports whether the query selects a record.
func (q Query) Selects(r Record) bool {
	class := r.Class
	if class == "" {
		class = Unclassified
	}
	return r.Erased.IsZero() && matches(q.Agent, r.Agent) && matches(q.Gate, r.Gate) && matches(q.Class, class) &&
		matches(q.Cluster, r.Cluster) && !r.At.Before(q.Since) && (q.Until.IsZero() || r.At.Before(q.Until))
}

// A ProposalQuery selects proposals. A field that is not set selects all.
type ProposalQuery struct {
	Status        Status
	Agent         string // is among those affected, or all are
	Type          RuleType
	Cluster       string
	Proposer      string  // in canonical form
	MinConfidence float64 // this or more
}

// Selects reports whether the query selects a proposal.
func (q ProposalQuery) Selects(p Proposal) bool {
	return matches(q.Status, p.Status) && (q.Agent == "" || p.Affects(q.Agent)) && matches(q.Type, p.Type) &&
		matches(q.Cluster, p.Cluster) && (q.Proposer == "" || slices.Contains(p.Writers, q.Proposer)) && p.Confidence >= q.MinConfidence
}

// A RuleQuery selects rules. A field that is not set selects all.
type RuleQuery struct {
	Status RuleStatus
	Agent  string // is among those affected, or all are
}

// Selects reports whether the query selects a rule.
func (q RuleQuery) Selects(r Rule) bool {
	return matches(q.Status, r.Status) && (q.Agent == "" || r.Affects(q.Agent))
}

func matches[T ~string](wanted, value T) bool { return wanted == "" || wanted == value }
