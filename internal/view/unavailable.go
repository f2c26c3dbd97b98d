package view

import (
	"context"
	"errors"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/store"
)

// An Unavailable is a model that an agent can't ask at present.
type Unavailable struct {
	Model   string
	At      time.Time // of the latest call
	Since   time.Time // zero: the model can be asked
	Failure llm.Failure
}

// forgetsFailures is after what time package loop asks a model again as if it had never failed.
const forgetsFailures = 5 * time.Minute

// Unavailable lists the models that an agent of a name can't ask at present, by the records that
// package loop keeps of their health. All tenants share them. A damaged record counts as none, as
// it does for agents.
func (s *Source) Unavailable(ctx context.Context, agent string) (all []Unavailable, _ error) {
	in := s.Store
	if tenant, is := in.(interface{ Root() (store.Store, string) }); is {
		in, _ = tenant.Root()
	}
	now := s.Now()
	lately := store.Query{Kind: agent + ".model", Since: now.Add(-forgetsFailures)}
	for r, err := range in.Find(ctx, lately) {
		if errors.Is(err, heed.ErrNotFound) { // there is no agent of this name
			return nil, nil
		}
		if err != nil {
			return all, err
		}
		health, err := store.Decode[Unavailable](r.Body)
		if err == nil && !health.Since.IsZero() && !health.At.After(now) {
			all = append(all, health)
		}
	}
	return all, nil
}
