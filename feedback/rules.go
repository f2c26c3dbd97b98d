package feedback

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// Rules carries proposals through their review to active rules, and back. Get it from [Service.Rules]. It is safe for
// concurrent use by multiple goroutines.
type Rules struct{ s *Service }

// Rules returns what a service's feedback leads to.
func (s *Service) Rules() *Rules { return &Rules{s} }

// Proposal returns a proposal, or [heed.ErrNotFound].
func (r *Rules) Proposal(ctx context.Context, id string) (Proposal, error) {
	p, err := r.s.cfg.Store.Proposal(ctx, id)
	return p, wrap("proposal", err)
}

// Proposals returns the proposals that a query selects, the newest first, at most that many (all where limit is 0), and
// how many there are without the limit.
func (r *Rules) Proposals(ctx context.Context, q ProposalQuery, limit int) (proposals []Proposal, total int, err error) {
	for p, err := range r.s.cfg.Store.Proposals(ctx, q) {
		if err != nil {
			return nil, 0, wrap("proposals", err)
		}
		if total++; limit == 0 || total <= limit {
			proposals = append(proposals, p)
		}
	}
	return proposals, total, nil
}

// Rule returns a rule, or [heed.ErrNotFound].
func (r *Rules) Rule(ctx context.Context, id string) (Rule, error) {
	rule, err := r.s.cfg.Store.Rule(ctx, id)
	return rule, wrap("rule", err)
}

// List returns the rules that a query selects, the newest first.
func (r *Rules) List(ctx context.Context, q RuleQuery) (rules []Rule, err error) {
	for rule, err := range r.s.cfg.Store.Rules(ctx, q) {
		if err != nil {
			return nil, wrap("list", err)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// ErrTooMany says that as many proposals are pending as may be, of this proposer, for this agent, or in all.
var ErrTooMany error = &tooMany{}

type tooMany struct{}

func (*tooMany) Error() string { return "too many proposals are pending" }
func (*tooMany) refusal()      {}

// A Submission is what a person proposes.
type Submission struct {
	Draft    Draft
	Evidence []string // ids of feedback that speaks for it; may be empty
	Actor    string   // who proposes it, and can't approve it
	Reason   string   // never empty
}

// Propose opens a proposal. A draft that is not valid is a [*heed.InputError], and too many pending ones are [ErrTooMany].
// A draft whose action is [DocumentOnly] is recorded and needs no approval.
func (r *Rules) Propose(ctx context.Context, sub Submission) (Proposal, error) {
	s := r.s
	d := sub.Draft.normal()
	if err := s.validateDraft(&d); err != nil {
		return Proposal{}, wrap("propose", err)
	}
	evidence, err := s.evidence(ctx, sub.Evidence)
	if err != nil {
		return Proposal{}, wrap("propose", err)
	}
	var p Proposal
	id := s.cfg.NewID()
	err = s.act(ctx, ActPropose, id, sub.Actor, sub.Reason, &d, func(now time.Time, who string) (Change, error) {
		p = Proposal{ID: id, Draft: d, Writers: []string{who}}
		s.fill(&p, evidence, now)
		return s.opened(ctx, &p)
	})
	if err != nil {
		return Proposal{}, wrap("propose", err)
	}
	p.Revision++
	return p, nil
}

// evidence returns the feedback of these ids, the oldest first.
func (s *Service) evidence(ctx context.Context, ids []string) (records []Record, err error) {
	for _, id := range distinct(ids) {
		r, err := s.Feedback(ctx, id)
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	slices.SortFunc(records, func(a, b Record) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
	return records, nil
}

// fill completes a proposal from its evidence.
func (s *Service) fill(p *Proposal, evidence []Record, now time.Time) {
	reviewers, gates := map[string]bool{}, map[string]bool{}
	strength := 0.
	for i := range evidence {
		e := &evidence[i]
		p.Evidence = append(p.Evidence, e.ID)
		reviewers[e.Reviewer], gates[e.Gate] = true, true
		strength += e.Link
	}
	p.Evidence = distinct(p.Evidence)
	p.Authors = distinct(append(p.Authors, sortedKeys(reviewers)...))
	p.Occurrences, p.Reviewers = len(p.Evidence), len(p.Authors)
	if len(evidence) > 0 {
		p.Confidence = max(p.Confidence, min(Support{p.Occurrences, p.Reviewers, strength}.Confidence(), s.cfg.Similarity.Traits().Ceiling))
		p.Summary = fmt.Sprintf("decisions: %d, reviewers: %d, gates: %d, from %s to %s", len(evidence), len(reviewers), len(gates),
			evidence[0].At.Format(time.DateOnly), evidence[len(evidence)-1].At.Format(time.DateOnly))
	}
	p.Warnings = warnings(&p.Draft, evidence)
	p.Status, p.Created, p.Expires = StatusPending, now, now.Add(s.cfg.Gate.TTL)
	if p.Action == DocumentOnly {
		p.Status, p.Expires, p.Decided = StatusDocumented, now, now
	}
}

// opened is the change that opens a proposal, if there is room for it.
func (s *Service) opened(ctx context.Context, p *Proposal) (Change, error) {
	revisions, err := s.cfg.Store.Revisions(ctx, board)
	if err != nil {
		return Change{}, err
	}
	if err := s.checkSupersedes(ctx, &p.Draft); err != nil {
		return Change{}, err
	}
	if p.Conflicts, err = s.conflicts(ctx, &p.Draft, true, p.Previous); err != nil {
		return Change{}, err
	}
	if p.Status == StatusPending {
		if err := s.checkRoom(ctx, p); err != nil {
			return Change{}, err
		}
	}
	return Change{Expect: map[string]uint64{board: revisions[0]}, Proposals: []Proposal{*p}}, nil
}

// checkSupersedes reports a rule to be superseded that is not there or not active.
func (s *Service) checkSupersedes(ctx context.Context, d *Draft) error {
	for _, id := range d.Supersedes {
		rule, err := s.cfg.Store.Rule(ctx, id)
		if err != nil {
			return err
		}
		if rule.Status != RuleActive {
			return &StateError{What: "rule to supersede", State: string(rule.Status)}
		}
	}
	return nil
}

// checkRoom reports whether as many proposals are pending as may be. The one that this is a new version of does not count.
func (s *Service) checkRoom(ctx context.Context, p *Proposal) error {
	all, own, forAgent := 0, 0, map[string]int{}
	for o, err := range s.cfg.Store.Proposals(ctx, ProposalQuery{Status: StatusPending}) {
		if err != nil {
			return err
		}
		if o.ID == p.Previous || !p.Created.Before(o.Expires) {
			continue
		}
		all++
		if proposer(&o) == proposer(p) {
			own++
		}
		for _, agent := range p.Agents {
			if o.Affects(agent) {
				forAgent[agent]++
			}
		}
	}
	full := all >= s.cfg.Gate.Pending || own >= s.cfg.Gate.PerProposer
	for _, n := range forAgent {
		full = full || n >= s.cfg.Gate.PerAgent
	}
	if full {
		return ErrTooMany
	}
	return nil
}

// proposer is who wrote the proposal last; "" is the evaluator.
func proposer(p *Proposal) string {
	if len(p.Writers) == 0 {
		return ""
	}
	return p.Writers[len(p.Writers)-1]
}
