package loop

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// A Chooser chooses arms in the place of a learner's draws. For example, *best.Race and
// *money.Frugal are Choosers. A choice that comes with an error is used, and the error is reported
// to the observer.
type Chooser interface {
	Select(ctx context.Context, q strategy.Query) (strategy.Choice, error)
}

// A stepChooser chooses as a part of a step. heed's own choosers do. A choice in the step is read
// and committed with the rest of the plan, in the same round trips.
type stepChooser interface {
	Wants(q strategy.Query) store.Wants
	SelectIn(tx *store.Tx, q strategy.Query) (strategy.Choice, error)
}

// openStrategy makes the learner that chooses among the arms, and the host's chooser. Without arms,
// only the models get their names. An arm of the lessons replaces the arm of its id.
func (a *Agent) openStrategy(ctx context.Context) (err error) {
	cfg := &a.cfg
	a.arms = slices.Clone(cfg.Arms)
	for _, arm := range cfg.Lessons.Arms {
		if i := slices.IndexFunc(a.arms, func(o Arm) bool { return o.ID == arm.ID }); i >= 0 {
			a.arms[i] = arm
		} else {
			a.arms = append(a.arms, arm)
		}
	}
	if a.nameModels(); len(a.arms) == 0 {
		return nil
	}
	s := cfg.Tuning.Strategy
	s.Name, s.Answers = cfg.part(s.Name, "strategy"), cfg.kind()
	s.Store, s.Now, s.Observer, s.Arms = cfg.Store, cfg.Testing.Now, cfg.Observer, nil
	s.Trust.Instruments = cfg.Instruments
	for _, arm := range a.arms {
		s.Arms = append(s.Arms, strategy.Arm{ID: strategy.ArmID(arm.ID), Weight: arm.Weight})
	}
	if s.Seed == nil && a.seed != [2]uint64{} {
		s.Seed = rand.NewPCG(a.seed[0], a.seed[1])
	}
	if a.learner, err = strategy.New(ctx, s); err != nil {
		return err
	}
	a.chooser, err = cfg.chooser(ctx, a.learner)
	return err
}

// chooser returns who chooses the arms of a learner. A panic of the host's function is an error of
// New.
func (c *Config) chooser(
	ctx context.Context, learner *strategy.Learner,
) (chooser Chooser, err error) {
	if c.Choosing.Choose == nil {
		return learner, nil
	}
	err = host.Call("Config.Choose", func() (err error) {
		chooser, err = c.Choosing.Choose(ctx, learner)
		return err
	})
	if err == nil && chooser == nil {
		err = &heed.ConfigError{Field: "Choose", Reason: "must return a chooser"}
	}
	return chooser, err
}

// mostTokens is more than any answer takes. A count above it is a mistake of a client, and must not
// keep what people say from the arm.
const mostTokens = 1 << 29

// spentOn returns what the model's answer to a plan took.
func (p *Plan) spentOn(res *decision.Result) answer.Spent {
	in, out := min(res.InputTokens, mostTokens), min(res.OutputTokens, mostTokens)
	return answer.Spent{
		Cost:    (float64(in)*p.Arm.InputPrice + float64(out)*p.Arm.OutputPrice) / 1e6,
		Latency: p.took, Tokens: in + out,
	}
}
