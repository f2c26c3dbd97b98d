package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// nearest returns at most three of the names that look most like a text, the likest first.
func nearest(text string, names []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var near []candidate
	seen := make(map[string]bool)
	for _, name := range names {
		d := distance(strings.ToLower(text), strings.ToLower(name))
		if strings.HasPrefix(strings.ToLower(name), strings.ToLower(text)) {
			d = min(d, 1)
		}
		if !seen[name] && name != "" && d <= max(2, len([]rune(text))/3) {
			near = append(near, candidate{name, d})
		}
		seen[name] = true
	}
	slices.SortFunc(near, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	var found []string
	for _, c := range near[:min(len(near), 3)] {
		found = append(found, c.name)
	}
	return found
}

// distance is how many characters have to be put in, left out or exchanged to make one text of another (Levenshtein 1966).
func distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range from {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range to {
			cost := diagonal
			if x != y {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(to)]
}

// unknown says that there is no thing of this name, and which there are.
func unknown(what, name string, names []string, see string) error {
	near := nearest(name, names)
	if len(near) == 0 {
		return fmt.Errorf("there is no %s %q: %s", what, name, see)
	}
	for i := range near {
		near[i] = fmt.Sprintf("%q", near[i])
	}
	return fmt.Errorf("there is no %s %q: did you mean %s?", what, name, strings.Join(near, " or "))
}
