package mutants

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// switcher is the package that selects which mutant runs. A run that is traced has no mutant, and
// notes what it reaches.
const switcher = `package heedmutant

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

var (
	active, _ = strconv.Atoi(os.Getenv("HEED_MUTANT"))
	trace     = os.Getenv("HEED_MUTANT_TRACE")
	reached   sync.Map
)

func Is(id int) bool {
	if trace != "" {
		if _, again := reached.LoadOrStore(id, true); !again {
			file, err := os.OpenFile(trace, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				panic(err)
			}
			fmt.Fprintln(file, id)
			file.Close()
		}
	}
	return id == active
}
`

// mutated returns a file with the copies of each mutated function at the function's beginning. At
// most one copy runs.
func mutated(src string, mutants []*mutant) string {
	functions := map[*function][]*mutant{}
	for _, m := range mutants {
		functions[m.fn] = append(functions[m.fn], m)
	}
	var inserts []insert
	for fn, mutants := range functions {
		var copies strings.Builder
		for _, m := range mutants {
			fmt.Fprintf(&copies, "if heedmutant.Is(%d) {\n//line mutant%d.go:1\n%s", m.id, m.id,
				m.copied(src))
			if !fn.results {
				copies.WriteString("\nreturn")
			}
			copies.WriteString("\n}\n")
		}
		fmt.Fprintf(&copies, "//line %s:%d\n", mutants[0].file, strings.Count(src[:fn.start], "\n")+1)
		inserts = append(inserts, insert{fn.start, fn.start, copies.String()})
	}
	clause := strings.Index(src, "\npackage ") + 1
	end := clause + strings.IndexByte(src[clause:], '\n')
	inserts = append(inserts, insert{end, end, `; import "` + module + `/internal/heedmutant"`})
	return apply(src, 0, len(src), inserts)
}

// copied returns the body of the function with the fault. Its labels get names of their own.
func (m *mutant) copied(src string) string {
	edits := []insert{{m.start, m.end, m.replacement}}
	for _, label := range m.fn.labels {
		if label <= m.start || label > m.end {
			edits = append(edits, insert{label, label, fmt.Sprintf("_%d", m.id)})
		}
	}
	return apply(src, m.fn.start, m.fn.end, edits)
}

// An insert puts a text in place of what is from start to end.
type insert struct {
	start, end int
	text       string
}

func apply(src string, from, to int, edits []insert) string {
	slices.SortFunc(edits, func(x, y insert) int { return cmp.Compare(x.start, y.start) })
	var out strings.Builder
	for _, e := range edits {
		out.WriteString(src[from:e.start] + e.text)
		from = e.end
	}
	return out.String() + src[from:to]
}
