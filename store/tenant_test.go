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
	for _, name := range []string{"a\x1fb", "a\nb", "\xff", strings.Repeat("a", store.MaxTenant+1)} {
		_, err := store.Tenant(st, name)
		require.ErrorAs(t, err, &fault, "%q", name)
		assert.Equal(t, "Tenant", fault.Field)
	}
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
