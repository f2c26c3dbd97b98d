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

// explain makes an agent of the parts that the store has, only to read. Each part is opened with
// the settings that its host stored, and declares its kinds. A part that the host does not have is
// nil, and explain leaves out what it would add.
func explain(ctx context.Context, cfg Config, id string) (Account, error) {
	if cfg.Store == nil {
		return Account{}, &heed.ConfigError{Field: "Store", Reason: "must be set"}
	}
	a := &Agent{cfg: cfg, answers: answers.View(cfg.kind())}
	if err := cfg.Store.Declare(ctx, a.answers.Kind); err != nil {
		return Account{}, err
	}
	name := func(part string) string { return cfg.part("", part) }
	var errs [4]error
	a.learning, errs[0] = adopt(learning.Open(ctx, learning.Config{
		Store: cfg.Store, Name: name("learning"), Now: cfg.Testing.Now,
	}))
	a.learner, errs[1] = adopt(strategy.Open(ctx, strategy.Config{
		Store: cfg.Store, Name: name("strategy"), Now: cfg.Testing.Now,
	}))
	a.patterns, errs[2] = adopt(patterns.Open(ctx, patterns.Config{
		Store: cfg.Store, Name: name("patterns"), Now: cfg.Testing.Now,
	}))
	a.feedback, errs[3] = adopt(feedback.Open(ctx, feedback.Config{
		Store: cfg.Store, Now: cfg.Testing.Now,
	}))
	if err := errors.Join(errs[:]...); err != nil {
		return Account{}, err
	}
	return a.explain(ctx, id)
}

// adopt returns a part that was opened, or nil if the store does not have it.
func adopt[T any](part *T, err error) (*T, error) {
	if errors.Is(err, heed.ErrNotFound) {
		return nil, nil
	}
	return part, err
}
