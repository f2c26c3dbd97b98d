package feedback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/store"
)

// An ImportResult says what became of one element of an archive.
type ImportResult struct {
	Kind string // "feedback", "proposal" or "rule"
	ID   string
	Done bool  // it was taken over; otherwise it was there already, or Err says what is wrong
	Err  error // a [heed.ErrConflict] if something else has its id
}

// Import takes over what an archive has and the store lacks. It returns a result for each element, in the archive's order, and
// goes on where one is refused ([*RefusedError]). Feedback comes with its evaluation, and closed proposals come as they are. A
// pending proposal loses its approvals, as if the person who imports proposed it now, and is refused if its cluster has one. A rule
// comes as it is, if its approvals fulfil this service's gate for its very words and, for an active one, it contradicts no
// active rule.
//
// The archive itself says who approved, so trust it only as far as the place it comes from. Config.Authorize is asked once.
func (s *Service) Import(ctx context.Context, a Archive, actor, reason string) ([]ImportResult, error) {
	who := ""
	_, err := s.act(ctx, "import", "", actor, reason, nil, func(_ time.Time, canonical string) (change, error) {
		who = canonical
		e := s.entry(s.now(), who, "import", "", reason)
		e.Details = map[string]string{"elements": fmt.Sprint(len(a.Feedback) + len(a.Proposals) + len(a.Rules))}
		return change{audit: []store.AuditEntry{e}}, nil
	})
	if err != nil {
		return nil, wrap("import", err)
	}
	var results []ImportResult
	add := func(kind, id string, err error) {
		result := ImportResult{Kind: kind, ID: id, Done: err == nil}
		if !errors.Is(err, errKnown) {
			result.Err = err
		}
		results = append(results, result)
	}
	for i := range a.Feedback {
		add("feedback", a.Feedback[i].ID, s.importFeedback(ctx, a.Feedback[i].at(0)))
	}
	for i := range a.Rules {
		add("rule", a.Rules[i].ID, s.importRule(ctx, a.Rules[i].at(0), who, reason))
	}
	for i := range a.Proposals {
		add("proposal", a.Proposals[i].ID, s.importProposal(ctx, a.Proposals[i].at(0), who, reason))
	}
	return results, nil
}

func (s *Service) importFeedback(ctx context.Context, r Feedback) error {
	now := s.now()
	if err := s.prepare(&r, now); err != nil {
		return err
	}
	if err := r.Evaluation.validate(); err != nil {
		return err
	}
	if !r.Erased.IsZero() {
		return invalid("Erased", "must not be set")
	}
	if r.Recorded.IsZero() || r.Recorded.After(now) {
		r.Recorded = now
	}
	truncate(&r.Recorded)
	return s.add(ctx, r)
}

// truncate brings moments into the form in which they are kept.
func truncate(moments ...*time.Time) {
	for _, at := range moments {
		*at = at.UTC().Truncate(time.Microsecond)
	}
}

func truncateApprovals(approvals []Approval) {
	for i := range approvals {
		truncate(&approvals[i].At)
	}
}

func (c Classification) valid() bool {
	return c.generalizable() || c == EdgeCase || c == Ambiguous || c == Positive || c == Archived
}

func (e *Evaluation) validate() error {
	switch {
	case e.Class != "" && !e.Class.valid():
		return invalid("Class", "is none of the classifications")
	case e.Action != "" && !e.Action.valid():
		return invalid("Action", "is none of the actions")
	case !(e.Confidence >= 0 && e.Confidence <= 1):
		return invalid("Confidence", "must be in [0, 1]")
	case !(e.Link >= 0 && e.Link <= 1):
		return invalid("Link", "must be in [0, 1]")
	}
	if err := checkProse("Rationale", e.Rationale, maxComment); err != nil {
		return err
	}
	for _, text := range [...]struct{ field, value string }{{"Cluster", e.Cluster}, {"Resolution", e.Resolution}, {"Resolver", e.Resolver}} {
		if err := evidence.CheckText(text.field, text.value); err != nil {
			return err
		}
	}
	return checkNames(list{"Similar", e.Similar})
}

func (s *Service) importProposal(ctx context.Context, p Proposal, who, reason string) error {
	p.Draft = p.Draft.normal()
	if err := errors.Join(checkName("ID", p.ID), s.validateDraft(&p.Draft), s.people("Authors", p.Authors), s.people("Writers", p.Writers)); err != nil {
		return err
	}
	if !(p.Confidence >= 0 && p.Confidence <= 1) {
		return invalid("Confidence", "must be in [0, 1]")
	}
	truncate(&p.Created, &p.Expires, &p.Decided)
	truncateApprovals(p.Approvals)
	_, err := s.commit(ctx, s.governing, func() (change, error) {
		if _, err := proposalKind.get(ctx, s.cfg.Store, p.ID); !errors.Is(err, heed.ErrNotFound) {
			return change{}, cmp.Or(err, errKnown)
		}
		now := s.now()
		c, err := s.imported(ctx, p.at(0), who, now)
		c.tell(s.entry(now, who, "import", p.ID, reason))
		return c, err
	})
	return err
}

// imported is the change that takes over a proposal.
func (s *Service) imported(ctx context.Context, p Proposal, who string, now time.Time) (c change, err error) {
	switch p.Status {
	case StateApproved: // is worth what its rule is
		_, err = ruleKind.get(ctx, s.cfg.Store, p.ID)
	case StateRejected, StateExpired, StateSuperseded, StateDocumented:
	case StatePending:
		if p.Action == DocumentOnly {
			return c, invalid("Action", "must pass the gate, as the proposal is pending")
		}
		p.Approvals, p.Created, p.Expires = nil, now, now.Add(s.cfg.Gate.TTL)
		p.Writers = text.Distinct(append(p.Writers, who))
		if c, err = s.opened(ctx, &p); err != nil {
			return c, err
		}
		return c, s.vacate(ctx, &c, p.Cluster, now)
	default:
		err = invalid("Status", "is none of the statuses")
	}
	if err == nil {
		err = errors.Join(checkTime("Created", p.Created, now), p.checkPeople())
	}
	c.write(proposalKind.record(p))
	return c, err
}

// vacate reports that a cluster has a pending proposal, and closes one whose time is over.
func (s *Service) vacate(ctx context.Context, c *change, cluster string, now time.Time) error {
	if cluster == "" {
		return nil
	}
	pending, err := s.proposals(ctx, ProposalQuery{Status: StatePending, Cluster: cluster})
	for _, p := range pending {
		if now.Before(p.Expires) {
			return notNow("cluster's proposal", p.Status)
		}
		s.expired(c, p, now)
	}
	return err
}

func (s *Service) importRule(ctx context.Context, r Rule, who, reason string) error {
	r.Draft = r.Draft.normal()
	if err := errors.Join(checkName("ID", r.ID), s.validateDraft(&r.Draft)); err != nil {
		return err
	}
	switch r.Status {
	case StateActive, StateRetired, StateRevoked, StateSuperseded:
	default:
		return invalid("Status", "is none of the statuses")
	}
	truncate(&r.Activated, &r.Left)
	truncateApprovals(r.Approvals)
	_, err := s.commit(ctx, s.governing, func() (change, error) {
		if known, err := ruleKind.get(ctx, s.cfg.Store, r.ID); err == nil {
			if known.Hash() != r.Hash() {
				return change{}, fmt.Errorf("another rule has this id: %w", heed.ErrConflict)
			}
			return change{}, errKnown
		} else if !errors.Is(err, heed.ErrNotFound) {
			return change{}, err
		}
		at, err := s.board(ctx)
		if err != nil {
			return change{}, err
		}
		if err := s.admit(ctx, &r); err != nil {
			return change{}, err
		}
		now := s.now()
		if r.Activated.IsZero() || r.Activated.After(now) {
			r.Activated = now
		}
		r.Since, r.Effect, r.RetireProposed = now, Effect{}, time.Time{}
		c := at.governs(now)
		c.write(ruleKind.record(r))
		c.tell(s.entry(now, who, "import", r.ID, reason))
		if r.Status == StateActive {
			c.notice(heed.Activated{Component: component, At: now, Subject: r.ID})
		}
		return c, nil
	})
	return err
}

// people brings ids into their canonical form.
func (s *Service) people(field string, ids []string) (err error) {
	for i := range ids {
		if ids[i], err = s.person(fmt.Sprintf("%s[%d]", field, i), ids[i]); err != nil {
			return err
		}
	}
	return nil
}

// admit reports why a rule must not come in: its approvals don't fulfil the gate, or it contradicts an active one.
func (s *Service) admit(ctx context.Context, r *Rule) error {
	if err := errors.Join(s.people("Authors", r.Authors), s.people("Writers", r.Writers)); err != nil {
		return err
	}
	for i := range r.Approvals {
		who, err := s.person(fmt.Sprintf("Approvals[%d].Actor", i), r.Approvals[i].Actor)
		if err != nil {
			return err
		}
		r.Approvals[i].Actor = who
		if slices.Contains(r.Writers, who) {
			return ineligible("nobody approves what they proposed or edited")
		}
	}
	var against []Conflict
	if r.Status == StateActive {
		conflicts, err := s.conflicts(ctx, &r.Draft, nil, "")
		if err != nil {
			return err
		}
		against = contradictions(conflicts)
	}
	if !s.cfg.Gate.met(r.Approvals, &r.Draft, r.Authors, against) {
		if s.cfg.Gate.met(r.Approvals, &r.Draft, r.Authors, nil) {
			return contradicted(against)
		}
		return ineligible("its approvals do not fulfil the gate")
	}
	return nil
}
