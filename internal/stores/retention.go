// Package stores has what the stores of heed have in common: how long they keep what, how
// declarations of a kind are joined, and the order in which records are found.
package stores

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// month is how long history and ids are kept by default.
const month = 30 * 24 * time.Hour

// Defaults sets what is 0: 100 observations of a cell, for 30 days, and ids for 30 days or as long
// as the history.
func Defaults(r *store.Retention) {
	r.HistoryPerCell = cmp.Or(r.HistoryPerCell, 100)
	r.HistoryFor = cmp.Or(r.HistoryFor, month)
	r.IDsFor = cmp.Or(r.IDsFor, max(r.HistoryFor, month))
}

// Check returns all faults, as fields that the host set. An id must be known for as
// long as its observation is in the history: after that, the same outcome could count again while
// the first one is still there.
func Check(r store.Retention) error {
	var found valid.Faults
	Defaults(&r)
	found.Check(r.HistoryPerCell > 0, "HistoryPerCell", r.HistoryPerCell, "must not be negative")
	found.Check(r.HistoryFor > 0, "HistoryFor", r.HistoryFor, "must not be negative")
	found.Check(r.IDsFor >= r.HistoryFor, "IDsFor", r.IDsFor, "must not be shorter than HistoryFor")
	for name, limits := range r.Limits {
		kind := store.Kind{Name: name, Limits: limits}
		if fault := (*heed.InputError)(nil); errors.As(kind.Validate(), &fault) {
			found.Check(false, fmt.Sprintf("Limits[%q].%s", name,
				strings.TrimPrefix(fault.Field, "Limits.")), limits, fault.Reason)
		}
	}
	return found.Err()
}

// Join returns the kind that two declarations make: the paths of both, and otherwise the fields
// that the later one sets. Several components may declare one kind, for example the audit, and each
// needs what it declared. Paths and flags are therefore never taken back.
func Join(before, after store.Kind) store.Kind {
	if after.Limits == (store.Limits{}) {
		after.Limits = before.Limits
	}
	after.Caused = union(before.Caused, after.Caused)
	after.Decided = union(before.Decided, after.Decided)
	after.Whole = after.Whole || before.Whole
	after.History = cmp.Or(after.History, before.History)
	after.Versioned = after.Versioned || before.Versioned
	return after
}

// union returns a with what only b has, in the order of both.
func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, path := range b {
		if !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	return all
}
