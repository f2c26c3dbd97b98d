package mcp_test

import (
	"encoding/json"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/adapter/mcp"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
)

// notByModels are the inputs of the API that no model may fill in: for whom it speaks, when that
// was, and how much it counts.
var notByModels = map[string][]string{
	"prepare": {"at", "history", "person", "stream"},
	"react":   {"at", "channel", "person", "target", "weight"},
	"undo":    {"person"}, "outcome": {"at", "source", "ways"}, "correct": {"at", "decision", "id"},
}

// TestSameAsTheAPI compares what a client of MCP sees with the document of the HTTP API: the tools
// are its operations, with its inputs and their descriptions.
func TestSameAsTheAPI(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters  []struct{ Name, In string }
			RequestBody struct {
				Content map[string]struct {
					Schema map[string]string
				}
			}
		}
		Components struct {
			Schemas map[string]struct{ Properties map[string]arguments }
		}
	}
	require.NoError(t, json.Unmarshal(view.OpenAPI, &doc))
	inputs := func(of string) (at map[string]string) { // the descriptions of the inputs
		at = make(map[string]string)
		for way, calls := range doc.Paths {
			if name := path.Base(way); name != of && !(of == "explain" && name == "explanation") {
				continue
			}
			for _, call := range calls {
				for _, p := range call.Parameters {
					if p.In == "query" {
						at[p.Name] = ""
					}
				}
				schema := path.Base(call.RequestBody.Content["application/json"].Schema["$ref"])
				for name, property := range doc.Components.Schemas[schema].Properties {
					at[name], _ = property["description"].(string)
				}
			}
		}
		return at
	}
	agent, _ := looptest.New(t, loop.Config{})
	c := inMemory(t, mcp.Config{Agent: agent, Person: "ann"}, newest)
	var tools []string
	for tool, err := range c.Tools(t.Context(), nil) {
		require.NoError(t, err)
		tools = append(tools, tool.Name)
		assert.NotEmpty(t, tool.Description, tool.Name)
		want := inputs(tool.Name)
		require.NotEmpty(t, want, tool.Name)
		for _, name := range notByModels[tool.Name] {
			require.Contains(t, want, name, tool.Name)
			delete(want, name)
			_, err := c.do(t.Context(), tool.Name, arguments{name: "x"})
			assert.EqualError(t, err, name+" is not known here.", "%s of a model", tool.Name)
		}
		has := tool.InputSchema.(arguments)["properties"].(arguments)
		for name, described := range want {
			require.Contains(t, has, name, tool.Name)
			text, _ := has[name].(arguments)["description"].(string)
			assert.True(t, text != "" && strings.HasPrefix(text, described), "%s %s", tool.Name, name)
		}
		assert.Len(t, has, len(want), tool.Name)
	}
	var offered []string
	for _, o := range view.Operations() {
		if o.Tool != "" {
			offered = append(offered, o.Tool)
		}
	}
	assert.ElementsMatch(t, offered, tools)
}
