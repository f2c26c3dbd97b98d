package routing

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"

	"github.com/heedhq/heed/evidence"
)

// A table holds recorded outcomes: of each task, whether each arm was right.
type table struct {
	arms  []string
	items []string // in the order in which they appear
	tasks []task

	questions []string    // the ids of the tasks' questions
	forms     [][]float32 // of the tasks' questions; nil: they are not known
}

type task struct {
	item  int
	right []bool // by arm
}

// readTable reads a table from a CSV file: the item, the question's id, then a column for each arm with 0 or 1. Faults
// are reported with file, line and column.
func readTable(name string) (*table, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	return parseTable(name, file)
}

func parseTable(name string, r io.Reader) (*table, error) {
	text := bufio.NewReader(r)
	if mark, err := text.Peek(3); err == nil && string(mark) == "\ufeff" {
		_, _ = text.Discard(3) // the mark that some programs put before UTF-8
	}
	records := csv.NewReader(text)
	header, err := records.Read()
	switch {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s: is empty: the first line must name the columns", name)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case len(header) < 4:
		return nil, fmt.Errorf("%s:1: has %d columns, must have an item, a question's id and at least two arms", name, len(header))
	}
	t := &table{arms: header[2:]}
	for i, arm := range t.arms {
		if arm == "" || slices.Contains(t.arms[:i], arm) {
			return nil, fmt.Errorf("%s:1: column %d: the arm %q has no name of its own", name, i+3, arm)
		}
		if err := evidence.CheckText("arm", arm); err != nil {
			return nil, fmt.Errorf("%s:1: column %d: %w", name, i+3, err)
		}
	}
	items := make(map[string]int)
	for {
		record, err := records.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		line, _ := records.FieldPos(0)
		if err := evidence.CheckText("item", record[0]); err != nil || record[0] == "" {
			return nil, fmt.Errorf("%s:%d: column 1: %w", name, line, cmp.Or(err, errors.New("the item has no name")))
		}
		item, ok := items[record[0]]
		if !ok {
			item = len(t.items)
			items[record[0]] = item
			t.items = append(t.items, record[0])
		}
		right := make([]bool, len(t.arms))
		for i, cell := range record[2:] {
			if cell != "0" && cell != "1" {
				line, column := records.FieldPos(i + 2)
				return nil, fmt.Errorf("%s:%d: column %d (%s, at character %d): %q is not 0 or 1", name, line, i+3, t.arms[i], column, cell)
			}
			right[i] = cell == "1"
		}
		t.tasks, t.questions = append(t.tasks, task{item, right}), append(t.questions, record[1])
	}
	if len(t.tasks) == 0 {
		return nil, fmt.Errorf("%s: has no tasks", name)
	}
	return t, nil
}

// makeTable makes a table of three models, each larger and better than the one before, but for some subjects hardly so.
func makeTable() *table {
	t := &table{arms: []string{"small", "medium", "large"}}
	subjects := []string{
		"algebra", "anatomy", "astronomy", "botany", "chemistry", "economics", "ethics", "geography", "geometry", "grammar",
		"history", "law", "logic", "mechanics", "music", "nutrition", "optics", "philosophy", "poetry", "statistics",
	}
	rng := evidence.Rand{State: 20260101}
	for i, subject := range subjects {
		t.items = append(t.items, subject)
		var rates [3]float64
		for arm, level := range [...]float64{0.62, 0.74, 0.83} {
			around := evidence.Beta{Alpha: 8 * level, Beta: 8 * (1 - level)}.Sampler()
			rates[arm] = around.Draw(&rng)
		}
		for range 300 {
			right := make([]bool, len(rates))
			for arm, rate := range rates {
				right[arm] = rng.Float64() < rate
			}
			t.tasks, t.questions = append(t.tasks, task{i, right}), append(t.questions, strconv.Itoa(len(t.tasks)))
		}
	}
	return t
}

// reward is what an arm earns on a task: being right, and the price of the last arm where that was saved, over all that
// can be earned.
func (t *table) reward(task, arm int, price float64) float64 {
	reward := 0.
	if t.tasks[task].right[arm] {
		reward++
	}
	if arm != len(t.arms)-1 {
		reward += price
	}
	return reward / (1 + price)
}

// best returns the arm that earns most on each item, which no policy knows.
func (t *table) best(price float64) []int {
	earned := make([][]float64, len(t.items))
	for i := range earned {
		earned[i] = make([]float64, len(t.arms))
	}
	for i, task := range t.tasks {
		for arm := range t.arms {
			earned[task.item][arm] += t.reward(i, arm, price)
		}
	}
	best := make([]int, len(t.items))
	for i := range best {
		for arm := range t.arms {
			if earned[i][arm] > earned[i][best[i]] {
				best[i] = arm
			}
		}
	}
	return best
}

// stream returns the tasks in the order of one run.
func (t *table) stream(seed uint64, run int) []int {
	return rand.New(rand.NewPCG(seed, uint64(run))).Perm(len(t.tasks))
}
