package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/heedhq/heed"
)

// nearest returns at most three of the names that look most like a text, the likest first: those that are a slip or two away,
// a third of the text's characters at most, and those that the text is the beginning or a part of.
func nearest(text string, names []string) []string {
	type candidate struct {
		name  string
		slips int
	}
	var near []candidate
	typed := strings.ToLower(text)
	most := (len([]rune(typed)) + 2) / 3
	seen := map[string]bool{"": true}
	for _, name := range names {
		if seen[name] {
			continue
		}
		seen[name] = true
		lower := strings.ToLower(name)
		n := slips(typed, lower)
		switch {
		case strings.HasPrefix(lower, typed):
			n = min(n, 1)
		case n > most && len(typed) >= 3 && strings.Contains(lower, typed):
			n = most + 1
		case n > most:
			continue
		}
		near = append(near, candidate{name, n})
	}
	slices.SortFunc(near, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.slips, b.slips), cmp.Compare(a.name, b.name))
	})
	var found []string
	for _, c := range near[:min(len(near), 3)] {
		found = append(found, c.name)
	}
	return found
}

// slips is how many characters have to be put in, left out, exchanged, or swapped with their neighbours, each at most once, to
// make one text of another (the optimal string alignment of Damerau 1964 and Levenshtein 1966).
func slips(a, b string) int {
	from, to := []rune(a), []rune(b)
	var before, last []int // the rows of the two shorter beginnings of a
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i := range from {
		before, last, row = last, row, make([]int, len(to)+1)
		row[0] = i + 1
		for j := range to {
			cost := last[j]
			if from[i] != to[j] {
				cost++
			}
			row[j+1] = min(cost, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && from[i] == to[j-1] && from[i-1] == to[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(to)]
}

// few writes the first of some names.
func few(names []string) string {
	const most = 5
	if len(names) > most {
		names = append(slices.Clone(names[:most]), "…")
	}
	return show(strings.Join(names, ", "))
}

// unknown says that there is no thing of this name, and which there are.
func unknown(what, name string, names []string, see string) error {
	near := nearest(name, names)
	if len(near) == 0 {
		return fmt.Errorf("there is no %s %q: %s", what, name, see)
	}
	return fmt.Errorf("there is no %s %q: did you mean %s?", what, name, strings.Join(quoted(near), " or "))
}

// given says that an argument is empty, which names nothing.
func given(what, id string) error {
	if id == "" {
		return &usageError{"which " + what + "? The id is empty"}
	}
	return nil
}

// damaged says that there is a thing of this name, but that it can't be read, if that is so.
func damaged(what, name string, err error) error {
	if errors.Is(err, heed.ErrDamaged) {
		return fmt.Errorf("the %s %s is damaged: see heed doctor", what, show(name))
	}
	return err
}

func quoted(names []string) []string {
	return texts(names, strconv.Quote)
}
