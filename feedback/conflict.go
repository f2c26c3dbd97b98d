package feedback

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/heedhq/heed/feedback/internal/oppose"
	"github.com/heedhq/heed/store"
)

// A Conflict is an active rule, a pending proposal, a feedback or, of [Rules.Reach], a heuristic
// that a draft conflicts with. Only those count that some agent would see together with the draft.
type Conflict struct {
	// Kind is what they have in common:
	//
	//   - "contradiction": the texts contradict each other, or name other numbers. Every approver has
	//     to override a contradiction with an active rule, or the draft must supersede the rule. The
	//     other kinds only inform approvers.
	//   - "duplicate": the texts mean the same, with a score from halfway between the threshold and
	//     1, or with the same words if only words are compared.
	//   - "overlap": the texts are alike.
	Kind string `json:"kind"`
	// ID is of the rule, the proposal, the feedback or the heuristic.
	ID string `json:"id"`
	// Pending reports that it is a proposal, Correction that it is a feedback: the latest with its
	// text. Both are false for an active rule.
	Pending    bool `json:"pending,omitempty"`
	Correction bool `json:"correction,omitempty"`
	// Score is how alike the texts are, in [0, 1].
	Score float64 `json:"score"`
	// Explanation describes it for people.
	Explanation string `json:"explanation"`
}

// The kinds of conflicts, in the order in which they are listed.
const (
	contradiction = "contradiction"
	duplicate     = "duplicate"
	overlap       = "overlap"
)

// Conflicts returns the rules and proposals that a draft conflicts with now, and the feedback that
// contradicts it among the latest 1,000 decisions about each of its agents:
// contradictions first, then duplicates, then overlaps, each by score. Rules that the draft
// supersedes, feedback that is "archived" and a proposal of this very draft are left out.
func (r *Rules) Conflicts(ctx context.Context, d Draft) ([]Conflict, error) {
	d, err := r.s.checked(d)
	if err != nil {
		return nil, wrap("conflicts", err)
	}
	tx := r.s.reading(ctx)
	tx.Want(waitingWants, store.Wants{Queries: ruleKind.queries(d.activeKeys())})
	pending, err := waiting(tx, r.s.now())
	if err != nil {
		return nil, wrap("conflicts", err)
	}
	hash := d.Hash()
	pending = slices.DeleteFunc(pending, func(p Proposal) bool { return p.Hash() == hash })
	conflicts, err := r.s.conflicts(tx, &d, pending, "")
	if err != nil {
		return nil, wrap("conflicts", err)
	}
	disputed, err := r.s.disputed(tx, &d)
	return sortConflicts(append(conflicts, disputed...)), wrap("conflicts", err)
}

// waiting returns the proposals that can be decided at a moment.
func waiting(tx *store.Tx, now time.Time) ([]Proposal, error) {
	return proposalKind.union(tx, pendingKeys,
		func(p *Proposal) bool { return now.Before(p.Expires) })
}

// pendingKeys are what [waiting] looks for, and waitingWants names what it reads, to be read
// together with other records.
var (
	pendingKeys  = [][]string{statusKeys(StatePending)}
	waitingWants = store.Wants{Queries: proposalKind.queries(pendingKeys)}
)

// conflicts compares the draft with active rules and with these proposals, except for one. Drafts
// with another action, rules that the draft supersedes, and the rule that it changes are left out.
func (s *Service) conflicts(
	tx *store.Tx, d *Draft, pending []Proposal, except string,
) (found []Conflict, err error) {
	var texts []string
	consider := func(o *Draft, id string, isPending bool) {
		if o.Action == d.Action && d.overlaps(o) && id != except && id != d.Of &&
			!slices.Contains(d.replaces(), id) {
			found = append(found, Conflict{ID: id, Pending: isPending})
			texts = append(texts, o.Text)
		}
	}
	seen := func(r *Rule) bool { return d.overlaps(&r.Draft) } // by an agent of the draft
	rules, err := ruleKind.union(tx, d.activeKeys(), seen)
	if err != nil {
		return nil, err
	}
	for i := range rules {
		consider(&rules[i].Draft, rules[i].ID, false)
	}
	for i := range pending {
		consider(&pending[i].Draft, pending[i].ID, true)
	}
	scores, err := s.scores(tx.Context(), d.Text, texts)
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
	return sortConflicts(found), nil
}

// sortConflicts puts contradictions first, then duplicates, then overlaps, each by score. The id
// decides between equals, so that two processes list them alike.
func sortConflicts(all []Conflict) []Conflict {
	slices.SortFunc(all, func(a, b Conflict) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(b.Score, a.Score),
			cmp.Compare(a.ID, b.ID))
	})
	return all
}

// disputed returns the feedback that contradicts a draft, once for each text. If several reviews
// have a text, it is one conflict.
func (s *Service) disputed(tx *store.Tx, d *Draft) (found []Conflict, err error) {
	if !d.speaks() {
		return nil, nil
	}
	texts := map[string]int{} // where each is in found
	err = s.compareRecent(tx, d, func(f *Feedback) bool { return f.Class != archived },
		func(m *Match) {
			if !s.disputes(d.Text, m) {
				return
			}
			text := s.read(m.content()).plain
			if at, known := texts[text]; known {
				found[at].Explanation = fmt.Sprintf("several reviews demand the opposite (%s)", m.Opposed)
				return
			}
			texts[text] = len(found)
			found = append(found, Conflict{
				Kind: contradiction, ID: m.ID, Correction: true, Score: m.Score,
				Explanation: fmt.Sprintf("a review demands the opposite (%s)", m.Opposed),
			})
		})
	return found, err
}

// compareRecent compares a draft with some of the latest decisions about each of its agents that
// have a text, the most alike first.
func (s *Service) compareRecent(tx *store.Tx, d *Draft, selects func(*Feedback) bool,
	visit func(*Match)) error {
	agents := d.Agents
	if d.AllAgents {
		agents = []string{""}
	}
	for _, agent := range agents {
		tx.Want(store.Wants{Queries: []store.Query{s.recentOf(agent)}})
	}
	for _, agent := range agents {
		known, err := s.recent(tx, &Feedback{Agent: agent})
		if err != nil {
			return err
		}
		known = slices.DeleteFunc(known, func(f Feedback) bool { return !selects(&f) })
		matches, err := s.compare(tx.Context(), d.Text, known, false)
		if err != nil {
			return err
		}
		for i := range matches {
			visit(&matches[i])
		}
	}
	return nil
}

// activeKeys are what to look for: the active rules that an agent of the draft may see. A rule for
// all agents, or for many, has the key of anyValue, so that key is always among them.
func (d *Draft) activeKeys() (keys [][]string) {
	if d.AllAgents {
		return [][]string{statusKeys(StateActive)}
	}
	keys = [][]string{{store.Key("active", anyValue)}}
	for _, agent := range d.Agents {
		keys = append(keys, []string{store.Key("active", agent)})
	}
	return keys
}

// explain sets the kind of the conflict of two texts with this score, and leaves it empty if the
// texts do not conflict. Opposition is looked for before likeness, because a text and its opposite
// are alike.
func (s *Service) explain(c *Conflict, text, other string) {
	threshold := s.cfg.Threshold
	if !s.sameTopic(text, other, c.Score) {
		return
	}
	opposed := s.opposed(text, other)
	switch {
	case opposed.Contradicts() || opposed == oppose.Numbers:
		c.Kind = contradiction
		c.Explanation = fmt.Sprintf("compared word by word, they may oppose each other (%s)", opposed)
	case c.Score < threshold:
	case opposed == "" && c.Score >= (1+threshold)/2 &&
		(!wording(s.cfg.Similarity) || s.sameText(text, other)):
		c.Kind, c.Explanation = duplicate, "the texts mean the same"
	default:
		c.Kind, c.Explanation = overlap, "the texts are alike"
	}
}

// against returns the active rules that the draft contradicts.
func (s *Service) against(tx *store.Tx, d *Draft) ([]Conflict, error) {
	if !d.speaks() {
		return nil, nil
	}
	conflicts, err := s.conflicts(tx, d, nil, "")
	return slices.DeleteFunc(conflicts, func(c Conflict) bool { return c.Kind != contradiction }), err
}

// DryRun returns the past corrections to which a draft would have applied, the most alike first,
// and how many corrections it looked at: of each agent of the draft, among the latest 1,000
// decisions. Match.Opposed marks which contradict the draft. DryRun only reads.
func (r *Rules) DryRun(ctx context.Context, d Draft) (applied []Match, of int, err error) {
	s := r.s
	if d, err = s.checked(d); err != nil {
		return nil, 0, wrap("dry run", err)
	}
	corrects := func(f *Feedback) bool {
		if f.corrects() {
			of++
		}
		return f.corrects()
	}
	err = s.compareRecent(s.reading(ctx), &d, corrects, func(m *Match) {
		if m.Score >= s.cfg.Threshold {
			applied = append(applied, *m)
		}
	})
	if err != nil {
		return nil, 0, wrap("dry run", err)
	}
	slices.SortStableFunc(applied, func(a, b Match) int { return cmp.Compare(b.Score, a.Score) })
	return applied, of, nil
}
