package board

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
)

// A row is a recorded task.
type row struct {
	item  string
	right []bool
}

// readTable makes a world of a CSV file with a header: the item, the question's id, and for each arm 0 or 1. The last arm costs 1, and the
// others nothing.
func readTable(name string, price float64) (w world, err error) {
	file, err := os.Open(name)
	if err != nil {
		return w, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	records := csv.NewReader(file)
	header, err := records.Read()
	if err != nil || len(header) < 4 {
		return w, errors.Join(fmt.Errorf("%s: the first line must name an item, a question's id and at least two arms", name), err)
	}
	var rows []row
	for {
		record, err := records.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return w, fmt.Errorf("%s: %w", name, err)
		}
		r := row{item: record[0]}
		for i, cell := range record[2:] {
			if cell != "0" && cell != "1" {
				line, _ := records.FieldPos(i + 2)
				return w, fmt.Errorf("%s:%d: column %d (%s): %q is not 0 or 1", name, line, i+3, header[i+2], cell)
			}
			r.right = append(r.right, cell == "1")
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		return w, fmt.Errorf("%s: has no tasks", name)
	}
	w = world{name: "recorded", price: price, costs: make([]float64, len(header)-2), draw: drawRows(rows)}
	w.costs[len(w.costs)-1] = 1
	return w, nil
}

// drawRows returns a world of recorded tasks, in an order of its own for each run, from the start again if there are too few. A task's rates are the shares
// of right answers to its item. Its vector says nothing.
func drawRows(rows []row) func(rng *rand.Rand, requests int) []request {
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
	return func(rng *rand.Rand, requests int) []request {
		order, all := rng.Perm(len(rows)), make([]request, requests)
		for i := range all {
			r := rows[order[i%len(rows)]]
			all[i].item, all[i].right, all[i].rates, all[i].vector = r.item, r.right, rates[r.item], direction(rng)
		}
		return all
	}
}
