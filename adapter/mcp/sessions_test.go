package mcp_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/adapter/mcp"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
)

// TestSessionsOfAPerson are bounded, and one that is closed makes room.
func TestSessionsOfAPerson(t *testing.T) {
	agent, _ := looptest.New(t, loop.Config{})
	url, _ := overHTTP(t, mcp.Config{Agent: agent})
	send := func(method, token, session string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{`+
			`"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`))
		require.NoError(t, err)
		r.Header = http.Header{"Authorization": {"Bearer " + token},
			"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode, response.Header.Get("Mcp-Session-Id")
	}
	var last string
	for range 100 {
		status, id := send(http.MethodPost, "of-ann", "")
		require.Equal(t, http.StatusOK, status)
		last = id
	}
	status, _ := send(http.MethodPost, "of-ann", "")
	assert.Equal(t, http.StatusTooManyRequests, status)
	status, _ = send(http.MethodPost, "of-bob", "")
	assert.Equal(t, http.StatusOK, status)
	send(http.MethodDelete, "of-ann", last)
	status, _ = send(http.MethodPost, "of-ann", "")
	assert.Equal(t, http.StatusOK, status)
}
