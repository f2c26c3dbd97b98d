package feedback

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/oppose"
	"github.com/heedhq/heed/internal/text"
)

// Consolidate finds groups of active rules that say the same, of one type, for one place and for the same agents. For each group
// it proposes one rule that supersedes them, with the words of the rule that ranks first. The proposal has to pass the gate like
// any other. A group with a pending proposal is left alone, and so is one that was rejected, until it has other rules. Consolidate
// returns the proposals that it opened.
func (r *Rules) Consolidate(ctx context.Context) ([]Proposal, error) {
	rules, err := r.List(ctx, RuleQuery{Status: StateActive})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rules, compareRanks)
	taken := map[string]bool{}
	var opened []Proposal
	var failures []error
	for i := range rules {
		if taken[rules[i].ID] {
			continue
		}
		group, err := r.s.alikeRules(ctx, &rules[i], rules[i+1:], taken)
		if err != nil {
			return opened, wrap("consolidate", err)
		}
		if len(group) < 2 {
			continue
		}
		for _, rule := range group {
			taken[rule.ID] = true
		}
		switch p, err := r.s.proposeGroup(ctx, group); {
		case err != nil:
			failures = append(failures, err)
		case p != nil:
			opened = append(opened, *p)
		}
	}
	return opened, wrap("consolidate", errors.Join(failures...))
}

// alikeRules returns the rule and those of the others that say the same as it and as each other.
func (s *Service) alikeRules(ctx context.Context, first *Rule, others []Rule, taken map[string]bool) ([]Rule, error) {
	group := []Rule{*first}
	var candidates []Rule
	var texts []string
	for _, o := range others {
		if !taken[o.ID] && o.Type == first.Type && o.Place == first.Place && o.Action == first.Action &&
			o.AllAgents == first.AllAgents && slices.Equal(o.Agents, first.Agents) {
			candidates, texts = append(candidates, o), append(texts, o.Text)
		}
	}
	scores, err := s.scores(ctx, first.Text, texts)
	if err != nil {
		return nil, err
	}
	for i, o := range candidates {
		opposes := func(r Rule) bool { return oppose.Find(r.Text, o.Text) != "" }
		if scores[i] >= s.cfg.Threshold && !slices.ContainsFunc(group, opposes) {
			group = append(group, o)
		}
	}
	return group, nil
}

// proposeGroup opens the proposal of a group of rules, the one that ranks first before the others.
func (s *Service) proposeGroup(ctx context.Context, group []Rule) (opened *Proposal, err error) {
	form := Proposal{Draft: group[0].Draft.clone()}
	form.Supersedes = nil
	for _, rule := range group {
		form.Supersedes = append(form.Supersedes, rule.ID)
		form.Authors = append(form.Authors, rule.Authors...)
		switch old, err := proposalKind.get(ctx, s.cfg.Store, rule.ID); {
		case err == nil:
			form.Evidence = append(form.Evidence, old.Evidence...)
		case !errors.Is(err, heed.ErrNotFound): // an imported rule may have none
			return nil, err
		}
	}
	form.Draft = form.Draft.normal()
	evidence, err := s.remaining(ctx, text.Distinct(form.Evidence))
	if err != nil {
		return nil, err
	}
	var p Proposal
	revision, err := s.commit(ctx, s.governing, func() (change, error) {
		now := s.now()
		p = form.at(0)
		p.ID = s.cfg.NewID()
		s.fill(&p, evidence, now)
		c, err := s.opened(ctx, &p)
		if err != nil {
			return change{}, err
		}
		if waits, err := s.consolidating(ctx, form.Supersedes, now); err != nil || waits {
			return change{}, err
		}
		c.tell(s.entry(now, "", "propose", p.ID, fmt.Sprintf("consolidates %d rules", len(group))))
		return c, nil
	})
	if err != nil || revision == 0 {
		return nil, err
	}
	p.Revision = revision
	return &p, nil
}

// consolidating reports whether a pending proposal would supersede one of these rules, or a rejected one would have
// superseded just these.
func (s *Service) consolidating(ctx context.Context, rules []string, now time.Time) (bool, error) {
	pending, err := s.waiting(ctx)
	if err != nil {
		return false, err
	}
	for i := range pending {
		if p := &pending[i]; now.Before(p.Expires) && slices.ContainsFunc(p.Supersedes, func(id string) bool { return slices.Contains(rules, id) }) {
			return true, nil
		}
	}
	rejected, err := proposalKind.union(ctx, s.cfg.Store, [][]string{append(statusKeys(StateRejected), groupKey(rules))},
		func(p *Proposal) bool { return slices.Equal(p.Supersedes, text.Distinct(rules)) })
	return len(rejected) > 0, err
}
