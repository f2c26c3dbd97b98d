package feedback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// Rules carries proposals through their review to active rules, and back. Get it from
// [Service.Rules]. It is safe for concurrent use by multiple goroutines.
type Rules struct{ s *Service }

// Rules returns the proposals and rules of the service.
func (s *Service) Rules() *Rules { return &Rules{s} }

// Proposal returns a proposal, or [heed.ErrNotFound].
func (r *Rules) Proposal(ctx context.Context, id string) (Proposal, error) {
	tx := r.s.reading(ctx)
	tx.Want(peopleWants)
	p, err := proposalKind.in(tx, id)
	if err != nil {
		return p, wrap("proposal", err)
	}
	p.age(r.s.now())
	var against []Conflict
	if p.Status == StatePending && len(p.Approvals) > 0 {
		tx.Want(p.wants())
		against, err = r.s.against(tx, &p.Draft)
	}
	return p, wrap("proposal", cmp.Or(err, r.s.count(tx, &p, against)))
}

// age shows a pending proposal whose time is over as expired, which a sweep will store.
func (p *Proposal) age(now time.Time) {
	if p.Status == StatePending && !now.Before(p.Expires) {
		p.Status, p.Decided, p.Reason, p.Quorum = stateExpired, p.Expires, tooLate, nil
	}
}

// Proposals returns the proposals that a query selects, the newest first, at most limit of them (0
// means all), and how many there are in all. Their Quorum counts an approval even if the draft
// contradicts a rule that came later: see [Rules.Proposal]. If records are damaged, Proposals
// returns the others with a [heed.ErrDamaged], and so does List.
func (r *Rules) Proposals(
	ctx context.Context, q ProposalQuery, limit int,
) (proposals []Proposal, total int, err error) {
	stored := q
	if q.Status == stateExpired { // some of them are stored as pending until the next sweep
		stored.Status = ""
	}
	tx := r.s.reading(ctx)
	tx.Want(peopleWants)
	proposals, err = allProposals(tx, stored)
	failures, now := []error{err}, r.s.now()
	for i := range proposals {
		proposals[i].age(now)
	}
	proposals = slices.DeleteFunc(proposals,
		func(p Proposal) bool { return !matches(q.Status, p.Status) })
	if total = len(proposals); limit > 0 {
		proposals = proposals[:min(total, limit)]
	}
	for _, p := range proposals { // one read for all approvers
		if p.Status == StatePending && p.Cluster != "" {
			tx.Want(store.Wants{Queries: feedbackKind.queries(p.givenBy(actors(p.Approvals)...))})
		}
	}
	for i := range proposals {
		failures = append(failures, r.s.count(tx, &proposals[i], nil))
	}
	return proposals, total, wrap("proposals", errors.Join(failures...))
}

// allProposals returns what a query selects, the newest first.
func allProposals(tx *store.Tx, q ProposalQuery) ([]Proposal, error) {
	proposals, err := proposalKind.union(tx, q.keys(), q.selects)
	slices.SortFunc(proposals, func(a, b Proposal) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
	})
	return proposals, err
}

// Rule returns a rule, or [heed.ErrNotFound].
func (r *Rules) Rule(ctx context.Context, id string) (Rule, error) {
	rule, err := ruleKind.in(r.s.reading(ctx), id)
	return rule, wrap("rule", err)
}

// List returns the rules that a query selects, the newest first. If it asks for unfit ones, the
// worst come first.
func (r *Rules) List(ctx context.Context, q RuleQuery) ([]Rule, error) {
	rules, err := ruleKind.union(r.s.reading(ctx), q.keys(), q.selects)
	slices.SortFunc(rules, func(a, b Rule) int {
		return cmp.Or(b.Activated.Compare(a.Activated), cmp.Compare(a.ID, b.ID))
	})
	switch {
	case q.Ranked:
		slices.SortFunc(rules, compareRanks)
	case q.Unfit:
		slices.SortStableFunc(rules, compareUnfit)
	}
	return rules, wrap("list", err)
}

// A Submission is what a person proposes.
type Submission struct {
	// Draft is what people approve, word by word.
	Draft Draft
	// Evidence lists the ids of feedback that speaks for it. It may be empty.
	Evidence []string
	// Replaces is the id of a pending proposal that this is a new version of, or "". The evidence is
	// then the proposal's.
	Replaces string
	// Actor proposes it, and can't approve it.
	Actor string
	// Reason is for the approvers and the audit log. It is never empty.
	Reason string
}

// Propose opens a proposal. A draft that is not valid is a [*heed.InputError]. A proposal is
// refused ([*RefusedError]) if too many are pending. A draft whose action is "DOCUMENT_ONLY" is
// recorded and needs no approval. If the same person proposes the same draft with the same evidence
// again, or the same new version, Propose returns the pending proposal.
//
// A new version of a proposal closes the old one as superseded, with its approvals. People who
// proposed or edited a version cannot approve the new one. If its text is another, its evidence is
// what is alike to the new text, and its confidence and reviewers follow from that. It expires when
// the old one would have.
//
// A draft with a Change of a rule has the rule's words. If the rule has others, or is not in
// the state that the change needs, it is refused as a [heed.ErrConflict]. People who wrote the rule
// cannot approve its change.
func (r *Rules) Propose(ctx context.Context, sub Submission) (Proposal, error) {
	s := r.s
	d, err := s.checked(sub.Draft)
	if err != nil {
		return Proposal{}, wrap("propose", err)
	}
	d.Withdrawn = 0
	if sub.Replaces != "" {
		return s.modify(ctx, sub, d)
	}
	err = valid.List("Evidence", sub.Evidence, math.MaxInt, evidence.MaxText)
	if err != nil {
		return Proposal{}, wrap("propose", err)
	}
	a := Act{ID: s.cfg.NewID(), Actor: sub.Actor, Reason: sub.Reason, Kind: "propose", Draft: &d}
	return act(ctx, s, a, func(c *change) (Proposal, error) {
		c.Want(d.wants(), s.wants(text.Distinct(sub.Evidence)...), waitingWants)
		evidence, err := evidenceOf(c.Tx, sub.Evidence)
		if err != nil {
			return Proposal{}, err
		}
		p := Proposal{ID: a.ID, Draft: d, Writers: []string{c.who}, Proposer: c.who}
		s.fill(&p, evidence, c.people())
		known, err := s.proposed(c, &p)
		if err != nil || known.ID != "" {
			return known, err
		}
		err = s.opened(c, &p)
		return p, err
	})
}

// proposed returns the pending proposal, if there is one, that the same person made before of the
// same draft, with the same evidence or from the same version. Somebody may repeat a proposal whose
// answer got lost.
func (s *Service) proposed(c *change, p *Proposal) (known Proposal, err error) {
	pending, err := waiting(c.Tx, c.now)
	key, hash := c.people(), p.Hash()
	for _, o := range pending {
		if o.Previous == p.Previous && key.Same(o.Proposer, c.who) && o.Hash() == hash &&
			(p.Previous != "" || slices.Equal(o.Evidence, p.Evidence)) {
			return o, s.count(c.Tx, &o, nil)
		}
	}
	return known, err
}

// modify makes a new version of a pending proposal. The old version is closed in the same step, and
// its evidence is weighed again for the new text.
func (s *Service) modify(ctx context.Context, sub Submission, d Draft) (Proposal, error) {
	var fault error
	switch {
	case d.Action == documentOnly:
		fault = valid.Input("Action", "must pass the gate: reject the proposal instead")
	case len(sub.Evidence) > 0:
		fault = valid.Input("Evidence", "must be empty, because the new version has the proposal's")
	case !d.makes():
		fault = valid.Input("Of", "must be empty: reject the proposal, and propose the rule's change")
	}
	if fault != nil {
		return Proposal{}, wrap("modify", fault)
	}
	id := s.cfg.NewID()
	a := Act{ID: sub.Replaces, Actor: sub.Actor, Reason: sub.Reason, Kind: "modify", Draft: &d}
	return act(ctx, s, a, func(c *change) (p Proposal, err error) {
		c.Want(d.wants(), waitingWants, store.Wants{Refs: []store.Ref{proposalKind.Ref(sub.Replaces)}})
		known, err := s.proposed(c, &Proposal{Draft: d, Previous: sub.Replaces})
		if err != nil || known.ID != "" {
			return known, err
		}
		old, err := pending(c, sub.Replaces)
		if err != nil {
			return p, err
		}
		if !old.makes() {
			return p, ineligible("the change of a rule is not edited")
		}
		p = old.at(0)
		p.ID, p.Previous, p.Draft, p.Approvals, p.Proposer = id, old.ID, d, nil, c.who
		key := c.people()
		p.Writers = joined(p.Writers, key, c.who)
		if p.Was == nil {
			p.Was = &old.Draft
		}
		if err := s.reweigh(c, &p, old.Text); err != nil {
			return p, err
		}
		if err := s.opened(c, &p); err != nil {
			return p, err
		}
		old.closeAs(c, stateSuperseded, sub.Reason)
		return p, nil
	})
}

// reweigh gives an edited proposal the evidence that speaks for its new text, with what follows
// from it, unless its text is as before. The time that it may wait stays.
func (s *Service) reweigh(c *change, p *Proposal, before string) error {
	evidence, err := remaining(c.Tx, p.Evidence)
	if err == nil {
		evidence, err = s.speakingFor(c.Context(), p, evidence)
	}
	if err != nil {
		return err
	}
	key := c.people()
	switch {
	case p.Text == before:
		p.Warnings = warnings(&p.Draft, evidence, key)
		return nil
	case len(evidence) == 0:
		p.Cluster = "" // which may be proposed again
	}
	s.refill(p, evidence, key)
	return nil
}

// speakingFor returns the feedback that speaks for the text of a proposal. If it was edited, that
// is what is alike to the new text.
func (s *Service) speakingFor(
	ctx context.Context, p *Proposal, evidence []Feedback,
) ([]Feedback, error) {
	if p.Was == nil || p.Text == p.Was.Text {
		return evidence, nil
	}
	matches, err := s.compare(ctx, p.Text, evidence, false)
	if err != nil {
		return nil, err
	}
	var speaking []Feedback
	for _, m := range matches {
		if s.near(&m) {
			m.Link, m.Worded = m.Score, !s.sameText(p.Text, m.content())
			speaking = append(speaking, m.Feedback)
		}
	}
	byTime(speaking)
	return speaking, nil
}

// refill completes a proposal again, from this evidence alone.
func (s *Service) refill(p *Proposal, evidence []Feedback, key text.PseudonymKey) {
	p.Evidence, p.Confidence, p.Summary = nil, 0, ""
	s.fill(p, evidence, key)
}

// Sources returns the feedback behind a proposal, the oldest first, for its approvers to read side
// by side. Erased feedback is missing.
func (r *Rules) Sources(ctx context.Context, proposal string) ([]Feedback, error) {
	p, err := proposalKind.in(r.s.reading(ctx), proposal)
	if err != nil {
		return nil, wrap("sources", err)
	}
	sources, err := remaining(r.s.reading(ctx), p.Evidence)
	byTime(sources)
	return sources, wrap("sources", err)
}

// waitsAt is the notice that a proposal needs approvals.
func (s *Service) waitsAt(c *change, p *Proposal) heed.Notice {
	return heed.Changed{
		What:      "needs_approval",
		Component: component, At: c.now, Subject: p.ID, Approvals: len(p.Approvals),
		Quorum: s.cfg.Gate.Quorum,
	}
}

// withdraw notes that a feedback is no longer behind the proposal. Earlier approvals had counted on
// it, so they are void.
func (p *Proposal) withdraw() {
	p.Withdrawn++
	p.Approvals = nil
}

// remaining returns the feedback of these ids that was not erased.
func remaining(tx *store.Tx, ids []string) ([]Feedback, error) {
	records, err := feedbackKind.all(tx, ids)
	return slices.DeleteFunc(records, func(f Feedback) bool { return !f.Erased.IsZero() }), err
}

// evidenceOf returns the feedback of these ids, the oldest first.
func evidenceOf(tx *store.Tx, ids []string) ([]Feedback, error) {
	ids = text.Distinct(ids)
	records, err := remaining(tx, ids)
	if err == nil && len(records) < len(ids) {
		err = fmt.Errorf("feedback that is evidence: %w", heed.ErrNotFound)
	}
	byTime(records)
	return records, err
}

// byTime sorts feedback, the oldest first.
func byTime(records []Feedback) {
	slices.SortFunc(records, func(a, b Feedback) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
	})
}

// fill completes a proposal from its evidence. It leaves out evidence of more reviewers than a
// proposal may name. Authors are also the people who joined corrections, because they are no
// outsiders to the gate.
func (s *Service) fill(p *Proposal, evidence []Feedback, key text.PseudonymKey) {
	const most = maxPeople * 4 / 5 // leaves names for writers and approvers
	var behind []Feedback
	gates := map[string]bool{}
	for _, e := range evidence {
		named := joined(p.Authors, key, e.Reviewer, e.Joiner)
		if len(named) > max(most, len(p.Authors)) {
			continue
		}
		p.Authors, behind = named, append(behind, e)
		p.Evidence = append(p.Evidence, e.ID)
		gates[e.Gate] = true
	}
	p.Evidence, p.Authors = text.Distinct(p.Evidence), text.Distinct(p.Authors)
	support := supportOf(behind, key)
	p.Occurrences, p.Reviewers = support.occurrences, support.reviewers
	if len(behind) > 0 {
		p.Confidence = max(p.Confidence, min(support.confidence(), ceiling(behind, key)))
		first, last := behind[0].At, behind[len(behind)-1].At
		p.Summary = fmt.Sprintf("decisions: %d, reviewers: %d, gates: %d, from %s to %s",
			p.Occurrences, p.Reviewers, len(gates), first.Format(time.DateOnly),
			last.Format(time.DateOnly))
	}
	p.Warnings = warnings(&p.Draft, behind, key)
}

// opened opens a proposal, if there is room for it. A new version expires when the old one would
// have. Everything that may refuse it is checked in the step: the rules that it changes, the number
// of people, and the limits on pending proposals.
func (s *Service) opened(c *change, p *Proposal, disputed ...Conflict) error {
	p.Created = c.now
	switch {
	case p.Status != "":
	case p.Action == documentOnly:
		p.Status, p.Expires, p.Decided = stateDocumented, c.now, c.now
	default:
		p.Status, p.Expires = StatePending, c.now.Add(pendingFor)
	}
	c.Want(p.wants(), peopleWants, waitingWants)
	if err := c.raise(rulesMark); err != nil {
		return err
	}
	key := c.people()
	if err := checkRules(c.Tx, p, key); err != nil {
		return err
	}
	if err := p.checkPeople(); err != nil {
		return err
	}
	pending, err := waiting(c.Tx, c.now)
	if err != nil {
		return err
	}
	if p.Status == StatePending && s.full(p, pending, key) {
		return errFull
	}
	if p.Conflicts, err = s.conflicts(c.Tx, &p.Draft, pending, p.Previous); err != nil {
		return err
	}
	p.Conflicts = sortConflicts(append(p.Conflicts, disputed...))
	c.write(proposalKind.record(*p))
	c.notice(heed.Changed{What: "proposed", Component: component, At: c.now, Subject: p.ID})
	if p.Status == StatePending {
		c.notice(s.waitsAt(c, p))
	}
	return s.count(c.Tx, p, nil)
}

// checkRules reports a rule that can't be changed or superseded. It adds the people behind these
// rules to the proposal.
func checkRules(tx *store.Tx, p *Proposal, key text.PseudonymKey) error {
	if !p.makes() {
		rule, err := toChange(tx, &p.Draft)
		p.follows(&rule, key)
		return err
	}
	for _, id := range p.Supersedes {
		rule, err := ruleKind.in(tx, id)
		if err != nil {
			return err
		}
		if rule.Status != StateActive {
			return notNow("rule to supersede", rule.Status)
		}
		p.follows(&rule, key)
	}
	return nil
}

// toChange returns the rule that a draft changes, if it has the draft's words and the state that
// the change needs. The words must be the rule's, because people approve what they read.
func toChange(tx *store.Tx, d *Draft) (Rule, error) {
	rule, err := ruleKind.in(tx, d.Of)
	if err != nil {
		return Rule{}, err
	}
	needed := StateActive
	if d.Change == restore {
		needed = StateRetired
	}
	switch {
	case d.words() != rule.words() || !slices.Equal(d.Supersedes, rule.Supersedes):
		return Rule{}, &RefusedError{Reason: "the rule has other words than the draft",
			Err: heed.ErrConflict}
	case rule.Status != needed:
		return Rule{}, notNow("rule", rule.Status)
	case d.Change != restore && rule.Pinned == (d.Change == pin):
		return Rule{}, &RefusedError{Reason: "there is nothing to " + strings.ToLower(d.Change),
			Err: heed.ErrConflict}
	}
	return rule, nil
}

// follows adds the people behind a rule that the proposal changes or supersedes.
func (p *Proposal) follows(rule *Rule, key text.PseudonymKey) {
	p.Writers = joined(p.Writers, key, rule.Writers...)
	p.Authors = text.Distinct(joined(p.Authors, key, rule.Authors...))
}

// full reports whether too many proposals are pending. The previous version of this one does not
// count.
func (s *Service) full(p *Proposal, pending []Proposal, key text.PseudonymKey) bool {
	atLeast := func(limit int, counts func(o *Proposal) bool) bool {
		n := 0
		for i := range pending {
			o := &pending[i]
			if o.ID != p.Previous && counts(o) {
				n++
			}
		}
		return n >= limit
	}
	g := &s.cfg.Gate
	return atLeast(g.Pending, func(*Proposal) bool { return true }) ||
		atLeast(max(g.Pending/20, 1), func(o *Proposal) bool {
			return key.Same(o.Proposer, p.Proposer)
		}) ||
		slices.ContainsFunc(p.Agents, func(agent string) bool {
			return atLeast(max(g.Pending/10, 1), func(o *Proposal) bool { return o.affects(agent) })
		})
}
