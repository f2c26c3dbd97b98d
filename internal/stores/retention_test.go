package stores_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/store"
)

const day = 24 * time.Hour

func TestDefaults(t *testing.T) {
	for _, test := range []struct{ set, want store.Retention }{
		{store.Retention{},
			store.Retention{HistoryPerCell: 100, HistoryFor: 30 * day, IDsFor: 30 * day}},
		{store.Retention{HistoryFor: 90 * day},
			store.Retention{HistoryPerCell: 100, HistoryFor: 90 * day, IDsFor: 90 * day}},
		{store.Retention{HistoryFor: day},
			store.Retention{HistoryPerCell: 100, HistoryFor: day, IDsFor: 30 * day}},
		{store.Retention{HistoryPerCell: 7, HistoryFor: 2 * day, IDsFor: 3 * day},
			store.Retention{HistoryPerCell: 7, HistoryFor: 2 * day, IDsFor: 3 * day}},
	} {
		stores.Defaults(&test.set)
		assert.Equal(t, test.want, test.set)
	}
}

func TestCheck(t *testing.T) {
	err := stores.Check(store.Retention{HistoryPerCell: -1, HistoryFor: -day, IDsFor: -2 * day,
		Limits: map[string]store.Limits{"note": {Most: -1}}})
	var fields []string
	for fault := range heed.ConfigErrors(err) {
		fields = append(fields, fault.Field)
	}
	assert.Equal(t, []string{"HistoryPerCell", "HistoryFor", "IDsFor", `Limits["note"].Most`}, fields)
	assert.NoError(t, stores.Check(store.Retention{HistoryPerCell: 1, HistoryFor: 1, IDsFor: 1,
		Limits: map[string]store.Limits{"note": {Most: 1}}}))
	assert.Error(t, stores.Check(store.Retention{HistoryFor: day, IDsFor: day - 1}))
	assert.NoError(t, stores.Check(store.Retention{}), "all has a default")
	assert.NoError(t, stores.Check(store.Retention{HistoryFor: 100 * day}), "and ids as long a one")
}

// Several components may declare a kind. It has the paths and flags of all declarations. Of each
// other field, the last declaration that sets it counts. Declaring it again has no effect.
func TestJoin(t *testing.T) {
	one := store.Kind{Name: "k", Caused: []string{"a", "b"}, Decided: []string{"x"}, Whole: true,
		Versioned: true, History: 3, Limits: store.Limits{Most: 1}}
	for _, test := range []struct{ before, after, want store.Kind }{
		{store.Kind{Name: "k"}, one, one}, {one, store.Kind{Name: "k"}, one}, {one, one, one},
		{one, store.Kind{Name: "k", Caused: []string{"c", "a"}, Decided: []string{"y"}, History: 2,
			Limits: store.Limits{Most: 2}},
			store.Kind{Name: "k", Caused: []string{"a", "b", "c"}, Decided: []string{"x", "y"},
				Whole: true, Versioned: true, History: 2, Limits: store.Limits{Most: 2}}},
		{store.Kind{Name: "k"}, store.Kind{Name: "k"}, store.Kind{Name: "k"}},
	} {
		assert.Equal(t, test.want, stores.Join(test.before, test.after))
	}
	assert.Equal(t, []string{"a", "b"}, one.Caused)
}

// The first record of a kind that was not declared is named by its place, with its batch if there
// are several.
func TestCheckDeclared(t *testing.T) {
	known := func(kind string) bool { return kind == "note" }
	of := func(kinds ...string) (b store.Batch) {
		for _, kind := range kinds {
			b.Records = append(b.Records, store.Record{Ref: store.Ref{Kind: kind}})
		}
		return b
	}
	assert.NoError(t, stores.CheckDeclared([]store.Batch{of("note"), of()}, known))
	for field, batches := range map[string][]store.Batch{
		"Records[1].Kind":            {of("note", "other")},
		"Batches[1].Records[0].Kind": {of("note"), of("other", "note")},
	} {
		var fault *heed.InputError
		require.ErrorAs(t, stores.CheckDeclared(batches, known), &fault)
		assert.Equal(t, field, fault.Field)
	}
}

// A reward above one half is positive, and one below it negative.
func TestSign(t *testing.T) {
	for reward, want := range map[float64]int{0: 1, 0.49: 1, 0.5: 2, 0.51: 0, 1: 0} {
		assert.Equal(t, want, stores.Sign(reward), reward)
	}
}

// A batch takes evidence of a tenant away if any of its cells is the tenant's. Ids do not count.
func TestTenantsOf(t *testing.T) {
	cell := func(tenant string) evidence.Cell {
		return evidence.Cell{Kind: store.KindIn("k", tenant)}
	}
	b := store.Batch{
		Reset: []evidence.Cell{cell("a"), cell("")}, Rebuild: []evidence.Cell{cell("b")},
		Restart: []store.Restart{{Cell: cell("c")}}, Expunge: []store.SourceOf{{Cell: cell("d")}},
		Retract: []string{"id"}, Observations: []evidence.Observation{{Cell: cell("e")}},
	}
	assert.Equal(t, map[string]bool{"": true, "a": true, "b": true, "c": true, "d": true},
		stores.TenantsOf(&b))
	assert.False(t, stores.TakesMuch(&store.Batch{Retract: b.Retract, Withdraw: b.Retract,
		Observations: b.Observations}))
	for _, much := range []store.Batch{
		{Reset: b.Reset[:1]}, {Rebuild: b.Rebuild}, {Restart: b.Restart}, {Expunge: b.Expunge},
	} {
		assert.True(t, stores.TakesMuch(&much))
	}
}
