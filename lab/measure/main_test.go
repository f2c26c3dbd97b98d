package measure

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func treeOf(t *testing.T, files map[string]string) *tree {
	root := make(fstest.MapFS)
	for name, text := range files {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	read, err := read(root)
	require.NoError(t, err)
	return read
}

const strange = `// Package strange is odd.
package strange

import (
	other "github.com/heedhq/heed/loop"
)

/* A comment
of two lines. */
type Config struct { // with a comment
	A, B int
	c    int
	Of   []*Part
	By   map[string]other.Config
	hid  Hidden
}

type Part struct{ X, Y int; Whole *Config }

type Hidden struct{ No int }

type Interface interface {
	One()
	two()
}

type hidden struct{ X int }

func (hidden) Method() {}

type Generic[K, V any] struct{ Field K }

func (*Generic[K, V]) Method() {}
func (Generic[K, V]) own()    {}

const X, y = 1, 2

var Z = func() {}

func Func() {}
func own()  {}
`

func TestFigures(t *testing.T) {
	one := "package x\n\n// a comment\nfunc One() {}\n" // 4 lines, 2 of code
	wide := "// " + strings.Repeat("x", 98) + "\n"
	got := treeOf(t, map[string]string{
		"strange/strange.go":                 strange,
		"strange/strange_test.go":            "package strange\n\n" + wide + "func Exported() {}\n",
		"strange/testdata/x.go":              one,
		"strange/strangetest/suite.go":       one,
		"strange/internal/inner/inner.go":    one,
		"loop/loop.go":                       "package loop\n\ntype Config struct{ P, Q int }\n",
		"internal/own/own.go":                one,
		"internal/view/view.go":              one,
		"sqlstore/store.go":                  one,
		"sqlstore/enginetest/server/main.go": one,
		"stream/nats.go":                     one,
		"adapter/mcp/mcp.go":                 one,
		"adapter/nats/nats.go":               one,
		"cmd/tool/main.go":                   "package main\n\nfunc Main() {}\n",
		"web/web.go":                         one,
		"lab/lab.go":                         one + "// https://example.org/" + wide,
		"tools/tools.go":                     one,
		".ci/tool/main.go":                   one,
		"docs/page.md":                       wide,
	}).figures()
	lines := strings.Count(strange, "\n")
	assert.Equal(t, map[string]int{
		"library: code lines":                     lines - 15 + 2 + 2 + 2,
		"library: code for 100 lines of comments": 100 * (lines - 15 + 2 + 2 + 2) / 5,
		"library: lines":                          lines + 4 + 3 + 4,
		"sqlstore: lines":                         4,
		"sqlstore: code lines":                    2,
		"suites: lines":                           8,
		"command, pages, API, MCP: lines":         4 + 4 + 3 + 4,
		"adapters, streams: lines":                8,
		"lab: lines":                              5,
		"others: lines":                           4,
		"all: lines":                              lines + 4 + 3 + 4 + 4 + 8 + 15 + 8 + 5 + 4,
		// Config, Part, Hidden, Interface, One, Generic, its Method, X, Z and Func; Config of loop; One
		// of sqlstore and web.
		"library: exported names":       10 + 1 + 2,
		"library: settings":             4 + 3 + 2,
		"loop.Config: fields":           2,
		"loop.Config: settings reached": 2,
		"internal: packages":            2,
		"functions over 60 lines":       0,
		"lines over 100 columns":        1,
	}, got)
}

func TestLongFunctions(t *testing.T) {
	for lines, want := range map[int][]string{60: nil, 61: {"a/a.go: f has 61 lines"}} {
		body := "func f() {\n" + strings.Repeat("\t_ = 0\n", lines-2) + "}\n"
		got := treeOf(t, map[string]string{"a/a.go": "package a\n\n" + body})
		assert.Equal(t, want, got.long)
		assert.Equal(t, len(want), got.figures()["functions over 60 lines"])
	}
	_, err := read(fstest.MapFS{"a/a.go": {Data: []byte("no Go")}})
	assert.Error(t, err)
}

func TestTooWide(t *testing.T) {
	for line, want := range map[string]int{
		strings.Repeat("x", 100):                      0,
		strings.Repeat("x", 101):                      1,
		strings.Repeat("ß", 100):                      0, // runes count, not bytes
		"\t" + strings.Repeat("x", 98):                0,
		"\t" + strings.Repeat("x", 99):                1, // a tab is two columns
		"//go:" + strings.Repeat("x", 99):             0,
		"// | " + strings.Repeat("x", 99):             0, // the row of a table
		"x := 1 " + strings.Repeat("y", 99):           1,
		"x := `\n" + strings.Repeat("y", 101) + "\n`": 0, // in a raw string
	} {
		assert.Equal(t, want, tooWide([]byte(line+"\n")), line)
	}
}

func TestReportHoldsFiguresAgainstTheirLimits(t *testing.T) {
	for _, b := range budgets {
		for _, n := range []int{b.most, b.most + 1, b.limit, b.limit + 1} {
			want := "  to go"
			switch {
			case n > b.limit:
				want = "allowed now"
			case n <= b.most:
				want = ""
			}
			var out strings.Builder
			assert.Equal(t, n <= b.limit, report(&out, map[string]int{b.name: n}), b.name)
			for _, line := range strings.Split(out.String(), "\n") {
				if !strings.HasPrefix(line, b.name+" ") {
					assert.NotContains(t, line, "go", "another row than %s", b.name)
				} else if want == "" {
					assert.NotContains(t, line, "  to go")
				} else {
					assert.Contains(t, line, want)
				}
			}
		}
	}
}
