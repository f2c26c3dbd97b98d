package board

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
)

// A row is a recorded task.
type row struct {
	item, question string
	right          []bool
	form           []float32 // a vector of numbers about its text; nil: unknown
}

// readCSV calls add with each line of a file behind its header, and with a function that adds to an
// error where it is.
func readCSV(name string, columns int, add func(record []string,
	fault func(column int) error) error) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	records := csv.NewReader(file)
	header, err := records.Read()
	if err != nil || len(header) < columns {
		return errors.Join(fmt.Errorf("%s: the first line must name at least %d columns", name,
			columns), err)
	}
	for {
		record, err := records.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = add(record, func(column int) error {
				line, _ := records.FieldPos(column)
				return fmt.Errorf("line %d, column %d (%s): %q", line, column+1, header[column],
					record[column])
			})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
}

// readTable makes a world of a CSV file with a header: the item, the question's id, and for each
// arm 0 or 1. The last arm costs 1, and the others 0. forms is a file with the item, the question's
// id and numbers: the vectors of the requests; "": no vectors.
func readTable(name, forms string, price float64) (w world, err error) {
	var rows []row
	err = readCSV(name, 4, func(record []string, fault func(int) error) error {
		r := row{item: record[0], question: record[1]}
		for i, cell := range record[2:] {
			if cell != "0" && cell != "1" {
				return fmt.Errorf("%w is not 0 or 1", fault(i+2))
			}
			r.right = append(r.right, cell == "1")
		}
		rows = append(rows, r)
		return nil
	})
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("%s: has no tasks", name)
	}
	if err == nil && forms != "" {
		err = readForms(forms, rows)
	}
	if err != nil {
		return w, err
	}
	w = world{name: "recorded", price: price, costs: make([]float64, len(rows[0].right)),
		draw: drawRows(rows)}
	w.costs[len(w.costs)-1] = 1
	return w, nil
}

// readForms gives each row the vector of its question.
func readForms(name string, rows []row) error {
	forms := make(map[[2]string][]float64)
	err := readCSV(name, 3, func(record []string, fault func(int) error) (err error) {
		form := make([]float64, len(record)-2)
		for i, cell := range record[2:] {
			if form[i], err = strconv.ParseFloat(cell, 64); err != nil || !(form[i] >= 0 &&
				form[i] <= 1e9) {
				return fmt.Errorf("%w is no number from 0 to 1e9", fault(i+2))
			}
		}
		forms[[2]string{record[0], record[1]}] = form
		return nil
	})
	if err != nil {
		return err
	}
	values := make([][]float64, len(rows))
	for i, r := range rows {
		if values[i] = forms[[2]string{r.item, r.question}]; values[i] == nil {
			return fmt.Errorf("%s: has no form of the question %s of %s", name, r.question, r.item)
		}
	}
	for i, vector := range vectors(values) {
		rows[i].form = vector
	}
	return nil
}

// steps is how many places of a vector a number has that is not only 0 or 1.
const steps = 4

// vectors makes a vector of each row. A number from 0 to 1 is a place. The logarithm of any other
// lies between two of four places, which are equal parts of what most rows have. So rows are alike
// whose numbers are.
func vectors(rows [][]float64) [][]float32 {
	all := make([][]float32, len(rows))
	for column := range rows[0] {
		values := make([]float64, len(rows))
		for i := range rows {
			values[i] = rows[i][column]
		}
		if slices.Max(values) <= 1 {
			for i := range all {
				all[i] = append(all[i], float32(values[i]))
			}
			continue
		}
		for i := range values {
			values[i] = math.Log2(1 + values[i])
		}
		sorted := slices.Sorted(slices.Values(values))
		low, high := sorted[len(sorted)/50], sorted[len(sorted)-1-len(sorted)/50]
		for i := range all {
			at := 0.
			if high > low {
				at = min(max((values[i]-low)/(high-low), 0), 1) * (steps - 1)
			}
			for step := range steps {
				all[i] = append(all[i], float32(max(1-math.Abs(at-float64(step)), 0)))
			}
		}
	}
	return all
}

// drawRows returns a world of recorded tasks, in another order for each run, from the start again
// if there are too few. A task's rates are the shares of right answers to its item.
func drawRows(rows []row) drawing {
	counts, rates := make(map[string]float64), make(map[string][]float64)
	var before [][]float32
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
		if r.form != nil {
			before = append(before, r.form)
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
			r := rows[order[i%len(rows)]]
			all[i] = request{item: r.item, right: r.right, rates: rates[r.item], vector: r.form}
			if r.form == nil {
				all[i].vector = direction(rng, numbers)
			}
		}
		return all, before
	}
}
