package mcp_test

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/adapter/mcp"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store/storetest"
)

// byLines serves a client that writes lines to one pipe and reads them from another.
func byLines(t *testing.T) (*io.PipeWriter, *io.PipeReader, *sdk.ServerSession) {
	agent, _ := looptest.New(t, loop.Config{})
	server, err := mcp.New(mcp.Config{Agent: agent, Person: "ann"})
	require.NoError(t, err)
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	served, err := server.Connect(t.Context(), mcp.Stdio(in, out), nil)
	require.NoError(t, err)
	return toServer, fromServer, served
}

// The official client continues before and after lines that are not messages.
func TestABadLineEndsNothing(t *testing.T) {
	toServer, fromServer, served := byLines(t)
	bad := func() {
		const ping = `{"jsonrpc":"2.0","id":5,"method":"ping"}`
		for _, line := range []string{"this is no JSON", "{}", "[]", `[{"x":1}]`, "", `{"jsonrpc":"2`,
			ping + "garbage", ping + " " + ping} {
			_, err := fmt.Fprintln(toServer, line)
			require.NoError(t, err)
		}
	}
	bad()
	to := &sdk.IOTransport{Reader: fromServer, Writer: toServer}
	c, err := connect(t.Context(), to, older)
	require.NoError(t, err)
	bad()
	assert.NotEmpty(t, c.must(t, "prepare", arguments{"text": disk})["id"])
	require.NoError(t, c.Close())
	require.NoError(t, served.Wait())
}

// A request that is too long gets an error under its id, wherever the client writes that, and the
// next message is served. A response and a notification get none: the client may have a request of
// the response's id, and an error without an id ends the session of some clients.
func TestATooLongLineIsAnswered(t *testing.T) {
	toServer, fromServer, served := byLines(t)
	long := strings.Repeat(`, {"id": 9}`, 3<<19) // 16.5 MiB
	params := `"params":{"x":[1` + long + `]}`
	go func() {
		for _, line := range []string{
			`{"jsonrpc":"2.0","id":4,"result":{"x":[1` + long + `]}}`,
			`{"error":{"data":[1` + long + `]}, "id": "e","jsonrpc":"2.0"}`,
			`{"jsonrpc":"2.0","method":"notifications/progress",` + params + `}`,
			`{"jsonrpc":"2.0","id":7,"method":"ping",` + params + `}`,
			`{"method":"ping",` + params + `,"jsonrpc":"2.0","id":"a"}`,
			`{"method":"ping",` + params + `, "id": 8 ,"jsonrpc":"2.0"} `,
			`{"method":"ping",` + params + `,"jsonrpc":"2.0"}`,
			`[{"id":1}` + long + `]`,
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + older +
				`","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
		} {
			_, err := fmt.Fprintln(toServer, line)
			assert.NoError(t, err)
		}
	}()
	answers := bufio.NewScanner(fromServer)
	for _, id := range []string{"7", `"a"`, "8", "null", "null"} {
		require.True(t, answers.Scan())
		assert.JSONEq(t, `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32600,
			"message":"a message has 16 MiB at most: send a shorter text"}}`, answers.Text())
	}
	require.True(t, answers.Scan())
	assert.Contains(t, answers.Text(), "serverInfo")
	require.NoError(t, toServer.Close())
	require.NoError(t, served.Wait())
}

// A client that sends a batch gets an error, and is served on. It may leave the arguments of a call
// out, and then reads which one is missing.
func TestABatchAndACallWithoutArguments(t *testing.T) {
	toServer, fromServer, served := byLines(t)
	answers := bufio.NewScanner(fromServer)
	send := func(line string) {
		_, err := fmt.Fprintln(toServer, line)
		require.NoError(t, err)
	}
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + older +
		`","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	require.True(t, answers.Scan())
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	send(`[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","method":"x"}]`)
	require.True(t, answers.Scan())
	assert.JSONEq(t, `{"jsonrpc":"2.0","id":"a","error":{"code":-32600,
		"message":"a batch is not supported: send each message alone"}}`, answers.Text())
	send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"explain"}}`)
	require.True(t, answers.Scan())
	assert.Contains(t, answers.Text(), `"isError":true`)
	assert.Contains(t, answers.Text(), "answer")
	assert.NotContains(t, answers.Text(), "JSON")
	require.NoError(t, toServer.Close())
	require.NoError(t, served.Wait())
}

// A failure inside keeps its words.
func TestWhatAModelReadsOfAFailure(t *testing.T) {
	st := &storetest.Failing{Store: &memstore.Store{}}
	agent, err := loop.New(t.Context(), loop.Config{Store: st})
	require.NoError(t, err)
	c := inMemory(t, mcp.Config{Agent: agent, Person: "ann"}, older)
	st.SetAway(true)
	_, err = c.do(t.Context(), "explain", arguments{"answer": "m1"})
	require.ErrorContains(t, err, storetest.ErrFailed.Error())
}
