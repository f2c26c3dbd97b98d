package board

import (
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
)

// readTable makes a world of a CSV file with a header: the item, the question's id, and for each
// arm 0 or 1. The last arm costs a tenth of a right answer, and the others nothing.
func readTable(name string) (w world, err error) {
	file, err := os.Open(name)
	if err != nil {
		return w, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	records, err := csv.NewReader(file).ReadAll()
	switch {
	case err != nil:
		return w, fmt.Errorf("%s: %w", name, err)
	case len(records) == 0 || len(records[0]) < 4:
		return w, fmt.Errorf("%s: the first line must name at least 4 columns", name)
	case len(records) == 1:
		return w, fmt.Errorf("%s: has no tasks", name)
	}
	rows := make([]request, len(records)-1)
	for n, record := range records[1:] {
		rows[n].item = record[0]
		for i, cell := range record[2:] {
			if cell != "0" && cell != "1" {
				return w, fmt.Errorf("%s: task %d, column %d (%s): %q is not 0 or 1", name, n+1, i+3,
					records[0][i+2], cell)
			}
			rows[n].right = append(rows[n].right, cell == "1")
		}
	}
	w = world{name: "recorded", price: 0.1, costs: make([]float64, len(rows[0].right)),
		draw: drawRows(rows)}
	w.costs[len(w.costs)-1] = 1
	return w, nil
}

// drawRows returns a world of recorded tasks, in another order for each run, from the start again
// if there are too few. A task's rates are the shares of right answers to its item.
func drawRows(rows []request) drawing {
	counts, rates := make(map[string]float64), make(map[string][]float64)
	for _, r := range rows {
		if rates[r.item] == nil {
			rates[r.item] = make([]float64, len(r.right))
		}
		counts[r.item]++
		for arm, right := range r.right {
			if right {
				rates[r.item][arm]++
			}
		}
	}
	for item, of := range rates {
		for arm := range of {
			of[arm] /= counts[item]
		}
	}
	return func(rng *rand.Rand, requests int) ([]request, [][]float32) {
		order, all := rng.Perm(len(rows)), make([]request, requests)
		for i := range all {
			all[i] = rows[order[i%len(rows)]]
			all[i].rates, all[i].vector = rates[all[i].item], direction(rng, numbers)
		}
		return all, nil
	}
}
