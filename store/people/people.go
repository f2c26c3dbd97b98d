// Package people takes people out of records. An implementation of [store.Store] calls it for
// [store.Batch].Forget: it finds the records that have [store.PersonKey] of a name, and calls
// [Forget] with each.
//
// It edits the JSON of a record as text: it replaces the names and leaves every other byte as it
// is. A name that is removed leaves "" behind, so an empty field must mean the same as an absent
// one. In an array the element is removed.
package people

import (
	"slices"
	"strings"

	"github.com/heedhq/heed/store"
)

// A Person is somebody to take out of records.
type Person struct {
	Name      string
	Pseudonym string
}

// Of gives each name its pseudonym under a store's key. Names that differ in case are names of
// different people.
func Of(key store.PseudonymKey, names []string) []Person {
	people := make([]Person, 0, len(names))
	for _, name := range names {
		people = append(people, Person{Name: name, Pseudonym: key.Of(name)})
	}
	return people
}

// Named reports whether a record with these keys may name one of the people. A key is the same for
// names that differ in case.
func Named(keys []string, people []Person) bool {
	return slices.ContainsFunc(people, func(p Person) bool {
		return slices.Contains(keys, store.PersonKey(p.Name))
	})
}

// A Result is a record without the people. It shares with the record whatever is the same.
type Result struct {
	JSON    []byte
	Keys    []string
	Changed bool // whether the JSON or the keys are others
	Gone    bool // the record goes as a whole, and the rest is not set
}

// Forget takes the people out of a record of this kind, as the kind was declared. It changes
// neither text nor keys.
//
// A person's key is removed, or becomes the key of the pseudonym if the person decided something in
// the record. It stays if a path still has the name in another case, because that is somebody else.
//
// JSON that can't be read is an error.
func Forget(kind store.Kind, text []byte, keys []string, people []Person) (Result, error) {
	e := editor{people: people, decided: make([]bool, len(people)), stays: make([]bool, len(people))}
	after, err := e.edit(text, paths(kind))
	if err != nil {
		return Result{}, err
	}
	if kind.Whole && e.caused {
		return Result{Gone: true}, nil
	}
	r := Result{JSON: text, Keys: e.keys(keys), Changed: after != nil}
	if after != nil {
		r.JSON = after
	}
	if !slices.Equal(r.Keys, keys) {
		r.Changed = true
	}
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
	room := store.MaxKeys - len(keys)
	for _, key := range keys {
		var pseudonyms []string
		named, stays := false, false
		for i, p := range e.people {
			if key != store.PersonKey(p.Name) {
				continue
			}
			named, stays = true, stays || e.stays[i]
			if e.decided[i] {
				pseudonyms = append(pseudonyms, store.PersonKey(p.Pseudonym))
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
