package feedback

import (
	"cmp"
	"context"
	"slices"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// Join records that a person found that two corrections of one agent mean the same, and returns the
// correction that the order names. It joins the cluster of the other one, whatever their words are,
// also if it was [Ambiguous] or taken out before. Both then count as corrections of their
// reviewers. The person who joined them counts as an author of what is proposed from them, so that
// they are not an outsider to the [Gate]; they get no other role. The next [Service.Flush] proposes
// the cluster if it is ready.
//
// Both must be corrections with a text, and the other one must be in a cluster. A correction that
// is evidence of a pending proposal is refused: see [Service.Split]. A refusal is a
// [*RefusedError].
func (s *Service) Join(ctx context.Context, o Act, with string) (Feedback, error) {
	if err := valid.Names(evidence.MaxText, "with", with); err != nil {
		return Feedback{}, wrap("join", err)
	}
	if with == o.ID {
		return Feedback{}, wrap("join", valid.Input("with", "must be another correction"))
	}
	return act(ctx, s, Act{ID: o.ID, Actor: o.Actor, Reason: o.Reason, Kind: "join"},
		func(c *change) (Feedback, error) {
			c.Want(s.wants(o.ID, with), waitingWants)
			r, err := movable(c, o.ID)
			if err != nil {
				return r, err
			}
			to, err := feedbackIn(c.Tx, with)
			switch {
			case err != nil:
				return r, err
			case !to.Class.correction() || to.Cluster == "":
				return r, notNow("other feedback", to.Class)
			case to.Agent != r.Agent:
				return r, ineligible("the corrections are of different agents")
			case r.Cluster == to.Cluster && r.Class.correction():
				return r, nil
			}
			if err := c.raise(agentMark(r.Agent)); err != nil {
				return r, err
			}
			members, err := members(c.Tx, r.Agent, to.Cluster, Classification.correction)
			if err != nil {
				return r, err
			}
			s.joinTo(c, &r, &to, members)
			return r, nil
		})
}

// movable returns a correction that a person can join with others. It must have a text and a class
// that can change, and must not be evidence of a pending proposal.
func movable(c *change, id string) (Feedback, error) {
	r, err := feedbackIn(c.Tx, id)
	if err != nil {
		return r, err
	}
	if r.content() == "" || !r.Class.correction() && r.Class != Ambiguous {
		return r, notNow("feedback", r.Class)
	}
	pending, err := waiting(c.Tx, c.now)
	for i := range pending {
		if slices.Contains(pending[i].Evidence, id) {
			return r, ineligible("it is evidence of a pending proposal: take it out there")
		}
	}
	return r, err
}

// joinTo puts a correction into the cluster that another one has, with these members. What kept the
// corrections apart is removed from all of them, because the person's decision is the later one.
func (s *Service) joinTo(c *change, r, to *Feedback, members []Feedback) {
	key := c.people()
	ids := []string{r.ID}
	for i := range members {
		ids = append(ids, members[i].ID)
	}
	reunited := func(f *Feedback) bool {
		before := len(f.Apart) + len(f.Contradicts)
		known := func(id string) bool { return slices.Contains(ids, id) }
		f.Apart = slices.DeleteFunc(f.Apart, known)
		f.Contradicts = slices.DeleteFunc(f.Contradicts, known)
		return before > len(f.Apart)+len(f.Contradicts)
	}
	reunited(r)
	r.Near = slices.DeleteFunc(r.Near, func(id string) bool { return slices.Contains(ids, id) })
	r.Cluster, r.Link, r.Worded = to.Cluster, min(1, s.cfg.Threshold), true
	r.Joiner, r.Dispute = c.who, ""
	r.Class, r.Action = GeneralizableLow, createRule
	weigh(r, members, key)
	r.Rationale = "a person joined it with " + to.ID
	c.write(feedbackKind.record(*r))
	for i := range members {
		if reunited(&members[i]) {
			c.write(feedbackKind.record(members[i]))
		}
	}
	c.promoteWith(r, members)
}

// Split records that a person found that a feedback does not belong to its cluster, or to the
// evidence of a pending proposal, and returns the feedback. It is alone in a cluster from then on,
// and never joins the others again unless a person joins them. The approvals of the proposals are
// void. The last evidence of a proposal can't be taken out: reject the proposal. Split has no
// effect on a feedback that is alone already. A refusal is a [*RefusedError].
func (s *Service) Split(ctx context.Context, o Act) (Feedback, error) {
	return act(ctx, s, Act{ID: o.ID, Actor: o.Actor, Reason: o.Reason, Kind: "split"},
		func(c *change) (Feedback, error) {
			c.Want(s.wants(o.ID), waitingWants)
			r, err := feedbackIn(c.Tx, o.ID)
			if err != nil {
				return r, err
			}
			others, err := s.takeOut(c, &r, o.Reason)
			if err != nil {
				return r, err
			}
			if len(others)+len(r.Apart) == 0 && !r.Class.correction() {
				return r, notNow("feedback", cmp.Or(r.Class, unclassified))
			}
			if r.Cluster != "" {
				members, err := members(c.Tx, r.Agent, r.Cluster, func(Classification) bool { return true })
				if err != nil {
					return r, err
				}
				others = append(others, members...)
			}
			others = slices.DeleteFunc(others, func(f Feedback) bool { return f.ID == r.ID })
			if len(others) == 0 {
				return r, nil
			}
			if err := c.raise(agentMark(r.Agent)); err != nil {
				return r, err
			}
			r.separate(others)
			c.write(feedbackKind.record(r))
			return r, nil
		})
}

// takeOut takes a feedback out of the evidence of pending proposals, and returns the other
// evidence.
func (s *Service) takeOut(c *change, r *Feedback, reason string) (others []Feedback, err error) {
	pending, err := waiting(c.Tx, c.now)
	for i := range pending {
		p := &pending[i]
		if !slices.Contains(p.Evidence, r.ID) {
			continue
		}
		evidence, err := remaining(c.Tx, p.Evidence)
		if err != nil {
			return nil, err
		}
		evidence = slices.DeleteFunc(evidence, func(f Feedback) bool { return f.ID == r.ID })
		if len(evidence) == 0 || !p.makes() {
			return nil, ineligible("nothing would be left to approve: reject the proposal")
		}
		others = append(others, evidence...)
		if evidence, err = s.speakingFor(c.Context(), p, evidence); err != nil {
			return nil, err
		}
		p.withdraw()
		s.refill(p, evidence, c.people())
		c.logAudit("take-out", p.ID, reason, nil)
		c.write(proposalKind.record(*p))
		c.notice(s.waitsAt(c, p))
	}
	return others, err
}

// separate puts a feedback alone into a cluster, apart from these. A generalizable correction
// becomes an edge case, because it supports itself alone from then on.
func (f *Feedback) separate(others []Feedback) {
	for i := range others {
		f.Apart = append(f.Apart, others[i].ID)
	}
	f.Apart = text.Distinct(f.Apart)
	f.Apart = f.Apart[:min(len(f.Apart), maxList)]
	f.Similar = slices.DeleteFunc(f.Similar, func(id string) bool {
		return slices.Contains(f.Apart, id)
	})
	f.Cluster = store.IDOf(slices.Concat([]string{"split", f.ID}, f.Apart)...)
	f.Link, f.Worded, f.Joiner = 1, false, ""
	f.Rationale = "a person took it out of its cluster"
	if f.Class.generalizable() {
		f.Class, f.Action, f.Confidence = EdgeCase, documentOnly,
			min(f.Confidence, alone)
	}
}
