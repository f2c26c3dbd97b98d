package assistant

import (
	"context"
	"slices"
	"time"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/stream"
)

// Stores are where an assistant keeps what it learns, in memory or in a database.
type Stores struct {
	Store    store.Store
	Outcomes Stream
	Runbook  Runbook
}

// A Stream has both ends.
type Stream interface {
	stream.Source
	stream.Sink
}

// A Runbook keeps what heuristics say, which package learning does not have to know: it is the host's own table.
type Runbook interface {
	// Entries returns them in the order in which they were added.
	Entries(ctx context.Context) ([]Heuristic, error)
	Add(ctx context.Context, h Heuristic) error
}

// InMemory returns stores that are empty, and gone with the process.
func InMemory(now func() time.Time) (Stores, error) {
	st, err := memstore.New(memstore.Config{Now: now})
	return Stores{Store: st, Outcomes: &memstore.Stream{}, Runbook: &pages{}}, err
}

// pages are a runbook in memory.
type pages struct{ all []Heuristic }

func (p *pages) Entries(context.Context) ([]Heuristic, error) { return slices.Clone(p.all), nil }

func (p *pages) Add(_ context.Context, h Heuristic) error {
	p.all = append(p.all, h)
	return nil
}
