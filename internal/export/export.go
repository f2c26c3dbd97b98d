// Package export has the format in which a database of heed is exported, as JSON lines: the first says of what version it is,
// each other is a row of a table, and the last says how many rows there were. Package sqlstore writes and reads it, and
// memstore reads it.
package export

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/heedhq/heed"
)

// Version is that of the tables, and of an export of them. Exports of earlier versions are read too.
const Version = 3

// A line is one of an export.
type line struct {
	Version int                        `json:"heed,omitempty"`
	Rows    *int                       `json:"rows,omitempty"`
	Table   string                     `json:"table,omitempty"`
	Row     map[string]json.RawMessage `json:"row,omitempty"`
}

// A Writer writes an export. It must not be used concurrently.
type Writer struct {
	out     *bufio.Writer
	encoder *json.Encoder
	rows    int
}

// NewWriter returns a writer that has written the first line.
func NewWriter(to io.Writer) *Writer {
	out := bufio.NewWriter(to)
	w := &Writer{out: out, encoder: json.NewEncoder(out)}
	_ = w.encoder.Encode(line{Version: Version}) // what fails here, fails again in all that follows
	return w
}

// Row writes a row of a table: pointers to the values of its columns, as [Table.Values] makes them.
func (w *Writer) Row(t *Table, values []any) error {
	row := make(map[string]json.RawMessage, len(values))
	for i, c := range t.Columns {
		text, err := json.Marshal(values[i])
		if err != nil {
			return err
		}
		row[c.Name] = text
	}
	w.rows++
	return w.encoder.Encode(line{Table: t.Name, Row: row})
}

// End writes the last line.
func (w *Writer) End() error { return w.encoder.Encode(line{Rows: &w.rows}) }

// Flush writes what is buffered.
func (w *Writer) Flush() error { return w.out.Flush() }

// Read calls a function with each row of an export, in order. What is not a line of an export, one of a newer version, and
// the missing end of one that was cut off, is a [*heed.InputError] that names the line. So is a fault of a row that the
// function returns as one; any other error of it is passed on.
func Read(from io.Reader, do func(Row) error) error {
	r := reader{do: do}
	in := bufio.NewReader(from)
	for number := 1; ; number++ {
		text, failure := in.ReadBytes('\n')
		last := errors.Is(failure, io.EOF)
		if failure != nil && !last {
			return failure
		}
		if len(bytes.TrimSpace(text)) > 0 || number == 1 {
			if err := r.line(number, text); err != nil {
				return at(number, err)
			}
		}
		switch {
		case last && !r.ended:
			return &heed.InputError{Field: "export", Reason: fmt.Sprintf("has no last line: it was cut off after line %d", r.last)}
		case last:
			return nil
		}
	}
}

// at names the line of an error.
func at(number int, err error) error {
	if fault := (*heed.InputError)(nil); errors.As(err, &fault) {
		return &heed.InputError{Field: fmt.Sprintf("line %d", number), Reason: err.Error()}
	}
	return fmt.Errorf("line %d: %w", number, err)
}

// A reader is on its way through an export.
type reader struct {
	do    func(Row) error
	rows  int
	last  int // the number of the last line that was not empty
	ended bool
}

func (r *reader) line(number int, text []byte) error {
	r.last = number
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return &heed.InputError{Field: "JSON", Reason: err.Error()}
	}
	switch {
	case number == 1 && (l.Version < 1 || l.Version > Version):
		return &heed.InputError{Field: "heed", Reason: fmt.Sprintf("version %d is not one that this program knows", l.Version)}
	case number == 1:
		return nil
	case r.ended:
		return &heed.InputError{Field: "line", Reason: "comes after the end"}
	case l.Rows != nil:
		r.ended = true
		if *l.Rows != r.rows {
			return &heed.InputError{Field: "rows", Reason: fmt.Sprintf("there were %d, and not %d", r.rows, *l.Rows)}
		}
		return nil
	}
	r.rows++
	row, err := l.row()
	if err != nil {
		return err
	}
	return r.do(row)
}

// row reads the values of a line.
func (l *line) row() (Row, error) {
	for _, t := range Tables {
		if t.Name == l.Table {
			return t.row(l.Row)
		}
	}
	return Row{}, &heed.InputError{Field: "table", Reason: fmt.Sprintf("there is no %q", l.Table)}
}
