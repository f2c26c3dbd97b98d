package past

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A record is one row of a log as it was written: columns of CSV, or a JSON object.
type record struct {
	at    string         // its place, such as "line 3"
	cells []string       // of CSV
	names map[string]int // the columns of CSV
	tree  map[string]any // of JSON
}

// get returns the value at a column or path, such as "response.choices.0.message.content". A column
// may have dots in its name. It returns nil if it is missing.
func (r *record) get(path string) any {
	if r.tree == nil {
		if i, ok := r.names[path]; ok && r.cells[i] != "" {
			return r.cells[i]
		}
		return nil
	}
	return walk(r.tree, path)
}

// walk follows a path. Of a list of messages, the whole list is a value, too.
func walk(v any, path string) any {
	for path != "" {
		switch t := v.(type) {
		case map[string]any:
			if whole, ok := t[path]; ok {
				return whole
			}
			var step string
			step, path, _ = strings.Cut(path, ".")
			v = t[step]
		case []any:
			var step string
			step, path, _ = strings.Cut(path, ".")
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(t) {
				return nil
			}
			v = t[i]
		default:
			return nil
		}
	}
	return v
}

// maxLine bounds a line of JSON.
const maxLine = 16 << 20

// byteOrder is what Excel writes at the beginning of UTF-8.
const byteOrder = "\xef\xbb\xbf"

// records yields the records of a log. A record that can't be read comes with a [*Fault], and the
// next ones follow. Any other error ends the log.
func records(r io.Reader, m *Mapping) iter.Seq2[record, error] {
	return func(yield func(record, error) bool) {
		in := bufio.NewReaderSize(r, 64<<10)
		if mark, _ := in.Peek(3); string(mark) == byteOrder {
			_, _ = in.Discard(3)
		}
		first, line, err := begins(in)
		switch first {
		case 0:
			if !errors.Is(err, io.EOF) {
				yield(record{}, err)
			}
		case '{':
			lines(in, line, yield)
		case '[':
			list(in, yield)
		default:
			table(in, m, line, yield)
		}
	}
}

// begins returns the first character that is no space, which stays unread, and its line; or 0 and
// an error.
func begins(in *bufio.Reader) (first byte, line int, _ error) {
	for line = 1; ; {
		c, err := in.ReadByte()
		switch {
		case err != nil:
			return 0, line, err
		case c == '\n':
			line++
		case c != ' ' && c != '\t' && c != '\r':
			return c, line, in.UnreadByte()
		}
	}
}

// lines yields the objects of JSON lines.
func lines(in *bufio.Reader, line int, yield func(record, error) bool) {
	for text := []byte(nil); ; line++ {
		piece, err := in.ReadSlice('\n')
		text = append(text[:0], piece...)
		for errors.Is(err, bufio.ErrBufferFull) {
			if piece, err = in.ReadSlice('\n'); len(text) <= maxLine {
				text = append(text, piece...)
			}
		}
		more := true
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			more = yield(record{}, err)
		case len(text) > maxLine:
			more = yield(record{}, &Fault{At: lineAt(line), Reason: "is longer than 16 MiB"})
		case len(bytes.TrimSpace(text)) > 0:
			more = yield(object(text, line))
		}
		if !more || err != nil {
			return
		}
	}
}

func lineAt(line int) string { return fmt.Sprint("line ", line) }

func object(text []byte, line int) (record, error) {
	var tree map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err := decoder.Decode(&tree)
	if _, end := decoder.Token(); !errors.Is(end, io.EOF) {
		err = json.Unmarshal(text, &tree) // for its error
	}
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return record{}, &Fault{At: lineAt(line), Column: fmt.Sprint("byte ", syntax.Offset),
			Reason: syntax.Error()}
	}
	if err != nil || tree == nil {
		return record{}, &Fault{At: lineAt(line), Reason: "must be a JSON object"}
	}
	return record{at: lineAt(line), tree: tree}, nil
}

// list yields the objects of a JSON array, whose place is the number of the element.
func list(in io.Reader, yield func(record, error) bool) {
	decoder := json.NewDecoder(in)
	decoder.UseNumber()
	_, err := decoder.Token() // the bracket
	n := 0
	for ; err == nil && decoder.More(); n++ {
		var tree map[string]any
		at := fmt.Sprint("element ", n+1)
		err = decoder.Decode(&tree)
		if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) || err == nil && tree == nil {
			if err = nil; !yield(record{}, &Fault{At: at, Reason: "must be a JSON object"}) {
				return
			}
		} else if err != nil {
			break // the last element that was read is the one before
		} else if !yield(record{at: at, tree: tree}, nil) {
			return
		}
	}
	if err == nil {
		_, err = decoder.Token()
	}
	if err != nil {
		yield(record{}, fmt.Errorf("after element %d: %w", n, err))
	}
}

// table yields the rows of CSV. The first line has the names of the columns.
func table(in *bufio.Reader, m *Mapping, skipped int, yield func(record, error) bool) {
	rows := csv.NewReader(in)
	if rows.ReuseRecord = true; m.Comma != "" {
		rows.Comma, _ = utf8.DecodeRuneInString(m.Comma)
	}
	head, err := rows.Read()
	if err != nil {
		yield(record{}, fmt.Errorf("the line with the names of the columns: %w", err))
		return
	}
	names := make(map[string]int, len(head))
	for i, name := range head {
		head[i] = strings.TrimSpace(name)
		names[head[i]] = i
	}
	if err := m.check(head); err != nil {
		yield(record{}, err)
		return
	}
	for {
		cells, err := rows.Read()
		var parse *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			return
		case errors.As(err, &parse):
			fault := &Fault{At: lineAt(parse.StartLine + skipped - 1), Reason: parse.Err.Error()}
			switch {
			case parse.Line > parse.StartLine: // the lines between are lost with the row
				fault.Reason += fmt.Sprintf(", up to line %d", parse.Line+skipped-1)
			case parse.Column > 0:
				fault.Column = fmt.Sprint("byte ", parse.Column)
			}
			if !yield(record{}, fault) {
				return
			}
			continue
		case err != nil:
			yield(record{}, err)
			return
		}
		line, _ := rows.FieldPos(0)
		if !yield(record{at: lineAt(line + skipped - 1), cells: cells, names: names}, nil) {
			return
		}
	}
}
