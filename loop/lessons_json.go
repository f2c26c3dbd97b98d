package loop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/heedhq/heed"
)

// A LessonError is a fault in a file of lessons.
type LessonError struct {
	File   string // [Config].LessonsFile; "" where another reader was read
	Line   int    // from 1; 0 if it is not known
	Field  string // such as "heuristics[2].initial"; "" for a fault of the whole file
	Reason string // what it may be
}

func (e *LessonError) Error() string {
	var where []string
	if e.File != "" {
		where = append(where, e.File)
	}
	if e.Line > 0 {
		where = append(where, fmt.Sprintf("line %d", e.Line))
	}
	if e.Field != "" {
		where = append(where, e.Field)
	}
	return strings.Join(append(where, e.Reason), ": ")
}

const maxLessons = 16 << 20

// ReadLessons reads lessons from JSON. The lists are "heuristics" with id, domain, pack,
// condition, action and initial; "notes" with id, domain, category, topic and text; and "arms" with
// id, weight, model, system and tools. The model of an arm is a name in [Config].Models. "only" is
// [Lessons].Only. For example:
//
//	{
//	  "only": true,
//	  "heuristics": [{
//	    "id": "rotate",
//	    "condition": "the disk of a server is full",
//	    "action": "Rotate its logs."
//	  }]
//	}
//
// All faults are returned together, each a [*LessonError]. A file may have 16 MiB.
func ReadLessons(r io.Reader) (Lessons, error) {
	l, faults := readLessons(r, "", nil)
	if len(faults) > 0 {
		return Lessons{}, fmt.Errorf("loop: lessons: %w", errors.Join(faults...))
	}
	return l, nil
}

// readLessons reads lessons of a file, or returns all their faults. knows is the same as in
// [Lessons.faults].
func readLessons(
	r io.Reader, name string, knows func(model string) bool,
) (l Lessons, faults []error) {
	text, err := io.ReadAll(io.LimitReader(r, maxLessons+1))
	if err == nil && len(text) > maxLessons {
		err = &LessonError{File: name, Reason: "has more than 16 MiB"}
	}
	if err != nil {
		return Lessons{}, []error{err}
	}
	f := file{name: name, text: text, lines: make(map[string]int)}
	err = json.Unmarshal(text, &l)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		line := f.lineAt(syntax.Offset)
		return Lessons{}, []error{&LessonError{File: name, Line: line, Reason: syntax.Error()}}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := f.locate(d, ""); err != nil {
		return Lessons{}, []error{err}
	}
	if err != nil && len(f.faults) == 0 { // such as a number that is too large
		f.fault("", err.Error())
	}
	for _, fault := range l.faults(knows) {
		var input *heed.InputError
		if errors.As(fault, &input) {
			field := strings.ToLower(strings.TrimSuffix(input.Field, "Name")) // ModelName is "model"
			if !f.faulty(field) {
				f.fault(field, input.Reason)
			}
		}
	}
	return l, f.faults
}

// What a value of a file may be.
const (
	anObject = "an object"
	aList    = "a list"
	aText    = "a text"
	aNumber  = "a number"
	aBool    = "true or false"
)

// schema has what each value of a file of lessons must be. Package encoding/json fills in the
// fields of these names.
var schema = map[string]string{
	"": anObject, "only": aBool,

	"heuristics": aList, "heuristics[]": anObject,
	"heuristics[].id": aText, "heuristics[].domain": aText, "heuristics[].pack": aText,
	"heuristics[].condition": aText, "heuristics[].action": aText, "heuristics[].initial": aNumber,

	"notes": aList, "notes[]": anObject,
	"notes[].id": aText, "notes[].domain": aText, "notes[].category": aText,
	"notes[].topic": aText, "notes[].text": aText,

	"arms": aList, "arms[]": anObject,
	"arms[].id": aText, "arms[].weight": aNumber, "arms[].model": aText, "arms[].system": aText,
	"arms[].tools": aList, "arms[].tools[]": aText,
}

var place = regexp.MustCompile(`\[\d+\]`)

// kindOf returns what a value is that begins with a token.
func kindOf(token json.Token) string {
	switch token := token.(type) {
	case json.Delim:
		if token == '{' {
			return anObject
		}
		return aList
	case string:
		return aText
	case json.Number:
		return aNumber
	case bool:
		return aBool
	}
	return "null"
}

// A file is the text that is read, with the line of each value and the faults so far.
type file struct {
	name   string
	text   []byte
	lines  map[string]int
	faults []error
}

func (f *file) lineAt(offset int64) int {
	return 1 + bytes.Count(f.text[:min(offset, int64(len(f.text)))], []byte("\n"))
}

// locate notes the lines of a value and of what is in it, and what the schema does not allow.
func (f *file) locate(d *json.Decoder, at string) error {
	want, known := schema[place.ReplaceAllString(at, "[]")]
	if !known {
		f.fault(at, "is not known: ReadLessons has the fields")
		return d.Decode(new(json.RawMessage))
	}
	token, err := d.Token()
	if err != nil {
		return err
	}
	if _, known := f.lines[at]; !known {
		f.lines[at] = f.lineAt(d.InputOffset())
	}
	if want != kindOf(token) {
		f.fault(at, "must be "+want)
	}
	switch token {
	case json.Delim('{'):
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return err
			}
			name := strings.TrimPrefix(fmt.Sprintf("%s.%v", at, key), ".")
			_, twice := f.lines[name]
			f.lines[name] = f.lineAt(d.InputOffset())
			if twice {
				f.fault(name, "is there twice")
			}
			if err := f.locate(d, name); err != nil {
				return err
			}
		}
	case json.Delim('['):
		for i := 0; d.More(); i++ {
			if err := f.locate(d, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	_, err = d.Token() // the end
	return err
}

// fault notes a fault, at the line of the field, or of what it is in.
func (f *file) fault(field, reason string) {
	line := f.lines[field]
	if dot := strings.LastIndex(field, "."); line == 0 && dot > 0 {
		line = f.lines[field[:dot]]
	}
	f.faults = append(f.faults, &LessonError{f.name, line, field, reason})
}

// faulty reports whether a field has a fault already.
func (f *file) faulty(field string) bool {
	return slices.ContainsFunc(f.faults, func(err error) bool {
		var fault *LessonError
		return errors.As(err, &fault) && fault.Field == field
	})
}
