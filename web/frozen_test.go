package web_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/web"
)

// The first page shows since when an agent is frozen, by its own freeze or by the one of all
// tenants, and which command ends that. A record that can't be read is named.
func TestTheFirstPageShowsAFreeze(t *testing.T) {
	st := &memstore.Store{}
	agent, err := loop.New(t.Context(), loop.Config{Store: st})
	require.NoError(t, err)
	tenant, err := agent.Tenant(t.Context(), "acme")
	require.NoError(t, err)
	view, err := store.Tenant(st, "acme")
	require.NoError(t, err)
	w := &world{T: t}
	pages := func() map[string]string {
		all := make(map[string]string)
		for name, cfg := range map[string]web.Config{
			"agent": {Agent: agent}, "store": {Store: st},
			"tenant": {Agent: tenant}, "view": {Store: view},
		} {
			cfg.Identify = byHeader
			h, err := web.New(cfg)
			require.NoError(t, err)
			all[name] = w.shown(h, "/")
		}
		return all
	}
	const says = "answers go on, nothing is learned. It ends with "
	require.NoError(t, tenant.Freeze(t.Context(), true))
	for name, page := range pages() {
		if name == "tenant" || name == "view" {
			assert.Contains(t, page, "Frozen since", name)
			assert.Contains(t, page, says+"<code>heed --tenant acme store unfreeze</code>", name)
		} else {
			assert.NotContains(t, page, says, name)
		}
	}
	require.NoError(t, tenant.Freeze(t.Context(), false))
	require.NoError(t, agent.Freeze(t.Context(), true))
	for name, page := range pages() {
		assert.Contains(t, page, says+"<code>heed store unfreeze</code>", name)
	}
	require.NoError(t, agent.Freeze(t.Context(), false))
	for name, page := range pages() {
		assert.NotContains(t, page, says, name)
	}
	frozen := answers.Freezes("loop")
	row, err := frozen.Get(t.Context(), st, answers.FrozenID)
	require.NoError(t, err)
	r := frozen.Record(row.Value, row.Revision)
	r.Body = store.Raw([]byte("[7]"))
	_, err = st.Commit(t.Context(), store.Batch{Records: []store.Record{r}})
	require.NoError(t, err)
	for name, page := range pages() {
		assert.Contains(t, page, "frozen of loop.frozen", name)
	}
}
