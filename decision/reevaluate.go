package decision

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/internal/host"
)

// ReevaluateConfig configures [Reevaluate].
type ReevaluateConfig struct {
	// Strategy decides without candidates: one that asks the model. It must be set.
	Strategy Strategy
	// Similarity compares the model's answers with the heuristics' actions. nil means [heed.Trigrams].
	Similarity heed.Similarity
	// Threshold is the least similarity of two texts that say the same, in (0, 1]. 0 means 0.75.
	Threshold float64
	// PerTier is how many heuristics are drawn from each tier of confidence: below 0.4, up to 0.7,
	// and above. All 0 mean 5 each.
	PerTier [3]int
	// Seed draws them, during the call only. nil means a random one.
	Seed rand.Source
}

func (c ReevaluateConfig) withDefaults() ReevaluateConfig {
	if c.Similarity == nil {
		c.Similarity = heed.Trigrams{}
	}
	c.Threshold = cmp.Or(c.Threshold, 0.75)
	if c.PerTier == [3]int{} {
		c.PerTier = [3]int{5, 5, 5}
	}
	if c.Seed == nil {
		c.Seed = rand.NewPCG(rand.Uint64(), rand.Uint64()) //nolint:forbidigo // the random draw of a host without a seed
	}
	return c
}

func (c ReevaluateConfig) validate() error {
	var found faults.List
	found.Check(c.Strategy != nil, "Strategy", nil, "must be set")
	checkShare(&found, "Threshold", c.Threshold)
	found.Check(slices.Min(c.PerTier[:]) >= 0, "PerTier", c.PerTier, "must not be negative")
	return found.Err()
}

// A Reevaluation compares a heuristic with the model's answer to its situation. The model was not
// shown the heuristic.
type Reevaluation struct {
	Heuristic Candidate
	// Result is the decision. Its Compared is the heuristic with the model's answer, as in a
	// decision that withheld the heuristic.
	Result Result
	// Err is why there is no result, or no similarity.
	Err error
}

// Reevaluate draws heuristics from three tiers of confidence and puts the situation of each to the
// strategy, without candidates. The model does not know what the heuristic says, so its agreement
// is evidence, and another answer may be a better idea. Nothing is learned from it here.
//
// The strategy is asked about one heuristic after the other, the low tier first. A failure is told
// in the reevaluation. When the context ends, Reevaluate returns its error with the reevaluations
// so far.
func Reevaluate(ctx context.Context, cfg ReevaluateConfig, heuristics []Candidate) ([]Reevaluation, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("decision: reevaluate: %w", err)
	}
	for i := range heuristics {
		if err := heuristics[i].validate(); err != nil {
			err.Field = fmt.Sprintf("heuristics[%d].%s", i, err.Field)
			return nil, fmt.Errorf("decision: reevaluate: %w", err)
		}
	}
	var done []Reevaluation
	for _, h := range cfg.draw(heuristics) {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		done = append(done, cfg.reevaluate(ctx, h))
	}
	return done, nil
}

// draw draws the heuristics.
func (c *ReevaluateConfig) draw(heuristics []Candidate) (drawn []Candidate) {
	var tiers [3][]Candidate
	for _, h := range heuristics {
		tier := 1
		switch {
		case h.Confidence < 0.4:
			tier = 0
		case h.Confidence > 0.7:
			tier = 2
		}
		tiers[tier] = append(tiers[tier], h)
	}
	rng := rand.New(c.Seed)
	for i, tier := range tiers {
		rng.Shuffle(len(tier), func(a, b int) { tier[a], tier[b] = tier[b], tier[a] })
		drawn = append(drawn, tier[:min(len(tier), c.PerTier[i])]...)
	}
	return drawn
}

func (c *ReevaluateConfig) reevaluate(ctx context.Context, h Candidate) (re Reevaluation) {
	re.Heuristic = h
	g := host.NewGate(1)
	re.Result, re.Err = host.Pass(ctx, g, "the strategy", func(ctx context.Context) (Result, error) {
		return c.Strategy.Decide(ctx, Request{EventID: h.HeuristicID, Text: h.Condition, Source: "reevaluation"})
	})
	if re.Result.Path != Model || re.Result.Cut {
		return re
	}
	similarities, err := compare(ctx, g, c.Similarity, re.Result.Text, []string{h.Action})
	if err != nil {
		re.Err = err
		return re
	}
	like := similarities[0]
	re.Result.Compared = []answer.Comparison{
		{HeuristicID: h.HeuristicID, Similarity: like, Agrees: like >= c.Threshold},
	}
	return re
}
