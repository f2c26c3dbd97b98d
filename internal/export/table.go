package export

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/heedhq/heed"
)

// A Table is one that is exported, with what its columns hold. What numbers its rows is left out: their order stays. It is
// immutable.
type Table struct {
	Name    string
	Columns []Column
}

// A Column has a name and a sort: an integer, a float, a blob, a text, or a text that may be null.
type Column struct {
	Name string
	Sort byte // one of ifbtn
}

// The names of the tables.
const (
	Cells     = "cells"
	Tallies   = "tallies"
	IDs       = "ids"
	History   = "history"
	Forgotten = "forgotten"
	Audit     = "audit"
	Outbox    = "outbox"
	Choices   = "choices"
	Stream    = "stream"
	Documents = "documents"
)

// The sorts of documents.
const (
	Heuristic  = "heuristic"
	Trace      = "trace"
	Verdict    = "verdict"
	Pattern    = "pattern"
	Transition = "transition"
	Entry      = "entry"
	Error      = "error"
)

// The spaces of ids.
const (
	IDsOfObservations = iota // and of batches
	IDsOfAudit
	IDsOfEvents
)

// Tables are all of heed's, in the order in which they are exported.
var Tables = []*Table{
	newTable(Cells, "cell:t kind:t scope:t item:t name:t half_life:i by_origin:i restart:i"),
	newTable(Tallies, `cell:t channel:t source:t landmark:i mass:f squares:f reward:f reward_squares:f
		n_positive:i n_negative:i n_neutral:i last_positive:i last_negative:i last_neutral:i
		lost_positive:i lost_negative:i lost_neutral:i lost_source:i`),
	newTable(IDs, "space:i id:t recorded:i traced:i retracted:i"),
	newTable(History, "cell:t id:t happened:i recorded:i source:t observation:t"),
	newTable(Forgotten, "id:t cell:t recorded:i"),
	newTable(Audit, "entry:t"),
	newTable(Outbox, "id:t topic:t happened:t payload:b"),
	newTable(Choices, `id:t learner:t session:t item:t category:t context:t made:i stage:t before:t ended:i choice:t
		result:n result_at:i result_id:t result_by:t`),
	newTable(Stream, "stream:t id:t topic:t happened:t payload:b due:i deliveries:i holder:t"),
	newTable(Documents, "doc:t sort:t id:t class:t moment:i revision:i body:t"),
}

// newTable reads "name:sort" for each column.
func newTable(name, columns string) *Table {
	t := &Table{Name: name}
	for _, c := range strings.Fields(columns) {
		n, sort, _ := strings.Cut(c, ":")
		t.Columns = append(t.Columns, Column{n, sort[0]})
	}
	return t
}

// Values returns pointers to new values of the columns, for a row to be scanned into.
func (t *Table) Values() []any {
	into := make([]any, len(t.Columns))
	for i, c := range t.Columns {
		switch c.Sort {
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
	return into
}

// A Row is one of a table. Its values are those of the columns, in their order: an int64, a float64, a string or a []byte each,
// or nil for null.
type Row struct {
	Table  *Table
	Values []any
}

func (t *Table) row(texts map[string]json.RawMessage) (Row, error) {
	r := Row{t, make([]any, len(t.Columns))}
	for i, c := range t.Columns {
		text, ok := texts[c.Name]
		if !ok {
			return Row{}, &heed.InputError{Field: c.Name + " of " + t.Name, Reason: "is missing"}
		}
		var err error
		if r.Values[i], err = c.read(text); err != nil {
			return Row{}, &heed.InputError{Field: c.Name + " of " + t.Name, Reason: err.Error()}
		}
	}
	return r, nil
}

// read returns what a column's JSON text holds.
func (c Column) read(text json.RawMessage) (any, error) {
	switch c.Sort {
	case 'i':
		n, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			return nil, errors.New("must be an integer of 64 bits")
		}
		return n, nil
	case 'f':
		x, err := strconv.ParseFloat(string(text), 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, errors.New("must be a finite number")
		}
		return x, nil
	}
	if string(text) == "null" {
		if c.Sort == 't' {
			return nil, errors.New("must not be null")
		}
		return nil, nil
	}
	var value string
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	if c.Sort == 'b' {
		return base64.StdEncoding.DecodeString(value)
	}
	return value, nil
}

func (r Row) value(column string) any {
	for i, c := range r.Table.Columns {
		if c.Name == column {
			return r.Values[i]
		}
	}
	return nil
}

// Text returns the text of a column, and "" where it is null.
func (r Row) Text(column string) string {
	text, _ := r.value(column).(string)
	return text
}

// Int returns the integer of a column.
func (r Row) Int(column string) int64 {
	n, _ := r.value(column).(int64)
	return n
}

// Float returns the float of a column.
func (r Row) Float(column string) float64 {
	x, _ := r.value(column).(float64)
	return x
}

// Blob returns the bytes of a column, and nil where it is null.
func (r Row) Blob(column string) []byte {
	bytes, _ := r.value(column).([]byte)
	return bytes
}

// Null reports whether a column is null.
func (r Row) Null(column string) bool { return r.value(column) == nil }
