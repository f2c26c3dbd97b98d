package assistant

import (
	"context"

	"github.com/heedhq/heed/patterns"
)

// follow finds out which ways of cutting a task a plan follows.
func (a *Assistant) follow(account *Account) {
	account.followed = append(account.followed, a.Patterns.Extract(account.Result.Text)...)
}

// done credits them with how the task went.
func (a *Assistant) done(ctx context.Context, d Done) error {
	account := a.open[d.Event]
	if account == nil {
		return nil
	}
	delete(a.open, d.Event)
	_, err := a.Patterns.Record(ctx, patterns.Outcome{
		ID: d.Event, Task: d.Event, Description: account.Event.Text, Patterns: account.followed,
		Duration: d.Duration, Errors: d.Errors, Retries: d.Retries, Success: d.Success, FailureMode: d.Failure, At: d.At,
	})
	return err
}
