package mcp_test

import (
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/adapter/mcp"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/loop/looptest"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store/storetest"
)

// TestResources have what holds and what was learned, of this agent.
func TestResources(t *testing.T) {
	agent, _ := looptest.New(t, taught())
	c := inMemory(t, mcp.Config{Agent: agent, Person: "ann"}, newest)
	bad, err := agent.Patterns().Define(t.Context(),
		patterns.Pattern{ID: "edits", Anti: true, Reason: "It broke the build.",
			Content: "Edit before reading."})
	require.NoError(t, err)
	_, err = agent.Patterns().Define(t.Context(),
		patterns.Pattern{ID: "tests", Content: "Write the test first."})
	require.NoError(t, err)
	rules := agent.Feedback().Rules()
	for text, of := range map[string]string{"Name the server.": agent.Name(),
		"Greet the customer.": "another"} {
		p, err := rules.Propose(t.Context(), feedback.Submission{Draft: feedback.Draft{Text: text,
			Agents: []string{of}}, Actor: "ann", Reason: "x"})
		require.NoError(t, err)
		for _, person := range []string{"bob", "kim"} {
			_, err = rules.Review(t.Context(), feedback.Review{
				Proposal: p.ID, Decision: feedback.Approved, Actor: person, Reason: "x", Hash: p.Hash(),
			})
			require.NoError(t, err)
		}
	}
	waits := c.must(t, "propose", arguments{"text": "Answer in English.",
		"reason": "Tickets were mixed up."})["proposal"]

	found := c.resource(t, "rules")["items"].([]any)
	require.Len(t, found, 1)
	assert.Equal(t, "Name the server.", found[0].(arguments)["text"])
	found = c.resource(t, "proposals")["items"].([]any)
	require.Len(t, found, 1)
	assert.Equal(t, waits, found[0].(arguments)["id"])
	found = c.resource(t, "warnings")["items"].([]any)
	require.Len(t, found, 1)
	assert.Equal(t, string(bad.ID), found[0].(arguments)["id"])
	assert.Contains(t, found[0].(arguments)["content"], "Edit before reading.")
	assert.Equal(t, "It broke the build.", found[0].(arguments)["reason"])
	found = c.resource(t, "heuristics")["items"].([]any)
	assert.InDelta(t, 0.9, found[0].(arguments)["confidence"], 1e-9)
	assert.Empty(t, c.resource(t, "segments")["items"])
}

// A resource that can't be read is an error, and no empty list.
func TestResourcesWithoutTheStore(t *testing.T) {
	st := &storetest.Failing{Store: &memstore.Store{}}
	cfg := taught()
	cfg.Store = st
	agent, _ := looptest.New(t, cfg)
	c := inMemory(t, mcp.Config{Agent: agent, Person: "ann"}, newest)
	st.SetAway(true)
	for _, name := range []string{"rules", "heuristics", "segments"} {
		_, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "heed://" + name})
		require.ErrorContains(t, err, storetest.ErrFailed.Error(), name)
	}
}
