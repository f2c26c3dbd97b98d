package main

import (
	"encoding/json"
	"errors"
	"io"
	"iter"
)

// A row is one of a store's, as an export has it.
type row struct {
	Table   string         `json:"table"` // none in the first line and in the last
	Columns map[string]any `json:"row"`
}

// text returns what a column has, where that is a text.
func (r row) text(column string) string {
	text, _ := r.Columns[column].(string)
	return text
}

// number returns what a column has, where that is a number.
func (r row) number(column string) float64 {
	n, _ := r.Columns[column].(float64)
	return n
}

// rows yields all rows of a store, as they are at one moment.
func (s *opened) rows(on *session) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		lines, to := io.Pipe()
		defer lines.Close()
		go func() { to.CloseWithError(s.db.Export(on.ctx, to)) }()
		for decoder := json.NewDecoder(lines); ; {
			var r row
			err := decoder.Decode(&r)
			switch {
			case errors.Is(err, io.EOF):
				return
			case err == nil && r.Table == "":
			case !yield(r, err) || err != nil:
				return
			}
		}
	}
}
