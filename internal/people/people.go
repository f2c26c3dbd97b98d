// Package people takes people out of records. Every store calls it for [store.Batch].Forget.
//
// It works on the JSON of a record as a text: it replaces the names and leaves every other byte as it is. A name that goes
// leaves "" behind, so an empty field must mean the same as one that is not there. In an array its element goes.
package people

import (
	"crypto/rand"
	"slices"
	"strings"

	"github.com/heedhq/heed/store"
)

// A Person is somebody to take out of records.
type Person struct {
	Name      string
	Pseudonym string
}

// Of gives each name a pseudonym that is random. Names that differ in case alone get the same one.
func Of(names []string) []Person {
	people := make([]Person, 0, len(names))
	for _, name := range names {
		p := Person{Name: name}
		for _, known := range people {
			if fold(known.Name) == fold(name) {
				p.Pseudonym = known.Pseudonym
			}
		}
		if p.Pseudonym == "" {
			p.Pseudonym = "forgotten-" + strings.ToLower(rand.Text())
		}
		people = append(people, p)
	}
	return people
}

// Named reports whether a record of these keys names one of the people.
func Named(keys []string, people []Person) bool {
	return slices.ContainsFunc(people, func(p Person) bool { return slices.Contains(keys, store.PersonKey(p.Name)) })
}

// A Result is a record without the people. It shares with the record whatever is the same.
type Result struct {
	JSON    []byte
	Keys    []string
	Changed bool // whether the JSON or the keys are others
}

// Forget takes the people out of a record of this kind. It changes neither text nor keys. [store.Kind].Whole does not matter
// here: where it is set, a store removes a record that [Named] finds, and needs no JSON for that.
//
// A person's key goes. It becomes the key of the pseudonym where the record has something that the person decided. It stays
// where a path to one who caused something still has the name in another case, as that may be somebody else.
//
// JSON that can't be read is an error.
func Forget(kind store.Kind, text []byte, keys []string, people []Person) (Result, error) {
	e := editor{people: people, decided: make([]bool, len(people)), stays: make([]bool, len(people))}
	after, err := e.edit(text, paths(kind))
	if err != nil {
		return Result{}, err
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
	for _, key := range keys {
		pseudonym, stays := "", true
		for i, p := range e.people {
			if key != store.PersonKey(p.Name) {
				continue
			}
			stays = e.stays[i]
			if e.decided[i] {
				pseudonym = store.PersonKey(p.Pseudonym)
			}
		}
		if stays {
			add(key)
		}
		if pseudonym != "" && (!stays || len(keys) < store.MaxKeys) {
			add(pseudonym)
		}
	}
	return after
}

func fold(name string) string { return strings.ToLower(name) }
