package sqlstore

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

const (
	// partsOfScope finds the cells of a scope by the index heed_cell_scope, and the tallies of each
	// by their primary key.
	partsOfScope = partsBefore + `heed_cell c JOIN heed_tally t ON t.cell = c.cell
		WHERE c.kind = $1 AND c.scope = $2 `
	inOrder = `ORDER BY c.item, c.name, t.channel, t.source`
)

var (
	// listParts reads all parts of a scope.
	listParts = both(partsOfScope + inOrder)
	// listLost reads the tallies that count something which the history does not have any more: what
	// Rebuild can't make again.
	listLost = both(partsOfScope +
		`AND (t.lost_positive > 0 OR t.lost_negative > 0 OR t.lost_neutral > 0) ` + inOrder)
	// listEmpty reads the cells of a scope without tallies, for example after a restart.
	listEmpty = both(`SELECT c.kind, c.scope, c.item, c.name FROM heed_cell c
		WHERE c.kind = $1 AND c.scope = $2
			AND NOT EXISTS (SELECT 1 FROM heed_tally t WHERE t.cell = c.cell)`)
	// listNaming reads the cells that name a person: as their source, by partial indexes on the
	// sources, or in their own name, for which all cells are read. It is part of a job that forgets
	// somebody.
	listNaming = both(`SELECT c.kind, c.scope, c.item, c.name FROM heed_cell c
		WHERE c.scope = $1 OR c.item = $1 OR c.name = $1 OR c.cell IN (
			SELECT cell FROM heed_observation WHERE source <> '' AND source = $1
			UNION SELECT cell FROM heed_tally WHERE source <> '' AND source = $1
			UNION SELECT cell FROM heed_lost WHERE source <> '' AND source = $1)`)
	// sourceLost finds the tallies in which it is unknown whose evidence was lost, by the partial
	// index heed_tally_lost, which is nearly always empty.
	sourceLost = both(`SELECT c.kind, c.scope FROM heed_tally t JOIN heed_cell c ON c.cell = t.cell
		WHERE t.lost_source = 1`)
	// listTenant reads the cells of a tenant. No index serves the end of a kind, so all cells are
	// read, once when a tenant leaves.
	listTenant = both(`SELECT kind, scope, item, name FROM heed_cell WHERE kind LIKE $1`)
)

// List implements [store.Store]. It reads all parts before the loop begins, or the parts of a
// sample where one is wanted. So the loop may use the store, and a slow loop holds no connection. A
// query has one purpose, so the first case that applies decides.
func (s *Store) List(ctx context.Context, q store.CellQuery) iter.Seq2[evidence.Part, error] {
	return func(yield func(evidence.Part, error) bool) {
		var parts []evidence.Part
		err := s.db.read(ctx, func(t *tx) (err error) {
			switch {
			case q.Naming != "":
				_, tenant := store.KindOf(q.Kind)
				parts, err = t.naming(q.Naming, tenant)
				return err
			case strings.HasPrefix(q.Kind, "@"):
				parts, err = t.tenant(q.Kind)
				return err
			case q.Lost:
				parts, err = t.list(listLost, q.Kind, q.Scope)
				return err
			case q.Sample != nil:
				parts, err = t.sample(q.Kind, q.Scope, q.Sample)
				if err != nil || q.Sample.All > 0 {
					return err
				}
			}
			if parts, err = t.list(listParts, q.Kind, q.Scope); err == nil && q.Empty {
				parts, err = t.withEmpty(parts, q.Kind, q.Scope)
			}
			return err
		})
		yieldAll(ctx, parts, err, yield)
	}
}

// list reads the parts of a kind and scope that a query selects. Sums are restated by the cell's
// half-life.
func (t *tx) list(q *query, kind, scope string, more ...any) (parts []evidence.Part, err error) {
	err = t.each(q, append([]any{kind, scope}, more...), func(scan func(...any) error) error {
		p, halfLife := evidence.Part{Cell: evidence.Cell{Kind: kind, Scope: scope}}, int64(0)
		err := scanTally(scan, &p.Tally, &p.Cell.Item, &p.Cell.Name, &p.Channel, &p.Source, &halfLife)
		if err != nil {
			return fmt.Errorf("%s / %s / %s: %w", scope, p.Cell.Item, p.Cell.Name, err)
		}
		p.Tally = restated(p.Tally, time.Duration(halfLife)*time.Microsecond)
		parts = append(parts, p)
		return nil
	})
	return parts, err
}

// scanNames reads the names of a cell.
func scanNames(scan func(...any) error) (c evidence.Cell, err error) {
	err = scan(&c.Kind, &c.Scope, &c.Item, &c.Name)
	return c, err
}

// withEmpty adds the cells of a kind and scope that have no evidence.
func (t *tx) withEmpty(parts []evidence.Part, kind, scope string) ([]evidence.Part, error) {
	cells, err := collect(t, listEmpty, []any{kind, scope}, scanNames)
	for _, c := range cells {
		parts = append(parts, evidence.Part{Cell: c})
	}
	// Stable, because the parts of one cell are in the order of their channels and sources.
	slices.SortStableFunc(parts, func(a, b evidence.Part) int { return a.Cell.Compare(b.Cell) })
	return parts, err
}

// tenant reads the cells of a tenant, without their sums. The pattern may find more than it should,
// because LIKE has wildcards, and so the tenant of each cell is compared.
func (t *tx) tenant(kind string) (parts []evidence.Part, err error) {
	like := strings.NewReplacer(`%`, `_`, `\`, `_`).Replace(kind) // finds what it should, and more
	_, tenant := store.KindOf(kind)
	cells, err := collect(t, listTenant, []any{"%" + like}, scanNames)
	slices.SortFunc(cells, evidence.Cell.Compare)
	for _, c := range cells {
		if _, of := store.KindOf(c.Kind); of == tenant {
			parts = append(parts, evidence.Part{Cell: c})
		}
	}
	return parts, err
}

// naming reads the cells of a tenant, or of none, that name a source. A cell without a part of the
// source is listed as well, with an empty part, because its history or its name may have the
// source. Pages keep the statements short, however many cells name the person.
func (t *tx) naming(source, tenant string) (parts []evidence.Part, err error) {
	err = t.each(sourceLost, nil, func(scan func(...any) error) error {
		var kind, scope string
		err := scan(&kind, &scope)
		// It is an error before the first part, because a job that began could not be finished.
		if _, of := store.KindOf(kind); err == nil && of == tenant {
			err = fmt.Errorf("in a cell of kind %q and scope %q: %w", kind, scope, evidence.ErrForgotten)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	cells, err := collect(t, listNaming, []any{source}, scanNames)
	cells = slices.DeleteFunc(cells, func(c evidence.Cell) bool {
		_, of := store.KindOf(c.Kind)
		return of != tenant
	})
	slices.SortFunc(cells, evidence.Cell.Compare)
	for page := range slices.Chunk(cells, pageSize) {
		found := make(map[string][]evidence.Part, len(page))
		if err := t.snapshot(page, nil, found, nil); err != nil {
			return nil, err
		}
		for _, c := range page {
			had := len(parts)
			for _, p := range found[hashOfCell(c)] {
				// A part without a channel and a source may be one of a cell that keeps origins together,
				// and then it may hold the source.
				if p.Source == source || p.Channel == "" && p.Source == "" {
					parts = append(parts, p)
				}
			}
			if len(parts) == had {
				parts = append(parts, evidence.Part{Cell: c})
			}
		}
	}
	return parts, err
}

// declarations yields a record for each kind that any program declared. They are the declared ones,
// without the limits of this store's configuration.
func (s *Store) declarations(ctx context.Context) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		var all []store.Record
		err := s.db.read(ctx, func(t *tx) error {
			kinds, err := t.declaredKinds()
			for _, kind := range kinds {
				all = append(all, store.DeclarationOf(kind))
			}
			return err
		})
		yieldAll(ctx, all, err, yield)
	}
}
