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
// [Module.Unpin] removes it.
type Pin struct {
	// HeuristicID is the heuristic that is limited. It must not be empty.
	HeuristicID string `json:"heuristic"`
	// Constraints override every other layer where they are set.
	Constraints Constraints `json:"constraints"`
	// Actor is who decided it. It must not be empty, because the audit names the actor.
	Actor string `json:"actor"`
	// Reason is for the audit, and may be empty.
	Reason string `json:"reason,omitempty"`
	// At is when it was decided. The zero time means now.
	At time.Time `json:"at"`
}

// Pin limits what signals can do to a heuristic, in one commit with an audit entry. A range whose
// ends are the same holds the confidence. The same pin again has no effect. An unknown heuristic is
// [heed.ErrNotFound], and invalid input a [*heed.InputError].
func (m *Module) Pin(ctx context.Context, p Pin) (err error) {
	defer doing("pin", &err)
	if p.Constraints == (Constraints{}) {
		return valid.Input("Constraints", "must set a limit")
	}
	if err := p.Constraints.validateInput(); err != nil {
		return err
	}
	return m.decide(ctx, "pin", p)
}

// Unpin removes a heuristic's pin, in one commit with an audit entry. A heuristic without one is
// [heed.ErrNotFound].
func (m *Module) Unpin(ctx context.Context, heuristicID, actor, reason string) (err error) {
	defer doing("unpin", &err)
	return m.decide(ctx, "unpin", Pin{HeuristicID: heuristicID, Actor: actor, Reason: reason})
}

// pin returns the pin of a heuristic, or the zero value.
func (r *heuristicRecord) pin() (p Pin) {
	if r.Pin != nil {
		p = *r.Pin
	}
	return p
}

// decide stores a pin, or removes it if p has no constraints.
func (m *Module) decide(ctx context.Context, action string, p Pin) error {
	if err := cmp.Or(valid.Names(evidence.MaxText, "Actor", p.Actor),
		evidence.CheckText("Reason", p.Reason)); err != nil {
		return err
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
		if r.Pin = &p; p.Constraints == (Constraints{}) {
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
