package mutants

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// A reason is why a survivor is in the list, and whether no test could distinguish it from the
// code.
type reason struct {
	equivalent bool
	text       string
}

// readList reads survivors.txt: the key of a mutant in one line, and in the next, indented, its
// reason, which begins with "equivalent:" or "accepted:".
func readList(file string) (map[string]reason, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	listed, key := map[string]reason{}, ""
	for n, line := range strings.Split(string(text), "\n") {
		kind, why, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !strings.HasPrefix(line, "\t") && key == "":
			key = line
		case key == "" || why == "" || kind != "equivalent" && kind != "accepted":
			return nil, fmt.Errorf("%s:%d: no reason of a mutant, or none that is equivalent or accepted",
				file, n+1)
		default:
			listed[key], key = reason{kind == "equivalent", why}, ""
		}
	}
	if key != "" {
		return nil, fmt.Errorf("%s: %s has no reason", file, key)
	}
	return listed, nil
}

// report prints the survivors and the rates, and reports whether all survivors are listed and the
// rate is reached.
func report(w io.Writer, sample, all []*mutant, listed map[string]reason, part bool) bool {
	type count struct{ mutants, killed, late, equivalent, untested int }
	counts, ok, here := map[string]*count{}, true, map[string]*mutant{}
	sum := &count{}
	fmt.Fprintln(w, "\nSurvivors:")
	for _, m := range sample {
		here[m.key] = m
		dir := path.Dir(m.file)
		if counts[dir] == nil {
			counts[dir] = &count{}
		}
		why, known := listed[m.key]
		for _, c := range []*count{counts[dir], sum} {
			c.mutants++
			switch {
			case m.killer != "":
				c.killed++
			case why.equivalent:
				c.equivalent++
			case !m.reached && !known:
				c.untested++
			}
			if strings.HasSuffix(m.killer, late) {
				c.late++
			}
		}
		if m.killer == "" {
			ok = ok && known
			fmt.Fprintf(w, "%s\n\t%s (line %d)\n", m.key, cmp.Or(why.text, "NOT IN THE LIST"), m.line)
		}
	}
	fmt.Fprintf(w, "\n%-22s %8s %8s %12s %11s %9s %7s\n", "package", "mutants", "killed",
		"out of time", "equivalent", "untested", "rate")
	for _, dir := range append(slices.Sorted(maps.Keys(counts)), "all") {
		c := counts[dir]
		if dir == "all" {
			c = sum
		}
		fmt.Fprintf(w, "%-22s %8d %8d %12d %11d %9d %6.1f%%\n", dir, c.mutants, c.killed, c.late,
			c.equivalent, c.untested,
			100*float64(c.killed)/float64(max(1, c.mutants-c.equivalent)))
	}
	if part {
		return ok
	}
	stale(w, all, listed, here)
	if 10*sum.killed < 9*(sum.mutants-sum.equivalent) {
		ok = false
		fmt.Fprintln(w, "fewer than 90 % of the mutants that are not equivalent are killed")
	}
	if !ok {
		fmt.Fprintln(w,
			"write a test for each survivor that is not listed, or list it in survivors.txt")
	}
	return ok
}

// stale prints what the list has and the sample does not, or what is killed by now.
func stale(w io.Writer, all []*mutant, listed map[string]reason, here map[string]*mutant) {
	for _, m := range all {
		if _, known := listed[m.key]; known && here[m.key] == nil {
			fmt.Fprintf(w, "listed, and not in the sample: %s\n", m.key)
			here[m.key] = m
		}
	}
	for _, key := range slices.Sorted(maps.Keys(listed)) {
		switch m := here[key]; {
		case m == nil:
			fmt.Fprintf(w, "listed, and its code is gone: %s\n", key)
		case m.killer != "":
			fmt.Fprintf(w, "listed, and killed: %s\n", key)
		}
	}
}
