package mcp_test

import (
	"bufio"
	"fmt"
	"io"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/adapter/mcp"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
)

// A client may leave the arguments of a call out, and then reads which one is missing.
func TestACallWithoutArguments(t *testing.T) {
	agent, _ := looptest.New(t, loop.Config{})
	server, err := mcp.New(mcp.Config{Agent: agent, Person: "ann"})
	require.NoError(t, err)
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	served, err := server.Connect(t.Context(), &sdk.IOTransport{Reader: in, Writer: out}, nil)
	require.NoError(t, err)
	answers := bufio.NewScanner(fromServer)
	send := func(line string) {
		_, err := fmt.Fprintln(toServer, line)
		require.NoError(t, err)
	}
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + older +
		`","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	require.True(t, answers.Scan())
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"explain"}}`)
	require.True(t, answers.Scan())
	assert.Contains(t, answers.Text(), `"isError":true`)
	assert.Contains(t, answers.Text(), "answer")
	assert.NotContains(t, answers.Text(), "JSON")
	require.NoError(t, toServer.Close())
	require.NoError(t, served.Wait())
}
