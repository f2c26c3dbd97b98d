package loop

import (
	"context"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/strategy"
)

// A Chooser chooses arms in the place of a learner's draws. A *best.Race and a *money.Frugal are such. A choice that comes with an error
// is used, and the observer is told of the error.
type Chooser interface {
	Select(ctx context.Context, q strategy.Query) (strategy.Choice, error)
}

// chooser returns who chooses the arms of a learner.
func (c *Config) chooser(ctx context.Context, learner *strategy.Learner) (chooser Chooser, err error) {
	if c.Choose == nil {
		return learner, nil
	}
	err = host.Call("Config.Choose", func() (err error) {
		chooser, err = c.Choose(ctx, learner)
		return err
	})
	if err == nil && chooser == nil {
		err = &heed.ConfigError{Field: "Choose", Reason: "must return a chooser"}
	}
	return chooser, err
}

// spent is what an answer took, for its arm.
type spent struct {
	Cost    float64       `json:"cost,omitempty"`
	Latency time.Duration `json:"latency,omitempty"`
	Tokens  int           `json:"tokens,omitempty"`
	Told    float64       `json:"told,omitempty"` // the cost of the last outcome
}

// spentOn returns what the model's answer to a plan took.
func (p *Plan) spentOn(res *decision.Result, now time.Time) spent {
	s := spent{
		Cost:    (float64(res.InputTokens)*p.Arm.InputPrice + float64(res.OutputTokens)*p.Arm.OutputPrice) / 1e6,
		Latency: p.took, Tokens: res.InputTokens + res.OutputTokens,
	}
	if !p.began.IsZero() {
		s.Latency = max(now.Sub(p.began), 0)
	}
	return s
}

func (s spent) into(o *strategy.Outcome) {
	o.Cost, o.Latency, o.Tokens = s.Cost+s.Told, s.Latency, s.Tokens
}
