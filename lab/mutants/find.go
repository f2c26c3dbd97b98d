package mutants

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A mutant is one small fault.
type mutant struct {
	id            int
	file, key     string // relative to the root; the file, the function and the change
	line          int
	subject       subject
	fn            *function
	start, end    int // what is replaced, in offsets into the file
	replacement   string
	before, after string // the line, without and with the fault
	reached       bool
	killer        string // "" survives
}

func (m *mutant) change() string { return strings.TrimSpace(m.before + " → " + m.after) }

func (m *mutant) verdict() string {
	switch {
	case m.killer != "":
		return "killed"
	case m.reached:
		return "SURVIVED"
	}
	return "UNTESTED"
}

// A function is one that is mutated.
type function struct {
	name       string
	start, end int // of what is between the braces of its body
	results    bool
	labels     []int // the offsets where a label's name ends
}

// A finder lists the mutants of one file.
type finder struct {
	src, file string
	subject   subject
	fset      *token.FileSet
	constants map[string]bool // numbers that the package has a name for
	fn        *function
	found     []*mutant
	posts     map[ast.Stmt]bool // what loops do after each turn: its opposite only loops without end
}

// find returns all mutants of the subjects, in the order in which samples take them.
func find(root string, subjects []subject, seed int) ([]*mutant, error) {
	var all []*mutant
	for _, s := range subjects {
		files, err := filepath.Glob(filepath.Join(root, s.dir, "*.go"))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("no Go files in %s: %w", s.dir, err)
		}
		isTest := func(file string) bool { return strings.HasSuffix(file, "_test.go") }
		files = slices.DeleteFunc(files, isTest)
		fset, constants := token.NewFileSet(), map[string]bool{}
		parsed, sources := make([]*ast.File, len(files)), make([]string, len(files))
		for i, file := range files {
			src, err := os.ReadFile(file)
			if err == nil {
				parsed[i], err = parser.ParseFile(fset, file, src, parser.SkipObjectResolution)
			}
			if err != nil {
				return nil, err
			}
			sources[i] = string(src)
			numbers(parsed[i], constants)
		}
		for i, file := range files {
			f := finder{src: sources[i], file: s.dir + "/" + filepath.Base(file), subject: s, fset: fset,
				constants: constants, posts: map[ast.Stmt]bool{}}
			f.functions(parsed[i])
			all = append(all, f.found...)
		}
	}
	all = ordered(all, seed)
	for i, m := range all {
		m.id = i + 1
	}
	return all, nil
}

// ordered sorts mutants by the hashes of their keys.
func ordered(all []*mutant, seed int) []*mutant {
	times, hashes := map[string]int{}, map[*mutant]uint64{}
	for _, m := range all {
		if times[m.key]++; times[m.key] > 1 {
			m.key += fmt.Sprintf(" (%d)", times[m.key])
		}
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", seed, m.key))
		hashes[m] = binary.BigEndian.Uint64(sum[:])
	}
	slices.SortFunc(all, func(x, y *mutant) int { return cmp.Compare(hashes[x], hashes[y]) })
	return all
}

// numbers adds the names of a file's numeric constants, without those that iota counts.
func numbers(file *ast.File, names map[string]bool) {
	for _, decl := range file.Decls {
		if group, ok := decl.(*ast.GenDecl); ok && group.Tok == token.CONST {
			for _, spec := range group.Specs {
				spec := spec.(*ast.ValueSpec)
				for i, value := range spec.Values {
					ast.Inspect(value, func(n ast.Node) bool {
						if lit, ok := n.(*ast.BasicLit); ok &&
							(lit.Kind == token.INT || lit.Kind == token.FLOAT) {
							names[spec.Names[i].Name] = true
						}
						return true
					})
				}
			}
		}
	}
}

// Methods that only make texts have no mutants.
var texts = []string{"String", "GoString", "Error", "Format", "LogValue"}

func (f *finder) functions(file *ast.File) {
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil || fn.Recv != nil && slices.Contains(texts, fn.Name.Name) {
			continue
		}
		f.fn = &function{name: fn.Name.Name, start: f.at(fn.Body.Lbrace) + 1, end: f.at(fn.Body.Rbrace),
			results: fn.Type.Results != nil}
		if fn.Recv != nil {
			recv := fn.Recv.List[0].Type
			f.fn.name = strings.TrimPrefix(f.src[f.at(recv.Pos()):f.at(recv.End())],
				"*") + "." + f.fn.name
		}
		f.walk(fn.Body, fn.Type)
	}
}

func (f *finder) at(p token.Pos) int { return f.fset.Position(p).Offset }

// add notes a mutant with another text from start to end.
func (f *finder) add(start, end token.Pos, replacement string) {
	from, to := f.at(start), f.at(end)
	first := strings.LastIndexByte(f.src[:from], '\n') + 1
	last := to + strings.IndexByte(f.src[to:], '\n')
	m := &mutant{
		file: f.file, subject: f.subject, line: f.fset.Position(start).Line, fn: f.fn,
		start: from, end: to, replacement: replacement,
		before: oneLine(f.src[first:last]), after: oneLine(
			f.src[first:from] + replacement + f.src[to:last]),
	}
	m.key = f.file + " " + f.fn.name + ": " + m.change()
	f.found = append(f.found, m)
}

var comment = regexp.MustCompile(`(?m)\s//\s.*$`)

func oneLine(code string) string {
	return strings.Join(strings.Fields(comment.ReplaceAllString(code, "")), " ")
}
