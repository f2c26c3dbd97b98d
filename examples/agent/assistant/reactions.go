package assistant

import (
	"context"
	"fmt"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/store"
)

// What reactions are worth, where no heuristic earns them.
const (
	content  = 0.5  // silence
	repeated = -0.5 // it was asked once more
)

// message takes in what a person writes after an answer: it may take the answer back, and else shows that it did not help.
func (a *Assistant) message(ctx context.Context, m Message) error {
	account := a.open[m.Event]
	if account == nil {
		return nil
	}
	account.Worth = repeated
	changes, err := a.Learning.Hear(ctx, learning.Message{Stream: m.Stream, Session: m.Event, Text: m.Text, At: m.At})
	a.judged(changes)
	return err
}

// thumb takes in a click. Its worth goes to the heuristic that gave the answer, in one commit with the record of the click. If
// the model gave a good answer, its worth goes to the heuristic that says the same, or a new heuristic is made of the answer.
func (a *Assistant) thumb(ctx context.Context, t Thumb) (err error) {
	account := a.open[t.Event]
	if account == nil {
		return nil
	}
	value := -1.
	if t.Up {
		value = 1
	}
	account.Worth = value
	earner, grown := account.Result.CreditID, decision.Extraction{}
	if t.Up && earner == "" && account.Event.Domain == Alerts {
		if grown, err = a.extractor.Extract(ctx, account.Result.ResponseID); err != nil {
			return err
		}
		earner = grown.ReinforcedID
	}
	r := decision.Reaction{ResponseID: account.Result.ResponseID, Person: t.Person, Channel: learning.ChannelExplicit, Value: value, At: t.At}
	if earner != "" {
		r.Commit = func(ctx context.Context, c decision.Credit, verdict store.Batch) error {
			c.HeuristicID = earner
			_, err := a.Learning.Judge(ctx, learning.Judgement{Verdict: c.Verdict}, verdict)
			return err
		}
	}
	credit, err := a.reactions.Feedback(ctx, r)
	if err != nil || credit.Superseded || grown.New == nil {
		return err
	}
	return a.shelf.add(ctx, Heuristic{
		ID: fmt.Sprintf("learned-%d", len(a.shelf.all)), Condition: grown.New.Condition, Action: grown.New.Message,
	})
}

// closed hears the silence of a conversation, and draws the sum of it.
func (a *Assistant) closed(ctx context.Context, c Closed) error {
	changes, err := a.Learning.Timeouts(ctx, c.At)
	if err != nil {
		return err
	}
	a.judged(changes)
	account := a.open[c.Event]
	if account == nil {
		return nil
	}
	delete(a.open, c.Event)
	if err := a.agreed(ctx, account, c); err != nil {
		return err
	}
	return a.attribute(ctx, account, c.At)
}

// judged notes what people made of answers, be they a heuristic's or the model's.
func (a *Assistant) judged(changes []learning.Change) {
	for _, change := range changes {
		account := a.open[change.Signal.EventID]
		switch {
		case account == nil:
		case change.Signal.Type == learning.Negative:
			account.Worth = -1
		case change.Signal.Type == learning.Positive && account.Worth == 0:
			account.Worth = content
		}
	}
}

// agreed lets heuristics earn what people made of an answer of the model's that says the same: so one that is not trusted
// yet can earn its trust without being tried on anybody.
func (a *Assistant) agreed(ctx context.Context, account *Account, c Closed) error {
	if len(account.Result.Convergence) == 0 || account.Worth == 0 {
		return nil
	}
	best := account.Result.Convergence[0]
	s := learning.NewSignal(learning.Positive, best.HeuristicID, account.Event.ID, "agreed")
	s.Magnitude = account.Worth
	if account.Worth < 0 {
		s.Type, s.Magnitude = learning.Negative, -account.Worth
	}
	_, err := a.Learning.Apply(ctx, s, learning.Origin{ID: "agreed:" + account.Event.ID, Person: account.Event.Person, Session: account.Event.ID, At: c.At})
	return err
}
