package past

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A row is a line of CSV, with its header.
type row struct {
	name   string
	reader *csv.Reader
	header []string
	fields []string
}

// fault is an error at a field.
func (r *row) fault(field int, reason string) *Error {
	line, column := r.reader.FieldPos(field)
	return &Error{r.name, line, column, r.header[field] + " " + reason}
}

// csv reads a table of comma-separated values.
func (f *File) csv(name string, in io.Reader) error {
	r := &row{name: name, reader: csv.NewReader(in)}
	r.reader.ReuseRecord = true
	header, err := r.next()
	if err != nil {
		return err
	}
	if len(header) > maxColumns {
		return &Error{name, 1, 1, fmt.Sprintf("has %d columns, may have %d", len(header), maxColumns)}
	}
	r.header = slices.Clone(header)
	read := map[string]func(*row) func() (Request, error){Log: logRow, RouterBench: routerBenchRow, RouteLLM: routeLLMRow}[f.Format]
	if fault := r.checkHeader(f.Format); fault != nil {
		return fault
	}
	request := read(r)
	for {
		if r.fields, err = r.next(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		next, err := request()
		if err != nil {
			return err
		}
		f.add(next)
	}
}

// next reads a line.
func (r *row) next() ([]string, error) {
	fields, err := r.reader.Read()
	var wrong *csv.ParseError
	switch {
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	case errors.As(err, &wrong):
		reason := wrong.Err.Error()
		if errors.Is(wrong.Err, csv.ErrFieldCount) {
			reason = "has more or fewer fields than the header"
		}
		return nil, &Error{r.name, wrong.Line, max(wrong.Column, 1), reason}
	case err != nil:
		return nil, &Error{File: r.name, Reason: err.Error()}
	}
	return fields, nil
}

// checkHeader reports a column that is missing, there twice, or unknown.
func (r *row) checkHeader(format string) error {
	known := map[string][]string{
		Log:         logColumns,
		RouterBench: {"sample_id", "eval_name"},
		RouteLLM:    {"prompt"},
	}[format]
	needed := known
	if format == Log {
		needed = known[:2]
	}
	for i, column := range r.header {
		if slices.Contains(r.header[:i], column) {
			return r.fault(i, "is there twice")
		}
		if format == Log && !slices.Contains(known, column) {
			return r.fault(i, "is none of the columns "+strings.Join(known, ", "))
		}
		if reason := checkName(column); reason != "" {
			return r.fault(i, reason)
		}
	}
	for _, column := range needed {
		if !slices.Contains(r.header, column) {
			return &Error{r.name, 1, 1, "the column " + column + " is missing"}
		}
	}
	return nil
}

// logRow reads lines of a log.
func logRow(r *row) func() (Request, error) {
	return func() (q Request, err error) {
		t := Try{}
		for i, column := range r.header {
			if reason := set(&q, &t, column, r.fields[i]); reason != "" {
				return q, r.fault(i, reason)
			}
		}
		q.Tries = []Try{t}
		return q, nil
	}
}

// set takes over a value of a log. It returns why it can't.
func set(q *Request, t *Try, column, text string) (reason string) {
	if column == "text" {
		q.Text = text
		return ""
	}
	if name := map[string]*string{"arm": &t.Arm, "item": &q.Item, "category": &q.Category, "context": &q.Context}[column]; name != nil {
		if *name = text; column == "arm" && text == "" {
			return "must not be empty"
		}
		return checkName(text)
	}
	if text == "" && column != "outcome" {
		return "" // not known
	}
	var x float64
	switch column {
	case "outcome":
		t.Reward, reason = parseReward(text)
	case "cost":
		t.Cost, reason = parseNumber(text, 0, maxCost)
	case "latency":
		x, reason = parseNumber(text, 0, maxSeconds)
		t.Latency = time.Duration(x * float64(time.Second))
	case "tokens":
		x, reason = parseNumber(text, 0, maxTokens)
		t.Tokens = int(x)
	case "propensity":
		if t.Propensity, reason = parseNumber(text, 0, 1); reason == "" && t.Propensity < 1e-6 {
			reason = "must be at least 1e-6, or empty if it is not known"
		}
	case "at":
		var err error
		if q.At, err = time.Parse(time.RFC3339, text); err != nil {
			reason = "is no time such as 2026-01-31T15:04:05Z"
		} else if q.At.Year() < 1971 || q.At.Year() > 2200 {
			reason = "must be from 1971 to 2200"
		}
	}
	return reason
}

// routerBenchRow reads rows of RouterBench's wide table: a model has a column of its performance, one of its response, and one of its cost.
func routerBenchRow(r *row) func() (Request, error) {
	const cost = "|total_cost"
	type columns struct{ reward, cost int }
	models := make(map[string]columns)
	var order []string
	for i, column := range r.header {
		if model, ok := strings.CutSuffix(column, cost); ok {
			if at := slices.Index(r.header, model); at >= 0 {
				models[model] = columns{at, i}
				order = append(order, model)
			}
		}
	}
	id, item := slices.Index(r.header, "sample_id"), slices.Index(r.header, "eval_name")
	text := slices.Index(r.header, "prompt")
	return func() (Request, error) {
		q := Request{ID: shorten(r.fields[id]), Item: r.fields[item]}
		if len(order) == 0 {
			return q, &Error{r.name, 1, 1, "no model has a column of its name and one of its name with " + cost}
		}
		if text >= 0 {
			q.Text = r.fields[text]
		}
		if reason := checkName(q.Item); reason != "" {
			return q, r.fault(item, reason)
		}
		for _, model := range order {
			t, at := Try{Arm: model}, models[model]
			var reason string
			if t.Reward, reason = parseReward(r.fields[at.reward]); reason != "" {
				return q, r.fault(at.reward, reason)
			}
			if t.Cost, reason = parseNumber(r.fields[at.cost], 0, maxCost); reason != "" {
				return q, r.fault(at.cost, reason)
			}
			q.Tries = append(q.Tries, t)
		}
		return q, nil
	}
}

// routeLLMRow reads rows of RouteLLM: a prompt, and whether each model was right. The item is the subject in the file's name.
func routeLLMRow(r *row) func() (Request, error) {
	base := filepath.Base(r.name)
	item := strings.ToValidUTF8(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(base, filepath.Ext(base)), "mmlu_"), "_responses"), "")
	item = strings.ReplaceAll(item[:min(len(item), maxText)], "\x00", "")
	text := slices.Index(r.header, "prompt")
	return func() (Request, error) {
		q := Request{Text: r.fields[text], Item: item}
		for i, column := range r.header {
			if i == text || strings.HasSuffix(column, "_response") {
				continue
			}
			t := Try{Arm: column}
			if column == "" {
				return q, r.fault(i, "must have a name")
			}
			var reason string
			if t.Reward, reason = parseReward(r.fields[i]); reason != "" {
				return q, r.fault(i, reason)
			}
			q.Tries = append(q.Tries, t)
		}
		if len(q.Tries) == 0 {
			return q, &Error{r.name, 1, 1, "no model has a column"}
		}
		return q, nil
	}
}
