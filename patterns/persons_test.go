package patterns

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// namesNobody are the texts of records that hold no person's name, or what people wrote, which
// stays as it is.
var namesNobody = map[string][]string{
	"patterns.pattern": {
		"id", "content", "tags.*", "examples.*", "reason", "twin", "state", "override", "by.reason",
	},
	"patterns.transition": {"id", "pattern", "from", "to", "cause"},
	"patterns.entry": {
		"outcome.id", "outcome.task", "outcome.description", "outcome.strategy", "outcome.patterns.*",
		"outcome.criteria.*", "outcome.files.*",
		"outcome.failure_mode", "outcome.failure_detail", "score.class", "score.reason",
	},
	"patterns.error": {"id", "task", "type", "message", "context", "tool", "stack"},
}

// Each text of a record either names no person, or has a path by which a person is forgotten, and a
// key by which the record is found then.
func TestPersons(t *testing.T) {
	k := kindsOf("patterns")
	checkPersons(t, k.patterns)
	checkPersons(t, k.transitions)
	checkPersons(t, k.entries)
	checkPersons(t, k.errors)
}

func checkPersons[T any](t *testing.T, kind store.View[T]) {
	t.Helper()
	persons := append(slices.Clone(kind.Caused), kind.Decided...)
	var value T
	var names []string
	fill(reflect.ValueOf(&value).Elem(), "", func(path string) string {
		if slices.Contains(persons, path) {
			names = append(names, fmt.Sprintf("Person%d", len(names)))
			return names[len(names)-1]
		}
		assert.Contains(t, namesNobody[kind.Name], path,
			"%s has a text that is neither a person's name nor known to be none", kind.Name)
		return "text"
	})
	text, err := store.Of(value).JSON()
	require.NoError(t, err)
	kept, err := store.Decode[T](store.Raw(text))
	require.NoError(t, err)
	assert.Equal(t, value, kept, "%s is the same in a database as in memory", kind.Name)

	assert.Len(t, names, len(persons), "%s has a path for each person, and no other path", kind.Name)
	_, _, keys := kind.Place(value)
	ctx := context.Background()
	st := &memstore.Store{}
	require.NoError(t, st.Declare(ctx, kind.Kind))
	_, err = st.Commit(ctx, store.Batch{Records: []store.Record{kind.Record(value, 0)}})
	require.NoError(t, err)
	for _, name := range names {
		assert.Contains(t, keys, store.PersonKey(name), kind.Name)
	}
	if len(names) == 0 {
		return
	}
	err = store.Run(ctx, st, store.Job{Forget: names})
	require.NoError(t, err)
	for r, err := range st.Find(ctx, store.Query{Kind: kind.Name}) {
		require.NoError(t, err)
		text, err := r.Body.JSON()
		require.NoError(t, err)
		assert.NotContains(t, strings.ToLower(string(text)+fmt.Sprint(r.Keys)), "person0", kind.Name)
		_, err = kind.Of(r)
		require.NoError(t, err)
	}
}

// fill gives every text of a value what text returns for its path, and every other field something.
func fill(v reflect.Value, path string, text func(path string) string) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(stored(time.Date(2026, 1, 1, 0, 0, 0, 123456, time.UTC))))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text(path))
	case reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if name != "-" {
				fill(v.Field(i), strings.TrimPrefix(path+"."+name, "."), text)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), path+".*", text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1<<31 - 1)
	case reflect.Uint64:
		v.SetUint(1<<64 - 1)
	default:
		panic("a kind of field that the test does not know: " + v.Kind().String())
	}
}
