package measure

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func tree(files map[string]string) fstest.MapFS {
	root := make(fstest.MapFS)
	for name, text := range files {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

const library = `package library

type Config struct {
	A, B int
	c    int
}

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

func TestMeasureCountsNamesFieldsAndLines(t *testing.T) {
	counts, long, err := measure(tree(map[string]string{
		"library/library.go":              library,
		"library/library_test.go":         "package library\n\nfunc Exported() {}\n",
		"library/testdata/x.go":           "package x\n\nfunc Exported() {}\n",
		"library/librarytest/suite.go":    "package librarytest\n\nfunc Run() {}\n",
		"library/internal/inner/inner.go": "package inner\n\nfunc Inner() {}\n",
		"internal/own/own.go":             "package own\n\nfunc Own() {}\n",
		"cmd/tool/main.go":                "package main\n\nfunc Main() {}\n",
		".ci/tool/main.go":                "package main\n\nfunc main() {}\n",
		"docs/page.md":                    "func Page() {}\n",
	}), 60)
	require.NoError(t, err)
	assert.Empty(t, long)
	assert.Equal(t, []count{
		{dir: "cmd/tool", names: 1, lines: 3},
		{dir: "internal/own", names: 1, lines: 3},
		// Config, Interface, One, Generic, its Method, X, Z and Func.
		{dir: "library", importable: true, names: 8, fields: 2, lines: strings.Count(library, "\n")},
		{dir: "library/internal/inner", names: 1, lines: 3},
		{dir: "library/librarytest", names: 1, lines: 3},
	}, counts)
}

func TestMeasureFindsLongFunctions(t *testing.T) {
	body := func(lines int) string { return "func f() {\n" + strings.Repeat("\t_ = 0\n", lines-2) + "}\n" }
	for lines, want := range map[int][]function{60: nil, 61: {{"a/a.go", "f", 61}}} {
		_, long, err := measure(tree(map[string]string{"a/a.go": "package a\n\n" + body(lines)}), 60)
		require.NoError(t, err)
		assert.Equal(t, want, long)
	}
	_, _, err := measure(tree(map[string]string{"a/a.go": "no Go"}), 60)
	assert.Error(t, err)
}

func TestReportHoldsTheCountsAgainstTheAims(t *testing.T) {
	counts := []count{
		{dir: "a", importable: true, names: 3, fields: 4, lines: 10},
		{dir: "b", importable: true, names: 5, lines: 20},
		{dir: "internal/c", names: 100, lines: 30},
		{dir: "a/atest", names: 100, lines: 1000},
		{dir: "adapter/x", importable: true, names: 4, fields: 6, lines: 1000}, // above a and b
		{dir: "loop", importable: true, names: 4, fields: 6, lines: 1000},      // likewise
	}
	met := limits{names: 8, namesEach: 5, lines: 60, function: 60}
	var out strings.Builder
	assert.True(t, report(&out, counts, nil, met), out.String())
	assert.NotContains(t, out.String(), "more than the aim")
	assert.NotContains(t, out.String(), "internal/c")
	for name, test := range map[string]struct {
		aims limits
		long []function
		line string
	}{
		"names":     {limits{7, 5, 60, 60}, nil, "all but those above               8      4  more than the aim\n"},
		"a package": {limits{8, 4, 60, 60}, nil, "b                                 5      0     20  more than the aim\n"},
		"lines":     {limits{8, 5, 59, 60}, nil, "all Go that is no test                         60  more than the aim\n"},
		"functions": {met, []function{{"a/a.go", "f", 61}}, "a/a.go: f has 61 lines, more than the aim\n"},
	} {
		var out strings.Builder
		assert.Equal(t, name == "lines", report(&out, counts, test.long, test.aims), name)
		assert.Contains(t, out.String(), test.line, name)
		assert.Equal(t, 1, strings.Count(out.String(), "more than the aim"), name)
	}
}
