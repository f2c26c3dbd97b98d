package store_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

func TestTenantRefuses(t *testing.T) {
	st := &memstore.Store{}
	own, err := store.Tenant(st, "")
	require.NoError(t, err)
	assert.Same(t, st, own, "no tenant is the store itself")
	acme, err := store.Tenant(st, "acme")
	require.NoError(t, err)
	var fault *heed.InputError
	_, err = store.Tenant(acme, "bravo")
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, "Store", fault.Field)
	long := strings.Repeat("a", 129)
	for _, name := range []string{"a\x1fb", "a\nb", "a\u0085", "\u007f", "\xff", long} {
		_, err := store.Tenant(st, name)
		require.ErrorAs(t, err, &fault, "%q", name)
		assert.Equal(t, "Tenant", fault.Field)
	}
	_, err = store.Tenant(st, long[1:])
	require.NoError(t, err, "a name of 128 bytes")
	require.ErrorAs(t, st.Declare(ctx, store.Kind{Name: "a@b"}), &fault)
	assert.Equal(t, "Name", fault.Field)
	require.ErrorAs(t, store.Run(ctx, acme, store.Job{Leave: "bravo"}), &fault)
	assert.Equal(t, "Leave", fault.Field)
}

// TestTenantsInADump moves tenants to another store.
func TestTenantsInADump(t *testing.T) {
	st, other := &memstore.Store{}, &memstore.Store{}
	acme, err := store.Tenant(st, "acme")
	require.NoError(t, err)
	require.NoError(t, acme.Declare(ctx, signed))
	b := signedBy("ann")
	cell := evidence.Cell{Kind: "arm", Item: "i", Name: "a"}
	b.Observations = []evidence.Observation{{ID: "o", Cell: cell, Reward: 1, Weight: 1, At: start}}
	_, err = acme.Commit(ctx, b)
	require.NoError(t, err)
	var dump bytes.Buffer
	require.NoError(t, st.Dump(ctx, &dump))
	require.NoError(t, other.Load(ctx, &dump))
	there, err := store.Tenant(other, "acme")
	require.NoError(t, err)
	read := func(st store.Store) (s store.Snapshot) {
		refs := []store.Ref{b.Records[0].Ref}
		require.NoError(t, st.Read(ctx, &s, []evidence.Cell{cell}, refs))
		return s
	}
	got := read(there)
	assert.Len(t, got.Parts, 1)
	assert.Equal(t, signedBy("ann").Records[0].Keys, got.Records[0].Keys)
	got = read(other)
	assert.Empty(t, got.Parts)
	assert.Zero(t, got.Records[0].Revision)
}

// TestAViewHasItsOwnNames returns from each call just what the tenant has, under the names that the
// tenant gave.
func TestAViewHasItsOwnNames(t *testing.T) {
	st := &memstore.Store{}
	require.NoError(t, st.Declare(ctx, signed))
	arm := evidence.Cell{Kind: "arm", Scope: "s", Item: "i"}
	tool := evidence.Cell{Kind: "tool", Scope: "t", Item: "i"}
	b := signedBy("ann")
	for i, c := range []evidence.Cell{arm, tool} {
		b.Observations = append(b.Observations, evidence.Observation{
			ID: []string{"a", "t"}[i], Cell: c, Source: "ann", Reward: 1, Weight: 1, At: start,
		})
	}
	b.PartsOf = []evidence.Cell{arm}
	var acme store.Store
	for _, tenant := range []string{"", "bravo", "acme"} {
		view, err := store.Tenant(st, tenant)
		require.NoError(t, err)
		receipts, err := view.Commit(ctx, b)
		require.NoError(t, err)
		require.Len(t, receipts[0].Parts, 1)
		assert.Equal(t, arm, receipts[0].Parts[0].Cell)
		acme = view
	}
	receipts, err := acme.Commit(ctx, store.Batch{Observations: b.Observations})
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "t"}, receipts[0].Duplicates)

	others := store.Batch{Observations: []evidence.Observation{{
		ID: "x", Cell: evidence.Cell{Kind: "arm", Item: "x"}, Source: "ann", Reward: 1, Weight: 1,
		At: start,
	}}}
	_, err = st.Commit(ctx, others)
	require.NoError(t, err)

	var s store.Snapshot
	ref, query := b.Records[0].Ref, store.Query{Kind: signed.Name}
	for n := 1; n <= 2; n++ { // the second read adds to the first
		require.NoError(t, acme.Read(ctx, &s, []evidence.Cell{arm}, []store.Ref{ref}, query))
		require.Len(t, s.Records, n)
		require.Len(t, s.Parts, n)
		require.Len(t, s.Found, n)
		assert.Equal(t, ref, s.Records[n-1].Ref)
		assert.Equal(t, arm, s.Parts[n-1].Cell)
		require.Len(t, s.Found[n-1], 1)
		assert.Equal(t, ref, s.Found[n-1][0].Ref)
	}
	found := func(q store.Query) (all []store.Record) {
		for r, err := range acme.Find(ctx, q) {
			require.NoError(t, err)
			all = append(all, store.Record{Ref: r.Ref, Keys: append([]string(nil), r.Keys...)})
		}
		return all
	}
	assert.Equal(t, []store.Record{{Ref: ref, Keys: b.Records[0].Keys}}, found(query))
	require.NoError(t, st.Declare(ctx, store.Kind{Name: "stream.outbox"}))
	events := []store.Record{
		{Ref: store.Ref{Kind: "stream.outbox", ID: "e"}},
		{Ref: store.Ref{Kind: "stream.outbox", ID: "f"}, Keys: []string{"n=1"}},
	}
	for _, event := range events {
		event.At, event.Body = start, store.Of(1)
		_, err := acme.Commit(ctx, store.Batch{Records: []store.Record{event}})
		require.NoError(t, err)
	}
	assert.Equal(t, events, found(store.Query{Kind: "stream.outbox", Oldest: true}))
	listed := func(q store.CellQuery) (cells []evidence.Cell) {
		for p, err := range acme.List(ctx, q) {
			require.NoError(t, err)
			cells = append(cells, p.Cell)
		}
		return cells
	}
	assert.Equal(t, []evidence.Cell{arm}, listed(store.CellQuery{Kind: "arm", Scope: "s"}))
	assert.ElementsMatch(t, []evidence.Cell{arm, tool}, listed(store.CellQuery{Naming: "ann"}))
	for scope, err := range acme.Scopes(ctx, "tool") {
		require.NoError(t, err)
		assert.Equal(t, "t", scope)
	}
	var history []evidence.Observation
	for o, err := range acme.History(ctx, tool) {
		require.NoError(t, err)
		history = append(history, o)
	}
	require.Len(t, history, 1)
	assert.Equal(t, []any{"t", tool}, []any{history[0].ID, history[0].Cell})
}

// TestTenantsCross names kinds as a store keeps them for other tenants, in the view of a tenant.
func TestTenantsCross(t *testing.T) {
	st := &memstore.Store{}
	require.NoError(t, st.Declare(ctx, signed))
	of := func(tenant string) store.Store {
		view, err := store.Tenant(st, tenant)
		require.NoError(t, err)
		return view
	}
	a, other := of("a"), of("b@a") // so that "signed@b" in a would be "signed" in b@a
	_, err := other.Commit(ctx, signedBy("ann"))
	require.NoError(t, err)
	record := signedBy("bob").Records[0]
	record.Kind, record.ID = "signed@b", "2"
	cell := evidence.Cell{Kind: "arm@b", Item: "i"}
	seen := evidence.Observation{ID: "o", Cell: cell, Reward: 1, Weight: 1, At: start}
	for name, b := range map[string]store.Batch{
		"a record":       {Records: []store.Record{record}},
		"an observation": {Observations: []evidence.Observation{seen}},
		"an expectation": {Expect: []store.Precondition{{Ref: record.Ref}}},
		"a reset":        {Reset: []evidence.Cell{cell}},
		"an expunge":     {Expunge: []store.SourceOf{{Cell: cell, Source: "s"}}},
		"a restart":      {Restart: []store.Restart{{Cell: cell, At: start}}},
	} {
		_, err := a.Commit(ctx, b)
		require.ErrorAs(t, err, new(*heed.InputError), name)
	}
	var s store.Snapshot
	q := store.Query{Kind: record.Kind}
	require.NoError(t, a.Read(ctx, &s, []evidence.Cell{cell}, []store.Ref{record.Ref}))
	assert.Empty(t, s.Parts)
	assert.Zero(t, s.Records[0].Revision)
	require.ErrorAs(t, a.Read(ctx, &s, nil, nil, q), new(*heed.InputError))
	for _, err := range a.Find(ctx, q) {
		require.ErrorAs(t, err, new(*heed.InputError))
	}
	for range a.List(ctx, store.CellQuery{Kind: cell.Kind}) {
		t.Error("a list of another tenant")
	}
	for range a.Scopes(ctx, cell.Kind) {
		t.Error("scopes of another tenant")
	}
	for range a.History(ctx, cell) {
		t.Error("a history of another tenant")
	}
}

// A tenant can't remove the key of its pseudonyms: people who were forgotten would get other ones.
func TestATenantKeepsItsPseudonyms(t *testing.T) {
	st := &memstore.Store{}
	require.NoError(t, st.Declare(ctx, signed))
	acme, err := store.Tenant(st, "acme")
	require.NoError(t, err)
	require.NoError(t, store.Run(ctx, acme, forget("ann")))
	key, err := store.Pseudonyms.Get(ctx, acme, "key")
	require.NoError(t, err)
	removal := store.Pseudonyms.Removal("key", key.Revision)
	_, err = acme.Commit(ctx, store.Batch{}, store.Batch{Records: []store.Record{removal}})
	fault := (*heed.InputError)(nil)
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, "Records[0].Kind", fault.Field)
	again, err := store.Pseudonyms.Get(ctx, acme, "key")
	require.NoError(t, err)
	assert.Equal(t, key, again)
}

// TestLeavingHoldsForEachBatch of a commit, also behind a batch that is known and so left out.
func TestLeavingHoldsForEachBatch(t *testing.T) {
	st := &memstore.Store{}
	require.NoError(t, st.Declare(ctx, signed))
	acme, err := store.Tenant(st, "acme")
	require.NoError(t, err)
	known := store.Batch{ID: "known"}
	_, err = acme.Commit(ctx, known)
	require.NoError(t, err)
	broken := newScripted(t)
	broken.Store = st
	broken.script[2] = func(func() error) error { return heed.ErrUnavailable }
	require.ErrorIs(t, store.Run(ctx, broken, store.Job{Leave: "acme"}), heed.ErrUnavailable)
	_, err = acme.Commit(ctx, known, signedBy("ann"))
	require.ErrorIs(t, err, evidence.ErrForgotten)
}

// TestIDsOfTenantsAreTheirOwn refuses ids that begin as the ids of a tenant do in the store.
func TestIDsOfTenantsAreTheirOwn(t *testing.T) {
	st := &memstore.Store{}
	acme, err := store.Tenant(st, "acme")
	require.NoError(t, err)
	cell := evidence.Cell{Kind: "arm", Item: "i"}
	const id = "acme\x1fx"
	of := func(id string) evidence.Observation {
		return evidence.Observation{ID: id, Cell: cell, Reward: 1, Weight: 1, At: start}
	}
	event := store.Record{Ref: store.Ref{Kind: "stream.outbox", ID: id}, At: start, Body: store.Of(1)}
	for field, b := range map[string]store.Batch{
		"ID":                 {ID: id},
		"Retract[0].ID":      {Retract: []string{id}},
		"Withdraw[0].ID":     {Withdraw: []string{id}},
		"Observations[0].ID": {Observations: []evidence.Observation{of(id)}},
		"Records[0].ID":      {Records: []store.Record{event}},
	} {
		_, err := st.Commit(ctx, b)
		var fault *heed.InputError
		require.ErrorAs(t, err, &fault, field)
		assert.Equal(t, field, fault.Field)
	}
	require.NoError(t, st.Declare(ctx, signed, store.Kind{Name: "stream.outbox"}))
	ids := []string{"x", "acme\x1fx", "bravo\x1fx"}
	for _, id := range ids { // in the view, they are like others
		seen, kept := of(id), signedBy("ann").Records[0]
		seen.Cell.Item, kept.ID = id, id
		receipts, err := acme.Commit(ctx, store.Batch{
			Observations: []evidence.Observation{seen}, Records: []store.Record{kept},
		})
		require.NoError(t, err)
		assert.Empty(t, receipts[0].Duplicates)
		var s store.Snapshot
		require.NoError(t, acme.Read(ctx, &s, nil, []store.Ref{kept.Ref}))
		assert.Equal(t, kept.Ref, s.Records[0].Ref)
		_, err = st.Commit(ctx, store.Batch{Records: []store.Record{kept}})
		require.NoError(t, err, "a record of the store may have such an id, but no event")
	}
	event.ID = "x"
	receipts, err := acme.Commit(ctx, store.Batch{Records: []store.Record{event}})
	require.NoError(t, err)
	event.ID, event.Revision, event.Body = id, receipts[0].Revision, store.Body{}
	_, err = st.Commit(ctx, store.Batch{Records: []store.Record{event}})
	require.NoError(t, err, "a relay of the store removes what it has published")
	var s store.Snapshot
	event.ID = "x"
	require.NoError(t, acme.Read(ctx, &s, nil, []store.Ref{event.Ref}))
	assert.Equal(t, store.Record{Ref: event.Ref}, s.Records[0])
}

// A tenant that is leaving has nothing to read. A call that fails leaves what the caller read
// before.
func TestNothingOfATenantThatIsLeaving(t *testing.T) {
	st := newScripted(t)
	require.NoError(t, st.Declare(ctx, signed))
	acme, err := store.Tenant(st.Store, "acme")
	require.NoError(t, err)
	cell := evidence.Cell{Kind: "arm", Item: "i"}
	seen := store.Batch{Observations: []evidence.Observation{{ID: "o", Cell: cell, Source: "ann",
		Reward: 1, Weight: 1, At: start}}}
	_, err = acme.Commit(ctx, seen)
	require.NoError(t, err)
	query := store.Query{Kind: signed.Name}
	var s store.Snapshot
	read := func() error {
		refs := []store.Ref{{Kind: signed.Name, ID: "1"}}
		return acme.Read(ctx, &s, []evidence.Cell{cell}, refs, query)
	}
	require.NoError(t, read())
	before := s
	st.script[2] = func(func() error) error { return errBroken }
	require.ErrorIs(t, store.Run(ctx, st, store.Job{Leave: "acme"}), errBroken)
	require.ErrorIs(t, read(), store.ErrLeft)
	assert.Equal(t, before, s)
	n := 0
	left := func(err error) {
		require.ErrorIs(t, err, store.ErrLeft)
		n++
	}
	for _, err := range acme.Find(ctx, query) {
		left(err)
	}
	for _, err := range acme.List(ctx, store.CellQuery{Kind: "arm"}) {
		left(err)
	}
	for _, err := range acme.Scopes(ctx, "arm") {
		left(err)
	}
	for _, err := range acme.History(ctx, cell) {
		left(err)
	}
	assert.Equal(t, 4, n, "each loop has the error once")
}

// A conflict in the view of a tenant is one, and a commit that was made is no error, even if the
// tenant begins to leave right after it.
func TestCommitsOfATenant(t *testing.T) {
	st := newScripted(t)
	acme, err := store.Tenant(st, "acme")
	require.NoError(t, err)
	put(t, acme, number{"a", 1})
	_, err = acme.Commit(ctx, store.Batch{Records: []store.Record{numbers.Record(number{"a", 2}, 0)}})
	require.ErrorIs(t, err, heed.ErrConflict)
	st.script[st.commits+1] = func(commit func() error) error {
		require.NoError(t, commit())
		cut := newScripted(t)
		cut.Store = st.Store
		cut.script[2] = func(func() error) error { return errBroken }
		require.ErrorIs(t, store.Run(ctx, cut, store.Job{Leave: "acme"}), errBroken)
		return nil
	}
	_, err = acme.Commit(ctx, store.Batch{ID: "last"})
	require.NoError(t, err)
	_, err = acme.Commit(ctx, store.Batch{ID: "too late"})
	require.ErrorIs(t, err, store.ErrLeft)
}
