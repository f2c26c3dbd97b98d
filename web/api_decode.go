package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A syntaxFault says that a body is not JSON.
type syntaxFault struct{ reason string }

func (e *syntaxFault) Error() string { return e.reason }

// A fieldFault says that a field of a body, or a parameter of a URL, is wrong.
type fieldFault struct{ field, reason string }

func (e *fieldFault) Error() string { return e.field + ": " + e.reason }

// decode reads a body into a struct. It is stricter than [json.Unmarshal]: names are compared exactly, and unknown, repeated and
// missing fields and values of another type are refused. A field is required if its tag has no omitempty. null is no value.
func decode(body []byte, into any) error {
	if !utf8.Valid(body) {
		return &syntaxFault{"The body is no valid UTF-8."}
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := checkValue(d, reflect.TypeOf(into).Elem(), ""); err != nil {
		return notJSON(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &syntaxFault{"The body has something after its JSON value."}
	}
	return notJSON(json.Unmarshal(body, into))
}

func notJSON(err error) error {
	var field *fieldFault
	var syntax *syntaxFault
	if err == nil || errors.As(err, &field) || errors.As(err, &syntax) {
		return err
	}
	return &syntaxFault{"The body is not JSON: " + strings.TrimPrefix(err.Error(), "json: ") + "."}
}

// checkValue reads one value, which must be of a type.
func checkValue(d *json.Decoder, t reflect.Type, at string) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	must := func(what string) error { return &fieldFault{at, "must be " + what} }
	switch {
	case t == reflect.TypeFor[time.Time]():
		text, ok := token.(string)
		if !ok || new(time.Time).UnmarshalText([]byte(text)) != nil {
			return must("a time such as 2026-01-31T15:04:05Z")
		}
	case t.Kind() == reflect.Struct:
		if token != json.Delim('{') {
			return must("an object")
		}
		return checkObject(d, t, at)
	case t.Kind() == reflect.Slice:
		if token != json.Delim('[') {
			return must("an array")
		}
		return checkArray(d, t.Elem(), at)
	case t.Kind() == reflect.String:
		if _, ok := token.(string); !ok {
			return must("a string")
		}
	case t.Kind() == reflect.Bool:
		if _, ok := token.(bool); !ok {
			return must("true or false")
		}
	default:
		n, ok := token.(json.Number)
		return checkNumber(n, ok, t.Kind(), must)
	}
	return nil
}

func checkNumber(n json.Number, ok bool, kind reflect.Kind, must func(string) error) error {
	if !ok {
		return must("a number, without quotes")
	}
	if kind == reflect.Float64 {
		if f, err := n.Float64(); err != nil || math.IsInf(f, 0) {
			return must("a number that fits into 64 bits")
		}
		return nil
	}
	if _, err := strconv.ParseInt(n.String(), 10, 64); err != nil {
		return must("a whole number that fits into 64 bits")
	}
	return nil
}

func checkObject(d *json.Decoder, t reflect.Type, at string) error {
	known, seen := fieldsOf(t), make(map[string]bool)
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		path := strings.TrimPrefix(at+"."+name, ".")
		i := slices.IndexFunc(known, func(f jsonField) bool { return f.name == name })
		switch {
		case i < 0:
			return &fieldFault{clipName(path), "is not known here"}
		case seen[name]:
			return &fieldFault{path, "is there twice"}
		}
		seen[name] = true
		if err := checkValue(d, known[i].of, path); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil { // the end
		return err
	}
	for _, f := range known {
		if f.required && !seen[f.name] {
			return &fieldFault{strings.TrimPrefix(at+"."+f.name, "."), "must be set"}
		}
	}
	return nil
}

func checkArray(d *json.Decoder, of reflect.Type, at string) error {
	for i := 0; d.More(); i++ {
		if err := checkValue(d, of, fmt.Sprintf("%s[%d]", at, i)); err != nil {
			return err
		}
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

// A jsonField is one of a body or of an answer.
type jsonField struct {
	name     string // in JSON
	in       string // what heed's errors call it
	inGo     string
	required bool
	of       reflect.Type
}

// fieldsOf returns the fields of a struct, those of embedded structs among them.
func fieldsOf(t reflect.Type) (fields []jsonField) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			fields = append(fields, fieldsOf(f.Type)...)
		case name != "" && name != "-":
			in := f.Tag.Get("heed")
			if in == "" {
				in = f.Name
			}
			fields = append(fields, jsonField{name, in, f.Name, options == "", f.Type})
		}
	}
	return fields
}

// fromQuery reads the parameters of a URL into a struct of texts and numbers.
func fromQuery(raw []byte, into any) error {
	values, err := url.ParseQuery(string(raw))
	if err != nil {
		return &syntaxFault{"The query of the URL is malformed."}
	}
	v := reflect.ValueOf(into).Elem()
	known := fieldsOf(v.Type())
	for name, given := range values {
		i := slices.IndexFunc(known, func(f jsonField) bool { return f.name == name })
		switch {
		case i < 0:
			return &fieldFault{clipName(name), "is not known here"}
		case len(given) > 1:
			return &fieldFault{name, "is there twice"}
		case !utf8.ValidString(given[0]):
			return &fieldFault{name, "must be valid UTF-8"}
		}
		if at := v.FieldByName(known[i].inGo); at.Kind() == reflect.Int {
			n, err := strconv.Atoi(given[0])
			if err != nil {
				return &fieldFault{name, "must be a whole number"}
			}
			at.SetInt(int64(n))
		} else {
			at.SetString(given[0])
		}
	}
	for _, f := range known {
		if f.required && values.Get(f.name) == "" {
			return &fieldFault{f.name, "must be set"}
		}
	}
	return nil
}
