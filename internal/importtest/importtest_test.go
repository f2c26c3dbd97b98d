package importtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

const module = "github.com/heedhq/heed"

// table is the allow-list: what each package may import, of third parties and of ours. Only code
// outside of _test.go files is held to it. A path ending in /... stands for all that is below it. A
// conformance package, X/Xtest or X/Ytest, has no row of its own: it may import X and what X may of
// ours, and nothing of third parties.
var table = map[string]row{
	".":            {library, silent, "internal/text"},
	"internal/...": {nothing, silent, ". answer evidence store internal/..."},

	"internal/chance":          {library, silent, ""},
	"learning/internal/undo":   {nothing, silent, "internal/text"},
	"feedback/internal/oppose": {nothing, silent, "internal/text"},
	"internal/view": { // for the command, the pages, the API and MCP
		nothing, silent, ". answer decision evidence feedback learning llm loop patterns store " +
			"strategy " +
			"strategy/money internal/...",
	},
	// What adapters share, and what their tests do.
	"adapter/internal/broker": {nothing, shared, ". stream internal/valid"},
	"adapter/internal/turn": {
		nothing, shared, "decision feedback internal/thoughts llm loop prompt",
	},
	"adapter/internal/adaptertest": {
		nothing, silent,
		". adapter/internal/turn decision decision/llmtest feedback llm loop loop/looptest patterns " +
			"stream strategy strategy/attribution memstore stream/streamtest",
	},

	"evidence": {library, shared, ". internal/..."},
	"answer":   {library, shared, ". evidence internal/..."},
	"store":    {library, shared, ". evidence internal/..."},
	"stream":   {library, shared, ". store internal/..."},
	"prompt":   {library, shared, ". internal/..."},
	"learning": {library, shared, ". answer evidence store stream prompt internal/..."},
	"decision": {library, shared, ". answer evidence store stream prompt llm internal/..."},
	"strategy": {library, shared, ". answer evidence store stream prompt internal/..."},

	"decision/decisiontest": {nothing, silent, ". answer decision decision/llmtest internal/..."},
	"strategy/strategytest": { // its climbers need a store
		nothing, silent, ". evidence store strategy memstore internal/...",
	},
	"strategy/injection":   {library, shared, ". answer strategy internal/..."},
	"strategy/attribution": {library, shared, ". evidence store stream strategy internal/..."},
	"strategy/offpolicy":   {library, shared, ". strategy internal/..."},
	"strategy/money": {
		library, shared, ". evidence store strategy strategy/offpolicy internal/...",
	},
	"strategy/best":      {library, shared, ". evidence store strategy internal/..."},
	"strategy/partition": {library, shared, ". evidence store internal/..."},

	"feedback":           {library, shared, ". answer evidence store stream prompt internal/..."},
	"feedback/modeleval": {library, shared, ". decision feedback prompt internal/..."},
	"patterns":           {library, shared, ". answer evidence store stream prompt internal/..."},
	"memstore":           {library, shared, ". evidence store internal/..."},
	"llm":                {nothing, shared, ""},
	"llm/...":            {nothing, shared, ". prompt decision llm internal/..."},
	"sqlstore":           {library, shared, ". evidence store stream internal/..."},
	"loop": {
		library, shared,
		". answer evidence store stream prompt learning decision strategy strategy/... " +
			"feedback patterns memstore sqlstore llm internal/...",
	},
	"loop/looptest": {
		nothing, silent, ". answer store store/storetest learning decision decision/llmtest " +
			"strategy feedback patterns memstore llm loop internal/...",
	},
	"web": {
		nothing, shared,
		". answer evidence store prompt learning decision strategy strategy/... " +
			"feedback patterns loop llm internal/...",
	},
	// below its own go.mod; another adapter is none of what it may import
	"adapter/...": {
		anything, shared,
		". answer evidence store stream prompt learning decision decision/llmtest " +
			"strategy strategy/... feedback patterns memstore sqlstore llm loop loop/looptest " +
			"adapter/internal/...",
	},
	"adapter/mcp": {
		anything, shared, ". evidence feedback internal/view learning loop patterns prompt store",
	},
	"adapter/natsstore": {
		anything, shared, ". adapter/internal/broker evidence memstore store internal/dump",
	},
	"examples/...": {anything, silent, "..."},
	"cmd/...":      {anything, silent, "..."},
}

type row struct {
	thirdParty string
	types      bool // whether its types must say how they may be shared between goroutines
	ours       string
}

const (
	library  = "gonum.org/v1/gonum/... github.com/google/uuid"
	nothing  = ""
	anything = "..."

	shared = true
	silent = false
)

// sharing are phrases. One of them must be in the doc comment of every exported struct type with an
// exported method on its pointer. Values without such methods are shared like any other variable,
// and errors are only read.
var sharing = []string{"safe for concurrent use", "must not be used concurrently", "immutable"}

// TestModule reads the source itself instead of asking go list: it needs no go command, sees the
// files of every platform, is the same in a workspace as outside of one, and go test knows which
// files it has read when it caches the result.
func TestModule(t *testing.T) {
	root := os.DirFS("../..")
	mod, err := fs.ReadFile(root, "go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(mod), "module "+module+"\n") {
		t.Fatalf("../.. is not the root of %s", module)
	}
	pkgs, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(pkgs, func(p pkg) bool { return p.dir == "internal/importtest" }) {
		t.Fatalf("found %d packages, but not this one", len(pkgs))
	}
	adapters, err := loadAdapters(root)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(adapters, func(p pkg) bool { return p.dir == "adapter/mcp" }) {
		t.Fatalf("found %d packages of adapters, but not adapter/mcp", len(adapters))
	}
	for _, fault := range check(append(pkgs, adapters...)) {
		t.Error(fault)
	}
}

// TestNothingImportsTheLab reads the files of every module, because a workspace lets each import
// the others.
func TestNothingImportsTheLab(t *testing.T) {
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (file == "lab" || file == ".git"):
			return fs.SkipDir
		case d.IsDir() || path.Ext(file) != ".go":
			return nil
		}
		text, err := fs.ReadFile(root, file)
		if strings.Contains(string(text), `"`+module+"/lab/") {
			t.Errorf("%s imports a package of the lab", file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCheck shows that check bites, and that it leaves alone what is right.
func TestCheck(t *testing.T) {
	type files map[string]string
	for name, tt := range map[string]struct {
		files files
		want  []string // the faults, nothing else
	}{
		"the root imports ours": {
			files{"a.go": code("heed", "github.com/heedhq/heed/evidence")},
			[]string{". must not import evidence"},
		},
		"a leaf imports a leaf": {
			files{"evidence/a.go": code("evidence", "github.com/heedhq/heed/prompt")},
			[]string{"evidence must not import prompt"},
		},
		"a domain package imports a sibling": {
			files{"decision/a.go": code("decision", "github.com/heedhq/heed/learning")},
			[]string{"decision must not import learning"},
		},
		"a package imports what is built on it": {
			files{"strategy/a.go": code("strategy", "github.com/heedhq/heed/strategy/attribution")},
			[]string{"strategy must not import strategy/attribution"},
		},
		"a package that is built on strategy imports a store": {
			files{"strategy/offpolicy/a.go": code("offpolicy", "github.com/heedhq/heed/memstore")},
			[]string{"strategy/offpolicy must not import memstore"},
		},
		"a domain package imports the store": {
			files{"feedback/a.go": code("feedback", "github.com/heedhq/heed/memstore")},
			[]string{"feedback must not import memstore"},
		},
		"a domain package imports a conformance package": {
			files{"strategy/a.go": code("strategy", "github.com/heedhq/heed/store/storetest")},
			[]string{"strategy must not import store/storetest"},
		},
		"a conformance package imports the store": {
			files{"store/storetest/a.go": code("storetest", "github.com/heedhq/heed/memstore")},
			[]string{"store/storetest must not import memstore"},
		},
		"a conformance package imports a third party": {
			files{"store/storetest/a.go": code("storetest", "github.com/google/uuid")},
			[]string{"store/storetest must not import github.com/google/uuid"},
		},
		"an internal package imports a domain package": {
			files{"internal/x/y/a.go": code("y", "github.com/heedhq/heed/learning")},
			[]string{"internal/x/y must not import learning"},
		},
		"an internal package imports a third party": {
			files{"internal/x/a.go": code("x", "gonum.org/v1/gonum/stat")},
			[]string{"internal/x must not import gonum.org/v1/gonum/stat"},
		},
		"a library package imports an unlisted third party": {
			files{"memstore/a.go": code("memstore", "github.com/google/uuid", "github.com/google/uuidx")},
			[]string{"memstore must not import github.com/google/uuidx"},
		},
		"only one of a package's files, for one platform, is at fault": {
			files{
				"prompt/a.go": code("prompt"),
				"prompt/b_windows.go": "//go:build windows\n\npackage prompt\nimport _ " +
					"\"github.com/heedhq/heed/memstore\"",
			},
			[]string{"prompt must not import memstore"},
		},
		"a package that no row allows": {
			files{"surprise/a.go": code("surprise"), "evidence/testing/a.go": code("testing")},
			[]string{"evidence/testing is not in the table", "surprise is not in the table"},
		},
		"no package comment": {
			files{"prompt/a.go": "package prompt", "prompt/b.go": "//go:generate x\npackage prompt"},
			[]string{"prompt has no package comment"},
		},
		"two package comments": {
			files{"prompt/a.go": code("prompt"), "prompt/b.go": code("prompt")},
			[]string{"prompt has 2 package comments: in a.go, b.go"},
		},
		"types that do not say how they may be shared": {
			files{
				"evidence/a.go": code("evidence") + `
					type None struct{}
					func (*None) M() {}
					// Wrong is not safe for concurrent use.
					type Wrong struct{}
					func (w *Wrong) M() {}`,
				"evidence/b.go": "package evidence\n" + `
					type (
						// A Generic is something.
						Generic[K, V any] struct{}
					)`,
				"evidence/c.go": "package evidence\nfunc (g *Generic[K, V]) M() {}",
			},
			[]string{"evidence.Generic does not say how", "evidence.None does not say how",
				"evidence.Wrong does not say how"},
		},
		"types that do, or need not": {
			files{"evidence/a.go": code("evidence") + `
				// A Log is a log. It is safe for
				// concurrent use.
				type Log struct{}
				func (*Log) M() {}
				type (
					// A Cursor must not be used concurrently.
					Cursor[T any] struct{}
					Value struct{}
					Error struct{}
					Kind int
					hidden struct{}
				)
				func (*Cursor[T]) M() {}
				func (Value) M() {}
				func (*Value) m() {}
				func (*Error) Error() string { return "" }
				func (*Error) Unwrap() error { return nil }
				func (*Kind) M() {}
				func (*hidden) M() {}`,
				"cmd/x/a.go": code("main") + "\ntype T struct{}\nfunc (*T) M() {}"},
			nil,
		},
		"the arrows that are right": {
			files{
				"a.go": code("heed", "errors", "github.com/google/uuid"),
				"evidence/a.go": code("evidence", "github.com/heedhq/heed",
					"github.com/heedhq/heed/internal/x"),
				"store/storetest/a.go": code("storetest", "testing", "github.com/heedhq/heed/evidence"),
				"strategy/a.go": code("strategy", "math/rand/v2",
					"gonum.org/v1/gonum/stat/distuv", "github.com/heedhq/heed/prompt"),
				"memstore/a.go": code("memstore", "github.com/heedhq/heed/store",
					"github.com/heedhq/heed/evidence"),
				"llm/x/a.go": code("x", "net/http", "github.com/heedhq/heed/decision",
					"github.com/heedhq/heed/prompt"),
				"internal/x/a.go": code("x", "github.com/heedhq/heed/internal/x/y",
					"github.com/heedhq/heed"),
				"examples/routing/main.go": code("main", "github.com/heedhq/heed/memstore",
					"example.com/anything"),
				"learning/a.go": code("learning",
					"github.com/heedhq/heed/learning/internal/undo"),

				"learning/internal/undo/a.go": code("undo", "github.com/heedhq/heed/internal/text"),
			},
			nil,
		},
		"what is not looked at": {
			files{
				"a.go": code("heed"),
				"a_test.go": code("heed_test", "github.com/heedhq/heed/memstore",
					"example.com/anything"),
				"tools/go.mod":         "module github.com/heedhq/heed/tools",
				"tools/a.go":           code("tools"),
				"prompt/testdata/a.go": "not Go",
				".git/a.go":            "not Go",
				"_draft/a.go":          "not Go",
				"docs/README.md":       "not Go",
			},
			nil,
		},
		"adapters": {
			files{
				"adapter/one/go.mod": "module github.com/heedhq/heed/adapter/one",
				"adapter/one/a.go": code("one", "example.com/framework",
					"github.com/heedhq/heed/loop", "github.com/heedhq/heed/adapter/one/own"),
				"adapter/one/own/a.go": code("own"),
				"adapter/two/go.mod":   "module github.com/heedhq/heed/adapter/two",
				"adapter/two/a.go": code("two", "github.com/heedhq/heed/internal/x",
					"github.com/heedhq/heed/adapter/one"),
				"adapter/two/a_test.go":    code("two_test", "github.com/heedhq/heed/internal/x"),
				"adapter/two/testdata/a.x": "",
			},
			[]string{"adapter/two must not import adapter/one", "adapter/two must not import internal/x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pkgs, err := load(source(tt.files))
			if err != nil {
				t.Fatal(err)
			}
			adapters, err := loadAdapters(source(tt.files))
			if err != nil {
				t.Fatal(err)
			}
			if got := check(append(pkgs, adapters...)); !slices.EqualFunc(got, tt.want,
				strings.HasPrefix) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// source is a tree of files.
func source(files map[string]string) fs.FS {
	src := fstest.MapFS{}
	for file, text := range files {
		src[file] = &fstest.MapFile{Data: []byte(text)}
	}
	return src
}

// code is the text of a file with a package comment and those imports.
func code(name string, imports ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "// Package %s is made up.\npackage %s\n", name, name)
	for _, path := range imports {
		fmt.Fprintf(&b, "import _ %q\n", path)
	}
	return b.String()
}

// A pkg is what lies in one directory, without its tests.
type pkg struct {
	dir   string // below the root: ".", "evidence"
	files map[string]*ast.File
}

// load parses the packages of the module at the root of src, sorted by directory. Nested modules
// are not a part of it.
func load(src fs.FS) ([]pkg, error) {
	var pkgs []pkg
	err := fs.WalkDir(src, ".", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		base := path.Base(dir)
		if dir != "." && (base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_') {
			return fs.SkipDir
		}
		entries, err := fs.ReadDir(src, dir)
		if err != nil {
			return err
		}
		p := pkg{dir: dir, files: map[string]*ast.File{}}
		for _, e := range entries {
			name := e.Name()
			switch {
			case name == "go.mod" && dir != ".":
				return fs.SkipDir
			case path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || name[0] == '.' ||
				name[0] == '_':
				continue
			}
			text, err := fs.ReadFile(src, path.Join(dir, name))
			if err != nil {
				return err
			}
			p.files[name], err = parser.ParseFile(token.NewFileSet(), path.Join(dir, name), text,
				parser.ParseComments)
			if err != nil {
				return err
			}
		}
		if len(p.files) > 0 {
			pkgs = append(pkgs, p)
		}
		return nil
	})
	slices.SortFunc(pkgs, func(a, b pkg) int { return cmp.Compare(a.dir, b.dir) })
	return pkgs, err
}

// loadAdapters parses the packages of the modules below adapter/.
func loadAdapters(src fs.FS) (pkgs []pkg, err error) {
	mods, err := fs.Glob(src, "adapter/*/go.mod")
	if err != nil {
		return nil, err
	}
	for _, mod := range mods {
		dir := path.Dir(mod)
		sub, err := fs.Sub(src, dir)
		if err != nil {
			return nil, err
		}
		found, err := load(sub)
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			p.dir = path.Join(dir, p.dir)
			pkgs = append(pkgs, p)
		}
	}
	return pkgs, nil
}

// check returns the faults of the packages, sorted.
func check(pkgs []pkg) []string {
	var faults []string
	for _, p := range pkgs {
		r, ok := rowOf(p.dir)
		if !ok {
			faults = append(faults,
				fmt.Sprintf("%s is not in the table of internal/importtest: say there what it may import",
					p.dir))
			continue
		}
		faults = append(faults, checkImports(p, r)...)
		faults = append(faults, checkComment(p)...)
		if r.types {
			faults = append(faults, checkSharing(p)...)
		}
	}
	slices.Sort(faults)
	return slices.Compact(faults)
}

// rowOf finds what holds for the package in dir.
func rowOf(dir string) (row, bool) {
	if r, ok := table[dir]; ok {
		return r, true
	}
	for pattern, r := range table {
		if match(pattern, dir) {
			return r, true
		}
	}
	// X/Xtest and X/Ytest
	if x := path.Dir(dir); x != "." && strings.HasSuffix(path.Base(dir), "test") {
		r, ok := rowOf(x)
		return row{nothing, silent, r.ours + " " + x}, ok
	}
	return row{}, false
}

// match reports whether any of the patterns, separated by spaces, stands for the path.
func match(patterns, path string) bool {
	return slices.ContainsFunc(strings.Fields(patterns), func(p string) bool {
		prefix, below := strings.CutSuffix(p, "...")
		return p == path || below && strings.HasPrefix(path, prefix)
	})
}

func checkImports(p pkg, r row) []string {
	var faults []string
	for file, f := range p.files {
		for _, spec := range f.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				panic(err) // the parser has let it through
			}
			first, _, _ := strings.Cut(imp, "/")
			ours, isOurs := strings.CutPrefix(imp+"/", module+"/")
			allowed := false
			switch {
			case isOurs:
				imp = path.Clean(ours) // "." is the root
				allowed = match(r.ours+" "+p.dir+"/internal/...", imp) ||
					strings.HasPrefix(p.dir, "adapter/") && match(adapterOf(p.dir)+"/...", imp)
			case !strings.Contains(first, "."): // the standard library
				allowed = true
			default:
				allowed = match(r.thirdParty, imp)
			}
			if !allowed {
				faults = append(faults, fmt.Sprintf("%s must not import %s, as %s does", p.dir, imp, file))
			}
		}
	}
	return faults
}

// adapterOf returns the directory of the adapter that a package belongs to.
func adapterOf(dir string) string { return strings.Join(strings.SplitN(dir, "/", 3)[:2], "/") }

func checkComment(p pkg) []string {
	var in []string
	for file, f := range p.files {
		if f.Doc.Text() != "" { // directives are not text
			in = append(in, file)
		}
	}
	slices.Sort(in)
	switch len(in) {
	case 1:
		return nil
	case 0:
		return []string{p.dir + " has no package comment"}
	default:
		return []string{fmt.Sprintf("%s has %d package comments: in %s", p.dir, len(in),
			strings.Join(in, ", "))}
	}
}

func checkSharing(p pkg) []string {
	docs := map[string]string{}   // of the exported struct types
	pointers := map[string]bool{} // the types with an exported method on their pointer
	errs := map[string]bool{}     // those of them that are errors
	for _, f := range p.files {
		for _, decl := range f.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if name := pointerReceiver(decl); name != "" && decl.Name.IsExported() {
					pointers[name] = true
					errs[name] = errs[name] || decl.Name.Name == "Error"
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					spec, ok := spec.(*ast.TypeSpec)
					if !ok || !spec.Name.IsExported() {
						continue
					}
					if _, ok := spec.Type.(*ast.StructType); ok {
						docs[spec.Name.Name] = cmp.Or(spec.Doc.Text(), decl.Doc.Text())
					}
				}
			}
		}
	}
	var faults []string
	for name, doc := range docs {
		doc = strings.Join(strings.Fields(doc), " ") // undo the line breaks
		doc = strings.ReplaceAll(doc, "not safe for concurrent use", "")
		says := slices.ContainsFunc(sharing, func(phrase string) bool {
			return strings.Contains(doc,
				phrase)
		})
		if pointers[name] && !errs[name] && !says {
			faults = append(faults, fmt.Sprintf("%s.%s does not say how it may be shared, as one of %q",
				p.dir, name, sharing))
		}
	}
	return faults
}

// pointerReceiver is T where the receiver is *T or *T[K, V].
func pointerReceiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	star, ok := f.Recv.List[0].Type.(*ast.StarExpr)
	if !ok {
		return ""
	}
	x := star.X
	switch generic := x.(type) {
	case *ast.IndexExpr:
		x = generic.X
	case *ast.IndexListExpr:
		x = generic.X
	}
	if id, ok := x.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}
