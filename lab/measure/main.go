// Package measure prints how large the library is and which aims there are. It fails if an aim is
// exceeded, except the number of lines:
//
//	go run ./lab measure
//
// It reads the source below the current directory: the exported names of each package that hosts import, the fields of its
// Config structs, the lines of Go that are no tests, and the functions that are too long. Conformance suites, whose names end
// in "test", are not counted among the packages that hosts import. Packages above the others, such as loop, are held to the aim of one
// package, and count apart from the sums.
package measure

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/heedhq/heed/lab/internal/kit"
)

// The aims.
var aims = limits{names: 920, namesEach: 120, lines: 41_000, function: 60}

type limits struct {
	names     int // exported names of all packages that hosts import, without those above
	namesEach int // exported names of one package
	lines     int // lines of Go that are no tests, without the packages above and without conformance suites, which are tests of a host's
	function  int // lines of a function, of the whole tree
}

// A count is what one package has.
type count struct {
	dir        string
	importable bool
	names      int // functions, types, methods of exported types, constants, variables
	fields     int // of structs whose names end in Config
	lines      int // of files that are no tests
}

// A function is one that is too long.
type function struct {
	file, name string
	lines      int
}

// Run prints the sizes of the tree below the current directory, and returns an error where an aim
// is exceeded.
func Run(_ context.Context, call *kit.Call) error {
	if err := call.Parse(); err != nil {
		return err
	}
	counts, long, err := measure(os.DirFS("."), aims.function)
	if err == nil && !report(call.Out, counts, long, aims) {
		err = errors.New("an aim is exceeded")
	}
	return err
}

// measure counts each package below the root, in order, and returns the functions of more than longest lines.
func measure(root fs.FS, longest int) (counts []count, long []function, err error) {
	byDir := make(map[string]*count)
	err = fs.WalkDir(root, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		dir := path.Dir(file)
		if byDir[dir] == nil {
			byDir[dir] = &count{dir: dir}
		}
		found, err := byDir[dir].add(root, file, longest)
		long = append(long, found...)
		return err
	})
	for _, c := range byDir {
		counts = append(counts, *c)
	}
	slices.SortFunc(counts, func(a, b count) int { return cmp.Compare(a.dir, b.dir) })
	return counts, long, err
}

// add counts a file, and returns its functions of more than longest lines.
func (c *count) add(root fs.FS, file string, longest int) (long []function, err error) {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return nil, err
	}
	c.lines += bytes.Count(text, []byte("\n"))
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	c.importable = importable(c.dir) && parsed.Name.Name != "main"
	for _, decl := range parsed.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if n := set.Position(decl.End()).Line - set.Position(decl.Pos()).Line + 1; n > longest {
				long = append(long, function{file, decl.Name.Name, n})
			}
			if decl.Name.IsExported() && (decl.Recv == nil || ast.IsExported(receiver(decl))) {
				c.names++
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				c.spec(spec)
			}
		}
	}
	return long, nil
}

// spec counts a constant, a variable or a type. The methods of an interface count, as the methods of other types do.
func (c *count) spec(spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		c.names += exported(spec.Names)
	case *ast.TypeSpec:
		if !spec.Name.IsExported() {
			return
		}
		c.names++
		switch of := spec.Type.(type) {
		case *ast.StructType:
			for _, field := range of.Fields.List {
				if strings.HasSuffix(spec.Name.Name, "Config") {
					c.fields += exported(field.Names)
				}
			}
		case *ast.InterfaceType:
			for _, method := range of.Methods.List {
				c.names += exported(method.Names)
			}
		}
	}
}

func exported(names []*ast.Ident) (n int) {
	for _, name := range names {
		if name.IsExported() {
			n++
		}
	}
	return n
}

// receiver returns the name of the type that a method is of.
func receiver(f *ast.FuncDecl) string {
	of := f.Recv.List[0].Type
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

// importable reports whether hosts may import the package of a directory, and it is no conformance suite.
func importable(dir string) bool {
	parts := strings.Split(dir, "/")
	return !slices.Contains(parts, "internal") && !slices.Contains([]string{"examples", "cmd",
		"tools", "lab"}, parts[0]) &&
		!strings.HasSuffix(dir, "test")
}

// suite reports whether a directory has code of tests that is shared.
func suite(dir string) bool {
	return strings.HasSuffix(dir, "test")
}

// above reports whether a package stands on the others, which a host may use without it.
func above(dir string) bool {
	return slices.Contains([]string{"loop", "web", "adapter", "lab"}, strings.Split(dir, "/")[0]) ||
		slices.Contains([]string{"strategy/best", "strategy/money", "strategy/partition"}, dir)
}

// report prints what was counted, and reports whether the aims are met, without that of lines, which is only printed.
func report(to io.Writer, counts []count, long []function, aims limits) bool {
	met := true
	within := func(n, aim int) string {
		if n > aim {
			met = false
			return "  more than the aim"
		}
		return ""
	}
	var all count
	suites, aboveLines := 0, 0
	fmt.Fprintf(to, "%-28s %6s %6s %6s\n", "package", "names", "fields", "lines")
	for _, c := range counts {
		if suite(c.dir) {
			suites += c.lines
			continue
		}
		if above(c.dir) {
			aboveLines += c.lines
		} else {
			all.lines += c.lines
		}
		if c.importable {
			if !above(c.dir) {
				all.names += c.names
				all.fields += c.fields
			}
			fmt.Fprintf(to, "%-28s %6d %6d %6d%s\n", c.dir, c.names, c.fields, c.lines, within(c.names, aims.namesEach))
		}
	}
	fmt.Fprintf(to, "%-28s %6d %6d%s\n", "all but those above", all.names, all.fields, within(all.names, aims.names))
	over := ""
	if all.lines > aims.lines {
		over = "  more than the aim"
	}
	fmt.Fprintf(to, "%-28s %20d%s\n", "all Go that is no test", all.lines, over)
	fmt.Fprintf(to, "%-28s %20d\n", "packages above, aside", aboveLines)
	fmt.Fprintf(to, "%-28s %20d\n", "suites of tests aside", suites)
	fmt.Fprintf(to, "The aims: %d names in all and %d in one package, %d lines, %d lines in a function.\n",
		aims.names, aims.namesEach, aims.lines, aims.function)
	for _, f := range long {
		met = false
		fmt.Fprintf(to, "%s: %s has %d lines, more than the aim\n", f.file, f.name, f.lines)
	}
	return met
}
