package mcp_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/adapter/mcp"
)

// The protocol's versions that are tested: the first one with sessions that a client asks for, the
// last one of those, and the one without sessions.
const oldest, older, newest = "2024-11-05", "2025-11-25", "2026-07-28"

// A client is the SDK's own client.
type client struct{ *sdk.ClientSession }

// connect connects a client of a version to a transport's other end.
func connect(ctx context.Context, to sdk.Transport, version string) (client, error) {
	c := sdk.NewClient(&sdk.Implementation{Name: "desk", Version: "1"}, nil)
	session, err := c.Connect(ctx, to, &sdk.ClientSessionOptions{ProtocolVersion: version})
	return client{session}, err
}

// inMemory connects a client to a server within the process.
func inMemory(t *testing.T, cfg mcp.Config, version string) client {
	t.Helper()
	server, err := mcp.New(cfg)
	require.NoError(t, err)
	there, here := sdk.NewInMemoryTransports()
	served, err := server.Connect(context.Background(), there, nil)
	require.NoError(t, err)
	c, err := connect(t.Context(), here, version)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		require.NoError(t, served.Wait())
	})
	return c
}

// bearer sends a token with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// tokens are those of two people.
func tokens(token string) (string, bool) {
	person, ok := map[string]string{"of-ann": "ann", "of-bob": "bob", "of-kim": "kim"}[token]
	return person, ok
}

// overHTTP serves an agent over HTTP and returns what connects a client with a token.
func overHTTP(t *testing.T, cfg mcp.Config) (
	url string, join func(token, version string) client,
) {
	t.Helper()
	server, err := mcp.New(cfg)
	require.NoError(t, err)
	served := httptest.NewServer(mcp.Handler(server, tokens))
	t.Cleanup(served.Close)
	return served.URL, func(token, version string) client {
		to := &sdk.StreamableClientTransport{Endpoint: served.URL,
			HTTPClient: &http.Client{Transport: bearer(token)}, DisableStandaloneSSE: true}
		c, err := connect(t.Context(), to, version)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		return c
	}
}

type arguments = map[string]any

// do calls a tool. The error is the tool's.
func (c client) do(ctx context.Context, tool string, in arguments) (arguments, error) {
	result, err := c.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		return nil, err
	}
	if result.IsError {
		return nil, errors.New(result.Content[0].(*sdk.TextContent).Text)
	}
	out, _ := result.StructuredContent.(arguments)
	return out, nil
}

// must calls a tool that works.
func (c client) must(t *testing.T, tool string, in arguments) arguments {
	t.Helper()
	out, err := c.do(t.Context(), tool, in)
	require.NoError(t, err)
	return out
}
