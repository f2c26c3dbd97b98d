package assistant

import (
	"context"
	"errors"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/strategy"
)

// A Why is the evidence behind an answer, as it was when the answer was given.
type Why struct {
	Account *Account
	Trust   *learning.Explanation // of the heuristic that answered
	Rules   []feedback.Rule       // that the prompt had
	Note    *strategy.ItemReport  // of the note that the event is about, where it has outcomes
}

// Explain gathers the evidence behind an answer that was just given.
func (a *Assistant) Explain(ctx context.Context, account *Account) (*Why, error) {
	why := &Why{Account: account}
	if account.Result.Path == decision.Heuristic {
		trust, err := a.Learning.Explain(ctx, account.Result.CreditID)
		why.Trust = &trust
		return why, err
	}
	for _, id := range account.Briefing.Rules {
		rule, err := a.Feedback.Rules().Rule(ctx, id)
		if err != nil {
			return nil, err
		}
		why.Rules = append(why.Rules, rule)
	}
	if used := account.Briefing.Used; used != nil {
		note, err := a.Strategy.Item(ctx, strategy.Query{
			Item: used.Note.ID, Category: used.Choice.Category, Context: used.Choice.Context,
		})
		switch {
		case err == nil:
			why.Note = &note
		case !errors.Is(err, heed.ErrNotFound): // where nothing is known of it yet, its sort has to do
			return nil, err
		}
	}
	return why, nil
}
