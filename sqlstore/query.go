package sqlstore

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A query is a statement, in the words of each dialect that has it. Every text is constant, and its placeholders first appear in
// ascending order, as there are drivers that bind them by their first appearance.
type query struct {
	number int
	texts  [dialects]string
}

// queries has all of them, so that they can be prepared, and looked at by a test.
var queries []*query

// either registers a statement that has a text for each dialect.
func either(sqlite, postgres string) *query {
	q := &query{number: len(queries)}
	q.texts[SQLite], q.texts[SQLiteRelaxed], q.texts[Postgres] = sqlite, sqlite, postgres
	queries = append(queries, q)
	return q
}

// both registers a statement that reads alike in all dialects, but for how rows are taken from a JSON array.
func both(text string) *query {
	postgres := among.ReplaceAllString(text, "= ANY (ARRAY(SELECT $1 FROM json_each($2)))") // it then takes an index
	return either(text, strings.ReplaceAll(postgres, "json_each(", "jsonb_array_elements("))
}

// A bulk is a statement of SQLite for any number of rows, whose values are bound. It is a statement for each of some numbers of rows: SQLite
// takes several times as long to take a row from JSON.
type bulk [len(bulkSizes)]*query

var bulkSizes = [...]int{16, 4, 3, 2, 1}

// bound registers a bulk. Between before and after stand the rows of values.
func bound(before string, columns int, after string) (b bulk) {
	for i, size := range bulkSizes {
		var text strings.Builder
		text.WriteString(before)
		for n := range size * columns {
			switch {
			case n == 0:
				text.WriteString("(")
			case n%columns == 0:
				text.WriteString("), (")
			default:
				text.WriteString(", ")
			}
			text.WriteString("?") // drivers look numbered ones up by name, one after the other
		}
		text.WriteString(")" + after)
		b[i] = either(text.String(), "")
	}
	return b
}

// A fewOf is a statement of SQLite for a few keys, whose values are bound: one for each of some numbers of keys.
type fewOf [len(fewSizes)]*query

var fewSizes = [...]int{4, 16}

// few registers a fewOf whose text ends before the keys.
func few(text string) (f fewOf) {
	for i, size := range fewSizes {
		f[i] = either(text+"(?"+strings.Repeat(", ?", size-1)+")", "")
	}
	return f
}

// of returns the statement for keys. The last key may stand there several times.
func (f *fewOf) of(keys []string) (q *query, args []any) {
	i := 0
	for len(keys) > fewSizes[i] {
		i++
	}
	args = make([]any, fewSizes[i])
	for n := range args {
		args[n] = keys[min(n, len(keys)-1)]
	}
	return f[i], args
}

// pieces calls a function with statements that have all rows.
func (b *bulk) pieces(rows [][]any, do func(q *query, args []any) error) error {
	for i, size := range bulkSizes {
		for ; len(rows) >= size; rows = rows[size:] {
			if err := do(b[i], slices.Concat(rows[:size]...)); err != nil {
				return err
			}
		}
	}
	return nil
}

var among = regexp.MustCompile(`IN \(SELECT ([^,()]+|CAST\([^()]+\)) FROM json_each\((\$\d+)\)\)`)

// Statements returns all that heed's stores run on a database of a dialect, beside what [Open] does to make the tables: for those who want to
// look at it, or to have their database explain it. Programs must not rely on it: it changes from version to version.
func Statements(dialect Dialect) ([]string, error) {
	if err := dialect.validate(); err != nil {
		return nil, fmt.Errorf("sqlstore: %w", err)
	}
	var texts []string
	for _, q := range queries {
		if text := q.texts[dialect]; text != "" {
			texts = append(texts, text)
		}
	}
	return texts, nil
}
