package decision

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The limits of a reply that is read.
const (
	maxReply = 64 << 10 // bytes
	maxDepth = 16       // of objects in objects
)

// A field is a member of an object in a reply: a number, a text, an object, or something else.
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

// answers reports whether the object has a field of one of the names that says something, so that it is not the template of
// an answer.
func (o *object) answers(names []string) bool {
	for _, name := range names {
		if f, n := o.field(name); n > 0 && f.kind != otherKind {
			return true
		}
	}
	return false
}

// findObjects returns the objects in a reply that answer one of the names with a number, a text or an object, in their
// order, and whether there was a malformed one among them. Such an object is looked for anywhere in the text but in a block
// of thoughts, also within other objects, but not within one that is found.
//
// Objects are JSON, with what models make of it: single quotes, names without quotes, comments, a comma too many, a text or
// a code fence that ends within the object. The last of these keeps the fields that are complete.
func findObjects(text string, names ...string) (found []*object, malformed bool) {
	if len(text) > maxReply {
		return nil, true
	}
	text = withoutThoughts(text)
	if s := strings.TrimSpace(text); strings.HasPrefix(s, `"`) { // JSON within a JSON string
		var inner string
		if json.Unmarshal([]byte(s), &inner) == nil {
			text = inner
		}
	}
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

func (o *object) find(names []string) (found []*object) {
	if o.answers(names) {
		return []*object{o}
	}
	for i := range o.fields {
		if inner := o.fields[i].object; inner != nil {
			found = append(found, inner.find(names)...)
		}
	}
	return found
}

// thoughts are the tags of what a model says to itself.
var thoughts = []string{"think", "thinking", "thought", "reasoning", "reflection", "scratchpad"}

// withoutThoughts leaves out what a model says to itself: up to the last closing tag, and from an opening tag that is not
// closed.
func withoutThoughts(text string) string {
	lower := asciiLower(text)
	for _, tag := range thoughts {
		if i := strings.LastIndex(lower, "</"+tag+">"); i >= 0 {
			i += len(tag) + 3
			text, lower = text[i:], lower[i:]
		}
		if i := strings.Index(lower, "<"+tag+">"); i >= 0 {
			text, lower = text[:i], lower[:i]
		}
	}
	return text
}

// asciiLower lowers ASCII letters only, so that places in the text stay the same.
func asciiLower(text string) string {
	lower := []byte(text)
	for i, c := range lower {
		if c >= 'A' && c <= 'Z' {
			lower[i] = c + ('a' - 'A')
		}
	}
	return string(lower)
}

// A state says how reading a value ended.
type state uint8

const (
	whole  state = iota
	cutOff       // the text ended
	broken       // it is not JSON, nor what is taken for it
)

// A reader reads values off a text. It stands behind what it has read, or on what is broken.
type reader struct {
	text string
	at   int
}

// peek returns the next byte that is neither white space nor in a comment, and 0 at the end, or at a code fence.
func (r *reader) peek() byte {
	for r.at < len(r.text) {
		rest := r.text[r.at:]
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			r.at++
		case strings.HasPrefix(rest, "//"):
			r.skip(rest, "\n")
		case strings.HasPrefix(rest, "/*"):
			r.skip(rest, "*/")
		case strings.HasPrefix(rest, "```"):
			return 0
		default:
			return rest[0]
		}
	}
	return 0
}

func (r *reader) skip(rest, to string) {
	if i := strings.Index(rest, to); i >= 0 {
		r.at += i + len(to)
	} else {
		r.at = len(r.text)
	}
}

// object reads an object; the reader stands on its brace.
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

// value reads what stands behind a colon, or in an array.
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

// scalar reads a number, or whatever stands in its place. One with which the text ends may go on, and is cut off.
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

// array reads an array, of which the objects are kept, as if they were those of one object.
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

// unquote reads the escapes of a text. Line breaks within it, which JSON does not allow, are taken as they are.
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
	begin := r.at
	for r.at < len(r.text) && isWord(r.text[r.at]) {
		r.at++
	}
	switch {
	case r.at == begin:
		return "", broken
	case r.at == len(r.text):
		return "", cutOff
	}
	return r.text[begin:r.at], whole
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

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
