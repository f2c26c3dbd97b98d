package sqlstore

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/heedhq/heed"
)

// A table is one that is exported, with what its columns hold. What numbers its rows is left out: their order stays.
type table struct {
	name    string
	columns []field
	list    *query
	insert  *query
	any     *query
}

// A field has a name and a sort: text, integer, float, blob, or a text that may be missing.
type field struct {
	name string
	sort byte
}

// newTable reads "name:sort" for each column.
func newTable(name, order, columns string) table {
	t := table{name: name}
	var names, places []string
	for _, c := range strings.Fields(columns) {
		n, sort, _ := strings.Cut(c, ":")
		t.columns = append(t.columns, field{n, sort[0]})
		names = append(names, n)
		places = append(places, "$"+strconv.Itoa(len(names)))
	}
	all := strings.Join(names, ", ")
	t.list = both(`SELECT ` + all + ` FROM heed_` + name + ` ORDER BY ` + order)
	t.insert = both(`INSERT INTO heed_` + name + ` (` + all + `) VALUES (` + strings.Join(places, ", ") + `)`)
	t.any = both(`SELECT 1 FROM heed_` + name + ` LIMIT 1`)
	return t
}

// tables are all of heed's, in the order in which they are exported.
var tables = []table{
	newTable("cells", "cell", "cell:t kind:t scope:t item:t name:t half_life:i by_origin:i restart:i"),
	newTable("tallies", "cell, channel, source", `cell:t channel:t source:t landmark:i mass:f squares:f reward:f reward_squares:f
		n_positive:i n_negative:i n_neutral:i last_positive:i last_negative:i last_neutral:i
		lost_positive:i lost_negative:i lost_neutral:i lost_source:i`),
	newTable("ids", "space, id", "space:i id:t recorded:i traced:i retracted:i"),
	newTable("history", "seq", "cell:t id:t happened:i recorded:i source:t observation:t"),
	newTable("forgotten", "id, cell", "id:t cell:t recorded:i"),
	newTable("audit", "seq", "entry:t"),
	newTable("outbox", "seq", "id:t topic:t happened:t payload:b"),
	newTable("choices", "id", `id:t learner:t session:t item:t category:t context:t made:i stage:t before:t ended:i choice:t
		result:n result_at:i result_id:t result_by:t`),
	newTable("stream", "seq", "stream:t id:t topic:t happened:t payload:b due:i deliveries:i holder:t"),
	newTable("documents", "seq", "doc:t sort:t id:t class:t moment:i revision:i body:t"),
}

// A line is one of an export: the first says of what version it is, the last how many rows there were, each other is a row.
type line struct {
	Version int                        `json:"heed,omitempty"`
	Rows    *int                       `json:"rows,omitempty"`
	Table   string                     `json:"table,omitempty"`
	Row     map[string]json.RawMessage `json:"row,omitempty"`
}

// Export writes all that heed's tables hold as JSON lines, as it is at one moment. What one engine exports, every other
// imports: see [DB.Import].
func (db *DB) Export(ctx context.Context, to io.Writer) error {
	out := bufio.NewWriter(to)
	err := db.snapshot(ctx, func(t *tx) error {
		encoder := json.NewEncoder(out)
		if err := encoder.Encode(line{Version: len(migrations)}); err != nil {
			return err
		}
		rows := 0
		for _, table := range tables {
			err := t.each(table.list, nil, func(scan func(...any) error) error {
				row, err := table.scan(scan)
				if err != nil {
					return err
				}
				rows++
				return encoder.Encode(line{Table: table.name, Row: row})
			})
			if err != nil {
				return fmt.Errorf("%s: %w", table.name, err)
			}
		}
		return encoder.Encode(line{Rows: &rows})
	})
	if err = errors.Join(err, out.Flush()); err != nil {
		return fmt.Errorf("sqlstore: export: %w", err)
	}
	return nil
}

// snapshot calls a function that reads, and sees one moment of the database.
func (db *DB) snapshot(ctx context.Context, do func(*tx) error) error {
	if db.dialect.embedded() {
		return db.read(ctx, do)
	}
	sqlTx, err := db.handle.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	_, err = db.finish(ctx, sqlTx, err, nil, do)
	return err
}

func (t *table) scan(scan func(...any) error) (map[string]json.RawMessage, error) {
	into := make([]any, len(t.columns))
	for i, c := range t.columns {
		switch c.sort {
		case 'i':
			into[i] = new(int64)
		case 'f':
			into[i] = new(float64)
		case 'b':
			into[i] = new([]byte)
		case 'n':
			into[i] = new(*string)
		default:
			into[i] = new(string)
		}
	}
	if err := scan(into...); err != nil {
		return nil, err
	}
	row := make(map[string]json.RawMessage, len(into))
	for i, c := range t.columns {
		text, err := json.Marshal(into[i])
		if err != nil {
			return nil, err
		}
		row[c.name] = text
	}
	return row, nil
}

// Import reads what [DB.Export] has written into tables that are empty: all of it, or nothing and an error. Tables that hold
// something are [heed.ErrConflict]; lines that are not of an export, of a newer one, or of one that was cut off, are a
// [*heed.InputError].
func (db *DB) Import(ctx context.Context, from io.Reader) error {
	err := db.write(ctx, lockAlone, func(t *tx) error {
		for _, table := range tables {
			found, err := t.finds(table.any)
			switch {
			case err != nil:
				return err
			case found:
				return fmt.Errorf("%s is not empty: %w", table.name, heed.ErrConflict)
			}
		}
		rows, ended := 0, false
		err := readLines(from, func(number int, l line) error {
			switch {
			case number == 1 && (l.Version < 1 || l.Version > len(migrations)):
				return fmt.Errorf("version %d is not one that this program knows", l.Version)
			case number == 1:
				return nil
			case ended:
				return errors.New("comes after the end")
			case l.Rows != nil:
				ended = true
				if *l.Rows != rows {
					return fmt.Errorf("there were %d rows, and not %d", rows, *l.Rows)
				}
				return nil
			}
			rows++
			for i := range tables {
				if tables[i].name == l.Table {
					return tables[i].add(t, l.Row)
				}
			}
			return fmt.Errorf("there is no table %q", l.Table)
		})
		if err == nil && !ended {
			err = &heed.InputError{Field: "export", Reason: "has no last line: it was cut off"}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("sqlstore: import: %w", err)
	}
	return nil
}

// readLines calls a function with each line. What it returns of its own is a fault of the line.
func readLines(from io.Reader, do func(number int, l line) error) error {
	in := bufio.NewReader(from)
	for number := 1; ; number++ {
		text, failure := in.ReadBytes('\n')
		last := errors.Is(failure, io.EOF)
		if failure != nil && !last {
			return failure
		}
		if len(bytes.TrimSpace(text)) > 0 || number == 1 {
			var l line
			err := json.Unmarshal(text, &l)
			if err == nil {
				err = do(number, l)
			}
			var failed *rowError
			switch {
			case errors.As(err, &failed):
				return fmt.Errorf("line %d: %w", number, failed.error)
			case err != nil:
				return &heed.InputError{Field: fmt.Sprintf("line %d", number), Reason: err.Error()}
			}
		}
		if last {
			return nil
		}
	}
}

// A rowError is a failure of the database, and not of what was read.
type rowError struct{ error }

func (t *table) add(tx *tx, row map[string]json.RawMessage) error {
	args := make([]any, len(t.columns))
	for i, c := range t.columns {
		text, ok := row[c.name]
		if !ok {
			return fmt.Errorf("%s has no %s", t.name, c.name)
		}
		var err error
		if args[i], err = c.read(text); err != nil {
			return fmt.Errorf("%s of %s: %w", c.name, t.name, err)
		}
	}
	if _, err := tx.exec(t.insert, args...); err != nil {
		return &rowError{err}
	}
	return nil
}

// read returns what a column's JSON text holds.
func (c field) read(text json.RawMessage) (any, error) {
	switch c.sort {
	case 'i':
		return strconv.ParseInt(string(text), 10, 64)
	case 'f':
		x, err := strconv.ParseFloat(string(text), 64)
		if err == nil && (math.IsNaN(x) || math.IsInf(x, 0)) {
			err = errors.New("must be finite")
		}
		return x, err
	}
	if string(text) == "null" {
		if c.sort == 't' {
			return nil, errors.New("must not be null")
		}
		return nil, nil
	}
	var value string
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	if c.sort == 'b' {
		return base64.StdEncoding.DecodeString(value)
	}
	return value, nil
}
