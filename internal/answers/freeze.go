package answers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/store"
)

// A Frozen is the record by which the agents of a name agree whether they learn.
type Frozen struct {
	Frozen bool      `json:"frozen"`
	At     time.Time `json:"at"` // of the last change
}

// FrozenID is the id of that record.
const FrozenID = "frozen"

// Freezes returns the view of the record of an agent's name.
func Freezes(agent string) store.View[Frozen] {
	return store.View[Frozen]{
		Kind:  store.Kind{Name: agent + ".frozen"},
		Place: func(f Frozen) (string, time.Time, []string) { return FrozenID, f.At, nil },
	}
}

// Freeze stops the learning of the agents of a name, or begins it again. It reports whether that is
// a change. A record that is damaged is written again, which is a change. The entry, if it has an
// action, goes into the audit with a change. Both kinds must have been declared.
func Freeze(
	ctx context.Context, st store.Store, agent string, to Frozen, entry store.AuditEntry,
) (changed bool, err error) {
	v := Freezes(agent)
	err = store.Do(ctx, st, func(tx *store.Tx) error {
		row, err := v.In(tx, FrozenID)
		damaged := errors.Is(err, heed.ErrDamaged)
		if err != nil && !damaged {
			return err
		}
		if changed = damaged || row.Value.Frozen != to.Frozen; !changed {
			return nil
		}
		v.Put(tx, to, row.Revision)
		if entry.Action != "" {
			entry.ID, entry.At = store.IDOf(v.Name, fmt.Sprint(row.Revision)), to.At
			tx.Put(entry.Record())
		}
		return nil
	})
	return changed, err
}
