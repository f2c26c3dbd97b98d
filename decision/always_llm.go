package decision

import "context"

// AlwaysLLM answers with the model, if there is one and the event is immediate; else not at all. Heuristics are shown to
// the model and never answer. It is what [HeuristicFirst] is measured against: see [Experiment]. Make one with
// [NewAlwaysLLM].
//
// AlwaysLLM is safe for concurrent use by multiple goroutines.
type AlwaysLLM struct{ *decider }

var _ Strategy = (*AlwaysLLM)(nil)

// NewAlwaysLLM returns the strategy, or all faults of its configuration, joined: each is a [*heed.ConfigError]. The context is
// for the store, which hears what kinds of records there are.
func NewAlwaysLLM(ctx context.Context, cfg Config) (*AlwaysLLM, error) {
	d, err := newDecider(ctx, AlwaysLLMName, cfg)
	if err != nil {
		return nil, err
	}
	return &AlwaysLLM{d}, nil
}

// Decide implements [Strategy]. An answer whose trace can't be kept comes with the store's error and without an id.
func (a *AlwaysLLM) Decide(ctx context.Context, r Request) (Result, error) {
	if err := a.begin(ctx, &r); err != nil {
		return Result{}, err
	}
	return a.askModel(ctx, &r, Result{Strategy: a.name, Variant: r.Variant, Urgency: a.cfg.Urgency.of(&r)})
}
