//go:build !race

package heed_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// specified are the packages whose names docs/specs.md has.
var specified = []string{
	".", "answer", "decision", "evidence", "feedback", "learning", "loop", "memstore", "patterns",
	"prompt", "sqlstore", "store", "strategy", "strategy/attribution", "strategy/injection", "stream",
}

// nameOfOurs matches store.Store.Read, for example, and `.Commit`, a name of the type before it.
var nameOfOurs = regexp.MustCompile(
	`\b([a-z]+)\.([A-Z]\w*)(?:\.([A-Z]\w*))?|` + "`" + `\.([A-Z][a-z]\w*)` + "`")

// TestSpecNames wants every name of heed's in docs/specs.md to be in the code.
func TestSpecNames(t *testing.T) {
	known := make(map[string]bool)
	for _, dir := range specified {
		name := path.Base(dir)
		if dir == "." {
			name = "heed"
		}
		known[name] = true
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file.Name(), ".go") && !strings.HasSuffix(file.Name(), "_test.go") {
				namesOf(t, path.Join(dir, file.Name()), name, known)
			}
		}
	}
	page, err := os.ReadFile("docs/specs.md")
	if err != nil {
		t.Fatal(err)
	}
	checked, before := 0, ""
	for _, m := range nameOfOurs.FindAllStringSubmatch(string(page), -1) {
		if m[4] == "" && !known[m[1]] {
			continue // such as time.Time
		}
		checked++
		name := before + "." + m[4]
		if m[4] == "" {
			before = m[1] + "." + m[2]
			name = strings.TrimSuffix(before+"."+m[3], ".")
		}
		if !known[name] {
			t.Errorf("docs/specs.md names %s, which does not exist", name)
		}
	}
	if checked < 400 {
		t.Errorf("only %d names were checked", checked)
	}
}

// namesOf adds the exported names of a file: pkg.Name, and pkg.Type.Name for fields and methods.
func namesOf(t *testing.T, file, pkg string, known map[string]bool) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range parsed.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				known[pkg+"."+decl.Name.Name] = true
				continue
			}
			receiver := decl.Recv.List[0].Type
			if star, ok := receiver.(*ast.StarExpr); ok {
				receiver = star.X
			}
			if named, ok := receiver.(*ast.Ident); ok { // generic types are not named there
				known[pkg+"."+named.Name+"."+decl.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				namesOfSpec(spec, pkg, known)
			}
		}
	}
}

func namesOfSpec(spec ast.Spec, pkg string, known map[string]bool) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			known[pkg+"."+name.Name] = true
		}
	case *ast.TypeSpec:
		name := pkg + "." + spec.Name.Name
		known[name] = true
		var members *ast.FieldList
		switch kind := spec.Type.(type) {
		case *ast.StructType:
			members = kind.Fields
		case *ast.InterfaceType:
			members = kind.Methods
		default:
			return
		}
		for _, member := range members.List {
			for _, field := range member.Names {
				known[name+"."+field.Name] = true
			}
		}
	}
}
