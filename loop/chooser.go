package loop

import (
	"context"

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

// stepChooser returns the chooser, if it is one of heed's.
func (a *Agent) stepChooser() stepChooser {
	a.strategy.RLock()
	defer a.strategy.RUnlock()
	own, _ := a.strategy.chooser.(stepChooser)
	return own
}

// arms returns the ways of answering that there are.
func (a *Agent) arms() []Arm {
	a.strategy.RLock()
	defer a.strategy.RUnlock()
	return a.strategy.arms
}

// chooser returns who chooses the arms of a learner. A panic of the host's function is an error of
// New or Teach.
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
