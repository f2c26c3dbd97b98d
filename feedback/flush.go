package feedback

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/store"
)

// Flush proposes a rule for each cluster without a rule: a cluster of generalizable corrections, or
// of enough approvals that state what was right. It returns the proposals that it opened or gave
// more evidence, and how many clusters wait because too many proposals are pending. A cluster whose
// rule was rejected or retired needs three more corrections first. Each further rejection doubles
// that number, and they must be by as many people as make a cluster [GeneralizableHigh], one of
// whom did not give any of the rejected evidence. If one cluster fails, Flush goes on with the
// others, and returns the errors, joined. Clusters are found by a key that only classified feedback
// has.
func (s *Service) Flush(ctx context.Context) (proposed []Proposal, held int, err error) {
	agents := map[string]string{} // by cluster
	var failures []error
	for _, class := range []Classification{GeneralizableHigh, GeneralizableLow, positive} {
		for f, err := range feedbackKind.find(ctx, s.cfg.Store,
			store.Query{Keys: []string{store.Key("clustered", string(class))}}) {
			if err != nil {
				failures = append(failures, err)
				continue // with what is sound
			}
			agents[f.Cluster] = f.Agent
		}
	}
	for _, cluster := range slices.Sorted(maps.Keys(agents)) {
		p, err := s.proposeCluster(ctx, agents[cluster], cluster, false)
		switch {
		case errors.Is(err, errFull):
			held++
		case err != nil:
			failures = append(failures, fmt.Errorf("cluster %s: %w", cluster, err))
		case p != nil:
			proposed = append(proposed, *p)
		}
	}
	return proposed, held, wrap("flush", errors.Join(failures...))
}

// proposeCluster opens the proposal of a cluster, or gives it new evidence, if it is ready for
// that. If it is to be sure, only corrections that certainly mean the same count. It first looks
// without a lock whether there is something to propose, and has the rule drafted, which may call a
// model. The step then looks again, because the cluster may have changed.
func (s *Service) proposeCluster(
	ctx context.Context, agent, cluster string, sure bool,
) (opened *Proposal, err error) {
	tx := s.reading(ctx)
	tx.Want(clusterWants(cluster))
	members, err := members(tx, agent, cluster,
		func(c Classification) bool { return c.generalizable() || c == positive })
	if err != nil || len(members) == 0 {
		return nil, err
	}
	key, err := stores.PseudonymKeyIn(tx)
	if err != nil {
		return nil, err
	}
	if members[0].Class == positive && !supportOf(members, key).enough() ||
		sure && !supportOf(certain(members), key).enough() {
		return nil, nil
	}
	last, ready, err := s.readyFor(tx, cluster, members)
	if err != nil || !ready {
		return nil, err
	}
	var d *Draft // nil if the pending proposal gets more evidence
	var disputed []Conflict
	if !s.waits(last) { // not in the step, because a model may be slow
		drafted, err := s.draft(ctx, members)
		if err != nil {
			return nil, err
		}
		drafted.Withdrawn, d = 0, &drafted
		if disputed, err = s.disputed(tx, d); err != nil {
			return nil, err
		}
	}
	revision, err := s.step(ctx, s.governing, func(c *change) (err error) {
		opened, err = s.proposeMembers(c, cluster, members, d, disputed)
		return err
	})
	if err != nil {
		return nil, err
	}
	if opened != nil {
		opened.Revision = revision
	}
	return opened, nil
}

// proposeMembers opens the proposal of a cluster with these members, or gives it new evidence. If
// the pending proposal was decided, the next [Service.Flush] looks at the cluster again. A pending
// proposal that gets evidence keeps its words and its approvals.
func (s *Service) proposeMembers(
	c *change, cluster string, members []Feedback, d *Draft, disputed []Conflict,
) (*Proposal, error) {
	c.Want(clusterWants(cluster))
	if d != nil {
		c.Want(d.wants(), waitingWants)
	}
	last, ready, err := s.readyFor(c.Tx, cluster, members)
	switch {
	case err != nil || !ready:
		return nil, err
	case s.waits(last):
		return s.extend(c, last, members)
	case d == nil:
		return nil, nil
	}
	p := &Proposal{ID: c.ID(s.cfg.NewID), Draft: d.clone(), Cluster: cluster}
	if last != nil {
		p.Previous = last.ID
	}
	if members[0].Class != positive { // which is sure of its class, and not of how many agree
		for _, m := range members {
			p.Confidence = max(p.Confidence, m.Confidence)
		}
	}
	key := c.people()
	s.fill(p, members, key)
	if err := s.opened(c, p, disputed...); err != nil {
		return nil, err
	}
	if last != nil && last.Status == StatePending { // it expired
		last.expired(c)
	}
	c.logAudit("propose", p.ID, "cluster "+cluster, nil)
	return p, nil
}

// waits reports whether a proposal still waits to be decided. One that has expired is closed by the
// next step that meets it, and does not wait any more.
func (s *Service) waits(p *Proposal) bool {
	return p != nil && p.Status == StatePending && s.now().Before(p.Expires)
}

// clusterWants lists the records that decide whether a cluster is ready for a proposal: its
// proposals and rules, and the marks.
func clusterWants(cluster string) store.Wants {
	q := ProposalQuery{Cluster: cluster}
	return store.Wants{
		Refs: []store.Ref{rulesRef(), stores.PseudonymKeyRef()},
		Queries: append(proposalKind.queries(q.keys()),
			ruleKind.queries(agentKeys("cluster", cluster, nil))...),
	}
}

// freshEvidence is how many more corrections it takes to propose again what was rejected or
// retired. Each further rejection doubles it.
const freshEvidence = 3

// readyFor returns the last proposal of a cluster, and whether there is something to propose. A
// cluster that was never proposed is ready at once. After a proposal expired it takes one more
// correction; after a rejection it takes three, and twice as many after each further one. If a rule
// of the cluster left since, evidence counts from then on.
func (s *Service) readyFor(
	tx *store.Tx, cluster string, members []Feedback,
) (last *Proposal, ready bool, err error) {
	proposals, err := allProposals(tx, ProposalQuery{Cluster: cluster})
	if err != nil {
		return nil, false, err
	}
	key, err := stores.PseudonymKeyIn(tx)
	if err != nil {
		return nil, false, err
	}
	rejections, heard := 0, map[string]bool{} // whom a rejected proposal had among its evidence
	for _, p := range proposals {
		if last == nil || p.Status == StatePending { // versions of the same moment have no order
			last = &p
		}
		if p.Status == StateRejected {
			rejections++
			for _, author := range p.Authors {
				heard[key.Of(author)] = true
			}
		}
	}
	active, left, err := ruleOf(tx, cluster)
	if err != nil || active {
		return last, false, err
	}
	needed, since := 0, time.Time{}
	switch {
	case last == nil:
	case s.waits(last):
		return last, true, nil
	case last.Status == StatePending:
		needed, since = 1, last.Expires
	case last.Status == StateRejected:
		needed, since = freshEvidence*int(math.Exp2(float64(min(rejections-1, 20)))), last.Decided
	case last.Status == stateDocumented:
		return last, false, nil
	default:
		needed, since = 1, last.Decided
	}
	if !left.IsZero() && !left.Before(since) {
		needed, since, rejections = freshEvidence, left, 0
	}
	fresh := slices.DeleteFunc(slices.Clone(members),
		func(m Feedback) bool { return !m.Recorded.After(since) })
	refused := last != nil && last.Status == StateRejected && rejections > 0
	return last, len(fresh) >= needed && (!refused || moreAgree(fresh, heard, key)), nil
}

// moreAgree reports whether fresh evidence supports a rejected proposal: two people gave it, and
// one of them had given no evidence before the rejection.
func moreAgree(fresh []Feedback, heard map[string]bool, key text.PseudonymKey) bool {
	people, another := map[string]bool{}, false
	for i := range fresh {
		who := key.Of(fresh[i].Reviewer)
		people[who], another = true, another || !heard[who]
	}
	return another && len(people) >= enoughReviewers
}

// ruleOf reports whether a rule for the cluster is active, and else since when not.
func ruleOf(tx *store.Tx, cluster string) (active bool, left time.Time, err error) {
	rules, err := ruleKind.union(tx, agentKeys("cluster", cluster, nil),
		func(r *Rule) bool { return slices.Contains(r.Clusters, cluster) })
	for i := range rules {
		active = active || rules[i].Status == StateActive
		if rules[i].Left.After(left) {
			left = rules[i].Left
		}
	}
	return active, left, err
}

// extend gives a pending proposal its new evidence. The draft stays as it is, because approvals are
// bound to it.
func (s *Service) extend(c *change, p *Proposal, members []Feedback) (*Proposal, error) {
	known, before := p.Evidence, p.Confidence
	members, err := s.speakingFor(c.Context(), p, members)
	if err != nil {
		return nil, err
	}
	key := c.people()
	s.refill(p, members, key)
	p.Confidence = max(p.Confidence, before)
	if !slices.ContainsFunc(p.Evidence, func(id string) bool { return !slices.Contains(known, id) }) {
		return nil, nil
	}
	p.Evidence = text.Distinct(append(p.Evidence, known...)) // with erased ones
	c.logAudit("extend", p.ID, p.Summary, nil)
	c.write(proposalKind.record(*p))
	return p, s.count(c.Tx, p, nil)
}

// Consolidate finds groups of active rules that mean the same, of one type, for one place and for
// the same agents, with the same check. For each group it proposes one rule that supersedes them,
// with the words of the rule that ranks first, pinned if one of them is. The proposal must pass the
// gate like any other, and people who proposed or edited one of the rules cannot approve it. A
// group with a pending proposal is left alone, and so is one that was rejected, until it has other
// rules. Consolidate returns the proposals that it opened.
func (r *Rules) Consolidate(ctx context.Context) ([]Proposal, error) {
	rules, err := r.List(ctx, RuleQuery{Status: StateActive})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rules, compareRanks)
	var opened []Proposal
	var failures []error
	for _, kin := range byKind(rules) {
		groups, err := r.s.alikeRules(ctx, kin)
		if err != nil {
			return opened, wrap("consolidate", err)
		}
		for _, group := range groups {
			switch p, err := r.s.proposeGroup(ctx, group); {
			case err != nil:
				failures = append(failures, err)
			case p != nil:
				opened = append(opened, *p)
			}
		}
	}
	return opened, wrap("consolidate", errors.Join(failures...))
}

// byKind groups rules by all that a merged rule would have to share, except for the text. It keeps
// their order.
func byKind(rules []Rule) (groups [][]Rule) {
	places := map[string]int{}
	for _, rule := range rules {
		d := rule.Draft.clone()
		d.Text = ""
		key := d.words()
		at, known := places[key]
		if !known {
			at = len(groups)
			places[key], groups = at, append(groups, nil)
		}
		groups[at] = append(groups[at], rule)
	}
	return groups
}

// alikeRules returns the groups of rules of one kind that mean the same as the first of the group,
// and as each other. The rules are in the order of their ranks, so the words of the first one stay.
func (s *Service) alikeRules(ctx context.Context, rules []Rule) (groups [][]Rule, err error) {
	for len(rules) > 1 {
		texts := make([]string, len(rules)-1)
		for i, rule := range rules[1:] {
			texts[i] = rule.Text
		}
		scores, err := s.scores(ctx, rules[0].Text, texts)
		if err != nil {
			return nil, err
		}
		group, others := rules[:1:1], rules[1:1]
		for i, rule := range rules[1:] {
			opposes := func(member Rule) bool {
				return s.opposed(member.Text, rule.Text) != "" || s.reworded(member.Text, rule.Text)
			}
			if scores[i] >= s.cfg.Threshold && !slices.ContainsFunc(group, opposes) {
				group = append(group, rule)
			} else {
				others = append(others, rule)
			}
		}
		if rules = others; len(group) > 1 {
			groups = append(groups, group)
		}
	}
	return groups, nil
}

// proposeGroup opens the proposal of a group of rules, the one that ranks first before the others.
// A person who wrote one of the rules can't approve it.
func (s *Service) proposeGroup(ctx context.Context, group []Rule) (opened *Proposal, err error) {
	d := group[0].Draft.clone()
	d.Supersedes, d.Change, d.Of, d.Withdrawn = nil, "", "", 0
	for _, rule := range group {
		d.Supersedes = append(d.Supersedes, rule.ID)
		if rule.Pinned {
			d.Change = pin
		}
	}
	d = d.normal()
	revision, err := s.step(ctx, s.governing, func(c *change) error {
		opened = &Proposal{ID: c.ID(s.cfg.NewID), Draft: d.clone()}
		c.Want(d.wants(), peopleWants, waitingWants, store.Wants{
			Refs:    proposalKind.refs(d.Supersedes),
			Queries: proposalKind.queries(groupQuery(d.Supersedes)),
		})
		if waits, err := s.consolidating(c.Tx, d.Supersedes, c.now); err != nil || waits {
			return err
		}
		evidence, err := behindRules(c.Tx, d.Supersedes)
		if err != nil {
			return err
		}
		s.fill(opened, evidence, c.people())
		if wording(s.cfg.Similarity) && !slices.Contains(opened.Warnings, warnWords) {
			opened.Warnings = append(opened.Warnings, warnWords)
		}
		c.logAudit("propose", opened.ID, fmt.Sprintf("consolidates %d rules", len(group)), nil)
		return s.opened(c, opened)
	})
	if err != nil || revision == 0 {
		return nil, err
	}
	opened.Revision = revision
	return opened, nil
}

// behindRules returns the evidence of the proposals that made rules. A rule whose proposal was
// dropped has none.
func behindRules(tx *store.Tx, rules []string) ([]Feedback, error) {
	proposals, err := proposalKind.all(tx, rules)
	if err != nil {
		return nil, err
	}
	var ids []string
	for i := range proposals {
		ids = append(ids, proposals[i].Evidence...)
	}
	evidence, err := remaining(tx, text.Distinct(ids))
	byTime(evidence)
	return evidence, err
}

// consolidating reports whether a pending proposal would supersede one of these rules, or a
// rejected one would have superseded just these.
func (s *Service) consolidating(tx *store.Tx, rules []string, now time.Time) (bool, error) {
	pending, err := waiting(tx, now)
	if err != nil {
		return false, err
	}
	for i := range pending {
		if slices.ContainsFunc(pending[i].replaces(), func(id string) bool {
			return slices.Contains(rules, id)
		}) {
			return true, nil
		}
	}
	rejected, err := proposalKind.union(tx, groupQuery(rules),
		func(p *Proposal) bool { return slices.Equal(p.replaces(), text.Distinct(rules)) })
	return len(rejected) > 0, err
}

// groupQuery has the keys of rejected proposals that would have superseded just these rules.
func groupQuery(rules []string) [][]string {
	return [][]string{append(statusKeys(StateRejected), groupKey(rules))}
}
