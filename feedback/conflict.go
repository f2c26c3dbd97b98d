package feedback

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/heedhq/heed/internal/oppose"
	"github.com/heedhq/heed/store"
)

// A Conflict is something that stands against a draft: an active rule or a pending proposal, that some agent would see
// along with it.
type Conflict struct {
	Kind        ConflictKind `json:"kind"`
	ID          string       `json:"id"`                // of the rule, or of the proposal
	Pending     bool         `json:"pending,omitempty"` // it is a proposal
	Score       float64      `json:"score"`             // how alike the texts are, in [0, 1]
	Explanation string       `json:"explanation"`
}

// A ConflictKind says how a conflict came about.
type ConflictKind string

// The kinds of conflicts. A contradiction with an active rule has to be overridden by every approver, or resolved by
// superseding the rule; the others are for them to know.
const (
	Contradiction ConflictKind = "contradiction" // they contradict each other, or name other numbers
	Duplicate     ConflictKind = "duplicate"     // they say the same: a score from halfway between the threshold and 1
	Overlap       ConflictKind = "overlap"       // they are alike: a score from the threshold on
)

// A ConflictError says that active rules contradict what was to be approved, restored or imported.
type ConflictError struct{ Conflicts []Conflict }

func (e *ConflictError) Error() string {
	ids := make([]string, len(e.Conflicts))
	for i, c := range e.Conflicts {
		ids[i] = c.ID
	}
	return "it contradicts active rules: " + strings.Join(ids, ", ")
}

func (e *ConflictError) refusal() string { return e.Error() }

// Conflicts says what now stands against a draft: the contradictions first, then duplicates, then overlaps, each by score
// and id. What the draft supersedes does not.
func (r *Rules) Conflicts(ctx context.Context, d Draft) ([]Conflict, error) {
	d = d.normal()
	if err := r.s.validateDraft(&d); err != nil {
		return nil, wrap("conflicts", err)
	}
	pending, err := r.s.waiting(ctx)
	if err != nil {
		return nil, wrap("conflicts", err)
	}
	conflicts, err := r.s.conflicts(ctx, &d, pending, "")
	return conflicts, wrap("conflicts", err)
}

// waiting returns the proposals that are pending.
func (s *Service) waiting(ctx context.Context) ([]Proposal, error) {
	return proposalKind.union(ctx, s.cfg.Store, [][]string{statusKeys(StatusPending)}, func(*Proposal) bool { return true })
}

// conflicts compares the draft with active rules and with these proposals, but for one.
func (s *Service) conflicts(ctx context.Context, d *Draft, pending []Proposal, except string) ([]Conflict, error) {
	var found []Conflict
	var texts []string
	consider := func(o *Draft, id string, isPending bool) {
		if o.Action == d.Action && d.overlaps(o) && id != except && !slices.Contains(d.Supersedes, id) {
			found = append(found, Conflict{ID: id, Pending: isPending})
			texts = append(texts, o.Text)
		}
	}
	rules, err := s.activeRules(ctx, d)
	if err != nil {
		return nil, err
	}
	for i := range rules {
		consider(&rules[i].Draft, rules[i].ID, false)
	}
	for i := range pending {
		consider(&pending[i].Draft, pending[i].ID, true)
	}
	scores, err := s.scores(ctx, d.Text, texts)
	if err != nil {
		return nil, err
	}
	for i := range found {
		found[i].Score = scores[i]
		s.explain(&found[i], d.Text, texts[i])
	}
	found = slices.DeleteFunc(found, func(c Conflict) bool { return c.Kind == "" })
	if len(found) == 0 {
		return nil, nil
	}
	slices.SortFunc(found, func(a, b Conflict) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	return found, nil
}

// activeRules returns the active rules that an agent of the draft may see. It reads no others.
func (s *Service) activeRules(ctx context.Context, d *Draft) ([]Rule, error) {
	keys := [][]string{{store.Key("active", anyValue)}}
	if d.AllAgents {
		keys = [][]string{statusKeys(RuleActive)}
	}
	for _, agent := range d.Agents {
		keys = append(keys, []string{store.Key("active", agent)})
	}
	return ruleKind.union(ctx, s.cfg.Store, keys, func(r *Rule) bool { return d.overlaps(&r.Draft) })
}

// explain says what kind of a conflict two texts of this score are in, and leaves it open where they are in none.
func (s *Service) explain(c *Conflict, text, other string) {
	threshold := s.cfg.Threshold
	opposed := oppose.Find(text, other)
	switch {
	case (opposed.Contradicts() || opposed == oppose.Numbers) && s.sameTopic(text, other, c.Score):
		c.Kind, c.Explanation = Contradiction, fmt.Sprintf("the texts oppose each other (%s)", opposed)
	case c.Score < threshold:
	case opposed == "" && c.Score >= (1+threshold)/2:
		c.Kind, c.Explanation = Duplicate, "the texts say the same"
	default:
		c.Kind, c.Explanation = Overlap, "the texts are alike"
	}
}

// contradictions leaves of conflicts the contradictions with active rules.
func contradictions(conflicts []Conflict) []Conflict {
	return slices.DeleteFunc(slices.Clone(conflicts), func(c Conflict) bool { return c.Kind != Contradiction || c.Pending })
}
