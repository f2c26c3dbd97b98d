// Package past reads logs of answers that other programs have written: CSV, JSON lines and JSON
// arrays. A [Mapping] names the column of each field. [Propose] makes one by looking at the log.
package past

import (
	"bytes"
	"cmp"
	_ "embed" // of the fields
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/store"
)

// A Mapping names the places of the fields of a past answer in a log. As JSON, people can change
// it.
type Mapping struct {
	// Fields has the column, or the path of a JSON value, of each field in [Fields]. A text that
	// begins with "=" is the value itself, for example "=ci" as the source.
	Fields map[string]string `json:"fields"`
	// Scale has the worst and the best of value and outcome. If both are 0, they are -1 and 1.
	Scale [2]float64 `json:"scale,omitzero"`
	// Values is what words are worth, in [-1, 1], in addition to usual ones such as up.
	Values map[string]float64 `json:"values,omitempty"`
	// Seconds is how many seconds one unit of latency has. 0 means 1.
	Seconds float64 `json:"seconds,omitempty"`
	// Arms has the column of the value of each arm, for a log of what all arms answered.
	Arms map[string]string `json:"arms,omitempty"`
	// Only has columns with the text that they must have. Other rows are passed over.
	Only map[string]string `json:"only,omitempty"`
	// Comma separates the columns of CSV. "" means ",".
	Comma string `json:"comma,omitempty"`
	// Unused are the columns that Propose found no use for, at most mostUnused.
	Unused []string `json:"-"`
}

// fieldsText has a field on each line: its name, what it is, and its names in logs, between bars.
//
//go:embed fields.txt
var fieldsText string

// A Field is what a row may have.
type Field struct {
	Name  string
	names []string // of columns, without case and signs; after a dot the end of a path in JSON
}

// Fields are all that a row may have.
var Fields = func() (all []Field) {
	for line := range strings.Lines(fieldsText) {
		if part := strings.Split(line, "|"); !strings.HasPrefix(line, "#") {
			all = append(all, Field{strings.TrimSpace(part[0]), strings.Fields(part[2])})
		}
	}
	return all
}()

// A Fault is a row that can't be read.
type Fault struct {
	At, Column, Reason string // At is its place, such as "line 3" or "element 3"
}

func (f *Fault) Error() string {
	if f.Column == "" {
		return f.At + ": " + f.Reason
	}
	return f.At + ", " + f.Column + ": " + f.Reason
}

// ReadMapping reads a mapping that people have written down.
func ReadMapping(r io.Reader) (Mapping, error) {
	var m Mapping
	var text bytes.Buffer
	decoder := json.NewDecoder(io.TeeReader(r, &text))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&m)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		line := 1 + bytes.Count(text.Bytes()[:syntax.Offset], []byte("\n"))
		err = fmt.Errorf("%s: %w", lineAt(line), err)
	}
	if err != nil {
		return m, fmt.Errorf("the mapping: %w", err)
	}
	return m, m.validate()
}

func (m *Mapping) validate() error {
	for _, name := range slices.Sorted(maps.Keys(m.Fields)) {
		if !slices.ContainsFunc(Fields, func(f Field) bool { return f.Name == name }) {
			return fmt.Errorf("the mapping: fields.%s is no field: see heed import --help", name)
		}
	}
	for word, x := range m.Values {
		if !(x >= -1 && x <= 1) {
			return fmt.Errorf("the mapping: values.%s must be in [-1, 1]", word)
		}
	}
	switch {
	case len(m.Fields)+len(m.Arms) == 0:
		return errors.New("the mapping: it has no fields")
	case m.Scale[0] > m.Scale[1]:
		return errors.New("the mapping: scale must have the worst first")
	case m.Seconds < 0:
		return errors.New("the mapping: seconds must not be negative")
	case len([]rune(m.Comma)) > 1 || strings.ContainsAny(m.Comma, "\"\r\n\ufffd"):
		return errors.New("the mapping: comma must be one character that is no quote")
	}
	return nil
}

// A Row is a past answer with its place. A row of what all arms answered has Values, what each was
// worth, in place of an arm and what became of it. Hash is of the row as the log has it, so that it
// is the same with every mapping.
type Row struct {
	loop.Past
	At, Hash string
	Values   map[string]float64
}

// Read yields the rows of a log. A row at fault comes with a [*Fault], and the next ones follow.
// Any other error ends the log.
func Read(r io.Reader, m Mapping) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for rec, err := range records(r, &m) {
			var row Row
			if err == nil && !m.wants(&rec) {
				continue
			}
			if err == nil {
				row, err = m.row(&rec)
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// check reports a column that the mapping names and CSV does not have, or has twice.
func (m *Mapping) check(columns []string) error {
	named := slices.Concat(slices.Collect(maps.Values(m.Fields)),
		slices.Collect(maps.Values(m.Arms)), slices.Collect(maps.Keys(m.Only)))
	for _, name := range slices.Sorted(slices.Values(named)) {
		at := slices.Index(columns, name)
		switch {
		case name == "" || strings.HasPrefix(name, "="):
		case at < 0:
			return fmt.Errorf("the mapping: the log has no column %q, only %.1000q", name,
				slices.Sorted(slices.Values(columns)))
		case slices.Contains(columns[at+1:], name):
			return fmt.Errorf("the mapping: the log has two columns %q", name)
		}
	}
	return nil
}

// wants reports whether a record is among those that are read.
func (m *Mapping) wants(r *record) bool {
	for path, is := range m.Only {
		if text(r.get(path), "") != is {
			return false
		}
	}
	return true
}

// A reading reads the fields of a record, and keeps the first fault.
type reading struct {
	*Mapping
	*record
	fault *Fault
}

// raw returns the value of a field, nil if it is missing.
func (r *reading) raw(field string) any {
	path := r.Fields[field]
	if constant, ok := strings.CutPrefix(path, "="); ok {
		return constant
	}
	if path == "" {
		return nil
	}
	return r.get(path)
}

func (r *reading) blame(column string, err error) {
	if err != nil && r.fault == nil {
		r.fault = &Fault{At: r.at, Column: column, Reason: err.Error()}
	}
}

func (r *reading) text(field, role string) string {
	s := strings.ReplaceAll(text(r.raw(field), role), "\x00", "")
	return strings.ToValidUTF8(s, "\ufffd")
}

// The limits of package loop and package feedback. Names without one here have evidence.MaxText.
var maxName = map[string]int{"id": 900, "task": 512} // bytes

const (
	maxAnswer     = 512 << 10
	maxCorrection = 500 // characters
)

// name returns a text that names something. Two names of another encoding could become one.
func (r *reading) name(field string) string {
	s := r.text(field, "")
	if strings.ContainsRune(s, utf8.RuneError) {
		r.blame(r.Fields[field], errors.New("must be UTF-8"))
	}
	r.limit(field, len(s), cmp.Or(maxName[field], evidence.MaxText), "bytes")
	return s
}

func (r *reading) limit(field string, n, most int, of string) {
	if n > most {
		r.blame(r.Fields[field], fmt.Errorf("has %d %s, may have %d", n, of, most))
	}
}

func (r *reading) number(field string, most float64) float64 {
	v := r.raw(field)
	if v == nil {
		return 0
	}
	x, err := number(v)
	if err == nil && (x < 0 || x > most) {
		err = fmt.Errorf("is %v, must be in [0, %v]", x, most)
	}
	r.blame(r.Fields[field], err)
	return x
}

func (r *reading) moment(field string) (at time.Time) {
	if v := r.raw(field); v != nil {
		var err error
		at, err = moment(v)
		r.blame(r.Fields[field], err)
	}
	return at
}

// worth returns how good something was, and whether the record has it.
func (r *reading) worth(path string, v any) (float64, bool) {
	if v == nil || text(v, "") == "" {
		return 0, false
	}
	x, err := r.value(v)
	r.blame(path, err)
	return x, true
}

// row returns a record as a past answer.
func (m *Mapping) row(rec *record) (Row, error) {
	r := &reading{Mapping: m, record: rec}
	whole, _ := json.Marshal([]any{rec.names, rec.cells, rec.tree}) // it was read
	row := Row{At: rec.at, Hash: store.IDOf(string(whole)), Past: loop.Past{
		Event: loop.Event{
			ID: r.name("id"), Text: r.text("text", "user"),
			Session: r.name("session"), Person: r.name("person"), Domain: r.name("domain"),
			Task: r.name("task"), Item: r.name("item"), Context: r.name("context"),
			At: r.moment("at"),
		},
		Text: r.text("answer", "assistant"), Arm: r.name("arm"),
		Propensity: r.number("propensity", 1),
		Spent: answer.Spent{Cost: r.number("cost", 1e6), Latency: r.latency(),
			Tokens: int(r.number("tokens", 1e12))},
	}}
	r.limit("answer", len(row.Text), maxAnswer, "bytes")
	r.judged(&row)
	for _, arm := range slices.Sorted(maps.Keys(m.Arms)) {
		if x, ok := r.worth(m.Arms[arm], r.get(m.Arms[arm])); ok {
			if row.Values == nil {
				row.Values = make(map[string]float64, len(m.Arms))
			}
			row.Values[arm] = x
		}
	}
	if r.fault != nil {
		return Row{}, r.fault
	}
	return row, nil
}

// latency returns how long the answer took.
func (r *reading) latency() time.Duration {
	if r.raw("latency") == nil {
		if began, ended := r.moment("at"), r.moment("end"); !ended.IsZero() && ended.After(began) {
			return ended.Sub(began)
		}
		return 0
	}
	unit := cmp.Or(r.Seconds, 1)
	const century = 100 * 365 * 24 * 3600
	return time.Duration(r.number("latency", century/unit) * unit * float64(time.Second))
}

// judged reads what became of the answer.
func (r *reading) judged(row *Row) {
	if x, ok := r.worth(r.Fields["value"], r.raw("value")); ok {
		who := cmp.Or(r.name("rater"), row.Event.Person)
		row.Reactions = []loop.Reaction{{Person: who, Value: x}}
	}
	if x, ok := r.worth(r.Fields["outcome"], r.raw("outcome")); ok {
		row.Outcomes = []loop.Outcome{{Reward: &x, Source: r.name("source")}}
	}
	if c := strings.TrimSpace(r.text("correction", "")); c != "" {
		r.limit("correction", utf8.RuneCountInString(c), maxCorrection, "characters")
		who := cmp.Or(r.name("reviewer"), row.Event.Person)
		if who == "" {
			r.blame(r.Fields["correction"], errors.New("needs a reviewer, or a person who asked"))
		}
		row.Corrections = []loop.Correction{{Reviewer: who, Text: c}}
	}
}
