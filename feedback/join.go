package feedback

import (
	"context"
	"slices"
	"strings"

	"github.com/heedhq/heed/evidence"
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
// is evidence of a pending proposal is refused: see [Rules.TakeOut]. A refusal is a
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
			r, err := s.movable(c, o.ID)
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
			return r, s.joinTo(c, &r, &to, members)
		})
}

// joinTo puts a correction into the cluster that another one has, with these members. What kept the
// corrections apart is removed from all of them, because the person's decision is the later one.
func (s *Service) joinTo(c *change, r, to *Feedback, members []Feedback) error {
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
	s.weigh(r, members, key)
	r.Rationale = "a person joined it with " + to.ID
	c.write(feedbackKind.record(*r))
	promoted := promote(r, members)
	for i := range members {
		if reunited(&members[i]) && !slices.ContainsFunc(promoted, func(f Feedback) bool {
			return f.ID == members[i].ID
		}) {
			c.write(feedbackKind.record(members[i]))
		}
	}
	for i := range promoted {
		reunited(&promoted[i])
	}
	promoting(c, promoted)
	return nil
}

// Split records that a person found that a correction does not belong to its cluster, and returns
// the correction. It is alone in its cluster from then on, and never joins the others again unless
// a person joins them. A correction that is evidence of a pending proposal is refused: see
// [Rules.TakeOut].
func (s *Service) Split(ctx context.Context, o Act) (Feedback, error) {
	return act(ctx, s, Act{ID: o.ID, Actor: o.Actor, Reason: o.Reason, Kind: "split"},
		func(c *change) (Feedback, error) {
			c.Want(s.wants(o.ID), waitingWants)
			r, err := s.movable(c, o.ID)
			if err != nil {
				return r, err
			}
			others, err := members(c.Tx, r.Agent, r.Cluster, Classification.correction)
			if err != nil {
				return r, err
			}
			others = slices.DeleteFunc(others, func(f Feedback) bool { return f.ID == r.ID })
			if r.Cluster == "" || len(others) == 0 {
				return r, ineligible("it is already in a cluster of its own")
			}
			if err := c.raise(agentMark(r.Agent)); err != nil {
				return r, err
			}
			r.separate(store.IDOf("split", r.ID, strings.Join(idsOf(others), " ")), others)
			r.Rationale = "a person took it out of its cluster"
			c.write(feedbackKind.record(r))
			return r, nil
		})
}

// movable returns a correction that a person can join or split. It must have a text and a class
// that can change, and must not be evidence of a pending proposal.
func (s *Service) movable(c *change, id string) (Feedback, error) {
	r, err := feedbackIn(c.Tx, id)
	if err != nil {
		return r, err
	}
	if !r.corrects() || r.Private || r.content() == "" ||
		!r.Class.correction() && r.Class != Ambiguous {
		return r, notNow("feedback", r.Class)
	}
	pending, err := waiting(c.Tx, c.now)
	if err != nil {
		return r, err
	}
	for i := range pending {
		if slices.Contains(pending[i].Evidence, id) {
			return r, ineligible("it is evidence of a pending proposal: take it out there")
		}
	}
	return r, nil
}

// idsOf returns the ids of feedback, in its order.
func idsOf(all []Feedback) (ids []string) {
	for i := range all {
		ids = append(ids, all[i].ID)
	}
	return ids
}
