package sqlstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/heedhq/heed/store"
)

// Status describes what a database contains, for tools.
type Status struct {
	// the kinds of cells that have evidence, sorted: all that [Store.List] can list
	Cells []string
	// the kinds of records that any program declared, by name, with the limits in force
	Kinds []store.Kind
	// Inboxes are those that hold events, by name.
	Inboxes []struct {
		Name       string
		Events     int // that are not acknowledged
		Deliveries int // the most that one of them has had
	}
	// Erased reports that the files of the database hold no trace of forgotten people. It is false
	// while somebody reads from SQLite's log; the next [Store.Sweep] tries again. It is always true
	// of PostgreSQL, which manages its own files: see docs/stores.md.
	Erased bool
}

var inboxSizes = both(`SELECT stream, count(*), max(abs(deliveries)) FROM heed_inbox GROUP BY stream ORDER BY stream`)

// Status reads what the database holds. If how a kind of records is kept can't be read, the error
// is [heed.ErrDamaged] and names the kind.
func (s *Store) Status(ctx context.Context) (Status, error) {
	var found Status
	forgotten, _, erased, err := s.erasure(ctx)
	if err == nil {
		err = s.db.read(ctx, func(t *tx) (err error) {
			found = Status{Erased: forgotten == erased}
			if found.Cells, err = t.texts(findKinds); err != nil {
				return err
			}
			if found.Kinds, err = s.allDeclared(t); err != nil {
				return err
			}
			return t.each(inboxSizes, nil, func(scan func(...any) error) error {
				found.Inboxes = slices.Grow(found.Inboxes, 1)[:len(found.Inboxes)+1]
				one := &found.Inboxes[len(found.Inboxes)-1]
				return scan(&one.Name, &one.Events, &one.Deliveries)
			})
		})
	}
	if err != nil {
		return Status{}, fmt.Errorf("sqlstore: status: %w", err)
	}
	return found, nil
}
