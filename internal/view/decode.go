package view

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A Field is one of an input or of a result.
type Field struct {
	Name     string // in JSON
	Required bool
	Hidden   bool // from models, which can't set it
	Of       reflect.Type
	in       []string // what heed's errors call it
	index    []int
}

// FieldsOf returns the fields of a struct, with the fields of embedded structs. A field is required
// if its tag has no omitempty. The tag mcp hides it from models, and the tag heed has further names
// of it in errors.
func FieldsOf(t reflect.Type) (fields []Field) {
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		fields = append(fields, Field{
			Name: name, Required: options == "", Hidden: f.Tag.Get("mcp") == "-", Of: f.Type,
			in: append(strings.Fields(f.Tag.Get("heed")), f.Name), index: f.Index,
		})
	}
	return fields
}

// decode reads an object in JSON into a struct. It is stricter than [json.Unmarshal]: names are
// compared exactly, and fields that are unknown, repeated, missing or of another type are refused.
// null is no value.
func decode(text []byte, into any, model bool) error {
	if !utf8.Valid(text) {
		return &Fault{Sort: Malformed, Detail: "The body is no valid UTF-8."}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	err := readObject(d, reflect.ValueOf(into).Elem(), "", model)
	if err == nil {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		return &Fault{Sort: Malformed, Detail: "The body has something after its JSON value."}
	}
	if fault := new(Fault); errors.As(err, &fault) {
		return err
	}
	text = []byte(strings.TrimPrefix(err.Error(), "json: "))
	return &Fault{Sort: Malformed, Detail: "The body is not JSON: " + string(text) + "."}
}

func readObject(d *json.Decoder, v reflect.Value, at string, model bool) error {
	if err := begins(d, '{', at, "an object"); err != nil {
		return err
	}
	known, seen := FieldsOf(v.Type()), make(map[string]bool)
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		path := strings.TrimPrefix(at+"."+name, ".")
		i := slices.IndexFunc(known, func(f Field) bool { return f.Name == name })
		switch {
		case i < 0 || model && known[i].Hidden:
			return badField(clipName(path), "is not known here")
		case seen[name]:
			return badField(path, "is there twice")
		}
		seen[name] = true
		if err := readValue(d, v.FieldByIndex(known[i].index), path); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil { // the end
		return err
	}
	for _, f := range known {
		if f.Required && !seen[f.Name] {
			return badField(strings.TrimPrefix(at+"."+f.Name, "."), "must be set")
		}
	}
	return nil
}

// begins reads the beginning of an object or an array.
func begins(d *json.Decoder, with json.Delim, at, what string) error {
	token, err := d.Token()
	if err == nil && token != with {
		err = badField(at, "must be "+what)
	}
	return err
}

// values describes what a value of a kind is.
var values = map[reflect.Kind]string{
	reflect.String: "a string", reflect.Bool: "true or false",
	reflect.Float64: "a number that fits into 64 bits, without quotes",
	reflect.Int:     "a whole number that fits into 64 bits, without quotes",
	reflect.Struct:  "a time such as 2026-01-31T15:04:05Z",
}

func readValue(d *json.Decoder, v reflect.Value, at string) error {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch {
	case v.Kind() == reflect.Slice:
		return readArray(d, v, at)
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]():
		return readObject(d, v, at, false)
	}
	var text json.RawMessage
	if err := d.Decode(&text); err != nil {
		return err
	}
	if string(text) == "null" || json.Unmarshal(text, v.Addr().Interface()) != nil {
		return badField(at, "must be "+values[v.Kind()])
	}
	return nil
}

func readArray(d *json.Decoder, v reflect.Value, at string) error {
	if err := begins(d, '[', at, "an array"); err != nil {
		return err
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	for i := 0; d.More(); i++ {
		one := reflect.New(v.Type().Elem()).Elem()
		if err := readValue(d, one, fmt.Sprintf("%s[%d]", at, i)); err != nil {
			return err
		}
		v.Set(reflect.Append(v, one))
	}
	_, err := d.Token() // the end
	return err
}

// clipName bounds a name that came from outside, for an error.
func clipName(name string) string {
	const most = 100
	if len(name) > most {
		return strings.ToValidUTF8(name[:most], "") + "…"
	}
	return name
}

// fromQuery makes an object in JSON of the parameters of a URL.
func fromQuery(query string, of reflect.Type) ([]byte, error) {
	parameters, err := url.ParseQuery(query)
	if err != nil {
		return nil, &Fault{Sort: Malformed, Detail: "The query of the URL is malformed."}
	}
	object := make(map[string]any)
	for name, given := range parameters {
		if len(given) > 1 {
			return nil, badField(clipName(name), "is there twice")
		}
		object[name] = given[0]
	}
	for _, f := range FieldsOf(of) {
		if text, is := object[f.Name].(string); is && f.Of.Kind() == reflect.Int {
			if object[f.Name], err = strconv.Atoi(text); err != nil {
				return nil, badField(f.Name, "must be a whole number")
			}
		}
	}
	return json.Marshal(object)
}
