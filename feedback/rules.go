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

// A FlushReport says what a batch of proposals came to.
type FlushReport struct {
	Proposed []Proposal // opened, or given more evidence
	Held     int        // clusters that wait, as too many proposals are pending
}

// Flush proposes a rule for each cluster that has none: of corrections that are generalizable, and of approvals that say
// what was right, as soon as enough of them agree. A cluster whose proposal is pending gives it its new evidence, and one
// whose rule was rejected or retired has to bring fresh evidence first: [Config].Fresh. Flush goes on where one cluster
// fails, and returns the errors, joined.
func (s *Service) Flush(ctx context.Context) (FlushReport, error) {
	var report FlushReport
	agents := map[string]string{} // by cluster
	for _, class := range []Classification{GeneralizableHigh, GeneralizableLow, Positive} {
		for r, err := range s.cfg.Store.Records(ctx, Query{Class: class}) {
			if err != nil {
				return report, wrap("flush", err)
			}
			if r.Cluster != "" {
				agents[r.Cluster] = r.Agent
			}
		}
	}
	var failures []error
	for _, cluster := range sortedKeys(agents) {
		p, err := s.proposeCluster(ctx, agents[cluster], cluster)
		switch {
		case errors.Is(err, ErrTooMany):
			report.Held++
		case err != nil:
			failures = append(failures, fmt.Errorf("cluster %s: %w", cluster, err))
		case p != nil:
			report.Proposed = append(report.Proposed, *p)
		}
	}
	return report, wrap("flush", errors.Join(failures...))
}

// proposeCluster opens the proposal of a cluster, or adds to it, where there is something to propose.
func (s *Service) proposeCluster(ctx context.Context, agent, cluster string) (opened *Proposal, err error) {
	members, err := s.members(ctx, agent, cluster, func(c Classification) bool { return c.Generalizable() || c == Positive })
	if err != nil || len(members) == 0 {
		return nil, err
	}
	if members[0].Class == Positive && !s.cfg.High.Met(s.support(&members[0], members[1:])) {
		return nil, nil
	}
	var drafted *Draft
	err = again(ctx, func() error {
		opened = nil
		last, ready, err := s.readyFor(ctx, cluster, members)
		switch {
		case err != nil || !ready:
			return err
		case last != nil && last.Status == StatusPending && s.now().Before(last.Expires):
			opened, err = s.extend(ctx, last, members)
			return err
		}
		if drafted == nil { // by what may be a slow model: once, and before the turn
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

func (s *Service) openCluster(ctx context.Context, cluster string, d Draft, last *Proposal, members []Record) (*Proposal, error) {
	now := s.now()
	p := &Proposal{ID: s.cfg.NewID(), Draft: d, Cluster: cluster}
	if last != nil {
		p.Previous = last.ID
	}
	for _, m := range members {
		p.Confidence = max(p.Confidence, m.Confidence)
	}
	if members[0].Class == Positive {
		p.Confidence = 0 // that of a positive says that it is one, and not how many agree
	}
	s.fill(p, members, now)
	err := s.governing.take(ctx, func() error {
		c, err := s.opened(ctx, p)
		if err != nil {
			return err
		}
		// Somebody else may have proposed this cluster in the meantime. Whoever does so from here on loses the race.
		if newest, _, err := s.readyFor(ctx, cluster, members); err != nil || (newest == nil) != (last == nil) || newest != nil && newest.ID != last.ID {
			return cmp.Or[error](err, &raceError{heed.ErrConflict})
		}
		if last != nil && last.Status == StatusPending { // whose time is over
			s.expire(&c, *last, now)
		}
		c.Audit = append(c.Audit, s.entry(now, "", string(ActPropose), p.ID, "cluster "+cluster))
		return s.apply(ctx, c)
	})
	if err != nil {
		return nil, err
	}
	p.Revision++
	return p, nil
}

// readyFor returns the last proposal of a cluster, and whether there is something to propose.
func (s *Service) readyFor(ctx context.Context, cluster string, members []Record) (last *Proposal, ready bool, err error) {
	rejections := 0
	for p, err := range s.cfg.Store.Proposals(ctx, ProposalQuery{Cluster: cluster}) {
		if err != nil {
			return nil, false, err
		}
		if last == nil {
			last = &p
		}
		if p.Status == StatusRejected {
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
	case last.Status == StatusPending && s.now().Before(last.Expires):
		return last, true, nil
	case last.Status == StatusPending:
		needed, since = 1, last.Expires
	case last.Status == StatusRejected:
		needed, since = s.cfg.Fresh*int(math.Exp2(float64(min(rejections-1, 20)))), last.Decided
	case last.Status == StatusDocumented:
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
	for rule, err := range s.cfg.Store.Rules(ctx, RuleQuery{}) {
		if err != nil {
			return false, left, err
		}
		if slices.Contains(rule.Clusters, cluster) {
			active = active || rule.Status == RuleActive
			if rule.Left.After(left) {
				left = rule.Left
			}
		}
	}
	return active, left, nil
}

// extend gives a pending proposal the evidence that came since. What is approved is the draft, which stays as it is.
func (s *Service) extend(ctx context.Context, p *Proposal, members []Record) (*Proposal, error) {
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
	entry := s.entry(s.now(), "", "extend", p.ID, p.Summary)
	if err := s.apply(ctx, Change{Proposals: []Proposal{*p}, Audit: append(Change{}.Audit, entry)}); err != nil {
		return nil, err
	}
	p.Revision++
	return p, nil
}
