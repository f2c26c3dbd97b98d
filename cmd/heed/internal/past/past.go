// Package past reads logs of past requests: heed's own format, and the tables of RouterBench, LLMRouterBench and RouteLLM.
package past

import (
	"bufio"
	"bytes"
	"encoding/csv"
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

// The formats.
const (
	Log            = "log"            // one arm for each request, as CSV or lines of JSON
	RouterBench    = "routerbench"    // CSV of the table of https://github.com/withmartian/routerbench, all arms for each request
	LLMRouterBench = "llmrouterbench" // a result file of https://github.com/ynulihao/LLMRouterBench: JSON, one arm
	RouteLLM       = "routellm"       // CSV of https://github.com/lm-sys/RouteLLM, routellm/evals: all arms for each request
)

// Formats are all formats.
var Formats = []string{Log, RouterBench, LLMRouterBench, RouteLLM}

// A Request is what was asked, with what came of the arms that were tried.
type Request struct {
	ID       string // names it in its table; "" in a log
	Text     string
	Item     string
	Category string
	Context  string
	At       time.Time // zero: not known
	Tries    []Try
	Divided  bool // the item is not in the file, but a cell of the text
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

// A File is what was read.
type File struct {
	Format   string
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

// Read reads a file of a format; "" means the one that its beginning looks like. The name is for errors, and for formats whose arm or item is in the path.
// A fault is an [*Error].
func Read(name string, from io.Reader, format string) (*File, error) {
	in := bufio.NewReaderSize(from, 1<<16)
	begin, err := in.Peek(in.Size())
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, &Error{File: name, Reason: err.Error()}
	}
	if bytes.HasPrefix(begin, []byte("\xef\xbb\xbf")) {
		_, _ = in.Discard(3) // it was peeked at
		begin = begin[3:]
	}
	if len(bytes.TrimSpace(begin)) == 0 {
		return nil, &Error{File: name, Line: 1, Column: 1, Reason: "is empty"}
	}
	isJSON := bytes.TrimSpace(begin)[0] == '{'
	if format == "" {
		if format, err = look(name, begin, isJSON); err != nil {
			return nil, err
		}
	}
	file := &File{Format: format}
	switch {
	case !slices.Contains(Formats, format):
		return nil, &Error{File: name, Reason: fmt.Sprintf("the format %q is none of %s", format, strings.Join(Formats, ", "))}
	case format == LLMRouterBench:
		err = file.llmRouterBench(name, in)
	case format == Log && isJSON:
		err = file.lines(name, in)
	case isJSON:
		return nil, &Error{File: name, Line: 1, Column: 1, Reason: "is JSON, but the format " + format + " is CSV"}
	default:
		err = file.csv(name, in)
	}
	if err != nil {
		return nil, err
	}
	if len(file.Requests) == 0 {
		return nil, &Error{File: name, Line: 1, Column: 1, Reason: "has no requests"}
	}
	return file, nil
}

// look guesses the format by the beginning of a file.
func look(name string, begin []byte, isJSON bool) (string, error) {
	first, _, _ := bytes.Cut(begin, []byte("\n"))
	header := string(first)
	if fields, err := csv.NewReader(bytes.NewReader(first)).Read(); err == nil && !isJSON {
		header = strings.Join(fields, ",") // without quotes
	}
	switch {
	case isJSON && bytes.Contains(begin, []byte(`"arm"`)):
		return Log, nil
	case isJSON:
		return LLMRouterBench, nil
	case strings.Contains(header, "|total_cost") || strings.Contains(header, "oracle_model_to_route_to"):
		return RouterBench, nil
	case slices.Contains(strings.Split(strings.TrimSpace(header), ","), "arm"):
		return Log, nil
	case strings.HasPrefix(header, "prompt,"):
		return RouteLLM, nil
	case almostLog(header) != "":
		return "", &Error{File: name, Line: 1, Column: 1, Reason: almostLog(header)}
	}
	return "", &Error{File: name, Line: 1, Column: 1, Reason: "looks like none of the formats " + strings.Join(Formats, ", ") + ": name one with --format"}
}

// almostLog says what is wrong with a header that was meant to be a log's. "": it is none.
func almostLog(header string) string {
	header = strings.TrimSpace(header)
	if !strings.Contains(header, ",") {
		for _, separator := range []string{";", "\t", "|"} {
			if fields := strings.Split(strings.ToLower(header), separator); len(fields) > 1 && isLog(fields) {
				return fmt.Sprintf("the column arm is missing: the header is separated by %q; a log is separated by commas", separator)
			}
		}
	}
	if fields := strings.Split(header, ","); isLog(strings.Split(strings.ToLower(header), ",")) {
		for i, field := range fields {
			fields[i] = strings.Trim(field, ` "`)
		}
		for _, column := range logColumns[:2] {
			is := func(field string) bool { return strings.EqualFold(field, column) }
			switch i := slices.IndexFunc(fields, is); {
			case i < 0:
				return "the column " + column + " is missing"
			case fields[i] != column:
				return fmt.Sprintf("the column %s is missing: there is %s; names are in lower case", column, shorten(fields[i]))
			}
		}
		return "the columns must have their names alone, separated by commas"
	}
	return ""
}

// isLog reports whether fields in lower case look like the header of a log: at least two are columns, or one is needed.
func isLog(fields []string) bool {
	columns, needed := 0, false
	for _, field := range fields {
		i := slices.Index(logColumns, strings.Trim(field, ` "`))
		if i >= 0 {
			columns++
		}
		needed = needed || i == 0 || i == 1
	}
	return needed || columns > 1
}

// add adds a request whose tries were read.
func (f *File) add(r Request) {
	for _, t := range r.Tries {
		if !slices.Contains(f.Arms, t.Arm) {
			f.Arms = append(f.Arms, t.Arm)
		}
	}
	f.Requests = append(f.Requests, r)
}

// maxColumns bounds the columns of a table, as each is compared with all others.
const maxColumns = 1000

// maxText bounds names; longer ones can't be kept.
const maxText = 512

// checkName reports why a name can't be kept.
func checkName(text string) (reason string) {
	switch {
	case len(text) > maxText:
		return fmt.Sprintf("is %d bytes long, may be %d", len(text), maxText)
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

// The greatest cost and latency, which keep sums finite.
const (
	maxCost    = 1e12
	maxSeconds = 1e7
	maxTokens  = math.MaxInt32
)

// Merge puts files of one format together. Requests of one item and ID are one, with the tries of all: so the files of LLMRouterBench, each of one arm,
// become one table.
func Merge(files ...*File) *File {
	all := &File{Format: files[0].Format}
	type key struct{ item, id string }
	known := make(map[key]int)
	for _, f := range files {
		for _, q := range f.Requests {
			k := key{q.Item, q.ID}
			at, ok := known[k]
			if q.ID == "" || f.Format != LLMRouterBench || !ok {
				known[k] = len(all.Requests)
				all.add(q)
				continue
			}
			r := &all.Requests[at]
			for _, t := range q.Tries {
				if !slices.ContainsFunc(r.Tries, func(o Try) bool { return o.Arm == t.Arm }) {
					r.Tries = append(r.Tries, t)
				}
				if !slices.Contains(all.Arms, t.Arm) {
					all.Arms = append(all.Arms, t.Arm)
				}
			}
		}
	}
	return all
}
