package view_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// exchanges are what callers ask, in order: who (a name in capitals is a model that speaks for the
// person), the path, and the input.
var exchanges = [][3]string{
	{"ann", "/v1/answer", `{"text":"The disk is full.","session":"x1","person":"ann","item":"db-1"}`},
	{"ann", "/v1/answer", `{"text":" "}`},
	{"ann", "/v1/answer", `{"text":"x","id":"` + strings.Repeat("x", 2000) + `"}`},
	{"ann", "/v1/prepare", `{"text":"A certificate has expired","domain":"tls","id":"ready"}`},
	{"ann", "/v1/prepare", `{"text":"Mend it","id":"p1","session":"x2","task":"t1"}`},
	{"ann", "/v1/prepare", `{"text":""}`},
	{"ann", "/v1/answered", `{"id":"p1","text":"Mended."}`},
	{"bob", "/v1/answered", `{"id":"p1","text":"Mended."}`},
	{"ann", "/v1/answered", `{"id":"p1"}`},
	{"ann", "/v1/answered", `{"id":"p1","failure":"boredom"}`},
	{"ann", "/v1/answered", `{"id":"p1","text":"x","input_tokens":-1}`},
	{"ann", "/v1/answered", `{"id":"p1","text":"x","output_tokens":-1}`},
	{"ann", "/v1/prepare", `{"text":"Mend it","id":"p2"}`},
	{"ann", "/v1/answered", `{"id":"p2","failure":"timed_out","error":"slow","latency_ms":1.5}`},
	{"ann", "/v1/answered", `{"id":"p2","error":"slow","input_tokens":0,"output_tokens":0}`},
	{"ann", "/v1/tool_result", `{"answer":"p1","name":"sh","call":"1","input":"rm x","before":true}`},
	{"ann", "/v1/tool_result", `{"answer":"p1","name":"sh","call":"1","error":"no such host"}`},
	{"ann", "/v1/tool_result", `{"answer":"unknown","name":"sh","text":"ok"}`},
	{"ann", "/v1/tool_result", `{"answer":"","name":"sh"}`},
	{"ann", "/v1/react", `{"answer":"p1","value":1,"person":"ann"}`},
	{"ann", "/v1/react", `{"answer":"p1","value":2}`},
	{"ann", "/v1/react", `{"answer":"unknown","value":1}`},
	{"KIM", "/v1/react", `{"answer":"p1","value":-1}`},
	{"KIM", "/v1/react", `{"answer":"p1","value":-1,"person":"ann"}`},
	{"ann", "/v1/outcome", `{"answer":"p1","success":true,"source":"ci","duration_ms":1500}`},
	{"ann", "/v1/outcome", `{"answer":"p1"}`},
	{"KIM", "/v1/outcome", `{"answer":"p1","success":false}`},
	{"KIM", "/v1/undo", `{"answer":"p1"}`},
	{"ann", "/v1/undo", `{"answer":"unknown"}`},
	{"ann", "/v1/hear", `{"text":"That did not help at all","session":"x1"}`},
	{"ann", "/v1/hear", `{"session":"x1"}`},
	{"ann", "/v1/correct", `{"answer":"p1","text":"Name the host","comment":"by name","id":"k1"}`},
	{"ann", "/v1/correct", `{"answer":"p1"}`},
	{"KIM", "/v1/correct", `{"answer":"p1","text":""}`},
	{"", "/v1/correct", `{"answer":"p1","text":"x"}`},
	{"", "/v1/propose", `{"text":"x","reason":"y"}`},
	{"ann", "/v1/propose", `{"text":"Do not name the server.","reason":"y"}`},
	{"ann", "/v1/propose", `{"text":"Ask for the ticket.","reason":"y","type":"CONSTRAINT"}`},
	{"ann", "/v1/propose", `{"text":"Be kind.","reason":"y","type":"LAW"}`},
	{"ann", "/v1/explanation", `{"answer":"p1"}`},
	{"ann", "/v1/explanation", `{"answer":"unknown"}`},
	{"ann", "/v1/find", `{"session":"x2"}`},
	{"ann", "/v1/find", `{"session":"unknown"}`},
	{"ann", "/v1/answers", `{"limit":1}`},
	{"ann", "/v1/answers", `{"limit":201}`},
	{"ann", "/v1/changes", `{"limit":1}`},
	{"ann", "/v1/gain", `{}`},
	{"ann", "/v1/segments", `{"limit":1}`},
	{"ann", "/v1/heuristics", `{"limit":1}`},
	{"ann", "/v1/heuristics", `{"limit":1,"after":"0.greet"}`},
	{"ann", "/v1/rules", `{"limit":1,"status":"pending"}`},
	{"ann", "/v1/warnings", `{}`},
	{"ann", "/v1/select", `{"item":"db-1","session":"x9","context":"chat"}`},
	{"ann", "/v1/select", `{"arms":["unknown"]}`},
	{"ann", "/v1/observe", `{"choice":"?","value":1,"confidence":1}`},
	{"ann", "/v1/observe", `{"choice":"bm8","value":1,"confidence":1}`},
	{"ann", "/v1/observe", `{"choice":"CHOICE","value":1,"confidence":1}`},
	{"ann", "/v1/observe", `{"choice":"CHOICE","value":2,"confidence":1}`},
	{"ann", "/v1/gain", `{"x":1}`}, {"ann", "/v1/gain", `[]`}, {"ann", "/v1/gain", `{`},
	{"ann", "/v1/gain", `{} {}`}, {"ann", "/v1/gain", "\"\xff\""},
	{"ann", "/v1/find", `{"session":1}`},
	{"ann", "/v1/find", `{"session":null}`}, {"ann", "/v1/find", `{}`},
	{"ann", "/v1/find", `{1:2}`}, {"ann", "/v1/find", `{"session":"a"`},
	{"ann", "/v1/find", `{"session":`},
	{"ann", "/v1/find", `{"session":"a","session":"b"}`},
	{"ann", "/v1/outcome", `{"answer":"p1","success":true,"duration_ms":-1}`},
	{"ann", "/v1/outcome", `{"answer":"p1","success":true,"duration_ms":1000000000001}`},
	{"ann", "/v1/outcome", `{"answer":"p1","success":true,"errors":1.5}`},
	{"ann", "/v1/outcome", `{"answer":"p1","reward":"much"}`},
	{"ann", "/v1/outcome", `{"answer":"p1","success":1}`},
	{"ann", "/v1/outcome", `{"answer":"p1","success":true,"ways":"all"}`},
	{"ann", "/v1/outcome", `{"answer":"p1","success":true,"` + strings.Repeat("é", 99) + `":1}`},
}

// Each operation gives what testdata/operations.txt has, or a fault with a sort and the field.
func TestWhatOperationsGive(t *testing.T) {
	s := told(t)
	of := view.Of(s.agent, s.world.Now)
	var b strings.Builder
	choice := ""
	for _, x := range exchanges {
		who, at, given := x[0], x[1], strings.ReplaceAll(x[2], "CHOICE", choice)
		fmt.Fprintf(&b, "%s %s %.100q\n", who, at, x[2])
		c := &view.Caller{View: of, Person: strings.ToLower(who)}
		c.Model = who != c.Person
		o := operationAt(t, at)
		got, err := o.Do(t.Context(), c, []byte(given))
		if err != nil {
			f := view.FaultOf(err, o.In)
			fmt.Fprintf(&b, "  %s %q %v: %s %v\n", f.Sort, f.Field, f.After, f.Detail, f.Cause)
			continue
		}
		switch made := got.(type) {
		case view.Selected:
			choice, made.Choice = made.Choice, "" // it is drawn
			got = made
		case view.Explanation:
			got = made.Tree
		case view.Given:
			made.System, _, _ = strings.Cut(made.System, "\n")
			got = made
		case view.List[view.Answer]:
			short(made.Items[0].Asked)
		}
		fmt.Fprintf(&b, "  %s\n", show(reflect.ValueOf(got), "  "))
	}
	isAsIn(t, "testdata/operations.txt", b.String())
}

// What each operation takes and which faults it may end in is in testdata/inputs.txt.
func TestWhatOperationsTake(t *testing.T) {
	var b strings.Builder
	for _, o := range view.Operations() {
		fmt.Fprintln(&b, o.Method, o.Path, o.Tool, o.In, o.Out, o.Faults)
		for _, f := range view.FieldsOf(o.In) {
			fmt.Fprintln(&b, " ", f.Name, f.Of, f.Required, f.Hidden)
		}
		if o.Tool != "" {
			title, when, schema := o.Describe()
			text, err := json.Marshal(schema["required"])
			require.NoError(t, err)
			fmt.Fprintln(&b, " ", title, "|", when, "|", string(text))
			for name, of := range schema["properties"].(map[string]any) {
				assert.NotEmpty(t, of, "%s %s", o.Tool, name)
			}
		}
		err := func() error {
			_, err := o.Do(t.Context(), &view.Caller{View: &view.Source{}}, []byte("{"))
			return err
		}()
		assert.Equal(t, view.Malformed, view.FaultOf(err, o.In).Sort, o.Path)
	}
	isAsIn(t, "testdata/inputs.txt", b.String())
}

// A server without a part refuses the operations that need it.
func TestOperationsWithoutTheirPart(t *testing.T) {
	for _, path := range []string{"/v1/heuristics", "/v1/rules", "/v1/warnings"} {
		o := operationAt(t, path)
		_, err := o.Do(t.Context(), &view.Caller{View: &view.Source{}}, []byte("{}"))
		require.Error(t, err)
		assert.Equal(t, view.MissingPart, view.FaultOf(err, o.In).Sort, path)
	}
}

// A store that fails is a failure inside, and its error is for the observer alone.
func TestOperationsWithAFailingStore(t *testing.T) {
	s := told(t)
	c := &view.Caller{View: view.Of(s.agent, s.world.Now), Person: "ann"}
	for _, x := range exchanges {
		if strings.Contains(x[2], "CHOICE") {
			continue
		}
		o := operationAt(t, x[1])
		s.store.Fail(0, false)
		if _, err := o.Do(t.Context(), c, []byte(x[2])); err != nil {
			continue
		}
		s.store.SetAway(true)
		_, err := o.Do(t.Context(), c, []byte(x[2]))
		s.store.SetAway(false)
		if err == nil { // it answers by what it read before
			assert.Contains(t, []string{"/v1/answer", "/v1/prepare", "/v1/answered", "/v1/select",
				"/v1/tool_result"}, x[1])
			continue
		}
		f := view.FaultOf(err, o.In)
		assert.Equal(t, view.Failure, f.Sort, x)
		assert.ErrorIs(t, f.Cause, storetest.ErrFailed, x)
	}
}

// An endless store has a record again and again, and keeps what it was asked.
type endless struct {
	store.Store

	one   store.Record
	asked store.Query
	read  int
}

func (e *endless) Find(_ context.Context, q store.Query) iter.Seq2[store.Record, error] {
	e.asked = q
	return func(yield func(store.Record, error) bool) {
		for e.read = 1; e.read <= 6000; e.read++ {
			r := e.one
			r.Place = fmt.Sprint("place ", e.read)
			if !yield(r, nil) {
				return
			}
		}
	}
}

// At most 5,000 answers or changes are read for a part, and the next part goes on behind the last
// that was read. A day is asked for from midnight to midnight, and a moment as it is.
func TestHowMuchIsRead(t *testing.T) {
	s := told(t)
	kinds := map[string]store.Record{}
	for _, kind := range []string{"ops.answer", store.Audit.Name} {
		for r, err := range s.store.Find(t.Context(), store.Query{Kind: kind}) {
			require.NoError(t, err)
			kinds[kind] = r
			break
		}
	}
	day := func(d int) time.Time { return time.Date(2026, 1, d, 0, 0, 0, 0, time.UTC) }
	from := &endless{Store: &memstore.Store{}, one: kinds["ops.answer"]}
	of := &view.Source{Store: from, Name: "ops"}
	answers, err := of.Answers(t.Context(), view.AnswerQuery{
		Since: "2026-01-05", Until: "2026-01-06", Person: "nobody", Outcome: view.Bad,
		Page: view.Page{Limit: 2, After: "here"},
	})
	require.NoError(t, err)
	assert.Equal(t, view.List[view.Answer]{Items: []view.Answer{}, Next: "place 5000"}, answers)
	assert.Equal(t, 5001, from.read)
	assert.Equal(t, day(5), from.asked.Since)
	assert.Equal(t, day(7), from.asked.Until)
	assert.Equal(t, "here", from.asked.After)
	assert.Len(t, from.asked.Keys, 2)
	answers, err = of.Answers(t.Context(), view.AnswerQuery{Page: view.Page{Limit: 2}})
	require.NoError(t, err)
	assert.Equal(t, "place 2", answers.Next)
	assert.Equal(t, 3, from.read)
	assert.Empty(t, from.asked.Keys)

	from.one = kinds[store.Audit.Name]
	changes, err := of.Changes(t.Context(), view.ChangeQuery{
		Since: "2026-01-05", Until: "2026-01-06", Kind: "person", Name: "ann",
		Page: view.Page{Limit: 2, After: "here"},
	})
	require.NoError(t, err)
	assert.Equal(t, view.List[view.Changed]{Items: []view.Changed{}, Next: "place 5000"}, changes)
	assert.Equal(t, 5001, from.read)
	assert.Equal(t, store.Query{Kind: store.Audit.Name, Since: day(5), Until: day(7), After: "here",
		Keys: []string{store.PersonKey("ann")}}, from.asked)
	changes, err = of.Changes(t.Context(), view.ChangeQuery{
		Until: "2026-01-06T01:02:03Z", Page: view.Page{Limit: 2},
	})
	require.NoError(t, err)
	assert.Len(t, changes.Items, 2)
	assert.Equal(t, "place 2", changes.Next)
	assert.Equal(t, 3, from.read)
	assert.Equal(t, day(6).Add(time.Hour+2*time.Minute+3*time.Second), from.asked.Until)
}
