package main

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/strategy"
)

// ofTenants writes a store that only tenants use, and returns a function that runs the command on
// it.
func ofTenants(t *testing.T) (file string, of func(args ...string) result) {
	file = filepath.Join(t.TempDir(), "agent.db")
	db, err := sql.Open("sqlite", file)
	require.NoError(t, err)
	root, err := loop.New(t.Context(), loop.Config{
		DB: db, Arms: []loop.Arm{{ID: "short"}},
		Model: decision.LLMFunc(func(context.Context, decision.LLMRequest) (decision.LLMResponse,
			error) {
			return decision.LLMResponse{Text: "It is."}, nil
		}),
	})
	require.NoError(t, err)
	for _, tenant := range []string{"acme", "bravo"} {
		agent, err := root.Tenant(t.Context(), tenant)
		require.NoError(t, err)
		_, err = agent.Answer(t.Context(), loop.Event{ID: tenant, Text: "Why?", Person: "ann"})
		require.NoError(t, err)
		require.NoError(t, agent.React(t.Context(), tenant, loop.Reaction{Person: "ann", Value: 1}))
	}
	require.NoError(t, db.Close())
	return file, func(args ...string) result {
		return call{args: append([]string{"--db", file}, args...)}.run(t)
	}
}

// What is wrong in a tenant's part of a store is found without knowing the tenant.
func TestTenantsAreFound(t *testing.T) {
	file, of := ofTenants(t)
	assert.Contains(t, of().out, "all that was learned here belongs to tenants: choose one with "+
		`--tenant: "acme", "bravo"`)
	forget := []string{"store", "forget", "--yes", "--reason", "they asked"}
	assertFails(t, of(append(forget, "ann")...), failed,
		`rows of tenants have that name: forget it with --tenant in each of "acme", "bravo"`)
	assertFails(t, of(append(forget, "bob")...), failed, "no row of the store has that name")

	freeze := []string{"store", "freeze", "--yes", "--reason", "incident"}
	require.Zero(t, of(append(freeze, "--tenant", "acme")...).code)
	frozen := "the agent loop of tenant acme has not learned since"
	doctor := of("doctor")
	assert.Zero(t, doctor.code, doctor.err)
	assert.Contains(t, doctor.out, "warning: "+frozen)
	assert.Contains(t, doctor.out, "see heed --tenant acme store unfreeze")
	assert.Regexp(t, `strategy.arm +observations +2\n`, doctor.out, "of both tenants")
	assert.Regexp(t, `loop.answer +records +2\n`, doctor.out)
	assert.NotContains(t, doctor.out, "@", "a thousand tenants need no thousand lines")
	doctor = of("doctor", "--now", time.Now().Add(2*day).Format(time.RFC3339))
	assert.Equal(t, failed, doctor.code)
	assert.Contains(t, doctor.out, "fault: "+frozen)
	assertFails(t, of("--tenant", "acme", "doctor"), misuse, "for the whole store")
	assert.Contains(t, of("--tenant", "acme").out, frozen)
	assert.NotContains(t, of("--tenant", "bravo").out, "has not learned since")
	require.Zero(t, of(freeze...).code)
	assert.Contains(t, of("--tenant", "bravo").out, "the agent loop has not learned since")

	statement(t, file, `UPDATE heed_record SET body = body || '}'
		WHERE kind IN ('loop.stay@bravo', 'loop.answer@acme')`)
	doctor = of("doctor")
	for _, kind := range []string{"loop.stay@bravo", "loop.answer@acme"} {
		assert.Regexp(t, "fault: .*"+kind+".*: restore the store from a copy", doctor.out)
	}
	statement(t, file, `UPDATE heed_record SET body = body || '}' WHERE kind LIKE 'loop.frozen%'`)
	doctor = of("doctor")
	for _, kind := range []string{"loop.frozen", "loop.frozen@acme"} {
		assert.Regexp(t, "fault: .*"+kind+" can't be read: heed store freeze or unfreeze, with its "+
			"--agent and --tenant, writes it again", doctor.out)
	}
	unfreeze := []string{"store", "unfreeze", "--agent", "loop", "--yes", "--reason", "damaged"}
	for _, tenant := range [][]string{nil, {"--tenant", "acme"}} {
		r := of(append(tenant, unfreeze...)...)
		require.Zero(t, r.code, r.err)
	}
	assert.NotContains(t, of("doctor").out, "loop.frozen")
}

// TestTenant shows and changes what one organisation has.
func TestTenant(t *testing.T) {
	file, of := ofTenants(t)
	assert.Equal(t, 0, of("--tenant", "acme", "answers", "acme").code)
	assert.Contains(t, of("--tenant", "acme", "answers").out, "acme")
	assert.Equal(t, "There are no answers here.\n", of("--tenant", "acme", "answers", "--worst").out,
		"none is bad")
	assert.Equal(t, 1, of("--tenant", "acme", "answers", "bravo").code)
	assert.Equal(t, 1, of("answers", "acme").code, "it belongs to a tenant")
	assert.Equal(t, 2, of("--tenant", "acme", "store", "backup", "copy.db").code)

	for _, args := range []string{"overview", "strategy", "answers", "store audit", "mcp",
		"store export " + filepath.Join(t.TempDir(), "none.jsonl"), "serve --run",
		"store freeze --yes --reason incident"} {
		assertFails(t, of(append([]string{"--tenant", "acne"}, strings.Fields(args)...)...), failed,
			`there is no tenant "acne": `+file+` has "acme", "bravo"`)
	}

	export := filepath.Join(t.TempDir(), "acme.jsonl")
	require.Equal(t, 0, of("--tenant", "acme", "store", "export", export).code)
	text, err := os.ReadFile(export)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "bravo")
	restored := filepath.Join(t.TempDir(), "restored.db")
	r := call{args: []string{"--db", restored, "store", "import", export}}.run(t)
	require.Equal(t, 0, r.code, r.err)
	sameTenant(t, file, restored)

	forget := []string{"--actor", "kim", "--reason", "they asked", "--yes"}
	r = of(append([]string{"--tenant", "acme", "store", "forget", "ann"}, forget...)...)
	require.Equal(t, 0, r.code, r.err)
	assert.Equal(t, 1, of(append([]string{"--tenant", "acme", "store", "forget", "ann"},
		forget...)...).code, "she is forgotten")
	r = of(append([]string{"--tenant", "bravo", "store", "forget", "--everything"}, forget...)...)
	require.Equal(t, 0, r.code, r.err)
	assert.Contains(t, r.out, "bravo")
	r = of(append([]string{"--tenant", "bravo", "store", "forget", "--everything"}, forget...)...)
	assert.Equal(t, 1, r.code, "it has nothing any more")
	assert.Contains(t, r.err, `there is no tenant "bravo": `+file+` has "acme"`)
	assert.Equal(t, 2, of(append([]string{"store", "forget", "--everything"}, forget...)...).code)
	r = of("store", "export", filepath.Join(t.TempDir(), "all.jsonl"))
	require.Equal(t, 0, r.code, r.err)

	statement(t, file, `UPDATE heed_record SET body = body || '}' WHERE kind LIKE '%@acme'`)
	r = of(append([]string{"--tenant", "acme", "store", "forget", "--everything"}, forget...)...)
	require.Equal(t, 0, r.code, r.err, "rows that can't be read go, too")
	r = of("--tenant", "acme", "overview")
	assertFails(t, r, failed, `there is no tenant "acme": `+file+" has no tenants: leave out --tenant "+
		"and HEED_TENANT")
}

// sameTenant has a tenant go on in the store that its export was restored to: with the same arms,
// and an outcome that comes again does not count again.
func sameTenant(t *testing.T, files ...string) {
	var means []float64
	for _, file := range files {
		db, err := sql.Open("sqlite", file)
		require.NoError(t, err)
		root, err := loop.New(t.Context(), loop.Config{DB: db, Arms: []loop.Arm{{ID: "short"}}})
		require.NoError(t, err)
		agent, err := root.Tenant(t.Context(), "acme")
		require.NoError(t, err)
		require.NoError(t, agent.React(t.Context(), "acme", loop.Reaction{Person: "ann", Value: 1}))
		beliefs, err := agent.Strategy().Beliefs(t.Context(), strategy.Query{})
		require.NoError(t, err)
		means = append(means, beliefs[0].Mean())
		require.NoError(t, db.Close())
	}
	assert.Greater(t, means[0], 0.5)
	assert.InDelta(t, means[0], means[1], 1e-12)
}
