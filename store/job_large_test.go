//go:build !race

package store_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// TestForgetInALargeRecord forgets people in records that are as large as a store takes, where a
// pseudonym is longer than the name, and where JSON has characters of HTML. In memory a value may
// be larger.
func TestForgetInALargeRecord(t *testing.T) {
	fill := func(of string, n int) string { return strings.Repeat(of, n/len(of)) }
	raw := func(text string) store.Body { return store.Raw([]byte(text)) }
	for name, body := range map[string]store.Body{
		"a pseudonym": raw(`{"by":"a","text":"` + fill("x", store.MaxBody-24) + `"}`),
		"many": raw(`{"by":["a"` + fill(`,"a"`, 400) + `],"text":"` +
			fill("x", store.MaxBody-512) + `"}`),
		"HTML":    raw(`{"by":"a","text":"` + fill("<", store.MaxBody-128) + `"}`),
		"a value": store.Of(map[string]string{"of": "a", "text": fill("x", store.MaxBody+64)}),
	} {
		kind := store.Kind{Name: "k", Caused: []string{"of"}, Decided: []string{"by"}}
		kind.Whole = name == "a pseudonym" // it is not of somebody who caused something
		st := &memstore.Store{}
		require.NoError(t, st.Declare(ctx, kind))
		record := func(id string, body store.Body) store.Record {
			return store.Record{Ref: store.Ref{Kind: "k", ID: id}, At: start,
				Keys: []string{store.PersonKey("a")}, Body: body}
		}
		_, err := st.Commit(ctx, store.Batch{Records: []store.Record{
			record("large", body), record("small", raw(`{"by":"a"}`)),
		}})
		require.NoError(t, err, name)
		require.NoError(t, store.Run(ctx, st, forget("a")), name)
		assert.Zero(t, jobs(t, st), name)
		left := 0
		for r, err := range st.Find(ctx, store.Query{Kind: "k"}) {
			require.NoError(t, err)
			text, err := r.Body.JSON()
			require.NoError(t, err)
			assert.NotContains(t, string(text[:min(len(text), 100)]), `"a"`, name)
			assert.NotContains(t, r.Keys, store.PersonKey("a"), name)
			signed := strings.Contains(string(text), `"forgotten-`)
			assert.Equal(t, r.ID == "small" || name == "HTML", signed, "%s: a pseudonym fits", name)
			left++
		}
		assert.Equal(t, 2, left, name)
	}
}
