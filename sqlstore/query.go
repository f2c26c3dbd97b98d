package sqlstore

import (
	"fmt"
	"regexp"
	"strings"
)

// A query is a statement, in the words of each dialect that has it. Every text is constant, and its
// placeholders first appear in ascending order, because some drivers bind them by their first
// appearance. They are constants, so that they can be prepared once, explained by a test for each
// engine, and can't be made from what a caller gives.
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

// both registers a statement that reads alike in all dialects, except for how rows are taken from a
// JSON array. Conditions of the form "x IN (SELECT … FROM json_each(…))" become "= ANY (ARRAY(…))",
// because PostgreSQL guesses that json_each returns a hundred rows, and then reads a large table as
// a whole.
func both(text string) *query {
	// it then takes an index
	postgres := among.ReplaceAllString(text, "= ANY (ARRAY(SELECT $1 FROM json_each($2)))")
	return either(text, strings.ReplaceAll(postgres, "json_each(", "jsonb_array_elements("))
}

// A bulk is a statement for any number of rows. PostgreSQL takes them as JSON, whose numbers it
// reads exactly. SQLite would round numbers that it reads from text, and takes several times as
// long for a row of JSON: there the values are bound, by a statement for each of some numbers of
// rows.
type bulk struct {
	bound [len(bulkSizes)]*query
	json  *query
}

// bulkSizes are the numbers of rows for which there is a statement. A bulk of any size is made of
// them.
var bulkSizes = [...]int{32, 16, 8, 7, 6, 5, 4, 3, 2, 1}

// columnTypes are the letters for the types of columns, with how PostgreSQL reads them.
var columnTypes = map[rune]string{
	't': `value->>%d`, 'i': `CAST(value->>%d AS BIGINT)`, 'f': `CAST(value->>%d AS DOUBLE PRECISION)`,
}

// inserting registers a bulk. The rows are put between into and after. types has a letter for each
// column: a text, a whole number or a fraction. For PostgreSQL the rows are a SELECT from JSON, and
// for SQLite VALUES with a placeholder for each value.
func inserting(into, types, after string) *bulk {
	b := &bulk{}
	row := `(?` + strings.Repeat(`, ?`, len(types)-1) + `)` // drivers look numbered ones up by name
	for i, size := range bulkSizes {
		b.bound[i] = either(into+` VALUES `+row+strings.Repeat(`, `+row, size-1)+after, ``)
	}
	var columns []string
	for i, letter := range types {
		columns = append(columns, fmt.Sprintf(columnTypes[letter], i))
	}
	b.json = either(``, into+` SELECT `+strings.Join(columns, `, `)+`
		FROM jsonb_array_elements($1)`+after)
	return b
}

// among finds the conditions that PostgreSQL needs as ANY of an array.
var among = regexp.MustCompile(`IN \(SELECT ([^,()]+|CAST\([^()]+\)) FROM json_each\((\$\d+)\)\)`)

// Statements returns all that heed's stores run on a database of a dialect, next to what [Open]
// does to make the tables: for those who want to look at it, or to have their database explain it.
// Programs must not rely on it: it changes from version to version.
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
