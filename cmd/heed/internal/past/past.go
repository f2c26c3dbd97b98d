// Package past reads logs of past requests, as CSV or lines of JSON.
package past

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A Request is what was asked, with the outcome of the arm that was tried.
type Request struct {
	Text     string
	Item     string
	Category string
	Context  string
	At       time.Time // zero: not known
	Try
	Divided bool // the item is not in the file, but a cell of the text
}

// A Try is an arm with its outcome.
type Try struct {
	Arm        string
	Reward     float64 // in [0, 1]
	Cost       float64 // at least 0
	Latency    time.Duration
	Tokens     int
	Propensity float64 // in (0, 1]; 0: not known
}

// A Table is what was read.
type Table struct {
	Arms     []string // in the order in which they come
	Requests []Request
}

// An Error says what is wrong with a file, and where.
type Error struct {
	File         string
	Line, Column int // from 1; Column counts bytes. 0: not known
	Reason       string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Reason)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
}

// columns are the columns of a log, and the keys of its lines. The first two are needed.
var columns = []string{
	"arm", "outcome", "text", "item", "category", "context", "cost", "latency", "tokens",
	"propensity", "at",
}

// Read adds the requests of a file to the table. The name is for errors. A fault is an [*Error].
func (t *Table) Read(name string, from io.Reader) error {
	in := bufio.NewReader(from)
	begin, err := in.Peek(in.Size())
	if err != nil && !errors.Is(err, io.EOF) {
		return &Error{File: name, Reason: err.Error()}
	}
	if mark := []byte("\xef\xbb\xbf"); bytes.HasPrefix(begin, mark) {
		_, _ = in.Discard(len(mark)) // it was peeked at
		begin = begin[len(mark):]
	}
	begin = bytes.TrimSpace(begin)
	before := len(t.Requests)
	switch {
	case len(begin) == 0:
		return &Error{name, 1, 1, "is empty"}
	case begin[0] == '{':
		err = t.readLines(name, in)
	default:
		err = t.readCSV(name, in)
	}
	if err == nil && len(t.Requests) == before {
		err = &Error{name, 1, 1, "has no requests"}
	}
	return err
}

// add adds a request.
func (t *Table) add(q Request) {
	if !slices.Contains(t.Arms, q.Arm) {
		t.Arms = append(t.Arms, q.Arm)
	}
	t.Requests = append(t.Requests, q)
}

// readCSV reads a log as comma-separated values.
func (t *Table) readCSV(name string, in io.Reader) error {
	reader := csv.NewReader(in)
	reader.ReuseRecord = true
	header, err := nextRow(name, reader)
	if err != nil {
		return err
	}
	header = slices.Clone(header)
	fault := func(field int, reason string) error {
		line, column := reader.FieldPos(field)
		return &Error{name, line, column, header[field] + " " + reason}
	}
	for i, column := range header {
		if slices.Contains(header[:i], column) {
			return fault(i, "is there twice")
		}
		if !slices.Contains(columns, column) {
			header[i] = shorten(column)
			return fault(i, "is none of the columns "+strings.Join(columns, ", ")+
				", which are in lower case and separated by commas")
		}
	}
	for _, column := range columns[:2] {
		if !slices.Contains(header, column) {
			return &Error{name, 1, 1, "the column " + column + " is missing"}
		}
	}
	for {
		fields, err := nextRow(name, reader)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var q Request
		for i, column := range header {
			if reason := q.set(column, fields[i]); reason != "" {
				return fault(i, reason)
			}
		}
		t.add(q)
	}
}

// nextRow reads a line of CSV.
func nextRow(name string, reader *csv.Reader) ([]string, error) {
	fields, err := reader.Read()
	var wrong *csv.ParseError
	switch {
	case errors.As(err, &wrong):
		reason := wrong.Err.Error()
		if errors.Is(wrong.Err, csv.ErrFieldCount) {
			reason = "has more or fewer fields than the header"
		}
		return nil, &Error{name, wrong.Line, max(wrong.Column, 1), reason}
	case err != nil && !errors.Is(err, io.EOF):
		return nil, &Error{File: name, Reason: err.Error()}
	}
	return fields, err
}

// maxLine bounds a line of JSON.
const maxLine = 16 << 20

// readLines reads a log as lines of JSON, with the names of the columns as keys.
func (t *Table) readLines(name string, in io.Reader) error {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, maxLine)
	for n := 1; scanner.Scan(); n++ {
		if len(bytes.TrimSpace(scanner.Bytes())) == 0 {
			continue
		}
		q, err := readLine(name, n, scanner.Bytes())
		if err != nil {
			return err
		}
		t.add(q)
	}
	if err := scanner.Err(); err != nil {
		return &Error{File: name, Reason: err.Error()}
	}
	return nil
}

func readLine(name string, n int, line []byte) (q Request, err error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(line, &values); err != nil {
		column := 1
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			column = int(max(syntax.Offset, 1))
		}
		return q, &Error{name, n, column, strings.TrimPrefix(err.Error(), "json: ")}
	}
	at := func(key, reason string) error {
		place := max(bytes.Index(line, []byte(`"`+key+`"`)), 0) + 1
		return &Error{name, n, place, key + " " + reason}
	}
	for key := range values {
		if !slices.Contains(columns, key) {
			return q, at(shorten(key), "is none of the keys "+strings.Join(columns, ", "))
		}
	}
	for i, key := range columns {
		value, ok := values[key]
		if !ok || string(value) == "null" {
			if i < 2 {
				return q, &Error{name, n, 1, key + " is missing"}
			}
			continue
		}
		text := string(value)
		if text[0] == '"' {
			if err := json.Unmarshal(value, &text); err != nil {
				return q, at(key, "is no text")
			}
		}
		if reason := q.set(key, text); reason != "" {
			return q, at(key, reason)
		}
	}
	return q, nil
}

// The greatest cost and latency, which keep sums finite.
const (
	maxCost    = 1e12
	maxSeconds = 1e7
	maxTokens  = math.MaxInt32
)

// set sets a value of a log. It returns why it can't.
func (q *Request) set(column, text string) (reason string) {
	names := map[string]*string{
		"arm": &q.Arm, "item": &q.Item, "category": &q.Category, "context": &q.Context,
	}
	if name := names[column]; name != nil {
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
	case "text":
		q.Text = text
	case "outcome":
		q.Reward, reason = parseReward(text)
	case "cost":
		q.Cost, reason = parseNumber(text, 0, maxCost)
	case "latency":
		x, reason = parseNumber(text, 0, maxSeconds)
		q.Latency = time.Duration(x * float64(time.Second))
	case "tokens":
		x, reason = parseNumber(text, 0, maxTokens)
		q.Tokens = int(x)
	case "propensity":
		if q.Propensity, reason = parseNumber(text, 0, 1); reason == "" && q.Propensity < 1e-6 {
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

// maxName bounds names; longer ones can't be kept.
const maxName = 512

// checkName reports why a name can't be kept.
func checkName(text string) (reason string) {
	switch {
	case len(text) > maxName:
		return fmt.Sprintf("is %d bytes long, may be %d", len(text), maxName)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "must be valid UTF-8 without NUL"
	}
	return ""
}

// parseReward reads an outcome: true or false, or a number in [0, 1].
func parseReward(text string) (float64, string) {
	switch strings.ToLower(text) {
	case "true":
		return 1, ""
	case "false":
		return 0, ""
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0 && x <= 1) {
		return 0, fmt.Sprintf("is %q, must be true, false or a number in [0, 1]", shorten(text))
	}
	return x, ""
}

func parseNumber(text string, low, high float64) (float64, string) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= low && x <= high) {
		return 0, fmt.Sprintf("is %q, must be a number in [%v, %v]", shorten(text), low, high)
	}
	return x, ""
}

func shorten(text string) string {
	if len(text) > 40 {
		return strings.ToValidUTF8(text[:40], "") + "…"
	}
	return text
}
