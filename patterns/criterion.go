package patterns

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// criterionFloor is the least weight of a criterion: the learning-systems design's.
const criterionFloor = 0.1

// evenPrior is the belief in a criterion or a pattern without evidence. The design has none.
var evenPrior = evidence.Beta{Alpha: 1, Beta: 1}

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

// readCriterion computes the weight of a criterion at a moment. With the faded helpful mass H and
// the faded harmful mass X,
//
//	weight = max(0.1, (1 + H) / (2 + H + X))
//
// So a weight without new evidence fades towards the mean of [evenPrior], which it is below
// minFeedback observations. The two conditions are always listed, so people see what is missing.
func (r *Recorder) readCriterion(name string, t *evidence.Tally, now time.Time) Criterion {
	s := t.At(evidence.InstantOf(now))
	c := Criterion{
		Name: name, HelpfulCount: t.Positive.N, HarmfulCount: t.Negative.N,
		Helpful: s.Reward, Harmful: harmfulMass(s), HarmfulShare: harmfulShare(t),
		LastValidated: t.Positive.Last.Time(), LastFeedback: t.Last().Time(),
		HalfLife: quarter,
	}
	n, ratio := c.HelpfulCount+c.HarmfulCount, c.HarmfulShare
	switch {
	case r.cfg.literal: // without evidence the weight is 1, because there is no prior
		c.Weight, c.LastValidated = 1, c.LastFeedback
		if s.Mass > 0 {
			c.Weight = max(criterionFloor, s.Reward/s.Mass)
		}
		if n > 0 {
			ratio = float64(c.HarmfulCount) / float64(n) // the design compares counts, which do not fade
		}
		c.Reason = fmt.Sprintf("helpful/(helpful+harmful), and never below the floor of %g",
			criterionFloor)
	case n < minFeedback:
		c.Weight = evenPrior.Mean()
		c.Reason = fmt.Sprintf("the prior's: there are fewer than %d observations", minFeedback)
	default:
		c.Weight = max(criterionFloor, s.Posterior(evenPrior).Mean())
		c.Reason = fmt.Sprintf("(1+helpful)/(2+helpful+harmful), and never below the floor of %g",
			criterionFloor)
	}
	c.Conditions = []Condition{
		newCondition(deprecated, "observations", float64(n), "at least", minFeedback),
		newCondition(deprecated, "a harmful share", ratio, "more than", harmfulFrom),
	}
	c.Deprecated = c.Conditions[0].Met && c.Conditions[1].Met
	if !c.Deprecated {
		c.Effective = c.Weight
	}
	return c
}
