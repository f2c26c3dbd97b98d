package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/export"
)

// A table is one that is exported, with its statements.
type table struct {
	*export.Table
	list   *query
	insert *query
	any    *query
}

func newTable(t *export.Table) table {
	var names, places []string
	for _, c := range t.Columns {
		names = append(names, c.Name)
		places = append(places, "$"+strconv.Itoa(len(names)))
	}
	all := strings.Join(names, ", ")
	return table{
		Table:  t,
		list:   both(`SELECT ` + all + ` FROM heed_` + t.Name + ` ORDER BY ` + orders[t.Name]),
		insert: both(`INSERT INTO heed_` + t.Name + ` (` + all + `) VALUES (` + strings.Join(places, ", ") + `)`),
		any:    both(`SELECT 1 FROM heed_` + t.Name + ` LIMIT 1`),
	}
}

// orders are by what the rows of each table are exported: by their numbers, or by their keys.
var orders = map[string]string{
	export.Cells: "cell", export.Tallies: "cell, channel, source", export.IDs: "space, id", export.History: "seq",
	export.Forgotten: "id, cell", export.Audit: "seq", export.Outbox: "seq", export.Choices: "id", export.Stream: "seq",
	export.Documents: "seq",
}

// tables are all that are exported, in that order.
var tables = func() (all []table) {
	for _, t := range export.Tables {
		all = append(all, newTable(t))
	}
	return all
}()

// analyze has PostgreSQL look at what was imported, which it otherwise does a while later, and guesses until then. SQLite finds
// its indexes without that; having looked, it would scan what is small as yet.
var analyze = either(`DELETE FROM heed_schema WHERE version < 0`, `ANALYZE heed_cells, heed_tallies, heed_ids, heed_history,
	heed_forgotten, heed_audit, heed_outbox, heed_choices, heed_stream, heed_documents`)

// Export writes all that heed's tables hold as JSON lines, as it is at one moment. What one engine exports, every other
// imports: see [DB.Import]. Stores in memory read it too: see [memstore.Import]. The host's own tables are not in it.
//
// [memstore.Import]: https://pkg.go.dev/github.com/heedhq/heed/memstore#Import
func (db *DB) Export(ctx context.Context, to io.Writer) error {
	out := export.NewWriter(to)
	err := db.snapshot(ctx, func(t *tx) error {
		for _, table := range tables {
			err := t.each(table.list, nil, func(scan func(...any) error) error {
				values := table.Values()
				if err := scan(values...); err != nil {
					return err
				}
				return out.Row(table.Table, values)
			})
			if err != nil {
				return fmt.Errorf("%s: %w", table.Name, err)
			}
		}
		return out.End()
	})
	if err = errors.Join(err, out.Flush()); err != nil {
		return fmt.Errorf("sqlstore: export: %w", err)
	}
	return nil
}

// Import reads what [DB.Export] has written into tables that are empty: all of it, or nothing and an error. Tables that hold
// something are [heed.ErrConflict]; lines that are not of an export, of a newer one, or of one that was cut off, are a
// [*heed.InputError]. In PostgreSQL the tables are analyzed, so that they are read by their indexes from the start. Stores that
// were in use before see it within their EvidenceConfig.Stale, and learners by a Refresh.
func (db *DB) Import(ctx context.Context, from io.Reader) error {
	err := db.writeOnce(ctx, db.entering(lockAlone), func(t *tx) error { // what was read can't be read again
		if _, err := t.exec(lockTables); err != nil {
			return err
		}
		inserts := make(map[*export.Table]*query, len(tables))
		for _, table := range tables {
			found, err := t.finds(table.any)
			switch {
			case err != nil:
				return err
			case found:
				return fmt.Errorf("%s is not empty: %w", table.Name, heed.ErrConflict)
			}
			inserts[table.Table] = table.insert
		}
		if err := export.Read(from, func(row export.Row) error {
			_, err := t.exec(inserts[row.Table], row.Values...)
			return err
		}); err != nil {
			return err
		}
		_, err := t.exec(analyze)
		return err
	})
	if err != nil {
		return fmt.Errorf("sqlstore: import: %w", err)
	}
	return nil
}
