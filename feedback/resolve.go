package feedback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heedhq/heed/internal/text"
)

// A Resolution is what a person says of an ambiguous feedback.
type Resolution struct {
	ID     string
	As     Classification // GeneralizableLow (or High), EdgeCase, or Archived to ignore it
	Actor  string
	Reason string // never empty
}

// Resolve decides an [Ambiguous] feedback. As a generalizable one it joins the cluster it is alike to, and a rule is
// proposed; archived, it is kept and counts for nothing. What is not ambiguous, or not any more, is a [*StateError].
func (s *Service) Resolve(ctx context.Context, res Resolution) (Record, error) {
	if !res.As.Generalizable() && res.As != EdgeCase && res.As != Archived {
		return Record{}, wrap("resolve", invalid("As", "must be generalizable, an edge case or archived"))
	}
	var r Record
	revision, err := s.act(ctx, ActResolve, res.ID, res.Actor, res.Reason, nil, func(now time.Time, who string) (c change, err error) {
		if r, err = s.Feedback(ctx, res.ID); err != nil {
			return c, err
		}
		if r.Class != Ambiguous {
			return c, &StateError{What: "feedback", State: string(cmp.Or(r.Class, Unclassified))}
		}
		lane, err := s.lane(ctx, r.Agent, now)
		if err != nil {
			return c, err
		}
		promoted, err := s.resolve(ctx, &r, res.As)
		if err != nil {
			return c, err
		}
		r.Resolution, r.Resolver = res.Reason, who
		c.write(lane, feedbackKind.record(r))
		for _, p := range promoted {
			c.write(feedbackKind.record(p))
		}
		return c, nil
	})
	if err != nil {
		return Record{}, wrap("resolve", err)
	}
	r.Revision = revision
	if r.Class.Generalizable() {
		if _, err := s.proposeCluster(ctx, r.Agent, r.Cluster); err != nil && !errors.Is(err, ErrTooMany) {
			return r, fmt.Errorf("feedback: resolve: it is resolved, but not proposed: %w", err)
		}
	}
	return r, nil
}

func (s *Service) resolve(ctx context.Context, r *Record, as Classification) (promoted []Record, err error) {
	r.Class, r.Action = as, CreateRule
	switch {
	case as == Archived:
		r.Action = ""
		return nil, nil
	case !text.Comparable(r.Text()):
		if as.Generalizable() {
			return nil, invalid("As", "must not be generalizable, as there is no text")
		}
		r.Action = DocumentOnly
		return nil, nil
	}
	known, err := s.recent(ctx, &r.Feedback)
	if err != nil {
		return nil, err
	}
	matches, err := s.compare(ctx, r.Text(), known)
	if err != nil {
		return nil, err
	}
	members, err := s.join(ctx, r, matches, Classification.correction)
	if err != nil {
		return nil, err
	}
	r.Confidence = min(s.support(r, members).Confidence(), s.cfg.Ceiling)
	if as == EdgeCase {
		r.Action = DocumentOnly
		return nil, nil
	}
	if s.cfg.High.Met(s.support(r, members)) {
		r.Class = GeneralizableHigh
	}
	return promote(r, members), nil
}
