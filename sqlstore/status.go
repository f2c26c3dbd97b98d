package sqlstore

import (
	"cmp"
	"context"

	"github.com/heedhq/heed/store"
)

// Status describes what a database contains, for tools.
type Status struct {
	// the kinds of cells that have evidence, sorted: all that [Store.List] can list
	Cells []string
	// the kinds of records that there are, sorted. [store.KindOf] returns the tenant of each
	Records []string
	// the kinds of records that any program declared, by name, with the limits in force
	Kinds []store.Kind
	// Erased reports that the files of the database hold no trace of forgotten people. It is false
	// while somebody reads from SQLite's log; the next [Store.Sweep] tries again. It is always true
	// of PostgreSQL, which manages its own files: see docs/stores.md.
	Erased bool
}

// Status reads what the database holds. If how a kind of records is kept can't be read, the error
// is [heed.ErrDamaged] and names the kind. It looks up each kind of cells and records, and
// tenants have kinds of their own: call it for people, and not for each request.
func (s *Store) Status(ctx context.Context) (Status, error) {
	var found Status
	forgotten, _, erased, err := s.erasure(ctx)
	if err == nil {
		err = s.db.read(ctx, func(t *tx) error {
			found = Status{Erased: forgotten == erased}
			var failures [3]error
			found.Cells, failures[0] = t.texts(findKinds)
			found.Records, failures[1] = t.texts(findRecordKinds)
			found.Kinds, failures[2] = s.allDeclared(t)
			return cmp.Or(failures[:]...)
		})
	}
	return found, wrap("status", err)
}
