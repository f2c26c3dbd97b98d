// Package adaptertest is for the tests of adapters: it checks that the programs of their pages
// do what the pages show.
package adaptertest

import (
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// MostWiring is how many lines the wiring of an adapter may have.
const MostWiring = 15

var (
	fence = regexp.MustCompile("(?ms)^(<!-- wiring -->\n)?```go\n(.*?)^```\n" +
		"(?:[^`]*?^```text\n(.*?)^```\n)?")
	blanks = regexp.MustCompile(`(?m)^\s+`)
)

// A block is Go code of a page.
type block struct {
	code   string
	wiring bool
	output string // its output according to the page
}

// Page checks the Go code of a page, such as README.md. The working directory is the
// directory of the adapter's module.
//
//   - All code is as gofmt has it.
//   - A block that begins with "package main" is a program. It is built with the adapter's module
//     and run, and must print the block of text behind it.
//   - Any other block is part of a program, or of a test file of the working directory, which is
//     compiled: its lines in their order, one behind the other, without regard to indentation.
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
	all := blocks(text)
	for _, fault := range faults(all, tests) {
		t.Errorf("%s: %s", page, fault)
	}
	for _, b := range all {
		if b.program() {
			run(t, b)
		}
	}
}

func blocks(page []byte) (all []block) {
	for _, m := range fence.FindAllSubmatch(page, -1) {
		all = append(all, block{code: string(m[2]), wiring: len(m[1]) > 0, output: string(m[3])})
	}
	return all
}

func (b *block) program() bool { return strings.HasPrefix(b.code, "package main\n") }

// flat is the code without indentation.
func flat(code string) string { return blanks.ReplaceAllString(code, "") }

// faults returns what is wrong with the blocks. tests is the flat code of the tests in the working
// directory.
func faults(all []block, tests string) (found []string) {
	compiled, wirings := tests, 0
	for _, b := range all {
		if b.program() {
			compiled += "\n" + flat(b.code)
		}
	}
	for _, b := range all {
		if formatted, err := format.Source([]byte(b.code)); err != nil || string(formatted) != b.code {
			found = append(found, "is not as gofmt has it:\n"+b.code)
		}
		if !strings.Contains(compiled, "\n"+flat(b.code)) {
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

// run builds and runs a program, with the module of the working directory.
func run(t *testing.T, b block) {
	t.Helper()
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	must(t, os.WriteFile(source, []byte(b.code), 0o600))
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, source)
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	command := exec.Command(program)
	command.Dir = dir
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if string(output) != b.output {
		t.Errorf("the program prints\n%sand not\n%s", output, b.output)
	}
}
