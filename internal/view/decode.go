package view

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
	"sync"
	"time"
	"unicode"
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

// The types of fields that JSON has in another form: as milliseconds, and as texts.
var (
	durations = reflect.TypeFor[time.Duration]()
	failures  = reflect.TypeFor[error]()
	times     = reflect.TypeFor[time.Time]()
)

// FieldsOf returns the fields of a struct, with the fields of embedded structs. A field without a
// tag is called as in Go, in lower case. It is required if its tag has no omitempty. The tag mcp
// hides it from models, and the tag heed has further names of it in errors. An embedded struct of
// another package has the names of such fields in its tags: need, mcp, and not for those
// that are no fields here. Do not change what it returns, which is kept.
func FieldsOf(t reflect.Type) (fields []Field) {
	if kept, ok := fieldsOf.Load(t); ok {
		return kept.([]Field)
	}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		one := Field{
			Name: name, Required: options == "", Hidden: f.Tag.Get("mcp") == "-", Of: f.Type,
			in: append(strings.Fields(f.Tag.Get("heed")), f.Name), index: f.Index}
		if name == "" && len(f.Index) > 1 {
			of := t.FieldByIndex(f.Index[:len(f.Index)-1]).Tag
			has := func(tag string) bool { return slices.Contains(strings.Fields(of.Get(tag)), one.Name) }
			one.Name = named(&f)
			if one.Required, one.Hidden = has("need"), has("mcp"); has("not") {
				continue
			}
		}
		if one.Name != "" && one.Name != "-" && f.IsExported() {
			fields = append(fields, one)
		}
	}
	fieldsOf.Store(t, fields)
	return fields
}

// fieldsOf are the fields of the types that were read, because a long input has many elements of a
// type.
var fieldsOf sync.Map

// named returns what JSON calls a field without a tag.
func named(f *reflect.StructField) string {
	switch {
	case f.Type == failures:
		return "error"
	case f.Name == "ID":
		return "id"
	}
	var b strings.Builder
	for i, r := range f.Name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	if f.Type == durations {
		b.WriteString("_ms")
	}
	return b.String()
}

// decode reads an object in JSON into a struct. It is stricter than [json.Unmarshal]: names are
// compared exactly, and fields that are unknown, repeated, missing or of another type are refused
// at every depth. null is no value.
func decode(text []byte, into any, model bool) error {
	if !utf8.Valid(text) {
		return &Fault{Sort: Malformed, Detail: "The body is no valid UTF-8."}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	err := readObject(d, "", reflect.ValueOf(into).Elem(), model)
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

// readObject reads an object. in is the name of the field that has it, with a dot, or "".
func readObject(d *json.Decoder, in string, v reflect.Value, model bool) error {
	token, err := d.Token()
	if err == nil && token != json.Delim('{') {
		err = badField(strings.TrimSuffix(in, "."), "must be an object")
	}
	if err != nil {
		return err
	}
	known, seen := FieldsOf(v.Type()), make(map[string]bool)
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		i := slices.IndexFunc(known, func(f Field) bool { return f.Name == name })
		switch {
		case i < 0 || model && known[i].Hidden:
			return badField(in+clipName(name), "is not known here")
		case seen[name]:
			return badField(in+name, "is there twice")
		}
		seen[name] = true
		var text json.RawMessage
		if err := d.Decode(&text); err != nil {
			return err
		}
		if err := readValue(in+name, text, v.FieldByIndex(known[i].index)); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil { // the end
		return err
	}
	for _, f := range known {
		if f.Required && !seen[f.Name] {
			return badField(in+f.Name, "must be set")
		}
	}
	return nil
}

// values describes what a value of a kind is.
var values = map[reflect.Kind]string{
	reflect.String: "a string", reflect.Bool: "true or false",
	reflect.Float64: "a number that fits into 64 bits, without quotes",
	reflect.Int:     "a whole number that fits into 64 bits, without quotes",
	reflect.Struct:  "a time such as 2026-01-31T15:04:05Z",
	reflect.Slice:   "an array of what the OpenAPI document describes",
}

// readValue reads the value of a field.
func readValue(name string, text json.RawMessage, v reflect.Value) error {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	into := v
	switch {
	case v.Type() == durations:
		into = reflect.New(reflect.TypeFor[float64]()).Elem()
	case v.Type() == failures:
		into = reflect.New(reflect.TypeFor[string]()).Elem()
	case v.Kind() == reflect.Slice:
		into = reflect.ValueOf(&[]json.RawMessage{}).Elem()
	case v.Kind() == reflect.Struct && v.Type() != times:
		return readObject(json.NewDecoder(bytes.NewReader(text)), name+".", v, false)
	}
	if string(text) == "null" || json.Unmarshal(text, into.Addr().Interface()) != nil {
		return badField(name, "must be "+values[into.Kind()])
	}
	const most = 1e12 // milliseconds, some 30 years
	switch all := into.Interface().(type) {
	case []json.RawMessage:
		v.Set(reflect.MakeSlice(v.Type(), len(all), len(all)))
		for i, one := range all {
			if err := readValue(fmt.Sprintf("%s[%d]", name, i), one, v.Index(i)); err != nil {
				return err
			}
		}
	case float64:
		if v.Type() != durations {
			break
		}
		if !(all >= 0 && all <= most) {
			return badField(name, "must be in [0, 1e12]")
		}
		v.SetInt(int64(math.Round(all * float64(time.Millisecond))))
	case string:
		if v.Type() == failures && all != "" {
			v.Set(reflect.ValueOf(errors.New(all)))
		}
	}
	return nil
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
