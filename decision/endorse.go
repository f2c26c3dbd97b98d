package decision

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/faults"
)

// EndorsementSource is the source of the credit that endorsements give.
const EndorsementSource = "llm_endorsement"

// EndorserConfig configures an [Endorser].
type EndorserConfig struct {
	// Store counts what was given, as evidence on cells of the kind "decision.endorsement". It must be set.
	Store evidence.Store
	// Factor is what the endorsement of a candidate that says the very same counts, in (0, 1]; one that is less similar
	// counts less in proportion. 0 means 0.5.
	Factor float64
	// Cap is what all endorsements of a heuristic count together, at most, in (0, 1e6]. 0 means 0.1: of a confidence with a
	// prior worth two observations, that moves no more than 0.1/2.1, which is less than 0.05.
	Cap float64
	// Now is the clock. nil means time.Now.
	Now func() time.Time
}

// An Endorser gives heuristics a little credit for saying what the model said without having been shown to it. Nothing in
// this package calls it: who wants it calls it with the results of decisions, when it suits them. A model that agrees with
// a heuristic is no user who is content with it.
//
// An Endorser is safe for concurrent use by multiple goroutines.
type Endorser struct {
	cfg  EndorserConfig
	turn chan struct{} // taken by who reads and then gives, so that together they do not pass the cap
}

// NewEndorser returns an endorser, or all faults of its configuration, joined: each is a [*heed.ConfigError].
func NewEndorser(cfg EndorserConfig) (*Endorser, error) {
	cfg = cfg.withDefaults()
	var found faults.List
	found.Check(cfg.Store != nil, "Store", nil, "must be set")
	found.Check(cfg.Factor > 0 && cfg.Factor <= 1, "Factor", cfg.Factor, "must be in (0, 1], or 0 for the default")
	found.Check(cfg.Cap > 0 && cfg.Cap <= evidence.MaxWeight, "Cap", cfg.Cap, "must be in (0, 1e6], or 0 for the default")
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("decision: %w", err)
	}
	return &Endorser{cfg, make(chan struct{}, 1)}, nil
}

func (c EndorserConfig) withDefaults() EndorserConfig {
	c.Factor = cmp.Or(c.Factor, 0.5)
	c.Cap = cmp.Or(c.Cap, 0.1)
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the default clock of a host that gives none
	}
	return c
}

// Config returns the configuration in force, defaults filled in.
func (e *Endorser) Config() EndorserConfig { return e.cfg.withDefaults() }

// Endorse returns credit for the candidates of a result that say what the model said and that its prompt did not show. The
// credit of one answer and heuristic has one ID, and is given once. A heuristic that has all that the cap allows gets none;
// endorsers in several processes that share a store may together pass the cap by what they give at the same moment.
func (e *Endorser) Endorse(ctx context.Context, r Result) ([]Credit, error) {
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var credits []Credit
	for _, c := range r.Convergence {
		if c.Shown || r.Path != Model || r.ResponseID == "" {
			continue
		}
		credit, err := e.endorse(ctx, r.ResponseID, c)
		if err != nil {
			return credits, fmt.Errorf("decision: endorse: %w", err)
		}
		if credit.Weight > 0 {
			credits = append(credits, credit)
		}
	}
	return credits, nil
}

func (e *Endorser) endorse(ctx context.Context, responseID string, c Convergence) (Credit, error) {
	cell := evidence.Cell{Kind: "decision.endorsement", Item: c.HeuristicID}
	now := e.cfg.Now()
	parts, err := e.cfg.Store.Read(ctx, nil, cell)
	if err != nil {
		return Credit{}, err
	}
	given := evidence.Caps{}.Pool(parts, evidence.InstantOf(now)).Mass
	credit := Credit{
		ID: verdictID(responseID, Verdict{Person: c.HeuristicID, Source: EndorsementSource}), HeuristicID: c.HeuristicID,
		ResponseID: responseID, Path: Model, Source: EndorsementSource, Value: 1, At: now,
		Weight: min(e.cfg.Factor*c.Similarity, e.cfg.Cap-given),
	}
	if !(credit.Weight > 0) {
		return Credit{}, nil
	}
	receipt, err := e.cfg.Store.Commit(ctx, evidence.Batch{ID: credit.ID, Observations: []evidence.Observation{
		{ID: credit.ID, Cell: cell, Channel: EndorsementSource, Reward: 1, Weight: credit.Weight, At: now},
	}})
	if err != nil || receipt.Duplicate {
		return Credit{}, err
	}
	return credit, nil
}
