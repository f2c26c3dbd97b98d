package sqlstore_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/sqlstore"
)

var dialects = []sqlstore.Dialect{sqlstore.SQLite, sqlstore.SQLiteRelaxed, sqlstore.Postgres}

var placeholder = regexp.MustCompile(`\$\d+`)

// ascending reports whether the placeholders of a statement are numbered by their first appearance,
// from 1 on. Some drivers bind them so, whatever their numbers say.
func ascending(statement string) bool {
	highest := 0
	for _, found := range placeholder.FindAllString(statement, -1) {
		n, _ := strconv.Atoi(found[1:])
		if n > highest+1 || n < 1 {
			return false
		}
		highest = max(highest, n)
	}
	return true
}

func TestStatements(t *testing.T) {
	for _, dialect := range dialects {
		statements, err := sqlstore.Statements(dialect)
		require.NoError(t, err)
		require.Greater(t, len(statements), 40)
		for _, s := range statements {
			assert.True(t, ascending(s), "%v: %s", dialect, s)
			unnumbered := strings.Contains(s, "?")
			assert.False(t, unnumbered && (dialect == sqlstore.Postgres || placeholder.MatchString(s)),
				"%v: %s", dialect, s)
		}
	}
	assert.False(t, ascending("a > $2 AND k = $1"), "what this test is to find")
	assert.False(t, ascending("a > $1 AND k = $3"))
	assert.True(t, ascending("a > $1 AND k = $2 AND b = $1"))
	_, err := sqlstore.Statements(0)
	assert.Error(t, err)
}

// Statements are handed to the database in four files alone, where they come from the registry,
// from an embedded file, or stand there as they are.
func TestNoStatementIsMadeOfData(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	run := []string{"ExecContext", "QueryContext", "QueryRowContext", "PrepareContext", "Exec",
		"Query", "QueryRow", "Prepare"}
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if s, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains(run, s.Sel.Name) {
				found++
				assert.Contains(t, []string{"db.go", "tables.go", "files.go", "check.go"}, name,
					"%s calls %s", name, s.Sel.Name)
				for _, arg := range call.Args {
					_, built := arg.(*ast.BinaryExpr)
					assert.False(t, built, "%s: a statement is put together where it is run", name)
				}
			}
			return true
		})
	}
	assert.Greater(t, found, 5)
}

// Both dialects have the same tables, under names that are heed's.
func TestSchemas(t *testing.T) {
	made := make(map[sqlstore.Dialect][]string)
	for _, dialect := range []sqlstore.Dialect{sqlstore.SQLite, sqlstore.Postgres} {
		files, err := sqlstore.Schema(dialect)
		require.NoError(t, err)
		names, err := fs.Glob(files, "*.sql")
		require.NoError(t, err)
		require.NotEmpty(t, names)
		for _, name := range names {
			text, err := fs.ReadFile(files, name)
			require.NoError(t, err)
			for _, one := range regexp.MustCompile(`CREATE (TABLE|INDEX|SEQUENCE) (\w+)`).FindAllStringSubmatch(string(text), -1) {
				assert.Regexp(t, "^heed_", one[2])
				if one[1] == "TABLE" {
					made[dialect] = append(made[dialect], one[2])
				}
			}
		}
	}
	assert.Equal(t, made[sqlstore.SQLite], made[sqlstore.Postgres])
}
