package patterns

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/store"
)

// Criteria says how the weight of a criterion of evaluation follows from the feedback on it. Of faded helpful mass H and
// harmful mass X, with the prior Beta(α, β),
//
//	weight = max(Floor, (α + H) / (α + β + H + X))
//
// so that a weight fades towards the prior's mean where nothing confirms it. With fewer than MinFeedback observations it is
// the prior's mean. The zero value of each field means its default.
type Criteria struct {
	HalfLife    time.Duration // after which an observation counts half. 0 means 90 days
	Prior       evidence.Beta // shapes in [1e-3, 1e6]. The zero prior means Beta(1, 1)
	Floor       float64       // in (0, 1). 0 means 0.1
	MinFeedback int           // observations, below which a criterion is neither weighed nor deprecated. 0 means 3
	MaxHarmful  float64       // in (0, 1]: a greater harmful share of the mass deprecates the criterion. 0 means 0.3
}

func (c Criteria) withDefaults() Criteria {
	c.HalfLife = cmp.Or(c.HalfLife, quarter)
	c.Prior = cmp.Or(c.Prior, evidence.Beta{Alpha: 1, Beta: 1})
	c.Floor = cmp.Or(c.Floor, 0.1)
	c.MinFeedback = cmp.Or(c.MinFeedback, 3)
	c.MaxHarmful = cmp.Or(c.MaxHarmful, 0.3)
	return c
}

func (c Criteria) validate() error {
	var found faults.List
	found.Join(evidence.Policy{HalfLife: c.HalfLife}.Validate())
	found.Check(c.Prior.Alpha >= 1e-3 && c.Prior.Alpha <= 1e6 && c.Prior.Beta >= 1e-3 && c.Prior.Beta <= 1e6, "Prior", c.Prior, "must have shapes in [1e-3, 1e6]")
	found.Check(c.Floor > 0 && c.Floor < 1, "Floor", c.Floor, "must be in (0, 1), or 0 for the default")
	found.Check(c.MinFeedback > 0, "MinFeedback", c.MinFeedback, "must not be negative")
	found.Check(c.MaxHarmful > 0 && c.MaxHarmful <= 1, "MaxHarmful", c.MaxHarmful, "must be in (0, 1], or 0 for the default")
	return found.Err()
}

// A Criterion is what a criterion of evaluation has earned, read at a moment.
type Criterion struct {
	Name   string
	Weight float64 // in [Criteria.Floor, 1]
	// Deprecated is whether it did harm too often: its effective weight is then 0.
	Deprecated bool
	// HelpfulCount and HarmfulCount are its observations, and Helpful and Harmful their mass, which fades.
	HelpfulCount, HarmfulCount uint64
	Helpful, Harmful           float64
	HarmfulShare               float64 // of the mass, which does not depend on when it is read
	// LastValidated is when it was last found helpful, and LastFeedback when anything was last heard of it, on which its
	// evidence fades. Zero: never.
	LastValidated, LastFeedback time.Time
	HalfLife                    time.Duration
}

// Effective returns the weight that scores are to be multiplied by: 0 where the criterion is deprecated.
func (c Criterion) Effective() float64 {
	if c.Deprecated {
		return 0
	}
	return c.Weight
}

// Criterion returns what a criterion has earned by now. One that nothing was heard of has the weight of the prior.
func (r *Recorder) Criterion(ctx context.Context, name string) (Criterion, error) {
	all, err := r.criteria(ctx, []string{name})
	if err != nil {
		return Criterion{}, fmt.Errorf("patterns: criterion: %w", err)
	}
	return all[0], nil
}

// Criteria returns all criteria of which there is evidence, by name.
func (r *Recorder) Criteria(ctx context.Context) ([]Criterion, error) {
	var all []Criterion
	now := r.cfg.Now()
	for part, err := range r.cfg.Store.List(ctx, r.kinds.criterionCells, "") {
		if err != nil {
			return nil, fmt.Errorf("patterns: criteria: %w", err)
		}
		all = append(all, r.readCriterion(part.Cell.Item, &part.Tally, now))
	}
	return all, nil
}

func (r *Recorder) criteria(ctx context.Context, names []string) ([]Criterion, error) {
	cells := make([]evidence.Cell, len(names))
	for i, name := range names {
		if err := checkIDs(field{"Criterion", name}); err != nil {
			return nil, err
		}
		cells[i] = r.criterionCell(name)
	}
	if len(cells) == 0 {
		return nil, nil
	}
	var s store.Snapshot
	if err := r.cfg.Store.Read(ctx, &s, cells, nil); err != nil {
		return nil, err
	}
	tallies := talliesOf[string](s.Parts)
	now := r.cfg.Now()
	all := make([]Criterion, len(names))
	for i, name := range names {
		t := tallies[name]
		all[i] = r.readCriterion(name, &t, now)
	}
	return all, nil
}

func (r *Recorder) readCriterion(name string, t *evidence.Tally, now time.Time) Criterion {
	cfg := &r.cfg.Criteria
	s := t.At(evidence.InstantOf(now))
	c := Criterion{
		Name: name, HelpfulCount: t.Positive.N, HarmfulCount: t.Negative.N,
		Helpful: s.Reward, Harmful: harmfulMass(s), HarmfulShare: harmfulShare(t),
		LastValidated: t.Positive.Last.Time(), LastFeedback: t.Last().Time(), HalfLife: cfg.HalfLife,
	}
	enough := t.Positive.N+t.Negative.N >= uint64(cfg.MinFeedback)
	switch {
	case r.cfg.Literal:
		c.Weight, c.Deprecated, c.LastValidated = literalWeight(cfg, s), literalDeprecated(cfg, t), c.LastFeedback
	case enough:
		c.Weight = max(cfg.Floor, s.Posterior(cfg.Prior).Mean())
		c.Deprecated = c.HarmfulShare > cfg.MaxHarmful+tolerance
	default:
		c.Weight = max(cfg.Floor, cfg.Prior.Mean())
	}
	return c
}

// A WeightedScore is a score on one criterion, multiplied by the criterion's effective weight.
type WeightedScore struct {
	Criterion string
	Raw       float64
	Weight    float64
	Score     float64 // Raw · Weight
}

// ApplyWeights multiplies scores, which must be finite, by the effective weights that their criteria have now. The result
// is in the order of the names, and is not normalised.
func (r *Recorder) ApplyWeights(ctx context.Context, scores map[string]float64) ([]WeightedScore, error) {
	names := slices.Sorted(maps.Keys(scores))
	for _, name := range names {
		if x := scores[name]; x-x != 0 {
			return nil, fmt.Errorf("patterns: apply weights: %w", inputError("Scores", fmt.Sprintf("%q is %v, must be finite", name, x)))
		}
	}
	criteria, err := r.criteria(ctx, names)
	if err != nil {
		return nil, fmt.Errorf("patterns: apply weights: %w", err)
	}
	all := make([]WeightedScore, len(names))
	for i, c := range criteria {
		all[i] = WeightedScore{c.Name, scores[c.Name], c.Effective(), scores[c.Name] * c.Effective()}
	}
	return all, nil
}
