package sqlstore

import "strings"

// A query is a statement, in the words of each dialect. Every text is constant, and its placeholders first appear in
// ascending order, as there are drivers that bind them by their first appearance.
type query struct {
	number int
	texts  [dialects]string
}

// queries has all of them, so that they can be prepared, and looked at by a test.
var queries []*query

// either registers a statement of which each dialect has a text of its own.
func either(sqlite, postgres string) *query {
	q := &query{number: len(queries)}
	q.texts[SQLite], q.texts[SQLiteRelaxed], q.texts[Postgres] = sqlite, sqlite, postgres
	queries = append(queries, q)
	return q
}

// both registers a statement that reads alike in all dialects, but for how rows are taken from a JSON array.
func both(text string) *query {
	return either(text, strings.ReplaceAll(text, "json_each(", "jsonb_array_elements("))
}
