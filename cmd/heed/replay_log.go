package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A request is what was asked, with the outcome of the arm that was chosen.
type request struct {
	place      string // file and line, for errors
	text       string
	item       string
	category   string
	context    string
	arm        string
	reward     float64 // in [0, 1]
	cost       float64 // at least 0
	latency    time.Duration
	tokens     int
	propensity float64   // in (0, 1]; 0: not known
	at         time.Time // zero: not known
	divided    bool      // the item is not in the file, but a cell of the text
}

// columns are the columns of a log, and the keys of its lines.
var columns = []string{
	"arm", "outcome", "text", "item", "category", "context", "cost", "latency", "tokens",
	"propensity", "at",
}

// readLog reads a log of past requests, as CSV or as lines of JSON.
func readLog(name string, log []byte) (all []request, err error) {
	log = bytes.TrimPrefix(log, []byte("\xef\xbb\xbf")) // of spreadsheets
	read := readCSV
	if bytes.HasPrefix(bytes.TrimSpace(log), []byte("{")) {
		read = readLines
	}
	err = read(log, func(line int, row map[string]string) error {
		q := request{place: fmt.Sprintf("%s:%d", name, line)}
		for _, column := range columns {
			value, there := row[column]
			delete(row, column)
			if column == "outcome" && !there {
				return fmt.Errorf("%s: outcome is missing", q.place)
			}
			if err := q.set(column, value); err != nil {
				return fmt.Errorf("%s: %s %w", q.place, column, err)
			}
		}
		for _, column := range slices.Sorted(maps.Keys(row)) {
			return fmt.Errorf("%s: %q is none of %s, which are in lower case and separated by commas",
				q.place, column, strings.Join(columns, ", "))
		}
		all = append(all, q)
		return nil
	})
	if syntax := (*csv.ParseError)(nil); errors.As(err, &syntax) {
		err = fmt.Errorf("%s:%d: %w", name, syntax.Line, syntax.Err)
	}
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s has no requests", name)
	}
	return all, err
}

func readCSV(log []byte, add func(line int, row map[string]string) error) error {
	reader := csv.NewReader(bytes.NewReader(log))
	header, err := reader.Read()
	for err == nil {
		var fields []string
		if fields, err = reader.Read(); err != nil {
			break
		}
		row := make(map[string]string)
		for i, column := range header {
			if _, twice := row[column]; twice {
				return fmt.Errorf("the column %q is there twice", column)
			}
			row[column] = fields[i]
		}
		line, _ := reader.FieldPos(0)
		err = add(line, row)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func readLines(log []byte, add func(line int, row map[string]string) error) error {
	n := 0
	for line := range bytes.Lines(log) {
		if n++; len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var values map[string]any
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.UseNumber()
		if err := decoder.Decode(&values); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		row := make(map[string]string)
		for key, value := range values {
			if value != nil {
				row[key] = fmt.Sprint(value)
			}
		}
		if err := add(n, row); err != nil {
			return err
		}
	}
	return nil
}

// set sets a value of a log, or says why it can't.
func (q *request) set(column, text string) (err error) {
	switch column {
	case "arm":
		if q.arm = text; text == "" {
			err = errors.New("is missing")
		}
		return err
	case "outcome":
		switch strings.ToLower(text) {
		case "true":
			q.reward = 1
		case "false":
		default:
			if q.reward, err = number(text, 0, 1); err != nil {
				err = fmt.Errorf("%w, true or false", err)
			}
		}
		return err
	}
	if text == "" {
		return nil // not known
	}
	var x float64
	switch column {
	case "text":
		q.text = text
	case "item":
		q.item = text
	case "category":
		q.category = text
	case "context":
		q.context = text
	case "cost":
		q.cost, err = number(text, 0, 1e12) // which keeps sums finite
	case "latency":
		x, err = number(text, 0, 1e7)
		q.latency = time.Duration(x * float64(time.Second))
	case "tokens":
		x, err = number(text, 0, math.MaxInt32)
		q.tokens = int(x)
	case "propensity":
		q.propensity, err = number(text, 1e-6, 1)
	case "at":
		if q.at, err = time.Parse(time.RFC3339, text); err != nil || q.at.Year() < 1971 {
			err = errors.New("is no time since 1971, such as 2026-01-31T15:04:05Z")
		}
	}
	return err
}

func number(text string, low, high float64) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= low && x <= high) {
		return 0, fmt.Errorf("is %.40q, must be a number from %v to %v", text, low, high)
	}
	return x, nil
}
