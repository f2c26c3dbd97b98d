package feedback

import (
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
)

// A checkedText is a text as checks see it.
type checkedText struct {
	raw      string
	wholes   []string // the text without escapes; what is required must be in each
	elements []string // the strings in the arguments of a call
}

// checkedOf returns a text as checks see it. Arguments of a call can be written in many ways that
// mean the same, so they are decoded, and encoded with sorted keys and without escapes of HTML.
func checkedOf(c *Checked) checkedText {
	t := checkedText{raw: c.Text, wholes: []string{c.Text}}
	if c.Tool == "" {
		return t
	}
	whole, err := canonical(c.Text)
	if err != nil { // some tools read what is nearly JSON
		if plain := unescaped(c.Text); plain != c.Text {
			t.wholes = append(t.wholes, plain)
		}
		return t
	}
	t.wholes, t.elements = []string{whole}, stringsIn(c.Text)
	return t
}

// canonical returns JSON in its canonical form, or an error if the text is not one value. Keys are
// sorted, so the order in which a model writes arguments does not matter.
func canonical(text string) (string, error) {
	in := json.NewDecoder(strings.NewReader(text))
	in.UseNumber()
	var value any
	if err := in.Decode(&value); err != nil {
		return "", err
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return "", errors.New("there is more than one value")
	}
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(plainNumbers(value))
	return strings.TrimSuffix(out.String(), "\n"), err
}

// plainNumbers writes numbers such as 1e3 as 1000. Whole numbers stay as they are, however large.
func plainNumbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = plainNumbers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	case json.Number:
		if f, err := v.Float64(); err == nil && strings.ContainsAny(v.String(), ".eE") {
			return f
		}
	}
	return value
}

// stringsIn returns all strings in JSON, including keys, and keys that occur twice. It reads tokens
// and not values, because a decoder keeps only the last of two members with one name.
func stringsIn(text string) (all []string) {
	in := json.NewDecoder(strings.NewReader(text))
	in.UseNumber() // no number is out of range
	for {
		token, err := in.Token()
		if err != nil {
			return all
		}
		if s, is := token.(string); is {
			all = append(all, s)
		}
	}
}

// escapes matches what JSON may write in place of a letter or sign.
var escapes = regexp.MustCompile(`(?:\\u[0-9a-fA-F]{4})+|\\/`)

// unescaped returns a text with the characters in place of JSON's escapes for letters and signs.
func unescaped(text string) string {
	return escapes.ReplaceAllStringFunc(text, func(escape string) string {
		var s string
		_ = json.Unmarshal([]byte(`"`+escape+`"`), &s) // the escapes are valid
		return s
	})
}

// matches reports whether an expression matches the text in any way of writing it.
func (t *checkedText) matches(e *regexp.Regexp) bool {
	return e.MatchString(t.raw) || slices.ContainsFunc(t.wholes, e.MatchString) ||
		slices.ContainsFunc(t.elements, e.MatchString)
}

// has reports whether an expression matches the whole text.
func (t *checkedText) has(e *regexp.Regexp) bool {
	return !slices.ContainsFunc(t.wholes, func(text string) bool { return !e.MatchString(text) })
}
