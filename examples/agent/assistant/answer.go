package assistant

import (
	"context"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
)

// An Account says how an answer came about, with all that there is to explain it by.
type Account struct {
	Event      Event
	Candidates []decision.Candidate // the best first
	Briefing   Briefing
	Result     decision.Result
	Worth      float64 // what people made of it, in [-1, 1]; 0 until that is known

	followed []patterns.PatternID // of a plan: the patterns that it follows
}

// Answer answers an event, and begins to wait for what becomes of it.
func (a *Assistant) Answer(ctx context.Context, e Event) (*Account, error) {
	account := &Account{Event: e}
	var err error
	if account.Candidates, err = a.candidates(ctx, e); err != nil {
		return nil, err
	}
	if account.Briefing, err = a.brief(ctx, e); err != nil {
		return nil, err
	}
	r := decision.Request{
		EventID: e.ID, Text: e.Text, Source: e.Person, Domain: e.Domain,
		Candidates: account.Candidates, Briefing: account.Briefing.Text,
	}
	if !a.cfg.Off && e.Domain != Changes {
		r.Commit = func(ctx context.Context, answer decision.Result, trace store.Batch) error { // what is shown is waited for
			return a.Learning.Fire(ctx, learning.Fire{
				HeuristicID: answer.CreditID, EventID: e.ID, Stream: e.Stream, Person: e.Person, Session: e.ID,
				Path: string(answer.Path), Prediction: answer.Predicted(), At: e.At,
			}, trace)
		}
	}
	if account.Result, err = a.Decision.Decide(ctx, r); err != nil {
		return nil, err
	}
	if a.cfg.Off || account.Result.Text == "" {
		return account, nil
	}
	a.open[e.ID] = account
	if e.Domain == Changes {
		a.follow(account)
	}
	return account, nil
}
