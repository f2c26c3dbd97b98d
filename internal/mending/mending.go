// Package mending is the door by which the command heed mends a cell of a database. Hosts have no need of it, so it is no method of the store.
package mending

import (
	"context"

	"github.com/heedhq/heed/store"
)

// A Cell is a cell to mend.
type Cell struct {
	// Key names the cell, as the deep check does.
	Key string
	// Reset forgets all evidence of the cell. Without it, the sums are made anew from the history, which loses nothing.
	Reset bool
	// Why is the entry of the audit.
	Why store.AuditEntry
}

// Mend mends a cell of a store of package sqlstore, which sets this function. It makes one commit, with an entry in the audit. Other cells
// stay as they are. A reset works whatever is damaged of the cell: its own row, its sums, its history, or the key by which a row belongs to
// it. Observations that had been counted do not count again.
//
// If the history is damaged, or nobody knows whether it is whole, sums can't be made anew: the error is heed.ErrDamaged, or
// evidence.ErrForgotten for a history that is known not to be whole. A cell without any row is heed.ErrNotFound. After an error nothing has
// changed. store.Audit must be declared.
var Mend func(ctx context.Context, st store.Store, cell Cell) error
