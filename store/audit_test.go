package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// The entries of an actor or a subject are found by the name, the newest first, and an entry whose
// ID is known stays as it was.
func TestAuditEntries(t *testing.T) {
	st := &memstore.Store{}
	require.NoError(t, st.Declare(ctx, store.Audit))
	for i, e := range []store.AuditEntry{
		{ID: "1", Actor: "Ann", Action: "pin"}, {ID: "2", Actor: "bob", Action: "reset"},
		{ID: "3", Actor: "bob", Subject: "ann", Action: "forget"}, {ID: "1", Action: "another"},
	} {
		e.At = start.Add(time.Duration(i) * time.Second)
		_, err := st.Commit(ctx, store.Batch{Records: []store.Record{e.Record()}})
		require.NoError(t, err)
	}
	found := func(q store.Query) (all []string) {
		for e, err := range store.AuditEntries(ctx, st, q) {
			require.NoError(t, err)
			all = append(all, fmt.Sprint(e.ID, " ", e.Actor, " ", e.Action))
		}
		return all
	}
	assert.Equal(t, []string{"3 bob forget", "2 bob reset", "1 Ann pin"}, found(store.Query{}))
	assert.Equal(t, []string{"3 bob forget", "1 Ann pin"},
		found(store.Query{Keys: []string{store.PersonKey("ann")}}))
	for range store.AuditEntries(ctx, st, store.Query{}) {
		break
	}
}

// An entry is kept to the microsecond, in UTC, and shares no details with its writer or a reader.
func TestAnAuditEntryIsACopy(t *testing.T) {
	st := &memstore.Store{}
	require.NoError(t, st.Declare(ctx, store.Audit))
	at := start.Add(1500).In(time.FixedZone("east", 3600))
	e := store.AuditEntry{ID: "1", At: at, Action: "pin", Details: map[string]string{"arm": "a"}}
	r := e.Record()
	e.Details["arm"] = "changed by the writer"
	_, err := st.Commit(ctx, store.Batch{Records: []store.Record{r}})
	require.NoError(t, err)
	for range 2 {
		for got, err := range store.AuditEntries(ctx, st, store.Query{}) {
			require.NoError(t, err)
			assert.Equal(t, start.Add(1000), got.At)
			assert.Equal(t, map[string]string{"arm": "a"}, got.Details)
			got.Details["arm"] = "changed by a reader"
		}
	}
}
