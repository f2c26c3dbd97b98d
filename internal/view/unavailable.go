package view

import (
	"context"
	"errors"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/answers"
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
	in, _ := s.root()
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

// root returns the store of all tenants, and the tenant that the source is of.
func (s *Source) root() (store.Store, string) {
	if tenant, is := s.Store.(interface{ Root() (store.Store, string) }); is {
		return tenant.Root()
	}
	return s.Store, ""
}

// Frozen returns the freeze that keeps the agent from learning, if there is one, and whose it is: a
// tenant's, or "", which is of all tenants.
func (s *Source) Frozen(ctx context.Context) (none answers.Frozen, tenant string, _ error) {
	freezes := answers.Freezes(s.Name)
	root, tenant := s.root()
	for _, in := range []store.Store{s.Store, root} {
		row, err := freezes.Get(ctx, in, answers.FrozenID)
		if row.Value.Frozen || err != nil && !errors.Is(err, heed.ErrNotFound) {
			return row.Value, tenant, err
		}
		tenant = ""
	}
	return none, "", nil
}
