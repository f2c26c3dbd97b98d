// Package adaptertest is for the tests of adapters: it checks that the programs of their pages
// are compiled.
package adaptertest

import (
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// MostWiring is how many lines the wiring of an adapter may have.
const MostWiring = 15

var (
	fence  = regexp.MustCompile("(?ms)^(<!-- wiring -->\n)?```go\n(.*?)^```\n")
	blanks = regexp.MustCompile(`(?m)^\s+`)
)

// A block is Go code of a page.
type block struct {
	code   string
	wiring bool
}

// Page checks the Go code of a page, such as README.md. The working directory is the
// directory of the adapter's module.
//
//   - All code is as gofmt has it.
//   - All of it is part of a test file of the working directory, which is compiled: its lines in
//     their order, one behind the other, without regard to indentation.
//   - The block behind the line <!-- wiring --> has at most [MostWiring] lines. A page must have
//     one.
func Page(t *testing.T, page string) {
	t.Helper()
	text, err := os.ReadFile(page)
	must(t, err)
	files, err := filepath.Glob("*_test.go")
	must(t, err)
	tests := ""
	for _, file := range files {
		code, err := os.ReadFile(file)
		must(t, err)
		tests += "\n" + flat(string(code))
	}
	for _, fault := range faults(blocks(text), tests) {
		t.Errorf("%s: %s", page, fault)
	}
}

func blocks(page []byte) (all []block) {
	for _, m := range fence.FindAllSubmatch(page, -1) {
		all = append(all, block{string(m[2]), len(m[1]) > 0})
	}
	return all
}

// flat is the code without indentation.
func flat(code string) string { return blanks.ReplaceAllString(code, "") }

// faults returns what is wrong with the blocks. tests is the flat code of the tests in the working
// directory.
func faults(all []block, tests string) (found []string) {
	wirings := 0
	for _, b := range all {
		formatted, err := format.Source([]byte(b.code))
		if err != nil || string(formatted) != b.code {
			found = append(found, "is not as gofmt has it:\n"+b.code)
		}
		if !strings.Contains(tests, "\n"+flat(b.code)) {
			found = append(found, "nothing compiles:\n"+b.code)
		}
		if !b.wiring {
			continue
		}
		wirings++
		if strings.Count(b.code, "\n") > MostWiring {
			found = append(found, "the wiring has too many lines:\n"+b.code)
		}
	}
	if wirings != 1 {
		found = append(found, "must have one block behind <!-- wiring -->")
	}
	return found
}
