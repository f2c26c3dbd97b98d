package assistant

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// Stores are where an assistant keeps what it learns, in memory or in a database. All five packages share the evidence.
type Stores struct {
	Evidence   evidence.Store
	Choices    strategy.Choices
	Outcomes   Stream
	Heuristics learning.Store
	Store      store.Store
	Patterns   patterns.Store
	Runbook    Runbook
}

type sweeper interface {
	Sweep(ctx context.Context) error
}

// Sweep has the stores drop what is past its time, those that leave it to their host when that is: the ones in a database.
func (s *Stores) Sweep(ctx context.Context) error {
	var failures []error
	for _, old := range []any{s.Evidence, s.Choices, s.Patterns} {
		if s, ok := old.(sweeper); ok {
			failures = append(failures, s.Sweep(ctx))
		}
	}
	return errors.Join(append(failures, s.Store.Sweep(ctx, time.Time{}))...)
}

// A Stream has both ends.
type Stream interface {
	strategy.Source
	strategy.Sink
}

// A Runbook keeps what heuristics say, which package learning does not have to know: it is the host's own table.
type Runbook interface {
	// Entries returns them in the order in which they were added.
	Entries(ctx context.Context) ([]Heuristic, error)
	Add(ctx context.Context, h Heuristic) error
}

// InMemory returns stores that are empty, and gone with the process.
func InMemory(now func() time.Time) (Stores, error) {
	evidence, err := memstore.NewEvidence(memstore.EvidenceConfig{Now: now})
	choices, choicesErr := memstore.NewChoices(memstore.ChoicesConfig{Now: now})
	st, storeErr := memstore.New(memstore.Config{Now: now})
	return Stores{
		Evidence: evidence, Choices: choices, Outcomes: &memstore.Stream{}, Heuristics: &memstore.Heuristics{}, Store: st,
		Patterns: &memstore.Patterns{}, Runbook: &pages{},
	}, errors.Join(err, choicesErr, storeErr)
}

// pages are a runbook in memory.
type pages struct{ all []Heuristic }

func (p *pages) Entries(context.Context) ([]Heuristic, error) { return slices.Clone(p.all), nil }

func (p *pages) Add(_ context.Context, h Heuristic) error {
	p.all = append(p.all, h)
	return nil
}
