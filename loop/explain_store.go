package loop

import (
	"context"
	"errors"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/strategy"
)

// Explain returns why an agent gave an answer, for a tool outside of its host. It reads what the
// host left in the store, and does not write. Of cfg, only Store, Name and Now count. An unknown
// answer is [ErrNoAnswer].
func Explain(ctx context.Context, cfg Config, id string) (Account, error) {
	account, err := explain(ctx,
		Config{Store: cfg.Store, Name: cfg.Name, Testing: Testing{Now: cfg.Testing.Now}}.withDefaults(),
		id)
	return account, wrap("explain", err)
}

func explain(ctx context.Context, cfg Config, id string) (Account, error) {
	if cfg.Store == nil {
		return Account{}, &heed.ConfigError{Field: "Store", Reason: "must be set"}
	}
	a := &Agent{cfg: cfg, answers: answers.View(cfg.kind())}
	if err := cfg.Store.Declare(ctx, a.answers.Kind); err != nil {
		return Account{}, err
	}
	err := adopt(&a.learning, func() (*learning.Module, error) {
		return learning.Open(ctx, learning.Config{
			Store: cfg.Store, Name: cfg.part("", "learning"), Now: cfg.Testing.Now,
		})
	})
	if err == nil {
		err = adopt(&a.strategy.learner, func() (*strategy.Learner, error) {
			return strategy.Open(ctx, strategy.Config{
				Store: cfg.Store, Name: cfg.part("", "strategy"), Now: cfg.Testing.Now,
			})
		})
	}
	if err == nil {
		err = adopt(&a.patterns, func() (*patterns.Recorder, error) {
			return patterns.Open(ctx, patterns.Config{
				Store: cfg.Store, Name: cfg.part("", "patterns"), Now: cfg.Testing.Now,
			})
		})
	}
	if err == nil {
		err = adopt(&a.feedback, func() (*feedback.Service, error) {
			return feedback.Open(ctx, feedback.Config{Store: cfg.Store, Now: cfg.Testing.Now})
		})
	}
	if err != nil {
		return Account{}, err
	}
	return a.explain(ctx, id)
}

// adopt opens a part, if the store has one.
func adopt[T any](part **T, open func() (*T, error)) error {
	opened, err := open()
	if errors.Is(err, heed.ErrNotFound) {
		return nil
	}
	*part = opened
	return err
}
