package past

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// maxLine bounds a line of JSON, and a record of LLMRouterBench.
const maxLine = 16 << 20

// lines reads a log as lines of JSON, with the names of the columns of CSV as keys.
func (f *File) lines(name string, in io.Reader) error {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, maxLine)
	for n := 1; scanner.Scan(); n++ {
		if len(bytes.TrimSpace(scanner.Bytes())) == 0 {
			continue
		}
		q, err := jsonLine(name, n, scanner.Bytes())
		if err != nil {
			return err
		}
		f.add(q)
	}
	if err := scanner.Err(); err != nil {
		return &Error{File: name, Reason: err.Error()}
	}
	return nil
}

// logColumns are the columns of a log, and the keys of its lines. The first two are needed.
var logColumns = []string{"arm", "outcome", "text", "item", "category", "context", "cost", "latency", "tokens", "propensity", "at"}

func jsonLine(name string, n int, line []byte) (q Request, err error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(line, &values); err != nil {
		return q, &Error{name, n, columnOf(err), reasonOf(err)}
	}
	at := func(key, reason string) error {
		return &Error{name, n, max(bytes.Index(line, []byte(`"`+key+`"`)), 0) + 1, key + " " + reason}
	}
	for key := range values {
		if !slices.Contains(logColumns, key) {
			return q, at(shorten(key), "is none of the keys "+strings.Join(logColumns, ", "))
		}
	}
	t := Try{}
	for _, key := range logColumns {
		value, ok := values[key]
		if !ok || string(value) == "null" {
			if key == "arm" || key == "outcome" {
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
		if reason := set(&q, &t, key, text); reason != "" {
			return q, at(key, reason)
		}
	}
	q.Tries = []Try{t}
	return q, nil
}

// columnOf returns where in a line an error of encoding/json is.
func columnOf(err error) int {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return int(max(syntax.Offset, 1))
	case errors.As(err, &kind):
		return int(max(kind.Offset, 1))
	}
	return 1
}

func reasonOf(err error) string { return strings.TrimPrefix(err.Error(), "json: ") }

// A record is one of LLMRouterBench's, as far as it is read.
type record struct {
	Index            json.Number `json:"index"`
	Query            any         `json:"origin_query"`
	Score            *float64    `json:"score"`
	Cost             float64     `json:"cost"`
	PromptTokens     int         `json:"prompt_tokens"`
	CompletionTokens int         `json:"completion_tokens"`
}

// llmRouterBench reads a result file of LLMRouterBench. The arm and the dataset are model_name and dataset_name, or else in the path:
// <dataset>/<split>/<model>/<timestamp>.json. A score that is null counts as 0, as LLMRouterBench itself reads it.
func (f *File) llmRouterBench(name string, from io.Reader) error {
	in := &counted{from: from}
	decoder := json.NewDecoder(in)
	fault := func(offset int64, reason string) error {
		line, column := in.place(offset)
		return &Error{name, line, column, reason}
	}
	wrong := func(err error) error {
		offset := decoder.InputOffset()
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			offset = max(syntax.Offset-1, 0)
		}
		return fault(offset, reasonOf(err))
	}
	if open, err := decoder.Token(); err != nil {
		return wrong(err)
	} else if open != json.Delim('{') {
		return fault(0, "must be an object")
	}
	arm, item := places(name)
	begun := len(f.Requests)
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return wrong(err)
		}
		at := decoder.InputOffset()
		switch key {
		case "records":
			err = f.records(decoder, fault)
		case "model_name":
			err = decoder.Decode(&arm)
		case "dataset_name":
			err = decoder.Decode(&item)
		default:
			err = decoder.Decode(new(json.RawMessage))
		}
		var mine *Error
		if errors.As(err, &mine) {
			return err
		} else if err != nil {
			return fault(at, fmt.Sprintf("%v: %s", key, reasonOf(err)))
		}
	}
	if _, err := decoder.Token(); err != nil {
		return wrong(err)
	}
	end := decoder.InputOffset()
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fault(end, "has more after the object: give each object a file")
	}
	if reason := f.nameAll(begun, arm, item); reason != "" {
		return fault(0, reason)
	}
	return nil
}

// nameAll gives all requests from one on their item, and their tries the arm. It returns why it can't.
func (f *File) nameAll(begun int, arm, item string) (reason string) {
	if arm == "" {
		return "model_name is missing, and the path does not name the model"
	}
	for _, name := range [][2]string{{"model_name", arm}, {"dataset_name", item}} {
		if reason := checkName(name[1]); reason != "" {
			return name[0] + " " + reason
		}
	}
	f.Arms = append(f.Arms, arm)
	for i := begun; i < len(f.Requests); i++ {
		q := &f.Requests[i]
		q.Item, q.Tries[0].Arm = item, arm
	}
	return ""
}

// places returns the model and the dataset that a path names.
func places(name string) (arm, item string) {
	parts := strings.Split(filepath.ToSlash(name), "/")
	if n := len(parts); n >= 4 {
		return parts[n-2], parts[n-4]
	}
	return "", ""
}

// records reads the array of records.
func (f *File) records(decoder *json.Decoder, fault func(int64, string) error) error {
	at := decoder.InputOffset()
	if open, err := decoder.Token(); err != nil {
		return err
	} else if open != json.Delim('[') {
		return fault(at, "records must be an array")
	}
	known := make(map[json.Number]bool)
	for decoder.More() {
		at := decoder.InputOffset()
		var r record
		if err := decoder.Decode(&r); err != nil {
			return fault(at, "record "+fmt.Sprint(len(f.Requests))+": "+reasonOf(err))
		}
		t := Try{Cost: r.Cost, Tokens: r.PromptTokens + r.CompletionTokens}
		if r.Score != nil {
			t.Reward = *r.Score
		}
		switch {
		case !(t.Reward >= 0 && t.Reward <= 1):
			return fault(at, fmt.Sprintf("score is %v, must be in [0, 1]", t.Reward))
		case !(t.Cost >= 0 && t.Cost <= maxCost):
			return fault(at, fmt.Sprintf("cost is %v, must be in [0, %v]", t.Cost, maxCost))
		case r.PromptTokens < 0 || r.CompletionTokens < 0 || r.PromptTokens > maxTokens || r.CompletionTokens > maxTokens:
			return fault(at, "tokens must not be negative, nor more than an int32 has")
		case len(r.Index) > maxText:
			return fault(at, "index is too long")
		case r.Index != "" && known[r.Index]:
			return fault(at, "the index "+r.Index.String()+" is there twice")
		}
		known[r.Index] = true
		text, _ := r.Query.(string)
		f.Requests = append(f.Requests, Request{ID: r.Index.String(), Text: text, Tries: []Try{t}})
	}
	_, err := decoder.Token()
	return err
}

// A counted reader knows where its lines begin.
type counted struct {
	from  io.Reader
	read  int64
	lines []int64 // where each line but the first begins
}

func (c *counted) Read(p []byte) (n int, err error) {
	n, err = c.from.Read(p)
	for i, b := range p[:n] {
		if b == '\n' {
			c.lines = append(c.lines, c.read+int64(i)+1)
		}
	}
	c.read += int64(n)
	return n, err
}

func (c *counted) place(offset int64) (line, column int) {
	n, exact := slices.BinarySearch(c.lines, offset)
	if exact {
		n++
	}
	begin := int64(0)
	if n > 0 {
		begin = c.lines[n-1]
	}
	return n + 1, int(offset-begin) + 1
}
