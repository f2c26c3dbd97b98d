package feedback

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/heedhq/heed"
)

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
	revision, err := s.act(ctx, ActModify, e.Proposal, e.Actor, e.Reason, &d, func(now time.Time, who string) (c change, err error) {
		old, err := proposalKind.get(ctx, s.cfg.Store, e.Proposal)
		if err != nil {
			return c, err
		}
		if err := s.checkPending(ctx, old, now); err != nil {
			return c, err
		}
		p = old.Clone()
		p.ID, p.Previous, p.Draft, p.Approvals, p.Revision = id, old.ID, d, nil, 0
		p.Writers = append(slices.DeleteFunc(p.Writers, func(w string) bool { return w == who }), who)
		evidence, err := s.remaining(ctx, p.Evidence)
		if err != nil {
			return c, err
		}
		p.Warnings, p.Created, p.Expires = warnings(&d, evidence), now, now.Add(s.cfg.Gate.TTL)
		if c, err = s.opened(ctx, &p); err != nil {
			return c, err
		}
		closeAs(&old, StatusSuperseded, who, e.Reason, now)
		c.write(proposalKind.record(old))
		return c, nil
	})
	if err != nil {
		return Proposal{}, wrap("modify", err)
	}
	p.Revision = revision
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
