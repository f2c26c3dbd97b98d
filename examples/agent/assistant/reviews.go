package assistant

import (
	"context"

	"github.com/heedhq/heed/feedback"
)

// reviewed takes in what a reviewer decided about an answer. Enough of one mind become a proposal.
func (a *Assistant) reviewed(ctx context.Context, f feedback.Feedback) error {
	if _, err := a.Feedback.Record(ctx, f); err != nil {
		return err
	}
	_, err := a.Feedback.Evaluate(ctx, f.ID)
	return err
}

// Proposals returns the rules that wait for people to decide.
func (a *Assistant) Proposals(ctx context.Context) ([]feedback.Proposal, error) {
	pending, _, err := a.Feedback.Rules().Proposals(ctx, feedback.ProposalQuery{Status: feedback.StatePending}, 0)
	return pending, err
}

// Decide takes in what one person decides about a proposal. The second approval makes the rule.
func (a *Assistant) Decide(ctx context.Context, r feedback.Review) (feedback.Proposal, error) {
	return a.Feedback.Rules().Review(ctx, r)
}
