package store

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/internal/text"
)

var ann = []person{{name: "ann", pseudonym: "forgotten-1"}}

func in64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func TestForgetNames(t *testing.T) {
	for _, test := range []struct {
		name            string
		caused, decided string
		text, want      string
	}{
		{"caused", "source", "", `{"source":"ann"}`, `{"source":""}`},
		{"decided", "", "actor", `{"actor":"ann"}`, `{"actor":"forgotten-1"}`},
		{"caused in another case", "source", "", `{"source":"Ann"}`, `{"source":"Ann"}`},
		{"decided in another case", "", "actor", `{"actor":"ANN"}`, `{"actor":"ANN"}`},
		{"a part of a longer name", "source", "actor", `{"source":"anna","actor":"joann"}`, `{"source":"anna","actor":"joann"}`},
		{"the name elsewhere", "source", "actor", `{"text":"ann","x":{"source":"ann","actor":"ann"}}`, `{"text":"ann","x":{"source":"ann","actor":"ann"}}`},
		{"escaped", "source", "", `{"source":"\u0061nn"}`, `{"source":""}`},
		{"deep", "a.b.c", "", `{"a":{"b":{"c":"ann","d":"ann"}}}`, `{"a":{"b":{"c":"","d":"ann"}}}`},
		{"elements", "", "approvals.*.actor", `{"approvals":[{"actor":"bob"},{"actor":"ann"}]}`, `{"approvals":[{"actor":"bob"},{"actor":"forgotten-1"}]}`},
		{"values of an object", "by.*.who", "", `{"by":{"x":{"who":"ann"},"y":{"who":"bob"}}}`, `{"by":{"x":{"who":""},"y":{"who":"bob"}}}`},
		{"decided in an array of texts", "", "authors", `{"authors":["bob","ann"]}`, `{"authors":["bob","forgotten-1"]}`},
		{"decided by a star", "", "authors.*", `{"authors":["bob","ann"]}`, `{"authors":["bob","forgotten-1"]}`},
		{"caused first in an array", "a", "", `{"a": [ "ann", "bob" ]}`, `{"a":["bob"]}`},
		{"caused twice first", "a", "", `{"a":["ann","ann","bob"]}`, `{"a":["bob"]}`},
		{"caused in the middle", "a", "", `{"a":["bob", "ann", "cem"]}`, `{"a":["bob","cem"]}`},
		{"caused last", "a", "", `{"a":["bob","ann","ann"]}`, `{"a":["bob"]}`},
		{"caused alone", "a", "", `{"a":[ "ann" ]}`, `{"a":[]}`},
		{"caused only", "a.*", "", `{"a":["ann","ann","ann"]}`, `{"a":[]}`},
		{"caused between", "a", "", `{"a":["ann","bob","ann","cem","ann"]}`, `{"a":["bob","cem"]}`},
		{"arrays in objects in arrays", "*.a", "", `[{"a":["ann"]},{"a":["bob","ann"]}]`, `[{"a":[]},{"a":["bob"]}]`},
		{"inside", "payload.~.source", "", `{"payload":"` + in64(`{"source":"ann","n":1.0}`) + `"}`, `{"payload":"` + in64(`{"source":"","n":1.0}`) + `"}`},
		{"inside twice", "", "p.~.q.~.by", `{"p":"` + in64(`{"q":"`+in64(`{"by":"ann"}`)+`"}`) + `"}`, `{"p":"` + in64(`{"q":"`+in64(`{"by":"forgotten-1"}`)+`"}`) + `"}`},
		{"inside without a name", "p.~.by", "", `{"p":"` + in64(`{"by":"bob"}`) + `"}`, `{"p":"` + in64(`{"by":"bob"}`) + `"}`},
		{"a payload of the host's own", "p.~.by", "", `{"p":"` + in64(`by ann`) + `","q":"ann"}`, `{"p":"` + in64(`by ann`) + `","q":"ann"}`},
		{"base64 with more behind it", "p.~.by", "", `{"p":"` + in64(`{"by":"ann"}`) + `!"}`, `{"p":"` + in64(`{"by":"ann"}`) + `!"}`},
		{"no base64", "p.~.by", "", `{"p":"ann"}`, `{"p":"ann"}`},
		{"letters of the key", "Source", "", `{"sOURCE":"ann","source":"ann"}`, `{"sOURCE":"","source":""}`},
		{"other types at the path", "a.b", "a.c", `{"a":[{"b":"ann"},1,null,true]}`, `{"a":[{"b":"ann"},1,null,true]}`},
		{"a number at the path", "a", "b", `{"a":12345678901234567890.10,"b":null}`, `{"a":12345678901234567890.10,"b":null}`},
		{"all else but space and escapes", "a", "",
			"{\"z\" : 1.50e+3,\n\"a\":\"ann\" ,\"n\":9007199254740993, \">\":\"\\u00e9\\/\"}",
			"{\"z\":1.50e+3,\"a\":\"\",\"n\":9007199254740993,\">\":\"é/\"}"},
		{"a body that is the name", "", "~", `"` + in64(`"ann"`) + `"`, `"` + in64(`"forgotten-1"`) + `"`},
		{"both paths", "*", "a", `{"a":"ann","b":"ann"}`, `{"a":"forgotten-1","b":""}`},
		{"a path that ends early", "a", "a.b", `{"a":{"b":"ann"}}`, `{"a":{"b":"forgotten-1"}}`},
		{"a path into another text", "~.a", "a.b", `{"a":{"b":"ann"}}`, `{"a":{"b":"forgotten-1"}}`},
		{"quotes and braces in texts", "a", "", `{"x\"]":"}\\","a":"ann"}`, `{"x\"]":"}\\","a":""}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			kind := Kind{Name: "k"}
			if test.caused != "" {
				kind.Caused = []string{test.caused}
			}
			if test.decided != "" {
				kind.Decided = []string{test.decided}
			}
			before := test.text
			r, err := kind.takeOut([]byte(test.text), []string{"x=1"}, ann)
			require.NoError(t, err)
			assert.Equal(t, test.want, string(r.text))
			assert.Equal(t, test.want != test.text, r.changed)
			assert.Equal(t, before, test.text)
			assert.Equal(t, []string{"x=1"}, r.keys)
		})
	}
}

func TestForgetKeys(t *testing.T) {
	kind := Kind{Name: "k", Caused: []string{"source"}, Decided: []string{"actor"}}
	full := func(key string) (keys []string) {
		for i := range maxKeys - 1 {
			keys = append(keys, fmt.Sprint("k=", i))
		}
		return append(keys, key)
	}
	for _, test := range []struct {
		name       string
		text       string
		keys, want []string
		json       string
	}{
		{"caused", `{"source":"ann"}`, []string{"a=1", "person=ann", "b=2"}, []string{"a=1", "b=2"}, `{"source":""}`},
		{"decided", `{"actor":"ann"}`, []string{"a=1", "person=ann", "b=2"}, []string{"a=1", "person=forgotten-1", "b=2"}, `{"actor":"forgotten-1"}`},
		{"the key alone", `{}`, []string{"person=ann"}, nil, `{}`},
		{"somebody else", `{"source":"bob"}`, []string{"person=bob"}, []string{"person=bob"}, `{"source":"bob"}`},
		{"a name that differs in case stays to be found", `{"source":"Ann"}`, []string{"person=ann"}, []string{"person=ann"}, `{"source":"Ann"}`},
		{"also a decider's", `{"actor":"Ann"}`, []string{"person=ann"}, []string{"person=ann"}, `{"actor":"Ann"}`},
		{"both", `{"source":"ANN","actor":"ann"}`, []string{"person=ann"}, []string{"person=ann", "person=forgotten-1"}, `{"source":"ANN","actor":"forgotten-1"}`},
		{"both, and no room", `{"source":"ANN","actor":"ann"}`, full("person=ann"), full("person=ann"), `{"source":"ANN","actor":"forgotten-1"}`},
		{"no key", `{"actor":"ann"}`, nil, nil, `{"actor":"forgotten-1"}`},
		{"decided, and no room but that of the key", `{"actor":"ann"}`, full("person=ann"), full("person=forgotten-1"), `{"actor":"forgotten-1"}`},
		{"the pseudonym's key is there", `{"actor":["ann","forgotten-1"]}`, []string{"person=ann", "person=forgotten-1"}, []string{"person=forgotten-1"}, `{"actor":["forgotten-1","forgotten-1"]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := append([]string(nil), test.keys...)
			r, err := kind.takeOut([]byte(test.text), test.keys, ann)
			require.NoError(t, err)
			assert.Equal(t, test.want, r.keys)
			assert.Equal(t, test.json, string(r.text))
			assert.Equal(t, fmt.Sprint(test.keys, test.text) != fmt.Sprint(r.keys, string(r.text)),
				r.changed)
			assert.Equal(t, before, test.keys)
		})
	}
}

func TestForgetSeveralPeople(t *testing.T) {
	kind := Kind{Name: "k", Decided: []string{"by"}, Caused: []string{"of"}}
	two := []person{{name: "ann", pseudonym: "f1"}, {name: "bob", pseudonym: "f2"}}
	text := `{"by":["bob","cem","ann"],"of":["ann","dee","bob"]}`
	r, err := kind.takeOut([]byte(text), []string{"person=ann", "person=bob", "person=cem"}, two)
	require.NoError(t, err)
	assert.JSONEq(t, `{"by":["f2","cem","f1"],"of":["dee"]}`, string(r.text))
	assert.Equal(t, []string{"person=f1", "person=f2", "person=cem"}, r.keys)
	two[1].name = "Ann" // who is somebody else, of the same key
	r, err = kind.takeOut([]byte(`{"by":["ann","Ann","ANN"]}`), []string{"person=ann"}, two)
	require.NoError(t, err)
	assert.JSONEq(t, `{"by":["f1","f2","ANN"]}`, string(r.text))
	assert.Equal(t, []string{"person=ann", "person=f1", "person=f2"}, r.keys)

	two[1].name = "bob"
	keys := []string{"person=ann", "person=bob"}
	for i := range maxKeys - 3 {
		keys = append(keys, fmt.Sprint("k=", i))
	}
	r, err = kind.takeOut([]byte(`{"by":["ann","ANN","bob","BOB"]}`), keys, two)
	require.NoError(t, err)
	assert.Len(t, r.keys, maxKeys, "there is room for the key of one pseudonym")
	assert.Equal(t, []string{"person=ann", "person=f1", "person=bob", "k=0"}, r.keys[:4])
}

func TestForgetWhole(t *testing.T) {
	kind := Kind{Name: "k", Caused: []string{"of"}, Decided: []string{"by"}, Whole: true}
	for text, gone := range map[string]bool{
		`{"of":"ann"}`: true, `{"of":["bob","ann"],"by":"ann"}`: true, `{"of":"Ann"}`: false, `{"of":"","by":"ann"}`: false,
	} {
		r, err := kind.takeOut([]byte(text), []string{"person=ann"}, ann)
		require.NoError(t, err)
		assert.Equal(t, gone, r.gone, text)
	}
}

func TestForgetDamaged(t *testing.T) {
	for _, text := range []string{"", "{", `{"a":"ann"} x`, "ann"} {
		_, err := Kind{Name: "k", Caused: []string{"a"}}.takeOut([]byte(text), nil, ann)
		assert.ErrorContains(t, err, "damaged record", text)
	}
}

func TestForgetPseudonyms(t *testing.T) {
	key := text.NewPseudonymKey(time.Unix(1, 0))
	all := persons(key, []string{"Ann", "bob", "ann"})
	require.Len(t, all, 3)
	assert.Equal(t, "Ann", all[0].name)
	assert.Equal(t, "ann", all[2].name)
	assert.NotEqual(t, all[0].pseudonym, all[2].pseudonym)
	assert.NotEqual(t, all[0].pseudonym, all[1].pseudonym)
	assert.Equal(t, all[:1], persons(key, []string{"Ann"}))
}

// value draws JSON in which these texts are frequent.
func value(t *rapid.T, depth int, texts ...string) string {
	kinds := 6
	if depth == 0 {
		kinds = 3
	}
	space := rapid.SampledFrom([]string{"", "", " ", "\n\t"}).Draw(t, "space")
	list := func(element func() string) string {
		var parts []string
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			parts = append(parts, element())
		}
		return strings.Join(parts, ","+space)
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "sort") {
	case 0:
		return rapid.SampledFrom([]string{"1", "-0.10", "1e400", "12345678901234567890", "null", "true", `""`}).Draw(t, "plain")
	case 1, 2:
		return `"` + rapid.SampledFrom(texts).Draw(t, "text") + `"`
	case 3:
		return "[" + space + list(func() string { return value(t, depth-1, texts...) }) + space + "]"
	case 4:
		return `"` + in64(value(t, depth-1, texts...)) + `"`
	default:
		key := rapid.SampledFrom([]string{`"a"`, `"b"`, `"A"`, `"\u0062"`, `"ann"`})
		return "{" + list(func() string {
			return key.Draw(t, "key") + space + ":" + space + value(t,
				depth-1, texts...)
		}) + space + "}"
	}
}

func somePaths(t *rapid.T, label string) []string {
	step := rapid.SampledFrom([]string{"a", "b", "*", "*", "~"})
	path := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(step, 1, 4).Draw(t, "steps"), ".")
	})
	return rapid.SliceOfN(path, 0, 3).Draw(t, label)
}

// A place is a way to a name.
type place struct {
	steps   []string
	decided bool
}

// forget is the oracle: it does the same to decoded JSON. A nil is an element that goes.
func forget(node any, places []place, name string) any {
	switch node := node.(type) {
	case json.Number, bool, nil:
		return node
	case pairs:
		after := pairs{}
		for _, p := range node {
			var below []place
			for _, at := range places {
				if len(at.steps) > 0 && (at.steps[0] == "*" || at.steps[0] == strings.ToLower(p.key)) {
					below = append(below, place{at.steps[1:], at.decided})
				}
			}
			value := forget(p.value, below, name)
			if value == (gone{}) {
				value = ""
			}
			after = append(after, pair{p.key, value})
		}
		return after
	case []any:
		var below []place
		for _, at := range places {
			if len(at.steps) == 0 {
				below = append(below, at)
			} else if at.steps[0] == "*" {
				below = append(below, place{at.steps[1:], at.decided})
			}
		}
		after := []any{}
		for _, element := range node {
			if value := forget(element, below, name); value != (gone{}) {
				after = append(after, value)
			}
		}
		return after
	default:
		return forgetText(node.(string), places, name)
	}
}

type gone struct{}

func forgetText(text string, places []place, name string) any {
	var inside []place
	out := any(text)
	for _, at := range places {
		switch {
		case len(at.steps) > 0 && at.steps[0] == "~":
			inside = append(inside, place{at.steps[1:], at.decided})
		case len(at.steps) > 0:
		case at.decided && text == name:
			return "forgotten-1"
		case !at.decided && text == name:
			out = gone{}
		}
	}
	payload, err := base64.StdEncoding.DecodeString(text)
	if out != any(text) || len(inside) == 0 || err != nil || !json.Valid(payload) {
		return out
	}
	before := decode(payload)
	after := forget(before, inside, name)
	if after == (gone{}) {
		after = ""
	}
	return nested{after, assert.ObjectsAreEqual(before, after), text}
}

// nested is a text with JSON in it; compared as JSON, and to the byte where nothing changed.
type nested struct {
	value any
	same  bool
	text  string
}

type pair struct {
	key   string
	value any
}

// pairs are an object, whose keys may repeat and have an order.
type pairs []pair

// decode reads JSON with every number as it is written, and objects in their order.
func decode(text []byte) any {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	return readNode(d)
}

func readNode(d *json.Decoder) any {
	token, err := d.Token()
	if err != nil {
		panic(err)
	}
	switch token {
	case json.Delim('['):
		all := []any{}
		for d.More() {
			all = append(all, readNode(d))
		}
		_, _ = d.Token()
		return all
	case json.Delim('{'):
		all := pairs{}
		for d.More() {
			key, _ := d.Token()
			all = append(all, pair{key.(string), readNode(d)})
		}
		_, _ = d.Token()
		return all
	}
	return token
}

// agree compares what the oracle wants with what there is.
func agree(want, got any) bool {
	switch want := want.(type) {
	case nested:
		text, ok := got.(string)
		if !ok || want.same {
			return ok && text == want.text
		}
		payload, err := base64.StdEncoding.DecodeString(text)
		return err == nil && json.Valid(payload) && agree(want.value, decode(payload))
	case pairs:
		all, ok := got.(pairs)
		if !ok || len(all) != len(want) {
			return false
		}
		for i := range want {
			if all[i].key != want[i].key || !agree(want[i].value, all[i].value) {
				return false
			}
		}
		return true
	case []any:
		all, ok := got.([]any)
		if !ok || len(all) != len(want) {
			return false
		}
		for i := range want {
			if !agree(want[i], all[i]) {
				return false
			}
		}
		return true
	}
	return assert.ObjectsAreEqual(want, got)
}

func TestForgetOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := Kind{Name: "k", Caused: somePaths(t, "caused"), Decided: somePaths(t, "decided")}
		text := value(t, 4, "ann", "bob", "Ann", `\u0061nn`, "ann bob", "YW5u")
		var places []place
		for _, p := range kind.Caused {
			places = append(places, place{strings.Split(p, "."), false})
		}
		for _, p := range kind.Decided {
			places = append(places, place{strings.Split(p, "."), true})
		}
		before := []byte(text)
		r, err := kind.takeOut(before, []string{"person=ann"}, ann)
		require.NoError(t, err)
		require.Equal(t, text, string(before), "the text that came in is changed")
		require.True(t, json.Valid(r.text), "no JSON: %s", r.text)
		want := forget(decode(before), places, "ann")
		if want == (gone{}) {
			want = ""
		}
		require.True(t, agree(want, decode(r.text)), "of %s with %+v: %s, want %v", text, kind, r.text,
			want)
		again, err := kind.takeOut(r.text, r.keys, ann)
		require.NoError(t, err)
		require.False(t, again.changed, "forgotten twice: %s is %s %v", r.text, again.text, again.keys)
	})
}

// TestBytes gives a person their own name as pseudonym: then all that is rewritten comes out as it
// was, to the byte.
func TestForgetBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := Kind{Name: "k", Decided: somePaths(t, "decided")}
		text := value(t, 4, "ann", "bob", "ann bob", "YW5u")
		r, err := kind.takeOut([]byte(text), nil,
			[]person{{name: "ann", pseudonym: "ann"}})
		require.NoError(t, err)
		require.Equal(t, text, string(r.text))
	})
}

func FuzzForget(f *testing.F) {
	f.Add(`{"a":[{"b":"ann"}]}`, "a.*.b", "ann")
	f.Add(`{"a":"`+in64(`{"b":"ann"}`)+`"}`, "a.~.b", "ann")
	f.Add(`["ann",1,"bob"]`, "*", "bob")
	f.Add("\"\\ud800\"", "~", "\ufffd")
	f.Fuzz(func(t *testing.T, text, path, name string) {
		kind := Kind{Name: "k", Caused: []string{path}, Decided: []string{path + ".*"}}
		who := []person{{name: name, pseudonym: "forgotten-1"}}
		if kind.Validate() != nil || name == "" || strings.EqualFold(name, "forgotten-1") {
			return // no input that a store lets through
		}
		r, err := kind.takeOut([]byte(text), []string{PersonKey(name)}, who)
		if !json.Valid([]byte(text)) {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		require.True(t, json.Valid(r.text))
		again, err := kind.takeOut(r.text, r.keys, who)
		require.NoError(t, err)
		require.Equal(t, string(r.text), string(again.text))
	})
}
