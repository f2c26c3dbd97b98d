package mutants

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// readList reads equivalent.txt: the key of a mutant in one line, and in the next, indented, why no
// test could distinguish it from the code.
func readList(file string) (map[string]bool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	listed, key := make(map[string]bool), ""
	for n, line := range strings.Split(string(text), "\n") {
		reason := strings.HasPrefix(line, "\t")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case reason == (key == ""):
			return nil, fmt.Errorf("%s:%d: each mutant has one reason behind it", file, n+1)
		case reason:
			listed[key], key = true, ""
		default:
			key = line
		}
	}
	if key != "" {
		return nil, fmt.Errorf("%s: %s has no reason", file, key)
	}
	return listed, nil
}

// report prints the survivors and the rates, and reports whether the rate is reached.
func report(w io.Writer, sample []*mutant) bool {
	type count struct{ mutants, killed, late, untested int }
	sum, counts := &count{}, make(map[string]*count)
	fmt.Fprintln(w, "\nSurvivors:")
	for _, m := range sample {
		dir := path.Dir(m.file)
		if counts[dir] == nil {
			counts[dir] = &count{}
		}
		for _, c := range []*count{counts[dir], sum} {
			c.mutants++
			switch {
			case m.killer != "":
				c.killed++
			case !m.reached:
				c.untested++
			}
			if strings.HasSuffix(m.killer, late) {
				c.late++
			}
		}
		if m.killer == "" {
			fmt.Fprintf(w, "%s (line %d)\n", m.key, m.line)
		}
	}
	fmt.Fprintf(w, "\n%-22s %8s %8s %12s %9s %7s\n", "package", "mutants", "killed", "out of time",
		"untested", "rate")
	row := func(dir string, c *count) {
		fmt.Fprintf(w, "%-22s %8d %8d %12d %9d %6.1f%%\n", dir, c.mutants, c.killed, c.late,
			c.untested, 100*float64(c.killed)/float64(max(1, c.mutants)))
	}
	for _, dir := range slices.Sorted(maps.Keys(counts)) {
		row(dir, counts[dir])
	}
	row("all", sum)
	return 10*sum.killed >= 9*sum.mutants
}
