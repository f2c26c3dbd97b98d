package patterns

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// criteria computes the weight of a criterion of evaluation, and when it is deprecated. With the
// faded helpful mass H, the faded harmful mass X and the prior Beta(α, β),
//
//	weight = max(0.1, (α + H) / (α + β + H + X))
//
// So a weight without new evidence fades towards the prior's mean. Below MinFeedback observations
// the weight is the prior's mean.
type criteria struct {
	Prior       evidence.Beta
	MinFeedback int     // observations; with fewer, a criterion is neither weighed nor deprecated
	MaxHarmful  float64 // a greater harmful share of the mass deprecates the criterion
}

const criterionFloor = 0.1 // the least weight: the design's

// The values are the learning-systems design's; the design has no prior.
func (c criteria) withDefaults() criteria {
	c.Prior = cmp.Or(c.Prior, evidence.Beta{Alpha: 1, Beta: 1})
	c.MinFeedback = cmp.Or(c.MinFeedback, 3)
	c.MaxHarmful = cmp.Or(c.MaxHarmful, 0.3)
	return c
}

// A Criterion is what a criterion of evaluation earned, read at a moment. It is a plain value, and
// immutable.
type Criterion struct {
	// Name is the criterion's, as outcomes and ratings name it.
	Name string
	// Weight is the share of helpful evidence to expect, in [0.1, 1].
	Weight float64
	// Deprecated reports that it did harm too often. Conditions has what that takes.
	Deprecated bool
	// Effective is the factor for scores on this criterion: Weight, or 0 if it is deprecated.
	Effective float64
	// HelpfulCount and HarmfulCount are its observations. Helpful and Harmful are their masses, which
	// fade.
	HelpfulCount, HarmfulCount uint64
	Helpful, Harmful           float64
	// HarmfulShare is the harmful part of both masses. It does not depend on the time.
	HarmfulShare float64
	// LastValidated is when it was last found helpful. LastFeedback is the time of its last evidence.
	// Zero: never.
	LastValidated, LastFeedback time.Time
	// HalfLife is the one with which the masses fade.
	HalfLife time.Duration
	// Reason describes in words how the weight was computed, and Conditions what a deprecation takes.
	Reason     string
	Conditions []Condition
}

// Criteria returns what criteria have earned by now, in the order of the names. Without a name it
// returns all that have evidence, by name. A criterion without evidence has the weight of the
// prior.
func (r *Recorder) Criteria(ctx context.Context, names ...string) (all []Criterion, err error) {
	if len(names) == 0 {
		for part, err := range r.cfg.Store.List(ctx, store.CellQuery{Kind: r.kinds.criterionCells}) {
			if err != nil {
				return nil, failed("criteria", err)
			}
			names = append(names, part.Cell.Item)
		}
		names = slices.Compact(names)
	}
	var cells []evidence.Cell
	for i, name := range names {
		if err := valid.Names(maxID, "Criterion", name); err != nil {
			return nil, failed("criteria", err)
		}
		if !slices.Contains(names[:i], name) {
			cells = append(cells, r.criterionCell(name))
		}
	}
	var s store.Snapshot
	if err := r.cfg.Store.Read(ctx, &s, cells, nil); err != nil {
		return nil, failed("criteria", err)
	}
	tallies := make(map[string]evidence.Tally, len(names))
	for of := range cellsOf(s.Parts) {
		tallies[of[0].Cell.Item] = r.cfg.sum(of)
	}
	now := r.cfg.Now()
	for _, name := range names {
		t := tallies[name]
		all = append(all, r.readCriterion(name, &t, now))
	}
	return all, nil
}

// readCriterion computes the weight of a criterion at a moment: see [criteria]. The two conditions
// are always listed, so people see what is missing.
func (r *Recorder) readCriterion(name string, t *evidence.Tally, now time.Time) Criterion {
	cfg := &r.cfg.tuning.Criteria
	s := t.At(evidence.InstantOf(now))
	c := Criterion{
		Name: name, HelpfulCount: t.Positive.N, HarmfulCount: t.Negative.N,
		Helpful: s.Reward, Harmful: harmfulMass(s), HarmfulShare: harmfulShare(t),
		LastValidated: t.Positive.Last.Time(), LastFeedback: t.Last().Time(),
		HalfLife: r.cfg.tuning.CriteriaHalfLife,
	}
	n, ratio := c.HelpfulCount+c.HarmfulCount, c.HarmfulShare
	switch {
	case r.cfg.tuning.Literal:
		c.Weight, c.LastValidated = literalWeight(s), c.LastFeedback
		if n > 0 {
			ratio = float64(c.HarmfulCount) / float64(n) // the design compares counts, which do not fade
		}
		c.Reason = fmt.Sprintf("helpful/(helpful+harmful), and never below the floor of %g",
			criterionFloor)
	case n < uint64(cfg.MinFeedback):
		c.Weight = max(criterionFloor, cfg.Prior.Mean())
		c.Reason = fmt.Sprintf("the prior's: there are fewer than %d observations", cfg.MinFeedback)
	default:
		c.Weight = max(criterionFloor, s.Posterior(cfg.Prior).Mean())
		c.Reason = fmt.Sprintf("(%g+helpful)/(%g+helpful+harmful), and never below the floor of %g",
			cfg.Prior.Alpha, cfg.Prior.Alpha+cfg.Prior.Beta, criterionFloor)
	}
	c.Conditions = []Condition{
		newCondition(deprecated, "observations", float64(n), "at least", float64(cfg.MinFeedback)),
		newCondition(deprecated, "a harmful share", ratio, "more than", cfg.MaxHarmful),
	}
	c.Deprecated = c.Conditions[0].Met && c.Conditions[1].Met
	if !c.Deprecated {
		c.Effective = c.Weight
	}
	return c
}
