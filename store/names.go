package store

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/text"
)

// A person is somebody to take out of records.
type person struct {
	name      string
	pseudonym string
}

// persons gives each name its pseudonym under a store's key. Names that differ in case are names of
// different people.
func persons(k text.PseudonymKey, names []string) []person {
	all := make([]person, 0, len(names))
	for _, name := range names {
		all = append(all, person{name, k.Of(name)})
	}
	return all
}

// withoutPeople is a record without some people. It shares with the record whatever is the same.
type withoutPeople struct {
	text    []byte
	keys    []string
	changed bool // whether the text or the keys are others
	gone    bool // the record goes as a whole, and the rest is not set
}

// takeOut takes people out of a record of this kind, by the declaration of the kind. It changes
// neither text nor keys. A record that names none of them keeps its text to the byte. In any other
// record, the names and the white space change. A name that is removed leaves "" behind, or takes
// its element of an array with it.
//
// A person's key is removed, or becomes the key of the pseudonym if the person decided something in
// the record. It stays if a path still has the name in another case, because that is somebody else.
//
// JSON that can't be read is an error.
func (k Kind) takeOut(text []byte, keys []string, people []person) (withoutPeople, error) {
	e := editor{people: people, decided: make([]bool, len(people)), stays: make([]bool, len(people))}
	after, err := e.document(text, paths(k))
	if err != nil {
		return withoutPeople{}, err
	}
	if k.Whole && e.caused {
		return withoutPeople{gone: true}, nil
	}
	r := withoutPeople{text: after, keys: e.keys(keys)}
	r.changed = !bytes.Equal(r.text, text) || !slices.Equal(r.keys, keys)
	return r, nil
}

// A path is the rest of the way to a name, from the editor's position.
type path struct {
	rest    []string
	decided bool // else caused
}

func paths(kind Kind) (all []path) {
	for _, p := range kind.Caused {
		all = append(all, path{strings.Split(p, "."), false})
	}
	for _, p := range kind.Decided {
		all = append(all, path{strings.Split(p, "."), true})
	}
	return all
}

// An editor takes names out of JSON, and notes what it found.
type editor struct {
	people  []person
	decided []bool // by person: a pseudonym took the place of the name
	stays   []bool // by person: a name that equals theirs except for its case stays
	caused  bool   // one of them caused something
	changes int
}

var errDamaged = fmt.Errorf("%w: it is not JSON", heed.ErrDamaged)

// document returns JSON without the people, or the same bytes if it names none of them.
func (e *editor) document(text []byte, paths []path) ([]byte, error) {
	if !json.Valid(text) {
		return nil, errDamaged
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber() // because a number must stay as it is written
	before := e.changes
	after, _ := e.value(decoded(in), paths)
	if e.changes == before {
		return text, nil
	}
	return encoded(after)
}

// encoded returns a value as JSON. It escapes no HTML, which could make the record too large.
func encoded(value any) ([]byte, error) {
	var out bytes.Buffer
	to := json.NewEncoder(&out)
	to.SetEscapeHTML(false)
	err := to.Encode(value)
	return bytes.TrimSpace(out.Bytes()), err
}

// An object is a JSON object with its members in their order. A name may come twice, and both
// values may name a person.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON implements [json.Marshaler].
func (o object) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			out = append(out, ',')
		}
		name, _ := encoded(m.name)
		value, _ := encoded(m.value) // if this fails, the object is no JSON, and so fails as well
		out = append(append(append(out, name...), ':'), value...)
	}
	return append(out, '}'), nil
}

// decoded reads the next value: an object as an [object], and all else as encoding/json does. The
// JSON is valid, so no token fails.
func decoded(in *json.Decoder) any {
	token, _ := in.Token()
	list, o := []any{}, object{}
	switch token {
	case json.Delim('{'):
		for in.More() {
			token, _ := in.Token()
			name, _ := token.(string)
			o = append(o, member{name, decoded(in)})
		}
		token = o
	case json.Delim('['):
		for in.More() {
			list = append(list, decoded(in))
		}
		token = list
	default:
		return token
	}
	_, _ = in.Token() // the end
	return token
}

// value returns a value, to which these paths led, without the people. It reports whether the value
// is a name that is removed.
func (e *editor) value(value any, paths []path) (after any, gone bool) {
	switch value := value.(type) {
	case object:
		for i := range value {
			m := &value[i]
			m.value, _ = e.value(m.value, ofKey(paths, m.name))
		}
	case []any:
		below, kept := ofElement(paths), value[:0]
		for _, element := range value {
			if element, gone = e.value(element, below); !gone {
				kept = append(kept, element)
			}
		}
		return kept, false
	case string:
		return e.name(value, paths)
	}
	return value, false
}

// ofKey returns the paths that lead on to the value of an object's key. Case does not matter,
// because encoding/json ignores it too.
func ofKey(paths []path, key string) (below []path) {
	for _, p := range paths {
		if len(p.rest) == 0 || p.rest[0] == "~" {
			continue
		}
		if p.rest[0] == "*" || strings.EqualFold(p.rest[0], key) {
			below = append(below, path{p.rest[1:], p.decided})
		}
	}
	return below
}

// ofElement returns the paths that lead on to the elements of an array. A path that ends at an
// array leads to its elements.
func ofElement(paths []path) (below []path) {
	for _, p := range paths {
		switch {
		case len(p.rest) == 0:
			below = append(below, p)
		case p.rest[0] == "*":
			below = append(below, path{p.rest[1:], p.decided})
		}
	}
	return below
}

// name looks at a text to which paths led. It replaces a name that decided something, enters a text
// that has JSON in it, and reports whether the text is a name that caused something.
func (e *editor) name(text string, paths []path) (after any, gone bool) {
	var inside []path
	caused, decided := false, false
	for _, p := range paths {
		switch {
		case len(p.rest) == 0 && p.decided:
			decided = true
		case len(p.rest) == 0:
			caused = true
		case p.rest[0] == "~":
			inside = append(inside, path{p.rest[1:], p.decided})
		}
	}
	for i, p := range e.people {
		switch {
		case text != p.name || !caused && !decided:
		case decided:
			e.decided[i] = true
			if text != p.pseudonym { // a pseudonym is its own pseudonym
				e.changes++
			}
			return p.pseudonym, false
		default:
			e.caused = true
			e.changes++
			return "", true
		}
	}
	for i, p := range e.people {
		if (caused || decided) && PersonKey(text) == PersonKey(p.name) {
			e.stays[i] = true
		}
	}
	// Base64 of anything but JSON is a payload of the host and stays.
	payload, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return text, false
	}
	before := e.changes
	if payload, _ = e.document(payload, inside); e.changes == before {
		return text, false // also what is no JSON
	}
	return base64.StdEncoding.EncodeToString(payload), false
}

// keys returns the keys of the record after an edit.
func (e *editor) keys(keys []string) []string {
	var after []string
	add := func(key string) {
		if !slices.Contains(after, key) {
			after = append(after, key)
		}
	}
	room := maxKeys - len(keys)
	for _, key := range keys {
		var pseudonyms []string
		named, stays := false, false
		for i, p := range e.people {
			if key != PersonKey(p.name) {
				continue
			}
			named, stays = true, stays || e.stays[i]
			if e.decided[i] {
				pseudonyms = append(pseudonyms, PersonKey(p.pseudonym))
			}
		}
		if stays || !named {
			add(key)
		} else {
			room++
		}
		for _, pseudonym := range pseudonyms[:min(len(pseudonyms), room)] {
			add(pseudonym)
			room--
		}
	}
	return after
}
