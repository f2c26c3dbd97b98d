package decision

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/store"
)

// EndorsementSource is the source of the credit that endorsements give.
const EndorsementSource = "llm_endorsement"

// EndorserConfig configures an [Endorser].
type EndorserConfig struct {
	// Store keeps what was given: a record of the kind "decision.endorsement" for each, and one of the kind
	// "decision.endorsed" for each heuristic. It must be set.
	Store store.Store
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
// a heuristic is no user who is content with it. Make one with [NewEndorser].
//
// An Endorser is safe for concurrent use by multiple goroutines.
type Endorser struct{ cfg EndorserConfig }

// An endorsementRow is an endorsement that was given, as it is stored: there is one for an answer and a heuristic.
type endorsementRow struct {
	CreditID string
	At       time.Time
}

var endorsementKind = records.Kind[endorsementRow]{
	Kind:  store.Kind{Name: "decision.endorsement", Limits: store.Limits{For: 90 * 24 * time.Hour, Most: 1_000_000}},
	Place: func(e endorsementRow) (string, time.Time, []string) { return e.CreditID, e.At, nil },
}

// An endorsedRow is what all endorsements of a heuristic count together, as it is stored.
type endorsedRow struct {
	HeuristicID string
	Given       float64
	At          time.Time // of the last one
}

var endorsedKind = records.Kind[endorsedRow]{
	Kind:  store.Kind{Name: "decision.endorsed", Limits: store.Limits{Most: 1_000_000}},
	Place: func(e endorsedRow) (string, time.Time, []string) { return e.HeuristicID, e.At, nil },
}

// NewEndorser returns an endorser, or all faults of its configuration, joined: each is a [*heed.ConfigError].
func NewEndorser(ctx context.Context, cfg EndorserConfig) (*Endorser, error) {
	cfg = cfg.withDefaults()
	var found faults.List
	found.Check(cfg.Store != nil, "Store", nil, "must be set")
	found.Check(cfg.Factor > 0 && cfg.Factor <= 1, "Factor", cfg.Factor, "must be in (0, 1], or 0 for the default")
	found.Check(cfg.Cap > 0 && cfg.Cap <= evidence.MaxWeight, "Cap", cfg.Cap, "must be in (0, 1e6], or 0 for the default")
	err := found.Err()
	if err == nil {
		err = declare(ctx, cfg.Store)
	}
	if err != nil {
		return nil, fmt.Errorf("decision: %w", err)
	}
	return &Endorser{cfg}, nil
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
// credit of one answer and heuristic has one ID, and is given once. A heuristic that has all that the cap allows gets none.
//
// commit hands each credit to what learns, so that both are one commit. nil: the credits are recorded alone, and one that
// the caller does not hand on is lost.
func (e *Endorser) Endorse(ctx context.Context, r Result, commit Commit) ([]Credit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var credits []Credit
	for _, c := range r.Convergence {
		if c.Shown || r.Path != Model || r.ResponseID == "" {
			continue
		}
		var credit Credit
		err := patiently(ctx, func() (err error) {
			credit, err = e.endorse(ctx, r.ResponseID, c, commit)
			return err
		})
		if err != nil {
			return credits, fmt.Errorf("decision: endorse: %w", err)
		}
		if credit.Weight > 0 {
			credits = append(credits, credit)
		}
	}
	return credits, nil
}

func (e *Endorser) endorse(ctx context.Context, responseID string, c Convergence, commit Commit) (Credit, error) {
	given := endorsementRow{CreditID: "endorsement:" + records.ID(responseID, c.HeuristicID), At: evidence.InstantOf(e.cfg.Now()).Time()}
	var s store.Snapshot
	refs := []store.Ref{endorsementKind.Ref(given.CreditID), endorsedKind.Ref(c.HeuristicID)}
	if err := e.cfg.Store.Read(ctx, &s, nil, refs); err != nil {
		return Credit{}, err
	}
	kept, err := endorsedKind.Of(s.Records[1])
	if err != nil || s.Records[0].Revision > 0 {
		return Credit{}, err
	}
	credit := Credit{
		ID: given.CreditID, HeuristicID: c.HeuristicID, ResponseID: responseID, Path: Model, Source: EndorsementSource, Value: 1,
		At: given.At, Weight: min(e.cfg.Factor*c.Similarity, e.cfg.Cap-kept.Value.Given),
	}
	if !(credit.Weight > 0) {
		return Credit{}, nil
	}
	total := endorsedRow{HeuristicID: c.HeuristicID, Given: kept.Value.Given + credit.Weight, At: given.At}
	b := store.Batch{Records: []store.Record{endorsementKind.Record(given, 0), endorsedKind.Record(total, kept.Revision)}}
	if commit != nil {
		return credit, call(func() error { return commit(ctx, credit, b) })
	}
	_, err = e.cfg.Store.Commit(ctx, b)
	return credit, err
}
