package store

import (
	"bytes"
	"slices"
	"strings"
)

// A person is somebody to take out of records.
type person struct {
	name      string
	pseudonym string
}

// persons gives each name its pseudonym under a store's key. Names that differ in case are names of
// different people.
func (k PseudonymKey) persons(names []string) []person {
	all := make([]person, 0, len(names))
	for _, name := range names {
		all = append(all, person{name, k.Of(name)})
	}
	return all
}

// Without returns the JSON of a record of this kind without some people, in the form in which a
// [Job] that forgets them leaves it. A store that keeps copies of records elsewhere, such as in a
// queue, calls it for [Batch].Forgotten. No JSON means that the record goes as a whole.
func (k Kind) Without(text []byte, key PseudonymKey, names ...string) ([]byte, error) {
	after, err := k.takeOut(text, nil, key.persons(names))
	return after.text, err
}

// withoutPeople is a record without some people. It shares with the record whatever is the same.
type withoutPeople struct {
	text    []byte
	keys    []string
	changed bool // whether the text or the keys are others
	gone    bool // the record goes as a whole, and the rest is not set
}

// takeOut takes people out of a record of this kind, by the declaration of the kind. It changes
// neither text nor keys. It edits the JSON as text: it replaces the names and leaves every other
// byte as it is. A name that is removed leaves "" behind, or takes its element of an array with it.
//
// A person's key is removed, or becomes the key of the pseudonym if the person decided something in
// the record. It stays if a path still has the name in another case, because that is somebody else.
//
// JSON that can't be read is an error.
func (k Kind) takeOut(text []byte, keys []string, people []person) (withoutPeople, error) {
	e := editor{people: people, decided: make([]bool, len(people)), stays: make([]bool, len(people))}
	after, err := e.edit(text, paths(k))
	if err != nil {
		return withoutPeople{}, err
	}
	if k.Whole && e.caused {
		return withoutPeople{gone: true}, nil
	}
	r := withoutPeople{text: text, keys: e.keys(keys)}
	if after != nil {
		r.text = after
	}
	// A pseudonym is its own pseudonym.
	r.changed = !bytes.Equal(r.text, text) || !slices.Equal(r.keys, keys)
	return r, nil
}

// keys returns the keys of the record after an edit.
func (e *editor) keys(keys []string) []string {
	var after []string
	add := func(key string) {
		if !slices.Contains(after, key) {
			after = append(after, key)
		}
	}
	room := MaxKeys - len(keys)
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

func fold(name string) string { return strings.ToLower(name) }
