package learning

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/store"
)

// A Heuristic is what a module has to know of one: not what it is trusted for, which is in the evidence, but what that
// begins with and is limited by.
type Heuristic struct {
	ID        string // never empty; not repeated within a module
	Domain    string // whose windows, thresholds and weights hold
	Pack      string // whose constraints it inherits
	Condition string // the situation that it is for, which patterns look at
	// Initial is the confidence before any evidence, in (0, 1). 0 means [Config].Initial.
	Initial     float64
	Constraints Constraints
	CreatedAt   time.Time // the zero time means when it is first put
	// Revision is that of the record. [Module.Put] sets it.
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
	if !h.CreatedAt.IsZero() && (h.CreatedAt.Unix() < 0 || h.CreatedAt.Year() > 9999) {
		return &heed.InputError{Field: "CreatedAt", Reason: "must be in the years 1970 to 9999"}
	}
	if err := h.Constraints.validateInput(); err != nil {
		return err
	}
	return checkTexts(text{"ID", h.ID}, text{"Domain", h.Domain}, text{"Pack", h.Pack}, text{"Condition", h.Condition})
}

// validateInput reports the first fault as one of the input.
func (c Constraints) validateInput() error {
	var found faults.List
	found.Add("Constraints", c.Validate())
	for fault := range heed.ConfigErrors(found.Err()) {
		return &heed.InputError{Field: fault.Field, Reason: fault.Reason}
	}
	return nil
}

func isConfidence(x float64) bool { return x >= leastInitial && x <= 1-leastInitial }

// leastInitial keeps the shapes of a prior away from 0.
const leastInitial = 1e-9

// Put stores a heuristic and returns it with its new revision. One of revision 0 must be new, any other must have the
// revision that is stored: else it is [heed.ErrConflict], and nothing changes. Input that is not valid is a
// [*heed.InputError].
func (m *Module) Put(ctx context.Context, h Heuristic) (Heuristic, error) {
	if err := h.Validate(); err != nil {
		return Heuristic{}, fmt.Errorf("learning: put: %w", err)
	}
	read := h.Revision
	h.CreatedAt, h.Revision = m.orNow(h.CreatedAt), 0
	receipts, err := m.cfg.Store.Commit(ctx, store.Batch{Records: []store.Record{m.kinds.heuristics.Record(h, read)}})
	if err != nil {
		return Heuristic{}, fmt.Errorf("learning: put: %w", err)
	}
	h.Revision = receipts[0].Revision
	return h, nil
}

// Heuristic returns a heuristic, or [heed.ErrNotFound].
func (m *Module) Heuristic(ctx context.Context, id string) (Heuristic, error) {
	kept, err := m.kinds.heuristics.Get(ctx, m.cfg.Store, id)
	if err != nil {
		return Heuristic{}, fmt.Errorf("learning: heuristic: %w", err)
	}
	return heuristicOf(kept), nil
}

func heuristicOf(kept records.Kept[Heuristic]) Heuristic {
	kept.Value.Revision = kept.Revision
	return kept.Value
}

// Heuristics yields all heuristics by id. It reads all of them before the loop begins. After an error it ends.
func (m *Module) Heuristics(ctx context.Context) iter.Seq2[Heuristic, error] {
	return func(yield func(Heuristic, error) bool) {
		var all []Heuristic
		for kept, err := range m.kinds.heuristics.Find(ctx, m.cfg.Store, store.Query{}) {
			if err != nil {
				yield(Heuristic{}, fmt.Errorf("learning: heuristics: %w", err))
				return
			}
			all = append(all, heuristicOf(kept))
		}
		slices.SortFunc(all, func(a, b Heuristic) int { return cmp.Compare(a.ID, b.ID) })
		for _, h := range all {
			if !yield(h, nil) {
				return
			}
		}
	}
}

// Delete forgets a heuristic with its pin, or returns [heed.ErrNotFound]. Its evidence stays, and counts again where a
// heuristic of that id is put anew. Its answers are given up when they are next looked at, with an error.
func (m *Module) Delete(ctx context.Context, id string) error {
	err := records.Retry(ctx, func() error {
		l := m.newLedger()
		if err := l.read(ctx, []string{id}, nil); err != nil {
			return err
		}
		a, err := l.account(id)
		if err != nil {
			return err
		}
		b := store.Batch{Records: []store.Record{m.kinds.heuristics.Removal(id, a.heuristic.Revision)}}
		if a.pin.Revision > 0 {
			b.Records = append(b.Records, m.kinds.pins.Removal(id, a.pin.Revision))
		}
		if a.streak.Revision > 0 {
			b.Records = append(b.Records, m.kinds.streaks.Removal(id, a.streak.Revision))
		}
		_, err = m.cfg.Store.Commit(ctx, b)
		return err
	})
	if err != nil {
		return fmt.Errorf("learning: delete: %w", err)
	}
	return nil
}

// instant returns a time as stores keep it.
func instant(t time.Time) time.Time { return evidence.InstantOf(t).Time() }
