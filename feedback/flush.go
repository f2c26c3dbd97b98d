package feedback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/store"
)

// Flush proposes a rule for each cluster that has none: a cluster of generalizable corrections, or of enough approvals that say
// what was right. It returns the proposals that it opened or gave more evidence, and how many clusters wait because too many
// proposals are pending. A cluster whose rule was rejected or retired needs fresh evidence first ([Config].Fresh). Flush goes on
// where one cluster fails, and returns the errors, joined.
func (s *Service) Flush(ctx context.Context) (proposed []Proposal, held int, err error) {
	agents := map[string]string{} // by cluster
	for _, class := range []Classification{GeneralizableHigh, GeneralizableLow, Positive} {
		for f, err := range feedbackKind.find(ctx, s.cfg.Store, store.Query{Keys: []string{store.Key("clustered", string(class))}}) {
			if err != nil {
				return nil, 0, wrap("flush", err)
			}
			agents[f.Cluster] = f.Agent
		}
	}
	var failures []error
	for _, cluster := range sortedKeys(agents) {
		p, err := s.proposeCluster(ctx, agents[cluster], cluster)
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

// proposeCluster opens the proposal of a cluster, or gives it new evidence, if it is ready for that.
func (s *Service) proposeCluster(ctx context.Context, agent, cluster string) (opened *Proposal, err error) {
	members, err := s.members(ctx, agent, cluster, func(c Classification) bool { return c.generalizable() || c == Positive })
	if err != nil || len(members) == 0 {
		return nil, err
	}
	if members[0].Class == Positive && !s.cfg.enough(s.support(&members[0], members[1:])) {
		return nil, nil
	}
	var drafted *Draft
	err = again(ctx, func() error {
		opened = nil
		last, ready, err := s.readyFor(ctx, cluster, members)
		switch {
		case err != nil || !ready:
			return err
		case last != nil && last.Status == StatePending && s.now().Before(last.Expires):
			opened, err = s.extend(ctx, last, members)
			return err
		}
		if drafted == nil { // once, and not under the lock, as a model may be slow
			d, err := s.draft(ctx, members)
			if err != nil {
				return err
			}
			drafted = &d
		}
		opened, err = s.openCluster(ctx, cluster, *drafted, last, members)
		return err
	})
	return opened, err
}

func (s *Service) openCluster(ctx context.Context, cluster string, d Draft, last *Proposal, members []Feedback) (*Proposal, error) {
	now := s.now()
	p := &Proposal{ID: s.cfg.NewID(), Draft: d, Cluster: cluster}
	if last != nil {
		p.Previous = last.ID
	}
	for _, m := range members {
		p.Confidence = max(p.Confidence, m.Confidence)
	}
	if members[0].Class == Positive {
		p.Confidence = 0 // a Positive is sure of its class, which does not say how many agree
	}
	s.fill(p, members, now)
	revision, err := s.attempt(ctx, s.governing, func() (change, error) {
		c, err := s.opened(ctx, p)
		if err != nil {
			return change{}, err
		}
		// Somebody else may have proposed this cluster meanwhile. From here on they lose the race.
		if newest, _, err := s.readyFor(ctx, cluster, members); err != nil || (newest == nil) != (last == nil) || newest != nil && newest.ID != last.ID {
			return change{}, cmp.Or[error](err, &raceError{heed.ErrConflict})
		}
		if last != nil && last.Status == StatePending { // it has expired
			s.expired(&c, *last, now)
		}
		c.tell(s.entry(now, "", "propose", p.ID, "cluster "+cluster))
		return c, nil
	})
	if err != nil {
		return nil, err
	}
	p.Revision = revision
	return p, nil
}

// readyFor returns the last proposal of a cluster, and whether there is something to propose.
func (s *Service) readyFor(ctx context.Context, cluster string, members []Feedback) (last *Proposal, ready bool, err error) {
	proposals, err := s.proposals(ctx, ProposalQuery{Cluster: cluster})
	if err != nil {
		return nil, false, err
	}
	rejections := 0
	for _, p := range proposals {
		if last == nil || p.Status == StatePending { // versions of the same moment have no order
			last = &p
		}
		if p.Status == StateRejected {
			rejections++
		}
	}
	active, left, err := s.ruleOf(ctx, cluster)
	if err != nil || active {
		return last, false, err
	}
	needed, since := 0, time.Time{}
	switch {
	case last == nil:
	case last.Status == StatePending && s.now().Before(last.Expires):
		return last, true, nil
	case last.Status == StatePending:
		needed, since = 1, last.Expires
	case last.Status == StateRejected:
		needed, since = s.cfg.Fresh*int(math.Exp2(float64(min(rejections-1, 20)))), last.Decided
	case last.Status == StateDocumented:
		return last, false, nil
	default:
		needed, since = 1, last.Decided
	}
	if !left.IsZero() && !left.Before(since) {
		needed, since = s.cfg.Fresh, left
	}
	fresh := 0
	for _, m := range members {
		if m.Recorded.After(since) {
			fresh++
		}
	}
	return last, fresh >= needed, nil
}

// ruleOf reports whether a rule for the cluster is active, and else since when not.
func (s *Service) ruleOf(ctx context.Context, cluster string) (active bool, left time.Time, err error) {
	rules, err := ruleKind.union(ctx, s.cfg.Store, agentKeys("cluster", cluster, nil), func(r *Rule) bool { return slices.Contains(r.Clusters, cluster) })
	for i := range rules {
		active = active || rules[i].Status == StateActive
		if rules[i].Left.After(left) {
			left = rules[i].Left
		}
	}
	return active, left, err
}

// extend gives a pending proposal its new evidence. The draft stays as it is, as approvals are bound to it.
func (s *Service) extend(ctx context.Context, p *Proposal, members []Feedback) (*Proposal, error) {
	known := len(p.Evidence)
	created, expires := p.Created, p.Expires
	for _, m := range members {
		if m.Class != Positive {
			p.Confidence = max(p.Confidence, m.Confidence)
		}
	}
	s.fill(p, members, s.now())
	p.Created, p.Expires = created, expires
	if len(p.Evidence) == known {
		return nil, nil
	}
	c := change{audit: []store.AuditEntry{s.entry(s.now(), "", "extend", p.ID, p.Summary)}}
	c.write(proposalKind.record(*p))
	revision, err := s.apply(ctx, c)
	if err != nil {
		return nil, err
	}
	p.Revision = revision
	return p, nil
}
