package feedback

import (
	"slices"
	"time"
)

// A Rule is a draft that was approved. It has the id of its proposal.
type Rule struct {
	ID string `json:"rule_id"`
	Draft
	Clusters  []string   `json:"clusters,omitempty"` // whose recurrence it should end, sorted
	Authors   []string   `json:"authors,omitempty"`
	Writers   []string   `json:"writers,omitempty"`
	Approvals []Approval `json:"approvals"`
	Status    State      `json:"status"`
	// Pinned ranks it before all rules that are not pinned: see [Rules.Inject].
	Pinned       bool   `json:"pinned,omitempty"`
	SupersededBy string `json:"superseded_by,omitempty"`
	// Activated is when it was approved. Since is when it came into effect last, and its effect is measured from there.
	Activated time.Time `json:"deployed_at"`
	Since     time.Time `json:"since"`
	Left      time.Time `json:"left,omitzero"`   // when it was retired, revoked or superseded last
	Effect    Effect    `json:"effect,omitzero"` // as it was measured last
	// RetireProposed is since when its effect speaks for retiring it, and zero if it does not.
	RetireProposed time.Time `json:"retire_proposed,omitzero"`
	Revision       uint64    `json:"-"` // the store's; an [Archive] has none
}

func (r Rule) at(revision uint64) Rule {
	r.Revision = revision
	r.Draft = r.Draft.clone()
	r.Clusters, r.Authors, r.Writers = slices.Clone(r.Clusters), slices.Clone(r.Authors), slices.Clone(r.Writers)
	r.Approvals = cloneApprovals(r.Approvals)
	return r
}
func (r Rule) revision() uint64 { return r.Revision }

// people are all whom the rule names.
func (r *Rule) people() []string {
	return append(actors(r.Approvals), slices.Concat(r.Authors, r.Writers)...)
}
