package learning

import (
	"context"
	"iter"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/faults"
)

// A Heuristic is what a module has to know of one: not what it is trusted for, which is in the evidence, but what that
// begins with and is limited by.
type Heuristic struct {
	ID        string // never empty; not repeated within a store
	Domain    string // whose windows, thresholds and weights hold; fixed once evidence has come
	Pack      string // whose constraints it inherits
	Condition string // the situation that it is for, which patterns look at
	// Initial is the confidence before any evidence, in (0, 1). 0 means [Config].Initial.
	Initial     float64
	Constraints Constraints
	CreatedAt   time.Time
	// Revision counts the changes. [Store].Put sets it.
	Revision uint64
}

// Validate reports the first fault as a [*heed.InputError].
func (h Heuristic) Validate() error {
	if h.ID == "" {
		return &heed.InputError{Field: "ID", Reason: "must not be empty"}
	}
	if h.Initial != 0 && !isConfidence(h.Initial) {
		return &heed.InputError{Field: "Initial", Reason: "must be above 0 and below 1"}
	}
	var found faults.List
	found.Add("Constraints", h.Constraints.Validate())
	for fault := range heed.ConfigErrors(found.Err()) {
		return &heed.InputError{Field: fault.Field, Reason: fault.Reason}
	}
	return checkTexts(text{"ID", h.ID}, text{"Domain", h.Domain}, text{"Pack", h.Pack}, text{"Condition", h.Condition})
}

func isConfidence(x float64) bool { return x >= leastInitial && x <= 1-leastInitial }

// leastInitial keeps the shapes of a prior away from 0.
const leastInitial = 1e-9

// Store keeps heuristics.
//
// An implementation must be safe for concurrent use by multiple goroutines. Every method honours its context: one that is
// done on entry gives its error and changes nothing. Times come back in UTC, to the microsecond at the least. Package
// learningtest has the suite that says whether an implementation keeps this contract.
type Store interface {
	// Get returns a heuristic, or [heed.ErrNotFound].
	Get(ctx context.Context, id string) (Heuristic, error)
	// Put stores a heuristic and returns it with its new revision. One of revision 0 must be new, any other must have the
	// revision that is stored: else it is [heed.ErrConflict], and nothing changes. What is not valid by
	// [Heuristic.Validate] is refused with that error.
	Put(ctx context.Context, h Heuristic) (Heuristic, error)
	// Delete forgets a heuristic, or returns [heed.ErrNotFound]. Its evidence is not in this store and stays.
	Delete(ctx context.Context, id string) error
	// All returns all heuristics by id. Changes that happen during the loop may be seen or not. The loop may call the
	// store and may end early; after an error it ends.
	All(ctx context.Context) iter.Seq2[Heuristic, error]
}

// instant returns a time as stores keep it.
func instant(t time.Time) time.Time { return evidence.InstantOf(t).Time() }
