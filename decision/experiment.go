package decision

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/chance"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/valid"
)

// A Variant is one of the strategies of an experiment.
type Variant struct {
	Name     string
	Strategy Strategy
	// Share is the fraction of requests the variant answers, relative to the other shares, up to 1e6.
	// If all are 0, the shares are equal. If only some are 0, these variants answer no request and
	// decide in [Experiment.Shadow] alone.
	Share float64
}

// An Experiment is a [Strategy] that runs strategies side by side on the same traffic. Decide
// splits requests among them, and Shadow has them decide about requests that another one has
// answered. [Result].Variant names the variant that decided, and [Trace].Variant
// contains the name, too. An Experiment does not count successes, because only the host knows what
// success is: package strategy/best decides between arms by their outcomes.
//
// An Experiment is safe for concurrent use by multiple goroutines.
type Experiment struct {
	name     string
	key      func(Request) string
	variants []Variant
	total    float64 // of the shares
}

var _ Strategy = (*Experiment)(nil)

// splitKey never changes, so that a key has the same variant in every process and version.
var splitKey = chance.Key{A: 0x9e3779b97f4a7c15, B: 0xbf58476d1ce4e5b9}

// NewExperiment returns an experiment of at least two variants, each with a different name. The
// experiment's name sets how requests are split: a key's variant in one experiment is independent
// of its variant in an experiment of another name. Requests of one key go to one variant. A nil key
// means EventID. Return the user or the session if one person must not meet several variants. The
// error is all faults, joined; each is a [*heed.ConfigError].
func NewExperiment(
	name string, key func(Request) string, variants ...Variant,
) (*Experiment, error) {
	if key == nil {
		key = func(r Request) string { return r.EventID }
	}
	e := &Experiment{name: name, key: key, variants: slices.Clone(variants)}
	var found valid.Faults
	found.Check(len(variants) >= 2, "Variants", len(variants), "must be two or more")
	seen := make(map[string]bool)
	for i, v := range variants {
		field := fmt.Sprintf("Variants[%d]", i)
		named := v.Name != "" && evidence.CheckText("", v.Name) == nil && !seen[v.Name]
		found.Check(named, field+".Name", v.Name, "must be a text, and another one for each variant")
		found.Check(v.Strategy != nil, field+".Strategy", nil, "must be set")
		found.Check(v.Share >= 0 && v.Share <= 1e6, field+".Share", v.Share, "must be in [0, 1e6]")
		seen[v.Name] = true
		e.total += v.Share
	}
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("decision: %w", err)
	}
	for i := range e.variants {
		if e.total == 0 {
			e.variants[i].Share = 1
		}
	}
	e.total = cmp.Or(e.total, float64(len(variants)))
	return e, nil
}

// Decide implements [Strategy]: the request's variant decides. A variant that panics gives a
// [*heed.PanicError]. A request whose key is empty is a [*heed.InputError] if several variants
// answer, because all such requests would meet one of them.
func (e *Experiment) Decide(ctx context.Context, r Request) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	if err := r.Validate(); err != nil {
		return Result{}, fmt.Errorf("decision: decide: %w", err)
	}
	v, err := e.variant(r)
	if err != nil {
		return Result{}, fmt.Errorf("decision: decide: %w", err)
	}
	return v.decide(ctx, r)
}

// variant returns the variant of a request, by a hash of its key.
func (e *Experiment) variant(r Request) (v *Variant, err error) {
	var key string
	if err := host.Call("Key", func() error { key = e.key(r); return nil }); err != nil {
		return nil, err
	}
	rng := splitKey.Rand(0, e.name, key)
	left := rng.Float64() * e.total
	for i := range e.variants {
		share := e.variants[i].Share
		if share == 0 {
			continue
		}
		v = &e.variants[i]
		if key == "" && share < e.total {
			return nil, valid.Input("Key",
				"must not be empty (without a Key, EventID): it splits requests")
		}
		if left -= share; left < 0 {
			break
		}
	}
	return v, nil
}

func (v *Variant) decide(ctx context.Context, r Request) (res Result, err error) {
	r.Variant = v.Name
	err = host.Call("the strategy", func() (err error) {
		res, err = v.Strategy.Decide(ctx, r)
		return err
	})
	res.Variant = v.Name
	return res, err
}

// Shadow has every variant decide about a request, except the one that answered it, and returns
// their decisions in the order of the variants. What Decide of a variant returned as an error, or a
// [*heed.PanicError], is in Result.Err. The host compares them with the answer. Call Shadow after
// the answer was sent, in a goroutine with a deadline if the request must not wait for it, because
// each variant may ask a model. Give a variant that only decides in shadow no store: its traces
// would be of answers that no person saw.
func (e *Experiment) Shadow(ctx context.Context, r Request, answered Result) (all []Result) {
	for i := range e.variants {
		if v := &e.variants[i]; v.Name != answered.Variant {
			res, err := v.decide(ctx, r)
			res.Err = cmp.Or(err, res.Err)
			all = append(all, res)
		}
	}
	return all
}
