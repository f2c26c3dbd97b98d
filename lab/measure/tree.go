package measure

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// module is the path of the root module.
const module = "github.com/heedhq/heed"

// A tree is what was read of the Go files that are no tests.
type tree struct {
	packages map[string]*pkg // by directory
	long     []string        // functions that are too long
	wide     int             // lines that are too wide, tests included
}

// A pkg is what one package has.
type pkg struct {
	dir         string
	main        bool
	lines, code int // all lines, and those that are neither blank nor a comment
	comments    int // lines that are a comment
	names       int // functions, types, methods of exported types, constants, variables
	structs     map[string]structure
}

// A structure is an exported struct type: its exported fields, and the types that they reach.
type structure struct {
	fields  int
	reaches []typeName
}

// A typeName names a type of the tree.
type typeName struct{ dir, name string }

// read reads the tree below a root.
func read(root fs.FS) (*tree, error) {
	t := &tree{packages: make(map[string]*pkg)}
	err := fs.WalkDir(root, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(file, ".go") {
			return nil
		}
		text, err := fs.ReadFile(root, file)
		if err != nil {
			return err
		}
		t.wide += tooWide(text)
		if strings.HasSuffix(file, "_test.go") {
			return nil
		}
		return t.add(file, text)
	})
	return t, err
}

const (
	widest  = 100 // columns
	longest = 60  // lines of a function
)

// unbreakable matches lines that may be as wide as they are: directives, links, rows of tables, and
// what is between backquotes on one line, such as the tag of a field. See also rawLines.
var unbreakable = regexp.MustCompile("^//go:|//nolint|https?://|^\\s*(// )?\\||`")

// tooWide counts lines of more than 100 columns. A tab counts as two.
func tooWide(text []byte) (n int) {
	raw, number := rawLines(text), 0
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		if number++; raw[number] {
			continue
		}
		if len(line)+bytes.Count(line, []byte("\t")) <= widest {
			continue
		}
		columns := len([]rune(string(line))) + bytes.Count(line, []byte("\t"))
		if columns > widest && !unbreakable.Match(line) {
			n++
		}
	}
	return n
}

// rawLines returns the lines inside of raw strings of several lines, which may be as wide as they
// are because they are in another language, for example JSON or SQL, and a line break would change
// them.
func rawLines(text []byte) map[int]bool {
	within := make(map[int]bool)
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(text))
	var tokens scanner.Scanner
	tokens.Init(file, text, func(token.Position, string) {}, 0)
	for {
		pos, kind, literal := tokens.Scan()
		if kind == token.EOF {
			return within
		}
		if kind == token.STRING && literal[0] == '`' {
			from := set.Position(pos).Line
			for line := range strings.Count(literal, "\n") + 1 {
				within[from+line] = true
			}
		}
	}
}

// add reads a file.
func (t *tree) add(file string, text []byte) error {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, text, parser.ParseComments)
	if err != nil {
		return err
	}
	dir := path.Dir(file)
	p := t.packages[dir]
	if p == nil {
		p = &pkg{dir: dir, structs: make(map[string]structure)}
		t.packages[dir] = p
	}
	p.main = parsed.Name.Name == "main"
	p.lines += bytes.Count(text, []byte("\n"))
	code, comments := countLines(set, parsed, text)
	p.code += code
	p.comments += comments
	imports := importsOf(parsed)
	for _, decl := range parsed.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			n := set.Position(decl.End()).Line - set.Position(decl.Pos()).Line + 1
			if n > longest {
				t.long = append(t.long, fmt.Sprintf("%s: %s has %d lines", file, decl.Name.Name, n))
			}
			if decl.Name.IsExported() && (decl.Recv == nil || ast.IsExported(receiver(decl))) {
				p.names++
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				p.spec(spec, imports)
			}
		}
	}
	return nil
}

// countLines counts the lines that are neither blank nor a comment, and those that are a comment.
func countLines(set *token.FileSet, f *ast.File, text []byte) (code, comments int) {
	comment := make(map[int]bool) // lines that begin with a comment, or lie inside of one
	for _, group := range f.Comments {
		for _, c := range group.List {
			from, to := set.Position(c.Pos()), set.Position(c.End())
			before := text[from.Offset-from.Column+1 : from.Offset]
			for line := from.Line; line <= to.Line; line++ {
				if line > from.Line || len(bytes.TrimSpace(before)) == 0 {
					comment[line] = true
				}
			}
		}
	}
	line := 0
	for l := range bytes.Lines(text) {
		line++
		switch {
		case comment[line]:
			comments++
		case len(bytes.TrimSpace(l)) > 0:
			code++
		}
	}
	return code, comments
}

// importsOf returns the directories of the tree that a file imports, by name.
func importsOf(f *ast.File) map[string]string {
	all := make(map[string]string)
	for _, spec := range f.Imports {
		of := strings.Trim(spec.Path.Value, `"`)
		if of != module && !strings.HasPrefix(of, module+"/") {
			continue
		}
		name := path.Base(of)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		all[name] = cmp.Or(strings.TrimPrefix(strings.TrimPrefix(of, module), "/"), ".")
	}
	return all
}

// spec counts a constant, a variable or a type. The methods of an interface count, like the methods
// of other types.
func (p *pkg) spec(spec ast.Spec, imports map[string]string) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		p.names += exported(spec.Names)
	case *ast.TypeSpec:
		if !spec.Name.IsExported() {
			return
		}
		p.names++
		switch of := spec.Type.(type) {
		case *ast.StructType:
			p.structs[spec.Name.Name] = p.structure(of, imports)
		case *ast.InterfaceType:
			for _, method := range of.Methods.List {
				p.names += exported(method.Names)
			}
		}
	}
}

func (p *pkg) structure(of *ast.StructType, imports map[string]string) (s structure) {
	for _, field := range of.Fields.List {
		n := exported(field.Names)
		if s.fields += n; n == 0 && len(field.Names) > 0 {
			continue
		}
		s.reaches = append(s.reaches, p.typesOf(field.Type, imports)...)
	}
	return s
}

// typesOf returns the types of the tree that a field holds.
func (p *pkg) typesOf(of ast.Expr, imports map[string]string) []typeName {
	switch of := of.(type) {
	case *ast.StarExpr:
		return p.typesOf(of.X, imports)
	case *ast.ArrayType:
		return p.typesOf(of.Elt, imports)
	case *ast.MapType:
		return p.typesOf(of.Value, imports)
	case *ast.Ident:
		return []typeName{{p.dir, of.Name}}
	case *ast.SelectorExpr:
		if name, ok := of.X.(*ast.Ident); ok && imports[name.Name] != "" {
			return []typeName{{imports[name.Name], of.Sel.Name}}
		}
	}
	return nil
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
	of := strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*")
	name, _, _ := strings.Cut(of, "[")
	return name
}

// A room is what a budget of lines is about.
type room string

const (
	library  room = "library"
	database room = "sqlstore"
	suites   room = "suites"
	console  room = "command, pages, API, MCP"
	adapters room = "adapters, streams"
	lab      room = "lab"
	others   room = "others" // examples and tools
)

// roomOf returns the room of a directory.
func roomOf(dir string) room {
	within := func(roots ...string) bool {
		return slices.ContainsFunc(roots, func(root string) bool {
			return dir == root || strings.HasPrefix(dir, root+"/")
		})
	}
	switch {
	case within("lab"):
		return lab
	case slices.ContainsFunc(strings.Split(dir, "/"), func(part string) bool {
		return strings.HasSuffix(part, "test")
	}):
		return suites
	case within("cmd", "web", "adapter/mcp", "internal/view"):
		return console
	case within("adapter", "stream", "strategy/attribution"):
		return adapters
	case within("sqlstore"):
		return database
	case within("examples", "tools"):
		return others
	default:
		return library
	}
}

// figures returns what the budgets bound, by name.
func (t *tree) figures() map[string]int {
	all := map[string]int{"functions over 60 lines": len(t.long), "lines over 100 columns": t.wide}
	comments := 0
	for _, p := range t.packages {
		all["all: lines"] += p.lines
		in := roomOf(p.dir)
		all[string(in)+": lines"] += p.lines
		if in == library || in == database {
			all[string(in)+": code lines"] += p.code
		}
		if in == library {
			comments += p.comments
		}
		if strings.HasPrefix(p.dir, "internal/") {
			all["internal: packages"]++
		}
		if p.importable() {
			all["library: exported names"] += p.names
		}
	}
	all["library: code for 100 lines of comments"] =
		100 * all["library: code lines"] / max(comments, 1)
	all["library: settings"] = t.settings(t.configs()...)
	front := typeName{"loop", "Config"}
	all["loop.Config: settings reached"] = t.settings(front)
	if p := t.packages[front.dir]; p != nil {
		all["loop.Config: fields"] = p.structs[front.name].fields
	}
	return all
}

// importable reports whether hosts import the package as a part of the library.
func (p *pkg) importable() bool {
	in := roomOf(p.dir)
	return !p.main && (in == library || in == database || p.dir == "web") &&
		!slices.Contains(strings.Split(p.dir, "/"), "internal")
}

// configs returns the types whose fields are settings.
func (t *tree) configs() (all []typeName) {
	for dir, p := range t.packages {
		if !p.importable() {
			continue
		}
		for name := range p.structs {
			if strings.HasSuffix(name, "Config") || strings.HasSuffix(name, "Options") ||
				name == "Budget" {
				all = append(all, typeName{dir, name})
			}
		}
	}
	return all
}

// settings counts the exported fields of types and of all types that they reach, each once.
func (t *tree) settings(of ...typeName) (n int) {
	seen := map[typeName]bool{{"loop", "Lessons"}: true} // what is taught is data
	for len(of) > 0 {
		one := of[0]
		of = of[1:]
		p := t.packages[one.dir]
		if p == nil || seen[one] {
			continue
		}
		seen[one] = true
		n += p.structs[one.name].fields
		of = append(of, p.structs[one.name].reaches...)
	}
	return n
}

// printPackages prints what each package has.
func (t *tree) printPackages(to io.Writer) {
	fmt.Fprintf(to, "%-28s %-26s %6s %6s %6s %8s\n", "package", "", "lines", "code", "names",
		"settings")
	for _, dir := range slices.Sorted(maps.Keys(t.packages)) {
		p := t.packages[dir]
		var configs []typeName
		for _, c := range t.configs() {
			if c.dir == dir {
				configs = append(configs, c)
			}
		}
		fmt.Fprintf(to, "%-28s %-26s %6d %6d %6d %8d\n", dir, roomOf(dir), p.lines, p.code, p.names,
			t.settings(configs...))
	}
	fmt.Fprintln(to)
}
