package feedback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heedhq/heed/internal/text"
)

// Resolve decides an [Ambiguous] feedback: as [GeneralizableLow] (or GeneralizableHigh), [EdgeCase], or [Archived] to ignore
// it. A generalizable feedback joins the cluster that it is alike to, and a rule is proposed. Feedback of another class is
// refused: see [RefusedError].
func (s *Service) Resolve(ctx context.Context, o Order, as Classification) (Feedback, error) {
	if !as.generalizable() && as != EdgeCase && as != Archived {
		return Feedback{}, wrap("resolve", invalid("as", "must be generalizable, an edge case or archived"))
	}
	var r Feedback
	revision, err := s.act(ctx, "resolve", o.ID, o.Actor, o.Reason, nil, func(now time.Time, who string) (c change, err error) {
		if r, err = s.Feedback(ctx, o.ID); err != nil {
			return c, err
		}
		if r.Class != Ambiguous {
			return c, notNow("feedback", cmp.Or(r.Class, Unclassified))
		}
		lane, err := s.lane(ctx, r.Agent, now)
		if err != nil {
			return c, err
		}
		promoted, err := s.resolve(ctx, &r, as)
		if err != nil {
			return c, err
		}
		r.Resolution, r.Resolver = o.Reason, who
		c.write(lane, feedbackKind.record(r))
		for _, p := range promoted {
			c.write(feedbackKind.record(p))
		}
		return c, nil
	})
	if err != nil {
		return Feedback{}, wrap("resolve", err)
	}
	r.Revision = revision
	if r.Class.generalizable() {
		if _, err := s.proposeCluster(ctx, r.Agent, r.Cluster); err != nil && !errors.Is(err, errFull) {
			return r, fmt.Errorf("feedback: resolve: it is resolved, but not proposed: %w", err)
		}
	}
	return r, nil
}

func (s *Service) resolve(ctx context.Context, r *Feedback, as Classification) (promoted []Feedback, err error) {
	r.Class, r.Action = as, CreateRule
	switch {
	case as == Archived:
		r.Action = ""
		return nil, nil
	case !text.Comparable(r.said()):
		if as.generalizable() {
			return nil, invalid("as", "must not be generalizable, as there is no text")
		}
		r.Action = DocumentOnly
		return nil, nil
	}
	matches, err := s.matches(ctx, r)
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
	if s.cfg.enough(s.support(r, members)) {
		r.Class = GeneralizableHigh
	}
	return promote(r, members), nil
}
