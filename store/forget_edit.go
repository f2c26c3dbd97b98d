package store

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/heedhq/heed"
)

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

// An editor finds names in JSON and collects the changes.
type editor struct {
	people  []person
	decided []bool // by person: a pseudonym took the place of the name
	stays   []bool // by person: a name that equals theirs except for its case stays
	caused  bool   // one of them caused something
}

// An edit puts another text in the place of a part of the JSON.
type edit struct {
	from, to int
	text     []byte
}

var errDamaged = fmt.Errorf("%w: it is not JSON", heed.ErrDamaged)

// edit returns the JSON without the people, or nil if the JSON does not change.
func (e *editor) edit(text []byte, paths []path) ([]byte, error) {
	if !json.Valid(text) {
		return nil, errDamaged
	}
	s := scanner{editor: e, text: text}
	from, to, gone, err := s.value(paths)
	if err != nil {
		return nil, err
	}
	if gone {
		s.replace(from, to, []byte(`""`))
	}
	if len(s.changes) == 0 {
		return nil, nil
	}
	after := make([]byte, 0, len(text))
	at := 0
	for _, c := range s.changes {
		after = append(append(after, text[at:c.from]...), c.text...)
		at = c.to
	}
	return append(after, text[at:]...), nil
}

// A scanner walks once through JSON that is valid and collects the changes, in their order.
type scanner struct {
	*editor
	text    []byte
	at      int
	changes []edit
}

func (s *scanner) replace(from, to int, text []byte) {
	s.changes = append(s.changes, edit{from, to, text})
}

// next returns the next byte that is no white space, which stays the next.
func (s *scanner) next() byte {
	for strings.IndexByte(" \t\r\n", s.text[s.at]) >= 0 {
		s.at++
	}
	return s.text[s.at]
}

// value walks through a value, to which these paths led, and returns where it begins and ends. It
// reports whether the value is a name that is removed.
func (s *scanner) value(paths []path) (from, to int, gone bool, err error) {
	first := s.next()
	from = s.at
	switch first {
	case '{':
		err = s.object(paths)
	case '[':
		err = s.array(paths)
	case '"':
		s.skipText()
		if len(paths) > 0 {
			gone, err = s.name(from, paths)
		}
	default:
		for s.at < len(s.text) && strings.IndexByte(",]} \t\r\n", s.text[s.at]) < 0 {
			s.at++
		}
	}
	return from, s.at, gone, err
}

func (s *scanner) skipText() {
	for s.at++; s.text[s.at] != '"'; s.at++ {
		if s.text[s.at] == '\\' {
			s.at++
		}
	}
	s.at++
}

func (s *scanner) object(paths []path) error {
	s.at++ // the brace
	for s.next() != '}' {
		if s.text[s.at] == ',' {
			s.at++
			continue
		}
		var below []path
		from := s.at
		s.skipText()
		if len(paths) > 0 {
			key, err := unquote(s.text[from:s.at])
			if err != nil {
				return err
			}
			below = ofKey(paths, key)
		}
		s.next()
		s.at++ // the colon
		from, to, gone, err := s.value(below)
		if err != nil {
			return err
		}
		if gone {
			s.replace(from, to, []byte(`""`))
		}
	}
	s.at++
	return nil
}

// array walks through the elements. A name that goes takes its element with it, and one comma.
func (s *scanner) array(paths []path) error {
	s.at++ // the bracket
	below := ofElement(paths)
	// whether an element was kept; where the last ended; where the part to remove begins
	kept, end, cut := false, 0, -1
	for s.next() != ']' {
		if s.text[s.at] == ',' {
			s.at++
			continue
		}
		if cut >= 0 && !kept {
			s.replace(cut, s.at, nil)
			cut = -1
		}
		from, to, gone, err := s.value(below)
		if err != nil {
			return err
		}
		switch {
		case !gone:
			kept = true
		case kept:
			s.replace(end, to, nil)
		default:
			cut = from
		}
		end = to
	}
	if cut >= 0 {
		s.replace(cut, end, nil)
	}
	s.at++
	return nil
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
func (s *scanner) name(from int, paths []path) (gone bool, err error) {
	text, err := unquote(s.text[from:s.at])
	if err != nil {
		return false, err
	}
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
	for i, p := range s.people {
		switch {
		case text != p.name:
		case decided:
			s.decided[i] = true
			s.replace(from, s.at, quote(p.pseudonym))
			return false, nil
		case caused:
			s.caused = true
			return true, nil
		}
	}
	for i, p := range s.people {
		if (caused || decided) && fold(text) == fold(p.name) {
			s.stays[i] = true
		}
	}
	if len(inside) > 0 {
		return false, s.enter(from, text, inside)
	}
	return false, nil
}

// enter edits JSON that is kept as base64. Any other text is a payload of the host and stays.
func (s *scanner) enter(from int, text string, inside []path) error {
	payload, err := base64.StdEncoding.DecodeString(text)
	if err != nil || !json.Valid(payload) {
		return nil //nolint:nilerr // it is no JSON of ours
	}
	after, err := s.edit(payload, inside)
	if err != nil {
		return err
	}
	if after != nil {
		s.replace(from, s.at, quote(base64.StdEncoding.EncodeToString(after)))
	}
	return nil
}

func quote(text string) []byte {
	quoted, _ := json.Marshal(text) //nolint:errchkjson // a string always can be
	return quoted
}

func unquote(quoted []byte) (text string, err error) {
	if err := json.Unmarshal(quoted, &text); err != nil {
		return "", fmt.Errorf("%w: %w", errDamaged, err)
	}
	return text, nil
}
