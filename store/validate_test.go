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
	text := make([]byte, store.MaxBody+1)
	require.NoError(t, store.CheckBody(numbers.Ref("a"), text[1:]))
	require.ErrorAs(t, store.CheckBody(numbers.Ref("a"), text), new(*heed.SizeError))
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
		assert.Equal(t, store.MaxChanges+1, size.Size)
	}
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
