package loop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/learning"
)

// A LessonError is a fault in a file of lessons.
type LessonError struct {
	File   string // [Config].LessonsFile; "" where another reader was read
	Line   int    // from 1; 0 if it is not known
	Field  string // as "heuristics[2].initial"; "" for a fault of the whole file
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

// ReadLessons reads lessons from JSON or TOML. The lists are "heuristics" with id, domain, pack,
// condition, action and initial; "notes" with id, domain, category, topic and text; and "arms" with
// id, weight, model, system and tools. The model of an arm is a name in [Config].Models. "only" is
// [Lessons].Only. In TOML:
//
//	only = true
//
//	[[heuristics]]
//	id = "rotate"
//	condition = "the disk of a server is full"
//	action = "Rotate its logs."
//
// All faults are returned together, each a [*LessonError]. A file may have 16 MiB.
func ReadLessons(r io.Reader) (Lessons, error) {
	l, faults := readLessons(r, nil)
	if len(faults) > 0 {
		return Lessons{}, fmt.Errorf("loop: lessons: %w", errors.Join(faults...))
	}
	return l, nil
}

// readLessons reads lessons, or returns all their faults. knows says whether there is a model of a
// name; nil: any may be.
func readLessons(r io.Reader, knows func(model string) bool) (Lessons, []error) {
	text, err := io.ReadAll(io.LimitReader(r, maxLessons+1))
	if err == nil && len(text) > maxLessons {
		err = &LessonError{Reason: "has more than 16 MiB"}
	}
	var f file
	if err == nil {
		f, err = parse(text)
	}
	if err != nil {
		return Lessons{}, []error{err}
	}
	l := f.lessons()
	for _, fault := range l.faults() {
		var input *heed.InputError
		if errors.As(fault, &input) && !f.faulty(path(input.Field)) {
			f.fault(path(input.Field), input.Reason)
		}
	}
	for i, arm := range l.Arms {
		if field := fmt.Sprintf("arms[%d].model", i); arm.ModelName != "" && knows != nil &&
			!knows(arm.ModelName) {
			f.fault(field, "must be in Config.Models")
		}
	}
	return l, f.faults
}

// path writes a field of [Lessons] as a file has it.
func path(field string) string { return strings.ToLower(field) }

// A file is what was read, with the line of each field.
type file struct {
	tree   map[string]any
	lines  map[string]int
	faults []error
}

func parse(text []byte) (file, error) {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return parseJSON(text)
	}
	f := file{lines: tomlLines(string(text))}
	err := toml.Unmarshal(text, &f.tree)
	var fault toml.ParseError
	if errors.As(err, &fault) {
		return f, &LessonError{Line: fault.Position.Line, Reason: fault.Message}
	}
	return f, err
}

func parseJSON(text []byte) (file, error) {
	f := file{lines: make(map[string]int)}
	err := json.Unmarshal(text, &f.tree)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return f, &LessonError{Line: lineAt(text, int(syntax.Offset)), Reason: syntax.Error()}
	}
	if err != nil {
		return f, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	return f, f.locate(d, text, "")
}

func lineAt(text []byte, offset int) int {
	return 1 + bytes.Count(text[:min(max(offset, 0), len(text))], []byte("\n"))
}

// locate notes the lines of a JSON value and of what is in it.
func (f *file) locate(d *json.Decoder, text []byte, at string) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	if _, known := f.lines[at]; !known {
		f.lines[at] = lineAt(text, int(d.InputOffset()))
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
			f.lines[name] = lineAt(text, int(d.InputOffset()))
			if twice {
				f.fault(name, "is there twice")
			}
			if err := f.locate(d, text, name); err != nil {
				return err
			}
		}
	case json.Delim('['):
		for i := 0; d.More(); i++ {
			if err := f.locate(d, text, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	_, err = d.Token() // the end
	return err
}

var (
	header   = regexp.MustCompile(`^\s*\[\[\s*"?(\w+)"?\s*\]\]`)
	setting  = regexp.MustCompile(`^\s*"?([\w-]+)"?\s*=`)
	multiple = regexp.MustCompile(`"""|'''`)
)

// tomlLines returns the lines of the tables and fields of TOML.
func tomlLines(text string) map[string]int {
	lines := make(map[string]int)
	counts := make(map[string]int)
	at, within := "", false
	for i, line := range strings.Split(text, "\n") {
		inText := within
		if len(multiple.FindAllString(line, -1))%2 == 1 {
			within = !within
		}
		if inText {
			continue
		}
		if m := header.FindStringSubmatch(line); m != nil {
			at = fmt.Sprintf("%s[%d]", m[1], counts[m[1]])
			counts[m[1]]++
			lines[at] = i + 1
		} else if m := setting.FindStringSubmatch(line); m != nil {
			lines[strings.TrimPrefix(at+"."+m[1], ".")] = i + 1
		}
	}
	return lines
}

// fault notes a fault, at the line of the field, or of what it is in.
func (f *file) fault(field, reason string) {
	line := f.lines[field]
	if dot := strings.LastIndex(field, "."); line == 0 && dot > 0 {
		line = f.lines[field[:dot]]
	}
	f.faults = append(f.faults, &LessonError{Line: line, Field: field, Reason: reason})
}

// faulty reports whether a field has a fault already.
func (f *file) faulty(field string) bool {
	return slices.ContainsFunc(f.faults, func(err error) bool {
		var fault *LessonError
		return errors.As(err, &fault) && fault.Field == field
	})
}

// lessons reads the lists, and notes each fault.
func (f *file) lessons() (l Lessons) {
	for _, list := range slices.Sorted(maps.Keys(f.tree)) {
		if list == "only" {
			l.Only = f.only()
			continue
		}
		if !slices.Contains([]string{"heuristics", "notes", "arms"}, list) {
			if f.lines[list] == 0 {
				f.lines[list] = f.lines[list+"[0]"]
			}
			f.fault(list, "is not known: lessons are heuristics, notes and arms")
			continue
		}
		all, ok := tables(f.tree[list])
		if !ok {
			f.fault(list, "must be a list of tables")
			continue
		}
		for i, table := range all {
			t := fields{f, fmt.Sprintf("%s[%d]", list, i), table}
			switch list {
			case "heuristics":
				l.Heuristics = append(l.Heuristics, learning.Heuristic{
					ID: t.text("id"), Domain: t.text("domain"), Pack: t.text("pack"),
					Condition: t.text("condition"),
					Action:    t.text("action"), Initial: t.number("initial"),
				})
			case "notes":
				l.Notes = append(l.Notes, Note{
					ID: t.text("id"), Domain: t.text("domain"), Category: t.text("category"),
					Topic: t.text("topic"), Text: t.text("text"),
				})
			case "arms":
				l.Arms = append(l.Arms, Arm{
					ID: t.text("id"), Weight: t.number("weight"), ModelName: t.text("model"),
					System: t.text("system"), Tools: t.texts("tools"),
				})
			}
			t.rest()
		}
	}
	return l
}

// only reads whether these are all lessons.
func (f *file) only() bool {
	only, is := f.tree["only"].(bool)
	if !is {
		f.fault("only", "must be true or false")
	}
	return only
}

// tables returns a list of tables.
func tables(value any) (all []map[string]any, ok bool) {
	switch list := value.(type) {
	case []map[string]any: // of TOML
		return list, true
	case []any: // of JSON
		for _, one := range list {
			table, ok := one.(map[string]any)
			if !ok {
				return nil, false
			}
			all = append(all, table)
		}
		return all, true
	default:
		return nil, false
	}
}

// Fields are the fields of one lesson, which are taken out as they are read.
type fields struct {
	f     *file
	at    string
	table map[string]any
}

func (t fields) take(name string) (value any, ok bool) {
	value, ok = t.table[name]
	delete(t.table, name)
	return value, ok
}

func (t fields) text(name string) string {
	value, ok := t.take(name)
	text, is := value.(string)
	if ok && !is {
		t.f.fault(t.at+"."+name, "must be a text")
	}
	return text
}

func (t fields) number(name string) float64 {
	value, ok := t.take(name)
	switch n := value.(type) {
	case float64:
		return n
	case int64:
		return float64(n)
	}
	if ok {
		t.f.fault(t.at+"."+name, "must be a number")
	}
	return 0
}

func (t fields) texts(name string) (texts []string) {
	value, ok := t.take(name)
	list, is := value.([]any)
	for _, one := range list {
		text, isText := one.(string)
		is = is && isText
		texts = append(texts, text)
	}
	if ok && !is {
		t.f.fault(t.at+"."+name, "must be a list of texts")
		return nil
	}
	return texts
}

// rest tells of fields that are not known.
func (t fields) rest() {
	for _, name := range slices.Sorted(maps.Keys(t.table)) {
		t.f.fault(t.at+"."+name, "is not known")
	}
}
