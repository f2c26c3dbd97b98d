//go:build !race

package heed_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The Go code of all pages is compiled, and programs are run. README.md of an adapter is left to a
// test of the adapter: see adapter/internal/adaptertest.
//
// - A block that begins with "package main" is a program. The block of text behind it, if there is
// one, is its output.
// - Any other block is declarations, or statements of a function that returns an error. It has no
// imports: each name
// before a dot is a package of ours or of standard. Its page declares further names in a comment
// <!-- given: -->.
//     ctx is given everywhere.

// standard are the packages that blocks may use beside ours and math/rand/v2.
var standard = []string{
	"context", "database/sql", "encoding/json", "errors", "fmt", "log/slog", "math", "net/http", "os",
	"os/signal", "sync", "testing", "testing/synctest", "time",
}

// sdkPath is OpenAI's SDK, which blocks call sdk.
const sdkPath = "github.com/openai/openai-go/v3"

// A block is Go code of a page.
type block struct {
	page   string
	line   int // of its first line
	code   string
	output string // what the page says that it prints; "" nothing
	given  string // what the page gives
}

var (
	fence = regexp.MustCompile("(?ms)^```go\n(.*?)^```\n(?:[^`]*?^```text\n(.*?)^```\n)?")
	given = regexp.MustCompile(`(?ms)^<!-- given:\n(.*?)^-->\n`)
)

func blocks(t *testing.T) (all []block) {
	t.Helper()
	for _, page := range pages(t) {
		if strings.HasPrefix(page, "adapter/") {
			continue
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		b := block{page: page}
		for _, match := range given.FindAllSubmatch(text, -1) {
			b.given += string(match[1])
		}
		for _, match := range fence.FindAllSubmatchIndex(text, -1) {
			b.line = bytes.Count(text[:match[2]], []byte("\n")) + 1
			b.code, b.output = string(text[match[2]:match[3]]), ""
			if match[4] >= 0 {
				b.output = string(text[match[4]:match[5]])
			}
			all = append(all, b)
		}
	}
	return all
}

// pages returns all pages of the repository, with slashes on each system.
func pages(t *testing.T) (all []string) {
	t.Helper()
	for _, pattern := range []string{
		"*.md", "docs/*.md", "docs/*/*.md", "web/*.md", "cmd/*/*.md", "adapter/*/*.md",
	} {
		found, err := fs.Glob(os.DirFS("."), pattern)
		if err != nil || len(found) == 0 {
			t.Fatal(pattern, err)
		}
		all = append(all, found...)
	}
	return all
}

// TestEachAdapterHasAPage, a row in docs/extend.md, and a test of its page.
func TestEachAdapterHasAPage(t *testing.T) {
	table, err := os.ReadFile("docs/extend.md")
	if err != nil {
		t.Fatal(err)
	}
	adapters, err := os.ReadDir("adapter")
	if err != nil {
		t.Fatal(err)
	}
	for _, adapter := range adapters {
		if adapter.Name() == "internal" {
			continue
		}
		page := "adapter/" + adapter.Name() + "/README.md"
		if _, err := os.Stat(page); err != nil {
			t.Error(err)
		}
		if !strings.Contains(string(table), "](../"+page+")") {
			t.Errorf("docs/extend.md has no row that links to %s", page)
		}
		tests, err := filepath.Glob("adapter/" + adapter.Name() + "/*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(tests, func(name string) bool {
			text, err := os.ReadFile(name)
			return err == nil && (strings.Contains(string(text), `adaptertest.Page(t, "README.md")`) ||
				strings.Contains(string(text), "adaptertest.Provider{"))
		}) {
			t.Errorf("no test of the adapter calls adaptertest.Page for %s", page)
		}
	}
}

// A page that names a test as its proof names one that exists.
func TestNamedTestsExist(t *testing.T) {
	declared := make(map[string]bool)
	declaration := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if name == ".git" && entry != nil && entry.IsDir() {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		for _, match := range declaration.FindAllSubmatch(text, -1) {
			declared[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
	for _, page := range pages(t) {
		if strings.HasPrefix(page, "adapter/") || page == "CHANGELOG.md" {
			continue // the first name fields of others, and the second names what is gone
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range named.FindAllSubmatch(text, -1) {
			if !declared[string(match[1])] {
				t.Errorf("%s names %s, and there is no such test", page, match[1])
			}
		}
	}
}

func (b *block) program() bool { return strings.HasPrefix(b.code, "package main\n") }

// source makes a file of the block, in which faults are told by the lines of the page.
func (b *block) source(packages map[string]string) (string, error) {
	place := fmt.Sprintf("//line %s:%d\n", b.page, b.line)
	if b.program() {
		return place + b.code, nil
	}
	body := place + b.code
	if _, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+b.code, 0); err != nil {
		used, err := declared(b.code)
		if err != nil {
			return "", err
		}
		body = "func _() error {\n" + place + b.code + used + "return nil\n}\n"
	}
	body = "var ctx = context.Background()\n" + b.given + body
	imports, err := imported(body, packages)
	if err != nil {
		return "", err
	}
	return "package p\n" + imports + body, nil
}

// declared returns statements that use all variables that the statements declare, so that a block
// may end with them.
func declared(code string) (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc _() error {\n"+code+"}\n",
		0)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, statement := range file.Decls[0].(*ast.FuncDecl).Body.List {
		if assign, ok := statement.(*ast.AssignStmt); ok && assign.Tok == token.DEFINE {
			for _, left := range assign.Lhs {
				fmt.Fprintf(&b, "_ = %s\n", left.(*ast.Ident).Name)
			}
		}
	}
	return strings.ReplaceAll(b.String(), "_ = _\n", ""), nil
}

// imported returns the imports of all packages that the code names.
func imported(code string, packages map[string]string) (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+code, 0)
	if err != nil {
		return "", err
	}
	own := declaredNames(file)
	var paths []string
	ast.Inspect(file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			name, ok := selector.X.(*ast.Ident)
			if ok && packages[name.Name] != "" && !own[name.Name] {
				paths = append(paths, packages[name.Name])
			}
		}
		return true
	})
	slices.Sort(paths)
	var b strings.Builder
	for _, path := range slices.Compact(paths) {
		if path == sdkPath {
			b.WriteString("import sdk ")
		} else {
			b.WriteString("import ")
		}
		fmt.Fprintf(&b, "%q\n", path)
	}
	return b.String(), nil
}

// declaredNames returns the names that a file declares. A variable called answer hides package
// answer, so such a block can't use the package.
func declaredNames(file *ast.File) map[string]bool {
	names := make(map[string]bool)
	add := func(idents ...*ast.Ident) {
		for _, ident := range idents {
			names[ident.Name] = true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if ident, ok := left.(*ast.Ident); ok && n.Tok == token.DEFINE {
					add(ident)
				}
			}
		case *ast.ValueSpec:
			add(n.Names...)
		case *ast.FuncType:
			for _, parameter := range n.Params.List {
				add(parameter.Names...)
			}
		}
		return true
	})
	return names
}

// packages returns the paths of the packages that blocks may name, by their names.
func packages(t *testing.T) map[string]string {
	t.Helper()
	ours, err := exec.Command("go", "list", "-f", "{{.Name}} {{.ImportPath}}", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]string{
		"rand": "math/rand/v2", "openai": "github.com/heedhq/heed/adapter/openai",
		"sdk": sdkPath, "option": sdkPath + "/option",
	}
	for _, name := range standard {
		paths[path.Base(name)] = name
	}
	for line := range strings.Lines(string(ours)) {
		if name, importPath, _ := strings.Cut(strings.TrimSpace(line), " "); name != "main" {
			paths[name] = importPath
		}
	}
	return paths
}

// TestDocs vets all Go code of the pages, runs their programs, and wants of it the form that gofmt
// gives it.
func TestDocs(t *testing.T) {
	all := blocks(t)
	paths := packages(t)
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	// Each block is a package of a module that shares a workspace with this one.
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module docs\n\ngo 1.25.0\n")
	write(t, filepath.Join(dir, "go.work"), fmt.Sprintf(
		"go 1.26.0\n\nuse (\n\t.\n\t%q\n\t%q\n)\n\nreplace github.com/heedhq/heed v0.0.0 => %q\n",
		root, filepath.Join(root, "adapter", "openai"), root))
	command := func(args ...string) (string, error) {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK="+filepath.Join(dir, "go.work"))
		output, err := cmd.CombinedOutput()
		return string(output), err
	}
	seen := make(map[string]bool)
	for i := range all {
		b := &all[i]
		seen[b.page] = true
		if formatted, err := format.Source([]byte(b.code)); err != nil || string(formatted) != b.code {
			t.Errorf("%s:%d: is not as gofmt has it: %v", b.page, b.line, err)
		}
		source, err := b.source(paths)
		if err != nil {
			t.Fatalf("%s:%d: %v", b.page, b.line, err)
		}
		write(t, filepath.Join(dir, fmt.Sprint("block", i), "block.go"), source)
	}
	if !seen["README.md"] || !seen["docs/start.md"] || !seen["web/README.md"] {
		t.Fatalf("found Go code only in %v", seen)
	}
	if output, err := command("vet", "./..."); err != nil {
		t.Fatalf("go vet: %v\n%s", err, output)
	}
	// One build links the programs side by side, and leaves out what only a debugger reads.
	bin := t.TempDir()
	if output, err := command("build", "-ldflags=-s -w", "-o", bin+string(filepath.Separator),
		"./..."); err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	for i := range all {
		if b := &all[i]; b.program() {
			t.Run(fmt.Sprintf("%s:%d", b.page, b.line), func(t *testing.T) {
				cmd := exec.Command(filepath.Join(bin, fmt.Sprint("block", i)))
				cmd.Dir = dir
				output, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s", err, output)
				}
				if output := string(output); output != b.output {
					t.Errorf("it prints\n%sand not\n%s", output, b.output)
				}
			})
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestWiring counts the lines from opening the store to Run in docs/start.md: at most 10 for an
// agent, and 25 for one with lessons.
func TestWiring(t *testing.T) {
	var counted []int
	for _, b := range blocks(t) {
		at := strings.Index(b.code, "agent, err := loop.New(")
		to := strings.Index(b.code, "go agent.Run(")
		if b.page != "docs/start.md" || at < 0 || to < 0 {
			continue
		}
		if before := strings.Index(b.code, "sqlstore.Open("); before >= 0 {
			at = min(at, before)
		}
		lines := strings.Count(b.code[at:to], "\n") + 1
		counted = append(counted, lines)
		most := 10
		if strings.Contains(b.code, "Lessons:") {
			most = 25
		}
		if lines > most {
			t.Errorf("%s:%d: %d lines, may be %d", b.page, b.line, lines, most)
		}
	}
	if len(counted) != 2 {
		t.Errorf("found the wirings %v, must be two", counted)
	}
	t.Log(counted)
}

var (
	link    = regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]*))?\)`)
	code    = regexp.MustCompile("(?ms)^```.*?^```$") // with type parameters, which look like links
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noWord  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors returns what links to a page may have behind their #.
func anchors(page []byte) map[string]bool {
	all := make(map[string]bool)
	for _, match := range heading.FindAllSubmatch(code.ReplaceAll(page, nil), -1) {
		name := noWord.ReplaceAllString(strings.ToLower(string(match[1])), "")
		all[strings.ReplaceAll(name, " ", "-")] = true
	}
	return all
}

// TestDocsLinks wants everything to be there that a page links to in the repository.
func TestDocsLinks(t *testing.T) {
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
			to := page
			if strings.Contains(match[1], "://") {
				continue
			}
			if match[1] != "" {
				to = path.Join(path.Dir(page), match[1])
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: %v", page, err)
				continue
			}
			if match[2] == "" {
				continue
			}
			target, err := os.ReadFile(to)
			if err != nil || !anchors(target)[match[2]] {
				t.Errorf("%s: %s has no heading #%s", page, to, match[2])
			}
		}
	}
}

// budgets are the most words that pages may have, without code, so that they stay short.
var budgets = map[string]int{
	"README.md": 900, "CONTRIBUTING.md": 850, "SECURITY.md": 1_300,
	"docs/start.md": 1_500, "docs/choosing.md": 2_000, "docs/trust.md": 1_800, "docs/rules.md": 1_400,
	"docs/patterns.md": 700, "docs/stores.md": 1_600, "docs/operate.md": 2_600,
	"docs/scale.md": 880, "docs/extend.md": 1_200, "docs/limits.md": 1_200,
	"docs/specs.md": 3_000, // a row for each name of five documents
	"web/README.md": 600, "cmd/heed/README.md": 600,
}

var notWords = regexp.MustCompile("(?ms)^```.*?^```$|<!--.*?-->|`[^`\n]*`|\\]\\([^)]*\\)|[|]")

// TestPagesStayShort counts the words of the pages that people write.
func TestPagesStayShort(t *testing.T) {
	for _, page := range pages(t) {
		most := budgets[page]
		switch {
		case strings.HasPrefix(page, "adapter/"):
			most = 400
		case strings.HasPrefix(page, "docs/decisions/"):
			most = 150
		case most == 0 && strings.HasPrefix(page, "docs/") && !strings.HasPrefix(page, "docs/studies/"):
			t.Errorf("%s has no budget: write into one of the pages", page)
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		n := len(strings.Fields(notWords.ReplaceAllString(string(text), " ")))
		if most > 0 && n > most {
			t.Errorf("%s has %d words, at most %d", page, n, most)
		}
	}
}
