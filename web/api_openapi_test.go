package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/view"
)

// A document is the parts of openapi.json that are compared with the handlers.
type document struct {
	Paths      map[string]map[string]operation
	Components struct {
		Schemas   map[string]schema
		Responses map[string]struct{ Description string }
	}
}

type operation struct {
	Parameters []struct {
		Ref, Name, In string
		Required      bool
		Schema        schema
	}
	RequestBody struct {
		Content map[string]struct{ Schema schema }
	}
	Responses map[string]struct {
		Ref     string `json:"$ref"`
		Content map[string]struct{ Schema schema }
	}
}

type schema struct {
	Ref                  string `json:"$ref"`
	Type, Format         string
	Description          string
	Required             []string
	Properties           map[string]schema
	AdditionalProperties any
	Items                *schema
}

func documented(t *testing.T) (d document) {
	t.Helper()
	require.NoError(t, json.Unmarshal(view.OpenAPI, &d))
	return d
}

// faultOf says how a schema differs from a type, or "".
func (d *document) faultOf(s schema, of reflect.Type, at string) string {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		s = d.Components.Schemas[name]
	}
	is := func(kind string) string {
		if s.Type != kind {
			return fmt.Sprintf("%s is %q in the document, and %s in Go", at, s.Type, of)
		}
		return ""
	}
	switch kind := of.Kind(); {
	case of == reflect.TypeFor[time.Time](), of == reflect.TypeFor[error]():
		return is("string")
	case of == reflect.TypeFor[time.Duration](): // in milliseconds
		return is("number")
	case kind == reflect.Struct:
		return d.faultOfObject(s, of, at)
	case kind == reflect.Slice && s.Items != nil && of.Elem() != of:
		if s.Items.Ref != "" && at != "" && strings.Count(at, ".") > 6 { // a tree
			return ""
		}
		return is("array") + d.faultOf(*s.Items, of.Elem(), at+"[]")
	case kind == reflect.Map:
		return is("object")
	case kind == reflect.String:
		return is("string")
	case kind == reflect.Bool:
		return is("boolean")
	case kind == reflect.Float64:
		return is("number")
	case kind == reflect.Int, kind == reflect.Uint64:
		return is("integer")
	}
	return at + " has no schema for " + of.String()
}

func (d *document) faultOfObject(s schema, of reflect.Type, at string) string {
	if s.Type != "object" || s.AdditionalProperties != false {
		return at + " must be an object without other properties"
	}
	var names, required []string
	for _, f := range view.FieldsOf(of) {
		names = append(names, f.Name)
		if f.Required {
			required = append(required, f.Name)
		}
		property, ok := s.Properties[f.Name]
		if !ok || property.Description == "" {
			return at + "." + f.Name + " is not described"
		}
		if fault := d.faultOf(property, f.Of, at+"."+f.Name); fault != "" {
			return fault
		}
	}
	slices.Sort(required)
	slices.Sort(s.Required)
	switch {
	case len(s.Properties) != len(names):
		return fmt.Sprintf("%s has %d properties in the document, and %d in Go", at, len(s.Properties),
			len(names))
	case !slices.Equal(required, s.Required):
		return fmt.Sprintf("%s must require %v", at, required)
	}
	return ""
}

// The problems that every call may end in, and calls with a body may end in further ones.
var (
	ofAll = []string{
		view.Malformed, view.BadField, unidentified, badMethod, tooMany, view.OutOfTime, view.Failure,
	}
	ofBodies = []string{otherSite, tooLarge, tooSlow, notJSONType, view.Refused, view.Conflicting}
)

// sortsOf returns the problems that a call may end in, by their status.
func sortsOf(call *view.Operation) map[string][]string {
	all := slices.Concat(ofAll, call.Faults)
	if call.Method == http.MethodPost {
		all = slices.Concat(all, ofBodies)
	}
	found := make(map[string][]string)
	for _, sort := range all {
		status := fmt.Sprint(sorts[sort].Status)
		found[status] = append(found[status], sort)
	}
	return found
}

// The document has each call with all fields, their types, and each status that the call may end
// in, and nothing else.
func TestDocumentOfAPI(t *testing.T) {
	d := documented(t)
	calls := view.Operations()
	assert.Len(t, d.Paths, len(calls)+1, "with openapi.json")
	own := d.Paths["/v1/openapi.json"]["get"].Responses
	for _, sort := range []string{unidentified, badMethod, tooMany} {
		assert.Contains(t, own, fmt.Sprint(sorts[sort].Status))
	}
	for _, call := range calls {
		op, ok := d.Paths[call.Path][strings.ToLower(call.Method)]
		if !assert.True(t, ok, call.Path) || !assert.Len(t, d.Paths[call.Path], 1, call.Path) {
			continue
		}
		if call.Method == http.MethodPost {
			body := op.RequestBody.Content["application/json"].Schema
			assert.Empty(t, d.faultOf(body, call.In, "body of "+call.Path))
		} else {
			compareQuery(t, &op, &call)
		}
		statuses := sortsOf(&call)
		assert.Len(t, op.Responses, len(statuses)+1, call.Path)
		for status, found := range statuses {
			assert.Equal(t, "#/components/responses/"+status, op.Responses[status].Ref, call.Path)
			for _, sort := range found {
				assert.Contains(t, d.Components.Responses[status].Description, "#"+sort, call.Path)
			}
		}
		if call.Out == reflect.TypeFor[view.Nothing]() {
			assert.Contains(t, op.Responses, "204", call.Path)
			continue
		}
		result := op.Responses["200"].Content["application/json"].Schema
		assert.Empty(t, d.faultOf(result, call.Out, "answer of "+call.Path))
		_, streams := op.Responses["200"].Content["text/event-stream"]
		assert.Equal(t, call.Path == view.AnswerPath, streams, call.Path)
	}
	assert.Empty(t, d.faultOf(d.Components.Schemas["Problem"], reflect.TypeFor[trouble](), "problem"))
	assert.Empty(t, d.faultOf(d.Components.Schemas["Piece"], reflect.TypeFor[piece](), "piece"))
	for name, data := range map[string]string{
		"PieceEvent": "Piece", "WholeEvent": "Answer", "ProblemEvent": "Problem",
	} {
		assert.Equal(t, "#/components/schemas/"+data, d.Components.Schemas[name].Properties["data"].Ref)
	}
}

func compareQuery(t *testing.T, op *operation, call *view.Operation) {
	t.Helper()
	fields := view.FieldsOf(call.In)
	if !assert.Len(t, op.Parameters, len(fields), call.Path) {
		return
	}
	for i, f := range fields {
		p := op.Parameters[i]
		kind := map[reflect.Kind]string{reflect.Int: "integer", reflect.String: "string"}[f.Of.Kind()]
		assert.Equal(t, []any{f.Name, "query", f.Required, kind},
			[]any{p.Name, p.In, p.Required, p.Schema.Type}, call.Path)
	}
}

// The comparison finds a field that the document lacks, one that it has too much, and one of
// another type.
func TestComparisonBites(t *testing.T) {
	d := documented(t)
	s := d.Components.Schemas["UndoRequest"]
	require.Empty(t, d.faultOf(s, reflect.TypeFor[view.Undo](), ""))
	assert.NotEmpty(t, d.faultOf(s, reflect.TypeFor[struct {
		Answer string `json:"answer"`
	}](), ""))
	assert.NotEmpty(t, d.faultOf(s, reflect.TypeFor[struct {
		view.Undo
		More string `json:"more"`
	}](), ""))
	assert.NotEmpty(t, d.faultOf(s, reflect.TypeFor[struct {
		Answer string  `json:"answer"`
		Person float64 `json:"person,omitempty"`
	}](), ""))
	assert.NotEmpty(t, d.faultOf(s, reflect.TypeFor[struct {
		Answer string `json:"answer"`
		Person string `json:"person"`
	}](), ""))
}

// Each sort of problem has a heading in web/README.md, at which its type points.
func TestProblemsAreExplained(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for sort, p := range sorts {
		assert.Contains(t, string(text), "\n### "+sort+"\n", sort)
		assert.Contains(t, string(text), fmt.Sprint(p.Status), sort)
	}
}
