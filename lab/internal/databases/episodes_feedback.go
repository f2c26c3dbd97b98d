package databases

import (
	"context"
	"fmt"
	"time"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/store"
)

func feedbackEpisodes() []episode {
	return []episode{
		reviewing("a decision is recorded", func(context.Context, *feedback.Service) error { return nil }, false, func(ctx context.Context, s *feedback.Service) error {
			_, err := s.Record(ctx, correctionBy("ann", 1))
			return err
		}),
		reviewing("a decision is evaluated", func(ctx context.Context, s *feedback.Service) error {
			if err := corrected(ctx, s, "ann", "bob"); err != nil {
				return err
			}
			_, err := s.Evaluate(ctx, "decision of ann")
			return err
		}, false, evaluateBobs),
		reviewing("a cluster is proposed", func(ctx context.Context, s *feedback.Service) error {
			if err := corrected(ctx, s, "ann", "bob"); err != nil {
				return err
			}
			if _, err := s.Evaluate(ctx, "decision of ann"); err != nil {
				return err
			}
			return evaluateBobs(ctx, s)
		}, false, func(ctx context.Context, s *feedback.Service) error {
			_, _, err := s.Flush(ctx)
			return err
		}),
		reviewing("an approval completes the quorum", waiting("cleo"), false, func(ctx context.Context, s *feedback.Service) error {
			return approve(ctx, s, "dan")
		}),
		reviewing("a rejection", waiting("cleo"), false, func(ctx context.Context, s *feedback.Service) error {
			_, err := s.Rules().Review(ctx, feedback.Review{
				Proposal: "before-1", Decision: feedback.Rejected, Actor: "dan", Reason: "no",
			})
			return err
		}),
		reviewing("a rule is pinned", waiting("cleo", "dan"), true, func(ctx context.Context, s *feedback.Service) error {
			r, err := s.Rules().Rule(ctx, "before-1")
			if err != nil || r.Pinned {
				return err
			}
			r.Change, r.Of = feedback.Pin, r.ID
			p, err := s.Rules().Propose(ctx, feedback.Submission{Draft: r.Draft, Actor: "olga", Reason: "x"})
			for _, who := range []string{"cleo", "dan"} {
				if err == nil {
					_, err = s.Rules().Review(ctx, feedback.Review{
						Proposal: p.ID, Decision: feedback.Approved, Actor: who, Reason: "x", Hash: p.Hash(),
					})
				}
			}
			return err
		}),
		reviewing("a decision is erased", func(ctx context.Context, s *feedback.Service) error {
			return corrected(ctx, s, "ann")
		}, false, func(ctx context.Context, s *feedback.Service) error {
			return s.Erase(ctx, feedback.Order{ID: "decision of ann", Actor: "ann", Reason: "my right"})
		}),
		reviewing("a sweep", waiting("cleo", "dan"), true, func(ctx context.Context, s *feedback.Service) error {
			return s.Sweep(ctx, time.Time{})
		}),
	}
}

// reviewing is an episode of a service, whose ids are numbers.
func reviewing(name string, before func(context.Context, *feedback.Service) error, steps bool, call func(context.Context, *feedback.Service) error) episode {
	over := func(prefix string, do func(context.Context, *feedback.Service) error) func(context.Context, store.Store) error {
		return func(ctx context.Context, st store.Store) error {
			n := 0
			s, err := feedback.New(ctx, feedback.Config{
				Store: st, Expedite: 1, Now: func() time.Time { return fixedNow },
				NewID: func() string { n++; return fmt.Sprint(prefix, n) },
			})
			if err != nil || do == nil {
				return err
			}
			return do(ctx, s)
		}
	}
	return episode{name: "feedback: " + name, before: over("before-", before), call: over("call-", call), steps: steps}
}

func evaluateBobs(ctx context.Context, s *feedback.Service) error {
	_, err := s.Evaluate(ctx, "decision of bob")
	return err
}

func correctionBy(reviewer string, n int) feedback.Feedback {
	return feedback.Feedback{
		ID: "decision of " + reviewer, Gate: "g", Agent: "a", Decision: feedback.ApprovedWithChanges, Reviewer: reviewer,
		At: fixedNow.Add(time.Duration(n) * time.Second), Summary: "the summary is too long",
	}
}

func corrected(ctx context.Context, s *feedback.Service, reviewers ...string) error {
	for i, reviewer := range reviewers {
		if _, err := s.Record(ctx, correctionBy(reviewer, i)); err != nil {
			return err
		}
	}
	return nil
}

// waiting has a proposal, with the id "before-1", that these have approved.
func waiting(approvers ...string) func(context.Context, *feedback.Service) error {
	return func(ctx context.Context, s *feedback.Service) error {
		_, err := s.Rules().Propose(ctx, feedback.Submission{
			Draft: feedback.Draft{Text: "Be brief", Agents: []string{"a"}}, Actor: "paul", Reason: "seen often",
		})
		for _, approver := range approvers {
			if err == nil {
				err = approve(ctx, s, approver)
			}
		}
		return err
	}
}

func approve(ctx context.Context, s *feedback.Service, approver string) error {
	p, err := s.Rules().Proposal(ctx, "before-1")
	if err == nil {
		_, err = s.Rules().Review(ctx, feedback.Review{
			Proposal: p.ID, Decision: feedback.Approved, Hash: p.Hash(), Actor: approver, Reason: "yes",
		})
	}
	return err
}
