package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// sound returns a batch that has everything but what takes evidence away.
func sound() store.Batch {
	other := evidence.Cell{Kind: "cell", Item: "other"}
	return store.Batch{
		ID:       "b",
		Policies: map[string]evidence.Policy{"cell": {HalfLife: time.Hour}},
		Observations: []evidence.Observation{
			{ID: "o", Cell: cell, Reward: 1, Weight: 1, At: start},
			{ID: "p", Cell: other, Reward: 1, Weight: 1, At: start},
		},
		PartsOf: []evidence.Cell{other, cell},
		Records: []store.Record{numbers.Record(number{"a", 1}, 0), numbers.Record(number{"b", 1}, 7)},
		Expect:  []store.Precondition{{Ref: numbers.Ref("c"), Revision: 1}},
	}
}

// Each fault of a batch is refused, and named by its place.
func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		change func(b *store.Batch)
		field  string // "": none is at fault
	}{
		"as it is":           {func(*store.Batch) {}, ""},
		"nothing":            {func(b *store.Batch) { *b = store.Batch{} }, ""},
		"no parts":           {func(b *store.Batch) { b.PartsOf = nil }, ""},
		"a part twice":       {func(b *store.Batch) { b.PartsOf[1] = b.PartsOf[0] }, "PartsOf[1]"},
		"a part of no other": {func(b *store.Batch) { b.PartsOf[0].Item = "x" }, "PartsOf[0]"},
		"a part of nothing":  {func(b *store.Batch) { b.Observations = nil }, "PartsOf[0]"},
		"an id with NUL":     {func(b *store.Batch) { b.ID = "\x00" }, "ID"},
		"an observation of the future": {func(b *store.Batch) {
			b.Observations[1].At = start.Add(48 * time.Hour)
		}, "Observations[1].At"},
		"a reset": {func(b *store.Batch) { b.Reset = []evidence.Cell{cell} }, ""},
		"a reset of no kind": {func(b *store.Batch) { b.Reset = []evidence.Cell{cell, {}} },
			"Reset[1].Cell.Kind"},
		"a rebuild of no kind": {func(b *store.Batch) { b.Rebuild = []evidence.Cell{{}} },
			"Rebuild[0].Cell.Kind"},
		"a restart": {func(b *store.Batch) {
			b.Restart = []store.Restart{{Cell: cell, At: start}}
		}, ""},
		"a restart of no kind": {func(b *store.Batch) { b.Restart = []store.Restart{{At: start}} },
			"Restart[0].Cell.Kind"},
		"a restart of the future": {func(b *store.Batch) {
			b.Restart = []store.Restart{{Cell: cell, At: start.Add(48 * time.Hour)}}
		}, "Restart[0].At"},
		"a source": {func(b *store.Batch) { b.Expunge = []store.SourceOf{{cell, "ann"}} }, ""},
		"no source": {func(b *store.Batch) { b.Expunge = []store.SourceOf{{cell, "ann"}, {cell, ""}} },
			"Expunge[1].Source"},
		"a source of no kind": {func(b *store.Batch) {
			b.Expunge = []store.SourceOf{{evidence.Cell{}, ""}}
		}, "Expunge[0].Cell.Kind"},
		"a source with NUL": {func(b *store.Batch) { b.Expunge = []store.SourceOf{{cell, "\x00"}} },
			"Expunge[0].Source"},
		"a retraction":       {func(b *store.Batch) { b.Retract = []string{"x"} }, ""},
		"its own retraction": {func(b *store.Batch) { b.Retract = []string{"x", "p"} }, "Retract[1]"},
		"no retraction":      {func(b *store.Batch) { b.Retract = []string{""} }, "Retract[0]"},
		"its own withdrawal": {func(b *store.Batch) { b.Withdraw = []string{"o"} }, "Withdraw[0]"},
		"a withdrawal of NUL": {func(b *store.Batch) { b.Withdraw = []string{"x", "\x00"} },
			"Withdraw[1]"},
		"an expected record": {func(b *store.Batch) { b.Expect[0].ID = "a" }, "Expect[0]"},
		"an expectation of no id": {func(b *store.Batch) { b.Expect[0].ID = "" },
			"Expect[0].ID"},
		"another half-life": {func(b *store.Batch) {
			b.Policies["x"] = evidence.Policy{HalfLife: -1}
		}, "HalfLife"},
		"a record twice": {func(b *store.Batch) { b.Records[1].ID = "a" }, "Records[1].ID"},
	} {
		b := sound()
		test.change(&b)
		assertField(t, store.Validate(start, b), test.field, name)
		if err := store.Validate(start, store.Batch{}, b); test.field != "" {
			require.Error(t, err, name)
		} else if b.TakesAway() {
			require.ErrorContains(t, err, "only the first batch of a commit", name)
		} else {
			require.NoError(t, err, name)
		}
	}
	one := sound()
	one.Observations, one.PartsOf = nil, one.PartsOf[:1]
	assertField(t, store.Validate(start, one), "PartsOf[0]", "one part, of nothing")
	text := make([]byte, store.MaxBody+1)
	require.NoError(t, store.CheckBody(numbers.Ref("a"), text[1:]))
	long := numbers.Record(number{"a", 1}, 1)
	long.Body = store.Raw(text)
	for _, err := range []error{
		store.CheckBody(numbers.Ref("a"), text),
		store.Validate(start, store.Batch{Records: []store.Record{long}}),
	} {
		size := (*heed.SizeError)(nil)
		require.ErrorAs(t, err, &size)
		assert.Equal(t, heed.SizeError{What: `body of number "a"`, Size: store.MaxBody + 1,
			Most: store.MaxBody}, *size)
	}
	twice := store.Validate(start, sound(), sound())
	assertField(t, twice, "Batches[1].Records[0].ID", "in two batches")
	written := store.Batch{Records: []store.Record{numbers.Record(number{"c", 1}, 1)}}
	assertField(t, store.Validate(start, sound(), written), "Expect[0]", "of another batch")
}

// Each fault of a record is refused.
func TestValidateRecords(t *testing.T) {
	long := strings.Repeat("k", 1601)
	keys := func(all ...string) func(*store.Record) {
		return func(r *store.Record) { r.Keys = all }
	}
	named := func(kind, id string) func(*store.Record) {
		return func(r *store.Record) { r.Kind, r.ID = kind, id }
	}
	at := func(moment time.Time) func(*store.Record) {
		return func(r *store.Record) { r.At = moment }
	}
	removed := func(revision uint64) func(*store.Record) {
		return func(r *store.Record) { r.Body, r.Revision = store.Body{}, revision }
	}
	pseudonyms := func(kind, id string, revision uint64, body store.Body) func(*store.Record) {
		return func(r *store.Record) { r.Kind, r.ID, r.Revision, r.Body = kind, id, revision, body }
	}
	const keyKind = "heed.pseudonyms"
	for name, test := range map[string]struct {
		change func(r *store.Record)
		field  string // "": none is at fault
	}{
		"of no kind":               {named("", "a"), "Kind"},
		"of a tenant alone":        {named("@x", "a"), "Kind"},
		"of a tenant":              {named("number@x", "a"), ""},
		"of no id":                 {named("number", ""), "ID"},
		"a kind with NUL":          {named("\x00", "a"), "Kind"},
		"an id with NUL":           {named("k", "\x00"), "ID"},
		"a declaration":            {named(store.Declarations, "a"), "Kind"},
		"a removal":                {removed(7), ""},
		"a removal of none":        {removed(0), "Revision"},
		"a removal of what is new": {removed(store.Once), "Revision"},
		"no time":                  {at(time.Time{}), "At"},
		"the first time":           {at(time.Unix(0, 0)), ""},
		"a time before":            {at(time.Unix(-1, 0)), "At"},
		"the last year":            {at(yearOf(9999)), ""},
		"the year after":           {at(yearOf(10_000)), "At"},
		"an empty key":             {keys("k", ""), "Keys[1]"},
		"a key with NUL":           {keys("\x00"), "Keys[0]"},
		"a key of no text":         {keys("\xff"), "Keys[0]"},
		"a long key":               {keys("k", "k", long), "Keys[2]"},
		"a shorter key":            {keys(long[1:]), ""},
		"the key of pseudonyms":    {pseudonyms(keyKind, "key", store.Once, store.Of(1)), ""},
		"another such key":         {pseudonyms(keyKind, "other", store.Once, store.Of(1)), "Kind"},
		"a change of the key":      {pseudonyms(keyKind, "key", 7, store.Of(1)), "Kind"},
		"a removal of the key":     {pseudonyms(keyKind, "key", 7, store.Body{}), "Kind"},
		"a tenant's key":           {pseudonyms(keyKind+"@acme", "key", 7, store.Of(1)), "Kind"},
		"a tenant's key goes":      {pseudonyms(keyKind+"@acme", "key", 7, store.Body{}), ""},
	} {
		r := numbers.Record(number{"a", 1}, 1)
		test.change(&r)
		if test.field != "" {
			test.field = "Records[0]." + test.field
		}
		assertField(t, store.Validate(start, store.Batch{Records: []store.Record{r}}), test.field, name)
	}
}

func yearOf(n int) time.Time { return time.Date(n, 12, 31, 0, 0, 0, 0, time.UTC) }

// assertField wants a fault at a field, or none.
func assertField(t *testing.T, err error, field, name string) {
	t.Helper()
	var input *heed.InputError
	var config *heed.ConfigError
	found := ""
	switch {
	case errors.As(err, &input):
		found = input.Field
	case errors.As(err, &config):
		found = config.Field
	default:
		require.NoError(t, err, name)
	}
	assert.Equal(t, field, found, name)
}

// A commit has at most so many changes, whatever they are and in whichever batch.
func TestMostChanges(t *testing.T) {
	ids := make([]string, store.MaxChanges)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	for _, more := range []store.Batch{
		{Observations: sound().Observations[:1]}, {Records: sound().Records[:1]},
		{Expect: sound().Expect},
	} {
		require.NoError(t, store.Validate(start, store.Batch{Retract: ids[1:]}, more))
		var size *heed.SizeError
		require.ErrorAs(t, store.Validate(start, store.Batch{Retract: ids}, more), &size)
		assert.Equal(t, heed.SizeError{What: "Batches", Size: store.MaxChanges + 1,
			Most: store.MaxChanges}, *size)
	}
	leaving := store.Batch{Expect: []store.Precondition{
		{Ref: numbers.Ref("a")}, {Ref: store.Ref{Kind: "heed.leaving", ID: "acme"}}}}
	assert.Equal(t, 1, leaving.Changes(), "what the view of a tenant adds is not counted")
	all := store.Batch{Retract: ids[:1], Withdraw: ids[1:3], Reset: make([]evidence.Cell, 3),
		Rebuild: make([]evidence.Cell, 4), Restart: make([]store.Restart, 5),
		Expunge: make([]store.SourceOf, 6)}
	assert.Equal(t, 21, all.Changes())
}

// A kind and a query are refused with the field that is at fault.
func TestKindsAndQueries(t *testing.T) {
	for field, kinds := range map[string][]store.Kind{
		"": {{Name: "k"}, {Name: "k", Caused: []string{"a.b", "*"}, Whole: true},
			{Name: "k", Decided: []string{"by"}, History: 1, Limits: store.Limits{For: 1, Most: 1}}},
		"Name":        {{}, {Name: "a@b"}, {Name: "\x00"}},
		"Limits.For":  {{Name: "k", Limits: store.Limits{For: -1}}},
		"Limits.Most": {{Name: "k", Limits: store.Limits{Most: -1}}},
		"History":     {{Name: "k", History: -1}},
		"Paths": {{Name: "k", Caused: []string{"a", ""}}, {Name: "k", Decided: []string{"a..b"}},
			{Name: "k", Caused: []string{".a"}}, {Name: "k", Caused: []string{"a."}}},
		"Whole": {{Name: "k", Whole: true}, {Name: "k", Whole: true, Decided: []string{"a"}}},
	} {
		for _, k := range kinds {
			assertField(t, k.Validate(), field, fmt.Sprint(k))
		}
	}
	keys := make([]string, 193)
	for i := range keys {
		keys[i] = "k"
	}
	for field, queries := range map[string][]store.Query{
		"":      {{Kind: "k"}, {Kind: "k", Limit: 1, Keys: keys[:192]}},
		"Kind":  {{}},
		"Limit": {{Kind: "k", Limit: -1}},
		"Keys":  {{Kind: "k", Keys: keys}},
	} {
		for _, q := range queries {
			assertField(t, q.Validate(), field, fmt.Sprint(q.Limit, len(q.Keys)))
		}
	}
}

// Each field that takes evidence away shows, also together with others.
func TestTakesAway(t *testing.T) {
	taking := []func(b *store.Batch){
		func(b *store.Batch) { b.Reset = []evidence.Cell{cell} },
		func(b *store.Batch) { b.Rebuild = []evidence.Cell{cell} },
		func(b *store.Batch) { b.Restart = []store.Restart{{Cell: cell, At: start}} },
		func(b *store.Batch) { b.Retract = []string{"x"} },
		func(b *store.Batch) { b.Withdraw = []string{"x"} },
		func(b *store.Batch) { b.Expunge = []store.SourceOf{{cell, "ann"}} },
	}
	all := sound()
	assert.False(t, all.TakesAway())
	for i := range taking {
		for k := range taking {
			b := store.Batch{}
			taking[i](&b)
			taking[k](&b)
			assert.True(t, b.TakesAway(), "%d and %d", i, k)
		}
	}
}

// A selection names the cells of a kind and a scope: all, an item's, or one alternative.
func TestSelectionCovers(t *testing.T) {
	of := func(kind, scope, item, name string) evidence.Cell {
		return evidence.Cell{Kind: kind, Scope: scope, Item: item, Name: name}
	}
	cells := []evidence.Cell{of("arm", "s", "i", "a"), of("arm", "s", "i", "b"),
		of("arm", "s", "j", "a"), of("arm", "t", "i", "a"), of("tool", "s", "i", "a")}
	for s, want := range map[store.Selection][]bool{
		{Kind: "arm", Scope: "s"}:                       {true, true, true, false, false},
		{Kind: "arm", Scope: "s", Item: "i"}:            {true, true, false, false, false},
		{Kind: "arm", Scope: "s", Name: "a"}:            {true, false, true, false, false},
		{Kind: "arm", Scope: "s", Item: "i", Name: "a"}: {true, false, false, false, false},
		{Kind: "arm", Scope: "t"}:                       {false, false, false, true, false},
		{Kind: "tool"}:                                  {false, false, false, false, false},
	} {
		for i, c := range cells {
			assert.Equal(t, want[i], s.Covers(c), "%+v and %+v", s, c)
		}
	}
}

// A body returns the value that it holds, or reads it from JSON. What can't be read is damaged.
func TestBodies(t *testing.T) {
	type hidden struct{ Shown, hidden int }
	value := hidden{1, 2}
	for name, test := range map[string]struct {
		body store.Body
		want hidden
		err  error
	}{
		"a value":           {store.Of(value), value, nil},
		"a pointer":         {store.Of(&value), value, nil},
		"JSON":              {store.Raw([]byte(`{"Shown":1}`)), hidden{Shown: 1}, nil},
		"another type":      {store.Of(map[string]int{"Shown": 3}), hidden{Shown: 3}, nil},
		"no JSON":           {store.Raw([]byte(`{`)), hidden{}, heed.ErrDamaged},
		"JSON of a list":    {store.Raw([]byte(`[]`)), hidden{}, heed.ErrDamaged},
		"what can't be one": {store.Of(func() {}), hidden{}, heed.ErrDamaged},
	} {
		got, err := store.Decode[hidden](test.body)
		require.ErrorIs(t, err, test.err, name)
		assert.Equal(t, test.want, got, name)
		assert.False(t, test.body.IsZero(), name)
		record := store.Record{Ref: numbers.Ref("x"), Revision: 1, Body: test.body}
		_, err = numbers.Of(record)
		require.ErrorIs(t, err, test.err, name)
		if test.err != nil {
			require.ErrorContains(t, err, `number "x"`)
		}
	}
	text, err := store.Body{}.JSON()
	require.NoError(t, err)
	assert.Nil(t, text)
	_, err = store.Of(func() {}).JSON()
	require.Error(t, err)
	kind := store.Kind{Name: "k", Whole: true, Caused: []string{"by"}}
	r := store.DeclarationOf(kind)
	r.Body = store.Body{}
	assert.Equal(t, store.Record{Ref: store.Ref{Kind: "heed.kinds", ID: "k"}, Revision: 1,
		At: time.Unix(0, 0).UTC()}, r)
}
