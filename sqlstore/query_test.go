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

// ascending reports whether the placeholders of a statement are numbered by their first appearance, from 1 on. Some drivers
// bind them so, whatever their numbers say.
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
			assert.NotContains(t, s, "?")
		}
	}
	assert.False(t, ascending("a > $2 AND k = $1"), "what this test is to find")
	assert.False(t, ascending("a > $1 AND k = $3"))
	assert.True(t, ascending("a > $1 AND k = $2 AND b = $1"))
	_, err := sqlstore.Statements(0)
	assert.Error(t, err)
}

// TestNoStatementIsMadeOfData: statements are handed to the database in four files alone, where they come from the registry,
// from an embedded file, or stand there as they are.
func TestNoStatementIsMadeOfData(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	run := []string{"ExecContext", "QueryContext", "QueryRowContext", "PrepareContext", "Exec", "Query", "QueryRow", "Prepare"}
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
				assert.Contains(t, []string{"db.go", "migrate.go", "tables.go", "files.go"}, name, "%s calls %s", name, s.Sel.Name)
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

// TestSchemas: the tables are the same in both dialects, but for the names of types.
func TestSchemas(t *testing.T) {
	sqlite, err := sqlstore.Schema(sqlstore.SQLite)
	require.NoError(t, err)
	postgres, err := sqlstore.Schema(sqlstore.Postgres)
	require.NoError(t, err)
	names, err := fs.Glob(sqlite, "*.sql")
	require.NoError(t, err)
	others, err := fs.Glob(postgres, "*.sql")
	require.NoError(t, err)
	require.Equal(t, names, others)
	words := strings.NewReplacer(
		") STRICT, WITHOUT ROWID;", ");", ") STRICT;", ");",
		" INTEGER PRIMARY KEY AUTOINCREMENT", " BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
		" INTEGER", " BIGINT", " REAL", " DOUBLE PRECISION", " BLOB", " BYTEA", " TEXT", ` TEXT COLLATE "C"`,
	)
	for _, name := range names {
		from, err := fs.ReadFile(sqlite, name)
		require.NoError(t, err)
		to, err := fs.ReadFile(postgres, name)
		require.NoError(t, err)
		assert.Equal(t, words.Replace(string(from)), string(to), name)
		for _, made := range regexp.MustCompile(`CREATE (TABLE|INDEX) (\w+)`).FindAllStringSubmatch(string(to), -1) {
			assert.Regexp(t, "^heed_", made[2])
		}
	}
	_, err = sqlstore.Schema(99)
	assert.Error(t, err)
}
