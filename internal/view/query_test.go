package view_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// The parameters of a URL that a query has fields for select, and others do not. The place in a
// list selects nothing.
func TestFill(t *testing.T) {
	var q view.AnswerQuery
	assert.True(t, view.Fill(&q, url.Values{
		"outcome": {"bad"}, "person": {"ann"}, "arm": {""}, "after": {"x"}, "other": {"y"},
	}))
	assert.Equal(t, view.AnswerQuery{Outcome: view.Bad, Person: "ann"}, q)
	assert.False(t, view.Fill(&q, url.Values{"after": {"x"}, "other": {"y"}}))
}

// A model is unavailable for the five minutes for which a failure counts, for all tenants.
func TestUnavailable(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	st := &memstore.Store{}
	source := &view.Source{Store: st, Now: func() time.Time { return now }}
	names := func() (names []string) {
		all, err := source.Unavailable(t.Context(), "loop")
		require.NoError(t, err)
		for _, one := range all {
			names = append(names, one.Model)
		}
		return names
	}
	assert.Empty(t, names(), "there is no agent")
	require.NoError(t, st.Declare(t.Context(), store.Kind{Name: "loop.model"}))
	put := func(id, body string, ago time.Duration) {
		_, err := st.Commit(t.Context(), store.Batch{Records: []store.Record{{
			Ref: store.Ref{Kind: "loop.model", ID: id}, At: now.Add(-ago), Body: store.Raw([]byte(body)),
		}}})
		require.NoError(t, err)
	}
	const since = `"since":"2026-03-02T08:00:00Z"`
	put("1", `{"model":"down","at":"2026-03-02T09:00:00Z",`+since+`}`, 0)
	put("2", `{"model":"up","at":"2026-03-02T09:00:00Z"}`, 0)
	put("3", `{"model":"of a wrong clock","at":"2026-03-02T09:00:01Z",`+since+`}`, 0)
	put("4", `{"model":7}`, 0)
	put("5", `{"model":"long ago","at":"2026-03-02T08:54:59Z",`+since+`}`, 5*time.Minute+1000)
	put("6", `{"model":"lately","at":"2026-03-02T08:55:00Z",`+since+`}`, 5*time.Minute)
	assert.ElementsMatch(t, []string{"down", "lately"}, names())
	acme, err := store.Tenant(st, "acme")
	require.NoError(t, err)
	source.Store = acme
	assert.ElementsMatch(t, []string{"down", "lately"}, names())
}
