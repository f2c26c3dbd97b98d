package store

import (
	"context"
	"iter"
	"maps"
	"time"
)

// An AuditEntry records who did what to what, when and why. It is a record kind, written in the
// same commit as the change.
type AuditEntry struct {
	ID      string            `json:"id"` // counts once
	At      time.Time         `json:"at"`
	Actor   string            `json:"actor,omitempty"`
	Action  string            `json:"action"` // never empty
	Subject string            `json:"subject,omitempty"`
	Reason  string            `json:"reason,omitempty"`
	Details map[string]string `json:"details,omitempty"`
}

// Audit is the kind of audit entries. A package that writes them declares it.
var Audit = Kind{
	Name: "heed.audit", Limits: Limits{Most: 1_000_000},
	Decided: []string{"actor", "subject", "details.*"},
}

var audit = View[AuditEntry]{
	Kind: Audit,
	Place: func(e AuditEntry) (string, time.Time, []string) {
		var keys []string
		for _, name := range []string{e.Actor, e.Subject} {
			if name != "" {
				keys = append(keys, PersonKey(name))
			}
		}
		return e.ID, e.At, keys
	},
}

// Record returns the entry as a record for a batch. An entry whose ID is known stays as it is.
func (e AuditEntry) Record() Record {
	e.At = e.At.UTC().Truncate(time.Microsecond)
	e.Details = maps.Clone(e.Details)
	return audit.Record(e, Once)
}

// AuditEntries yields the audit entries that a query selects. Its Kind need not be set. The entries
// of an actor or a subject have the [PersonKey] of the name. The rules of [Store].Find hold.
func AuditEntries(ctx context.Context, s Store, q Query) iter.Seq2[AuditEntry, error] {
	return func(yield func(AuditEntry, error) bool) {
		for row, err := range audit.Find(ctx, s, q) {
			e := row.Value
			e.Details = maps.Clone(e.Details)
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
