package loop

import (
	"context"
	"errors"
	"fmt"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/store"
)

// Freeze stops learning, or begins it again, for all agents of this name on the store, in every
// process. Agents of tenants obey the agent that [New] made as well, after a second at the most. A
// frozen agent answers by what was learned before, and does not learn from reactions, outcomes and
// corrections. What people decide about rules still holds. Each call that begins after Freeze
// returned obeys it, and so do agents that are made later. If the store can't be reached, agents go
// on with what they have read last.
func (a *Agent) Freeze(ctx context.Context, frozen bool) error {
	now := answers.Frozen{Frozen: frozen, At: a.cfg.Testing.Now()}
	_, err := answers.Freeze(ctx, a.cfg.Store, a.cfg.Name, now, store.AuditEntry{})
	return wrap("freeze", err)
}

// wantFrozen names the record that isFrozen reads.
func (a *Agent) wantFrozen(tx *store.Tx) {
	tx.Want(store.Wants{Refs: []store.Ref{a.freezes.Ref(answers.FrozenID)}})
}

// isFrozen reports to a step whether learning is stopped. It also reads what the step wants.
func (a *Agent) isFrozen(tx *store.Tx) (bool, error) {
	frozen, err := a.ownFreeze(tx)
	if err != nil || frozen || a.root == nil {
		return frozen, err
	}
	return a.root.tenants.isFrozen(tx.Context(), a.root)
}

// ownFreeze reads the agent's own record. If it is damaged, that is an error of each call: a guess
// would teach what must not be learned, or lose what a person stated.
func (a *Agent) ownFreeze(tx *store.Tx) (bool, error) {
	row, err := a.freezes.In(tx, answers.FrozenID)
	if errors.Is(err, heed.ErrDamaged) {
		err = fmt.Errorf("whether to learn is unknown, until Agent.Freeze, heed store freeze or heed "+
			"store unfreeze writes the record again: %w", err)
	}
	return row.Value.Frozen, err
}

// lastFrozen reports whether learning was stopped as far as this process has read it, for an answer
// without the store.
func (a *Agent) lastFrozen(ctx context.Context) bool {
	row, err := a.freezes.In(store.Reading(ctx, recalled{a.lifeline}), answers.FrozenID)
	return err == nil && row.Value.Frozen || a.root != nil && a.root.lastFrozen(ctx)
}
