package decision

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/heedhq/heed/internal/thoughts"
)

// The limits of a reply that is read.
const (
	maxReply  = 64 << 10 // bytes
	maxBraces = 1000     // at which an object may begin
)

// An object is an object in a reply: the values of its fields, by their names in lower case. Values
// are objects, lists, and what package json has for the others.
type object map[string][]any

type list []any

// findObjects returns the objects of a reply in which one of the names is a number, a text or an
// object. Objects may be anywhere in the text except in thoughts, for example in prose or in a
// fence, also within other objects, but not within one that is found. What is no JSON is skipped:
// it may be the template of an answer. A reply that is too long has no object.
func findObjects(text string, names ...string) (found []object) {
	if len(text) > maxReply {
		return nil
	}
	text, _ = thoughts.Split(text)
	// changes the text only if it is a JSON string
	_ = json.Unmarshal([]byte(strings.TrimSpace(text)), &text)
	for range maxBraces {
		i := strings.IndexByte(text, '{')
		if i < 0 {
			break
		}
		d := json.NewDecoder(strings.NewReader(text[i:]))
		d.UseNumber()
		value, err := read(d)
		if err != nil { // an object within it may be whole
			text = text[i+1:]
			continue
		}
		found = append(found, find(value, names)...)
		text = text[i+int(d.InputOffset()):]
	}
	return found
}

// read reads a value. Unlike package json, it keeps each field of a name that is there twice.
func read(d *json.Decoder) (any, error) {
	token, err := d.Token()
	switch {
	case err != nil:
		return nil, err
	case token == json.Delim('{'):
		o := make(object)
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := read(d)
			if err != nil {
				return nil, err
			}
			key := strings.ToLower(name.(string)) // a name is a text, or Token has failed
			o[key] = append(o[key], value)
		}
		_, err = d.Token()
		return o, err
	case token == json.Delim('['):
		var l list
		for d.More() {
			value, err := read(d)
			if err != nil {
				return nil, err
			}
			l = append(l, value)
		}
		_, err = d.Token()
		return l, err
	}
	return token, nil
}

// find returns an object itself if a field of one of the names has a value, else the objects within
// it that have.
func find(value any, names []string) (found []object) {
	within := list{}
	switch value := value.(type) {
	case list:
		within = value
	case object:
		for _, name := range names {
			for _, v := range value[name] {
				switch v.(type) {
				case json.Number, string, object:
					return []object{value}
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			within = append(within, value[name]...)
		}
	}
	for _, v := range within {
		found = append(found, find(v, names)...)
	}
	return found
}
