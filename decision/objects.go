package decision

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/heedhq/heed/internal/thoughts"
)

// The limits of a reply that is read.
const (
	maxReply = 64 << 10 // bytes
	maxDepth = 16       // of objects in objects
)

// A field is a member of an object in a reply.
type field struct {
	name   string // in lower case
	kind   kind
	number float64
	text   string
	object *object
}

type kind uint8

const (
	otherKind kind = iota
	numberKind
	textKind
	objectKind
)

// An object is an object in a reply.
type object struct {
	fields  []field
	partial bool // it was cut off, or is malformed, behind these fields
}

// field returns the field of a name, and how many there are of it.
func (o *object) field(name string) (f *field, n int) {
	for i := range o.fields {
		if o.fields[i].name == name {
			f = &o.fields[i]
			n++
		}
	}
	return f, n
}

// findObjects returns the objects of a reply in which one of the names is a number, a text or an
// object, and whether one of them was malformed. Objects may be anywhere in the text except in
// thoughts, also within other objects, but not within one that is found.
//
// Objects are JSON with the faults of models: single quotes, names without quotes, comments, a
// comma too many, a text or a code fence that ends within the object, which then has the fields
// that are complete.
func findObjects(text string, names ...string) (found []*object, malformed bool) {
	if len(text) > maxReply {
		return nil, true
	}
	text, _ = thoughts.Split(text)
	// changes the text only if it is a JSON string
	_ = json.Unmarshal([]byte(strings.TrimSpace(text)), &text)
	r := reader{text: text}
	for {
		next := strings.IndexByte(r.text[r.at:], '{')
		if next < 0 {
			return found, malformed
		}
		r.at += next
		o, state := r.object(0)
		answers := o.find(names)
		if state == broken {
			malformed = malformed || len(answers) > 0
		} else {
			found = append(found, answers...)
		}
	}
}

// find returns the object itself if a field of one of the names has a value, else the objects
// within it that have. An object without may be the template of an answer.
func (o *object) find(names []string) (found []*object) {
	for _, name := range names {
		if f, n := o.field(name); n > 0 && f.kind != otherKind {
			return []*object{o}
		}
	}
	for i := range o.fields {
		if inner := o.fields[i].object; inner != nil {
			found = append(found, inner.find(names)...)
		}
	}
	return found
}

// A state is how reading a value ended.
type state uint8

const (
	whole  state = iota
	cutOff       // the text ended
	broken       // the value can't be read
)

// A reader reads values from a text. Its position is behind the last value, or on what is broken.
type reader struct {
	text string
	at   int
}

// peek skips white space and comments and returns the next byte, or 0 at the end and at a code
// fence.
func (r *reader) peek() byte {
	for r.at < len(r.text) {
		rest := r.text[r.at:]
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			r.at++
		case strings.HasPrefix(rest, "//"):
			r.skip("\n")
		case strings.HasPrefix(rest, "/*"):
			r.skip("*/")
		case strings.HasPrefix(rest, "```"):
			return 0
		default:
			return rest[0]
		}
	}
	return 0
}

func (r *reader) skip(to string) {
	_, rest, _ := strings.Cut(r.text[r.at:], to)
	r.at = len(r.text) - len(rest)
}

// object reads an object; the reader is at its brace.
func (r *reader) object(depth int) (*object, state) {
	r.at++
	o := &object{}
	for {
		switch r.peek() {
		case 0:
			o.partial = true
			return o, cutOff
		case '}':
			r.at++
			return o, whole
		case ',':
			if len(o.fields) == 0 {
				return o, broken
			}
			r.at++
			if c := r.peek(); c == ',' {
				return o, broken
			}
			continue
		}
		f, s := r.field(depth)
		if s == whole || s == cutOff && f.object != nil {
			o.fields = append(o.fields, f)
		}
		if s != whole {
			o.partial = true
			return o, s
		}
		if c := r.peek(); c != ',' && c != '}' && c != 0 {
			return o, broken
		}
	}
}

func (r *reader) field(depth int) (f field, s state) {
	switch c := r.peek(); {
	case c == '"' || c == '\'':
		f.name, s = r.quoted(c)
	default:
		f.name, s = r.word()
	}
	if s != whole {
		return f, s
	}
	f.name = strings.ToLower(f.name)
	switch r.peek() {
	case ':':
		r.at++
	case 0:
		return f, cutOff
	default:
		return f, broken
	}
	return f, r.value(&f, depth)
}

// value reads the value of a field, or of an array.
func (r *reader) value(f *field, depth int) (s state) {
	switch c := r.peek(); {
	case c == 0:
		return cutOff
	case c == '"' || c == '\'':
		f.kind = textKind
		f.text, s = r.quoted(c)
		return s
	case c == '{':
		if depth == maxDepth {
			return broken
		}
		f.kind = objectKind
		f.object, s = r.object(depth + 1)
		return s
	case c == '[':
		return r.array(f, depth)
	default:
		return r.scalar(f)
	}
}

// scalar reads a number or a literal. If the text ends with it, it counts as cut off, because it
// might go on.
func (r *reader) scalar(f *field) state {
	rest := r.text[r.at:]
	n := strings.IndexAny(rest, ",}]\n")
	for _, comment := range []string{"//", "/*"} {
		if i := strings.Index(rest[:max(n, 0)], comment); i >= 0 {
			n = i
		}
	}
	if n < 0 {
		r.at = len(r.text)
		return cutOff
	}
	literal := rest[:n]
	r.at += n
	if literal == "" || strings.ContainsAny(literal, "\"':{[") {
		return broken
	}
	if x, ok := parseNumber(strings.TrimSpace(literal)); ok {
		f.kind, f.number = numberKind, x
	}
	return whole
}

// array reads an array and keeps its objects like the fields of one object.
func (r *reader) array(f *field, depth int) state {
	if depth == maxDepth {
		return broken
	}
	r.at++
	f.object = &object{}
	for {
		switch r.peek() {
		case 0:
			return cutOff
		case ']':
			r.at++
			return whole
		case ',':
			r.at++
			continue
		}
		var element field
		s := r.value(&element, depth+1)
		if element.object != nil {
			f.object.fields = append(f.object.fields, field{object: element.object})
		}
		if s != whole {
			return s
		}
	}
}

// quoted reads a text in quotes.
func (r *reader) quoted(quote byte) (string, state) {
	begin := r.at + 1
	for r.at = begin; r.at < len(r.text); r.at++ {
		switch r.text[r.at] {
		case '\\':
			r.at++
		case quote:
			literal := r.text[begin:r.at]
			r.at++
			return unquote(literal, quote)
		}
	}
	r.at = len(r.text)
	return "", cutOff
}

// unquote reads the escapes of a text. It accepts line breaks, which JSON does not allow.
func unquote(literal string, quote byte) (string, state) {
	if !utf8.ValidString(literal) {
		return "", broken
	}
	if quote == '\'' {
		literal = strings.ReplaceAll(strings.ReplaceAll(literal, `\'`, `'`), `"`, `\"`)
	}
	literal = strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(literal)
	var text string
	if json.Unmarshal([]byte(`"`+literal+`"`), &text) != nil {
		return "", broken
	}
	return text, whole
}

// word reads a name without quotes.
func (r *reader) word() (string, state) {
	rest := r.text[r.at:]
	n := len(rest) - len(strings.TrimLeft(rest, wordCharacters))
	r.at += n
	switch n {
	case 0:
		return "", broken
	case len(rest):
		return "", cutOff
	}
	return rest[:n], whole
}

const wordCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

// parseNumber reads a JSON number. One that is too large for a float64 is infinite.
func parseNumber(s string) (float64, bool) {
	if s == "" || !json.Valid([]byte(s)) || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
		return 0, false
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(x, 0) {
		return 0, false
	}
	return x, true
}
