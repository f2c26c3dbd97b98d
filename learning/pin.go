package learning

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// A Pin is what a person decided about a heuristic. Its constraints go before all others until
// a pin without constraints ends it.
type Pin struct {
	// HeuristicID is the heuristic that is limited. It must not be empty.
	HeuristicID string `json:"heuristic"`
	// Constraints override every other layer where they are set. The zero value ends the pin.
	Constraints Constraints `json:"constraints"`
	// Actor is who decided it. It must not be empty, because the audit names the actor.
	Actor string `json:"actor"`
	// Reason is for the audit, and may be empty.
	Reason string `json:"reason,omitempty"`
	// At is when it was decided. The zero time means now.
	At time.Time `json:"at"`
}

// Pin limits what signals can do to a heuristic, in one commit with an audit entry. A range whose
// ends are the same holds the confidence. The same pin again has no effect. A pin without
// constraints removes the one before, and is [heed.ErrNotFound] without such a pin. An unknown
// heuristic is [heed.ErrNotFound], and invalid input a [*heed.InputError].
func (m *Module) Pin(ctx context.Context, p Pin) (err error) {
	defer doing("pin", &err)
	names := valid.Names(evidence.MaxText, "HeuristicID", p.HeuristicID, "Actor", p.Actor)
	if err := cmp.Or(p.Constraints.validateInput(), names,
		evidence.CheckText("Reason", p.Reason)); err != nil {
		return err
	}
	action := "pin"
	if p.Constraints == (Constraints{}) {
		action = "unpin"
	}
	p.At = m.orNow(p.At)
	return store.Do(ctx, m.cfg.Store, func(tx *store.Tx) error {
		a, err := m.ledger(tx).open(p.HeuristicID)
		if err != nil {
			return err
		}
		r := a.heuristic.Value
		before := r.pin()
		same := before
		same.At = p.At
		if same == p {
			return nil
		}
		if r.Pin = &p; action == "unpin" {
			if r.Pin = nil; before == (Pin{}) {
				return fmt.Errorf("no pin: %w", heed.ErrNotFound)
			}
		}
		m.kinds.heuristics.Put(tx, r, a.heuristic.Revision)
		tx.Put(store.AuditEntry{
			ID: store.IDOf(m.cfg.Name, "pin", p.HeuristicID, fmt.Sprint(a.heuristic.Revision)),
			At: p.At, Actor: p.Actor, Action: m.cfg.Name + "." + action, Subject: p.HeuristicID,
			Reason: p.Reason,
			Details: map[string]string{
				"before": before.Constraints.text(), "after": p.Constraints.text(),
			},
		}.Record())
		return nil
	})
}

// pin returns the pin of a heuristic, or the zero value.
func (r *heuristicRecord) pin() (p Pin) {
	if r.Pin != nil {
		p = *r.Pin
	}
	return p
}
