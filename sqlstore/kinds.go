package sqlstore

import (
	"context"
	"iter"
)

var listKinds = both(`SELECT DISTINCT c.kind FROM heed_cells AS c
	WHERE EXISTS (SELECT 1 FROM heed_tallies AS t WHERE t.cell = c.cell)
	ORDER BY c.kind`)

// Kinds returns the kinds of cells that have evidence, in order: what there is to be listed. The rules of
// [evidence.Store].List hold.
func (e *Evidence) Kinds(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var kinds []string
		err := e.db.read(ctx, func(t *tx) (err error) {
			kinds, err = t.texts(listKinds)
			return err
		})
		yieldAll(ctx, kinds, err, yield)
	}
}
