package routing

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/partition"
)

// readForms reads what is known of the form of each question of a table: a CSV file with the item, the question's id, and columns of numbers.
// It keeps a vector for each task.
func (t *table) readForms(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	return t.parseForms(name, file)
}

func (t *table) parseForms(name string, r io.Reader) error {
	records := csv.NewReader(r)
	header, err := records.Read()
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%s: is empty: the first line must name the columns", name)
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	case len(header) < 3:
		return fmt.Errorf("%s:1: has %d columns, must have an item, a question's id and at least one number", name, len(header))
	}
	rows := make(map[[2]string][]float64)
	for {
		record, err := records.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		row := make([]float64, len(record)-2)
		for i, cell := range record[2:] {
			if row[i], err = strconv.ParseFloat(cell, 64); err != nil || !(row[i] >= 0 && row[i] <= 1e9) {
				line, column := records.FieldPos(i + 2)
				return fmt.Errorf("%s:%d: column %d (%s, at character %d): %q is no number from 0 to 1e9", name, line, i+3, header[i+2], column, cell)
			}
		}
		rows[[2]string{record[0], record[1]}] = row
	}
	values := make([][]float64, len(t.tasks))
	for i, task := range t.tasks {
		key := [2]string{t.items[task.item], t.questions[i]}
		if values[i] = rows[key]; values[i] == nil {
			return fmt.Errorf("%s: has no form of the question %s of %s", name, key[1], key[0])
		}
	}
	t.forms = vectors(values)
	return nil
}

// steps is how many places of a vector a number has that is not only 0 or 1.
const steps = 4

// vectors makes a vector of each row. A number from 0 to 1 is a place. The logarithm of any other lies between two of four places, which stand for
// equal parts of what most rows have. So rows are alike whose numbers are.
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

// byForm returns policies that differ in what they take for the item, where the table has forms: nothing, the cell of the question's form, and
// the subject together with that.
func (t *table) byForm() []policy {
	if t.forms == nil {
		return nil
	}
	cell := func(r replay) (func(task int) (string, error), error) {
		ctx := context.Background()
		part, err := partition.New(ctx, partition.Config{Frozen: true, Seed: rand.NewPCG(r.seed, uint64(r.run))})
		if err == nil {
			err = part.FitVectors(ctx, t.forms)
		}
		return func(task int) (string, error) { return part.Of(t.forms[task]) }, err
	}
	return []policy{
		{"no item", func(ctx context.Context, r replay, chosen func(task, arm int) float64) error {
			_, err := r.learn(ctx, strategy.TwoLevel{}, func(int) (string, error) { return "", nil }, chosen)
			return err
		}},
		{"by form", func(ctx context.Context, r replay, chosen func(task, arm int) float64) error {
			item, err := cell(r)
			if err == nil {
				_, err = r.learn(ctx, strategy.TwoLevel{}, item, chosen)
			}
			return err
		}},
		{"subject and form", func(ctx context.Context, r replay, chosen func(task, arm int) float64) error {
			item, err := cell(r)
			if err == nil {
				_, err = r.learn(ctx, strategy.TwoLevel{}, func(task int) (string, error) {
					form, err := item(task)
					return strings.Join([]string{t.items[t.tasks[task].item], form}, " "), err
				}, chosen)
			}
			return err
		}},
	}
}
