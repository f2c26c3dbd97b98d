package feedback

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heedhq/heed"
)

// A Review is what one person decides about a proposal.
type Review struct {
	Proposal string
	Verdict  Ruling
	Actor    string
	Reason   string // never empty
	// Hash is Draft.Hash of what the person has seen, for an approval: what was edited since is not what they approve.
	Hash string
	// Override are the ids of active rules that the draft may contradict. An approval counts only where it overrides all that
	// it contradicts when the rule is made.
	Override []string
}

// A Ruling is for a proposal or against it.
type Ruling string

// The rulings.
const (
	Approve Ruling = "approve"
	Reject  Ruling = "reject"
)

// An IneligibleError says that a person may not approve a proposal.
type IneligibleError struct{ Reason string }

func (e *IneligibleError) Error() string { return e.Reason }
func (*IneligibleError) refusal()        {}

// A StaleError says that what was approved is not what is proposed. It is a [heed.ErrConflict].
type StaleError struct{}

func (*StaleError) Error() string { return "the proposal is not what was reviewed: see Review.Hash" }
func (*StaleError) Unwrap() error { return heed.ErrConflict }
func (*StaleError) refusal()      {}

// Review records what a person decides, and returns the proposal as it then is. One rejection closes it. An approval that
// completes the quorum ([Gate]) makes the rule, in the same step: the conflicts with active rules are checked again, what it
// supersedes is superseded, and either all of it happens or none. To approve again what one has approved changes nothing.
//
// What is refused changes nothing but the audit log, which names it: a proposal that is not pending is a [*StateError], an
// approval of other words a [*StaleError], one by a proposer or an editor (or by an author of the evidence, where the gate
// has it so) an [*IneligibleError], one that does not override what the draft contradicts a [*ConflictError], and what the
// authorizer refuses an [*UnauthorizedError]. Input that is not valid is a [*heed.InputError], and not in the audit log.
func (r *Rules) Review(ctx context.Context, review Review) (Proposal, error) {
	kind, err := review.validate()
	if err != nil {
		return Proposal{}, wrap("review", err)
	}
	s := r.s
	seen, err := s.cfg.Store.Proposal(ctx, review.Proposal)
	if err != nil {
		return Proposal{}, wrap("review", err)
	}
	var p Proposal
	changed := false
	err = s.act(ctx, kind, review.Proposal, review.Actor, review.Reason, &seen.Draft, func(now time.Time, who string) (c Change, err error) {
		if p, err = s.pending(ctx, review.Proposal, now); err != nil {
			return Change{}, err
		}
		if review.Verdict == Reject {
			closeAs(&p, StatusRejected, who, review.Reason, now)
			c.Proposals = []Proposal{p}
		} else if c, err = s.approve(ctx, &p, review, who, now); err != nil {
			return Change{}, err
		}
		changed = !c.empty()
		return c, nil
	})
	if err != nil {
		return Proposal{}, wrap("review", err)
	}
	if changed {
		p.Revision++
	}
	return p, nil
}

func (v *Review) validate() (ActKind, error) {
	kind := ActReject
	switch v.Verdict {
	case Reject:
	case Approve:
		kind = ActApprove
		if v.Hash == "" {
			return "", invalid("Hash", "must be that of the draft that was reviewed")
		}
	default:
		return "", invalid("Verdict", "must be approve or reject")
	}
	if err := checkNames(list{"Override", v.Override}); err != nil {
		return "", err
	}
	return kind, checkName("Proposal", v.Proposal)
}

// A Result is what came of one review of a batch.
type Result struct {
	Proposal Proposal
	Err      error
}

// ReviewAll makes reviews one after the other, and returns a result for each: one that is refused stops none of the others.
func (r *Rules) ReviewAll(ctx context.Context, reviews []Review) []Result {
	results := make([]Result, len(reviews))
	for i, review := range reviews {
		results[i].Proposal, results[i].Err = r.Review(ctx, review)
	}
	return results
}

// pending returns a proposal that can be decided. One whose time is over is closed now.
func (s *Service) pending(ctx context.Context, id string, now time.Time) (Proposal, error) {
	p, err := s.cfg.Store.Proposal(ctx, id)
	switch {
	case err != nil:
		return Proposal{}, err
	case p.Status != StatusPending:
		return Proposal{}, &StateError{What: "proposal", State: string(p.Status)}
	case now.Before(p.Expires):
		return p, nil
	}
	var c Change
	s.expire(&c, p, now)
	if err := s.apply(ctx, c); err != nil {
		return Proposal{}, err
	}
	return Proposal{}, &StateError{What: "proposal", State: string(StatusExpired)}
}

func (s *Service) expire(c *Change, p Proposal, now time.Time) {
	closeAs(&p, StatusExpired, "", "nobody decided in time", now)
	c.Proposals = append(c.Proposals, p)
	c.Audit = append(c.Audit, s.entry(now, "", "expire", p.ID, p.Reason))
}

func closeAs(p *Proposal, status Status, who, reason string, now time.Time) {
	p.Status, p.Decider, p.Reason, p.Decided = status, who, reason, now
}

// approve is the change that adds an approval, and makes the rule where that completes the quorum.
func (s *Service) approve(ctx context.Context, p *Proposal, review Review, who string, now time.Time) (Change, error) {
	hash := p.Hash()
	switch {
	case review.Hash != hash:
		return Change{}, &StaleError{}
	case slices.Contains(p.Writers, who):
		return Change{}, &IneligibleError{"nobody approves what they proposed or edited"}
	case s.cfg.Gate.Outsiders == s.cfg.Gate.Quorum && slices.Contains(p.Authors, who):
		return Change{}, &IneligibleError{"nobody approves what their own feedback led to"}
	}
	revisions, err := s.cfg.Store.Revisions(ctx, board)
	if err != nil {
		return Change{}, err
	}
	conflicts, err := s.conflicts(ctx, &p.Draft, false, "")
	if err != nil {
		return Change{}, err
	}
	against := contradictions(conflicts)
	approval := Approval{Actor: who, Reason: review.Reason, Hash: hash, Override: distinct(review.Override), At: now}
	if open := approval.missing(against); len(open) > 0 {
		return Change{}, &ConflictError{open}
	}
	at := slices.IndexFunc(p.Approvals, func(a Approval) bool { return a.Actor == who })
	switch {
	case at < 0:
		p.Approvals = append(p.Approvals, approval)
	case slices.Equal(p.Approvals[at].Override, approval.Override):
		return Change{}, nil
	default:
		p.Approvals[at] = approval
	}
	if !s.cfg.Gate.met(p.Approvals, &p.Draft, p.Authors, against) {
		return Change{Proposals: []Proposal{*p}}, nil
	}
	return s.activate(ctx, p, who, review.Reason, now, revisions[0])
}

// missing returns the contradictions that an approval does not override.
func (a *Approval) missing(against []Conflict) []Conflict {
	return slices.DeleteFunc(slices.Clone(against), func(c Conflict) bool { return slices.Contains(a.Override, c.ID) })
}

// met reports whether the approvals that count complete the quorum: those of this draft, by different people, which
// override what it contradicts.
func (g *Gate) met(approvals []Approval, d *Draft, authors []string, against []Conflict) bool {
	hash := d.Hash()
	people, outsiders := map[string]bool{}, map[string]bool{}
	for i := range approvals {
		a := &approvals[i]
		if a.Hash != hash || len(a.missing(against)) > 0 {
			continue
		}
		people[a.Actor] = true
		if !slices.Contains(authors, a.Actor) {
			outsiders[a.Actor] = true
		}
	}
	return len(people) >= g.Quorum && len(outsiders) >= g.Outsiders
}

// activate is the change that makes a proposal a rule.
func (s *Service) activate(ctx context.Context, p *Proposal, who, reason string, now time.Time, revision uint64) (Change, error) {
	closeAs(p, StatusApproved, who, reason, now)
	rule := Rule{
		ID: p.ID, Draft: p.Draft, Authors: p.Authors, Writers: p.Writers, Approvals: p.Approvals,
		Status: RuleActive, Activated: now, Since: now,
	}
	if p.Cluster != "" {
		rule.Clusters = []string{p.Cluster}
	}
	c := Change{Expect: map[string]uint64{board: revision}, Proposals: []Proposal{*p}}
	c.Audit = append(c.Audit, s.entry(now, who, string(ActApprove), p.ID, reason), s.entry(now, who, "activate", p.ID, reason))
	c.Audit[1].Details = map[string]string{"hash": p.Hash(), "approvals": fmt.Sprint(len(p.Approvals))}
	for _, id := range p.Supersedes {
		old, err := s.cfg.Store.Rule(ctx, id)
		if err != nil {
			return Change{}, err
		}
		if old.Status != RuleActive {
			return Change{}, &StateError{What: "rule to supersede", State: string(old.Status)}
		}
		old.Status, old.SupersededBy, old.Left, old.RetireProposed = RuleSuperseded, rule.ID, now, time.Time{}
		rule.Clusters = append(rule.Clusters, old.Clusters...)
		rule.Pinned = rule.Pinned || old.Pinned
		c.Rules = append(c.Rules, old)
		c.Audit = append(c.Audit, s.entry(now, who, "supersede", id, "by "+rule.ID))
	}
	rule.Clusters = distinct(rule.Clusters)
	c.Rules = append(c.Rules, rule)
	return c, nil
}

// An Edit replaces what a proposal proposes.
type Edit struct {
	Proposal string
	Draft    Draft // all of it: take Proposal.Draft and change what is to be changed
	Actor    string
	Reason   string // never empty
}

// Modify makes a new version of a pending proposal and returns it. The old one is closed as superseded, and its approvals
// with it: the new one begins with none, and whoever edited or proposed any version can't approve it.
func (r *Rules) Modify(ctx context.Context, e Edit) (Proposal, error) {
	s := r.s
	d := e.Draft.normal()
	if err := s.validateDraft(&d); err != nil {
		return Proposal{}, wrap("modify", err)
	}
	if d.Action == DocumentOnly {
		return Proposal{}, wrap("modify", invalid("Action", "must pass the gate: reject the proposal instead"))
	}
	var p Proposal
	id := s.cfg.NewID()
	err := s.act(ctx, ActModify, e.Proposal, e.Actor, e.Reason, &d, func(now time.Time, who string) (Change, error) {
		old, err := s.pending(ctx, e.Proposal, now)
		if err != nil {
			return Change{}, err
		}
		p = old.Clone()
		p.ID, p.Previous, p.Draft, p.Approvals, p.Revision = id, old.ID, d, nil, 0
		p.Writers = append(slices.DeleteFunc(p.Writers, func(w string) bool { return w == who }), who)
		evidence, err := s.remaining(ctx, p.Evidence)
		if err != nil {
			return Change{}, err
		}
		p.Warnings, p.Created, p.Expires = warnings(&d, evidence), now, now.Add(s.cfg.Gate.TTL)
		c, err := s.opened(ctx, &p)
		if err != nil {
			return Change{}, err
		}
		closeAs(&old, StatusSuperseded, who, e.Reason, now)
		c.Proposals = append(c.Proposals, old)
		return c, nil
	})
	if err != nil {
		return Proposal{}, wrap("modify", err)
	}
	p.Revision++
	return p, nil
}

// remaining returns the feedback of these ids that was not erased.
func (s *Service) remaining(ctx context.Context, ids []string) (records []Record, err error) {
	for _, id := range ids {
		switch r, err := s.Feedback(ctx, id); {
		case err == nil:
			records = append(records, r)
		case !errors.Is(err, heed.ErrNotFound):
			return nil, err
		}
	}
	return records, nil
}

// An Order is what a person wants to be done with a rule.
type Order struct {
	Rule   string
	Actor  string
	Reason string // never empty
}

// Retire takes an active rule out of use. It can be restored.
func (r *Rules) Retire(ctx context.Context, o Order) (Rule, error) {
	return r.move(ctx, ActRetire, o, func(rule *Rule, now time.Time) error {
		return rule.leave(RuleRetired, now, RuleActive)
	})
}

// Revoke withdraws a rule for good, be it active or retired: the next prompt that is built is without it. It can't be
// restored, but proposed anew.
func (r *Rules) Revoke(ctx context.Context, o Order) (Rule, error) {
	return r.move(ctx, ActRevoke, o, func(rule *Rule, now time.Time) error {
		return rule.leave(RuleRevoked, now, RuleActive, RuleRetired)
	})
}

// Restore brings a retired rule back, as it was approved. Its effect is measured from now on. Where it contradicts a rule
// that became active since, that is a [*ConflictError].
func (r *Rules) Restore(ctx context.Context, o Order) (Rule, error) {
	return r.move(ctx, ActRestore, o, func(rule *Rule, now time.Time) error {
		if rule.Status != RuleRetired {
			return &StateError{What: "rule", State: string(rule.Status)}
		}
		conflicts, err := r.s.conflicts(ctx, &rule.Draft, false, "")
		if err != nil {
			return err
		}
		if against := contradictions(conflicts); len(against) > 0 {
			return &ConflictError{against}
		}
		rule.Status, rule.Since, rule.Effect = RuleActive, now, Effect{}
		return nil
	})
}

// Pin ranks an active rule before all that are not pinned.
func (r *Rules) Pin(ctx context.Context, o Order) (Rule, error) { return r.pin(ctx, ActPin, o, true) }

// Unpin takes that back.
func (r *Rules) Unpin(ctx context.Context, o Order) (Rule, error) {
	return r.pin(ctx, ActUnpin, o, false)
}

func (r *Rules) pin(ctx context.Context, kind ActKind, o Order, pinned bool) (Rule, error) {
	return r.move(ctx, kind, o, func(rule *Rule, _ time.Time) error {
		if rule.Status != RuleActive {
			return &StateError{What: "rule", State: string(rule.Status)}
		}
		rule.Pinned = pinned
		return nil
	})
}

// leave takes a rule out of use, from one of these statuses.
func (r *Rule) leave(as RuleStatus, now time.Time, from ...RuleStatus) error {
	if !slices.Contains(from, r.Status) {
		return &StateError{What: "rule", State: string(r.Status)}
	}
	r.Status, r.Left, r.RetireProposed = as, now, time.Time{}
	return nil
}

// move changes one rule.
func (r *Rules) move(ctx context.Context, kind ActKind, o Order, change func(*Rule, time.Time) error) (rule Rule, err error) {
	if err := checkName("Rule", o.Rule); err != nil {
		return Rule{}, wrap(string(kind), err)
	}
	s := r.s
	seen, err := s.cfg.Store.Rule(ctx, o.Rule)
	if err != nil {
		return Rule{}, wrap(string(kind), err)
	}
	err = s.act(ctx, kind, o.Rule, o.Actor, o.Reason, &seen.Draft, func(now time.Time, _ string) (Change, error) {
		revisions, err := s.cfg.Store.Revisions(ctx, board)
		if err != nil {
			return Change{}, err
		}
		if rule, err = s.cfg.Store.Rule(ctx, o.Rule); err != nil {
			return Change{}, err
		}
		if err := change(&rule, now); err != nil {
			return Change{}, err
		}
		return Change{Expect: map[string]uint64{board: revisions[0]}, Rules: []Rule{rule}}, nil
	})
	if err != nil {
		return Rule{}, wrap(string(kind), err)
	}
	rule.Revision++
	return rule, nil
}
