package importtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// oneConcept lists the types that several packages export under one name, as they are the same
// concept in each.
var oneConcept = map[string]string{
	"Answer":    "what was answered to an event",
	"Arm":       "one of the ways that are chosen among; in loop with what it takes to go it",
	"Choice":    "an arm that was chosen",
	"Config":    "what a package is configured with",
	"Event":     "something that happened; in loop one that wants an answer",
	"Fire":      "an answer that was shown, by a heuristic or the model",
	"Outcome":   "what came of a thing that was tried",
	"Plan":      "what is known before the work begins; in loop all of it",
	"Query":     "what is asked for",
	"Reply":     "what was answered; in loop by a model that the framework asked",
	"Reset":     "an order to forget what was learned, with actor and reason",
	"Result":    "what a call came to",
	"Standing":  "how a thing stands: its belief, and what that came of",
	"Statement": "one fact about the quality of an answer",
	"Store":     "store.Store, and what implements it",
	"Strategy":  "the strategies of three documents, each its package's way of working",
}

// A reader who knows a type knows all types of its name.
func TestATypesNameHasOneMeaning(t *testing.T) {
	pkgs, err := load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	owners := typesOf(pkgs)
	for _, name := range slices.Sorted(maps.Keys(owners)) {
		if in := owners[name]; len(in) > 1 && oneConcept[name] == "" {
			t.Errorf("%s is a type in %s: rename one, or say in oneConcept what they have in common",
				name, strings.Join(in, ", "))
		}
	}
	for name := range oneConcept {
		if len(owners[name]) < 2 {
			t.Errorf("%s is in oneConcept, and in less than two packages", name)
		}
	}
}

// typesOf returns in which importable packages each exported type is declared. Conformance suites
// do not count.
func typesOf(pkgs []pkg) map[string][]string {
	owners := make(map[string][]string)
	for _, p := range pkgs {
		top, _, _ := strings.Cut(p.dir, "/")
		if strings.HasSuffix(p.dir, "test") || top == "examples" || top == "cmd" ||
			slices.Contains(strings.Split(p.dir, "/"), "internal") {
			continue
		}
		for _, file := range slices.Sorted(maps.Keys(p.files)) {
			for _, decl := range p.files[file].Decls {
				if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.TYPE {
					for _, spec := range d.Specs {
						one := spec.(*ast.TypeSpec)
						if name := one.Name; name.IsExported() && !one.Assign.IsValid() { // no alias
							owners[name.Name] = append(owners[name.Name], p.dir)
						}
					}
				}
			}
		}
	}
	return owners
}

func TestTypesOf(t *testing.T) {
	pkgs, err := load(source(map[string]string{
		"a/a.go":             "package a\n\ntype One struct{}\ntype own struct{}\n\nfunc Two() {}\n",
		"b/b.go":             "package b\n\ntype (\n\tOne int\n\tThree int\n)\n",
		"b/btest/b.go":       "package btest\n\ntype One int\n",
		"internal/c/c.go":    "package c\n\ntype One int\n",
		"examples/e/main.go": "package main\n\ntype One int\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(typesOf(pkgs)), "map[One:[a b] Three:[b]]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The design documents come from products whose names mean nothing to heed's hosts. docs/specs.md
// says what was called how.
func TestNoNameOfAnotherProduct(t *testing.T) {
	pkgs, err := load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pkgs {
		for file, syntax := range p.files {
			ast.Inspect(syntax, func(n ast.Node) bool {
				var text string
				switch n := n.(type) {
				case *ast.BasicLit:
					text = n.Value
				case *ast.Ident:
					text = n.Name
				case *ast.Comment:
					text = n.Text
				}
				for _, product := range []string{"groove", "asdlc"} {
					if strings.Contains(strings.ToLower(text), product) {
						t.Errorf("%s/%s says %q", p.dir, file, text)
					}
				}
				return true
			})
		}
	}
}
