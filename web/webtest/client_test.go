package webtest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/web"
)

// A streamed model answers in two pieces.
type streamed struct{ *world }

func (s streamed) Stream(
	ctx context.Context, r decision.LLMRequest, piece func(string),
) (decision.LLMResponse, error) {
	const text = "Rotate its logs."
	piece(text[:8])
	piece(text[8:])
	return decision.LLMResponse{Text: text}, nil
}

// newAPI returns the handler of an agent with a rule that forbids a tool to delete.
func newAPI(t *testing.T) http.Handler {
	t.Helper()
	agent, err := loop.New(t.Context(), loop.Config{
		Store: &memstore.Store{}, Model: streamed{&world{}},
	})
	require.NoError(t, err)
	rules := agent.Feedback().Rules()
	p, err := rules.Propose(t.Context(), feedback.Submission{
		Draft: feedback.Draft{
			Text: "Delete nothing.", AllAgents: true,
			Check: feedback.Check{Tool: "shell", Forbid: "rm -r"},
		},
		Actor: "kim", Reason: "It deleted the logs of a month.",
	})
	require.NoError(t, err)
	for _, lead := range []string{"ann", "bob"} {
		_, err = rules.Review(t.Context(), feedback.Review{
			Proposal: p.ID, Decision: feedback.Approved, Actor: lead, Reason: "It did.", Hash: p.Hash(),
		})
		require.NoError(t, err)
	}
	handler, err := web.New(web.Config{
		Agent: agent, Identify: func(r *http.Request) (string, error) {
			if r.Header.Get("Authorization") != "Bearer the-token" {
				return "", http.ErrNoCookie
			}
			return "shop", nil
		},
	})
	require.NoError(t, err)
	return handler
}

// described returns the API's document as the handler serves it, validated by kin-openapi.
func described(t *testing.T, handler http.Handler) (text []byte, router routers.Router) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/openapi.json", nil)
	r.Header.Set("Authorization", "Bearer the-token")
	got := httptest.NewRecorder()
	handler.ServeHTTP(got, r)
	require.Equal(t, http.StatusOK, got.Code, got.Body)
	doc, err := openapi3.NewLoader().LoadFromData(got.Body.Bytes())
	require.NoError(t, err)
	require.NoError(t, doc.Validate(t.Context()))
	router, err = gorillamux.NewRouter(doc)
	require.NoError(t, err)
	return got.Body.Bytes(), router
}

// A checked handler compares each request and each answer with the document.
type checked struct {
	http.Handler
	t      *testing.T
	router routers.Router
	calls  map[string]int // by path, of what was compared
}

func (c *checked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	assert.NoError(c.t, err)
	r.Body = io.NopCloser(bytes.NewReader(body))
	got := httptest.NewRecorder()
	c.Handler.ServeHTTP(got, r)
	for name, values := range got.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(got.Code)
	_, err = w.Write(got.Body.Bytes())
	assert.NoError(c.t, err)

	r.Body = io.NopCloser(bytes.NewReader(body))
	assert.NoError(c.t, c.compare(r, got))
	c.calls[r.URL.Path]++
}

func (c *checked) compare(r *http.Request, got *httptest.ResponseRecorder) error {
	route, params, err := c.router.FindRoute(r)
	if err != nil {
		return err
	}
	request := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params, Route: route, Options: &openapi3filter.Options{
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true,
		},
	}
	if err := openapi3filter.ValidateRequest(r.Context(), request); err != nil && got.Code < 300 {
		return err
	}
	if strings.HasPrefix(got.Header().Get("Content-Type"), "text/event-stream") {
		return nil // the client's types say what its events are
	}
	return openapi3filter.ValidateResponse(r.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: request, Status: got.Code, Header: got.Header(),
		Body: io.NopCloser(bytes.NewReader(got.Body.Bytes())), Options: request.Options,
	})
}

// The comparison finds an answer that the document does not have.
func TestTheDocumentIsCompared(t *testing.T) {
	handler := newAPI(t)
	_, router := described(t, handler)
	c := &checked{Handler: handler, t: t, router: router, calls: map[string]int{}}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/hear",
		strings.NewReader(`{"text":"Thanks."}`))
	r.Header.Set("Content-Type", "application/json")
	got := httptest.NewRecorder()
	got.Header().Set("Content-Type", "application/json")
	got.Body.WriteString(`{"changes":[{"answer":"a"}]}`)
	require.ErrorContains(t, c.compare(r, got), "signal")
	got.Body.Reset()
	got.Body.WriteString(`{"changes":[]}`)
	r.Body = io.NopCloser(strings.NewReader(`{"text":"Thanks."}`))
	require.NoError(t, c.compare(r, got))
}

var packages = []string{
	"@redocly/cli@2.77.0", "openapi-typescript@7.13.0", "openapi-fetch@0.17.0",
	"typescript@5.9.3", "@types/node@20.19.0",
}

// TestTypeScriptClient has Redocly validate the API's document, generates a client's types from it,
// compiles web/clients/agent.mts with them, and runs it against a server.
func TestTypeScriptClient(t *testing.T) {
	dir := t.TempDir()
	run := func(name string, args ...string) ([]byte, error) {
		c := exec.CommandContext(t.Context(), name, args...)
		c.Dir = dir
		return c.CombinedOutput()
	}
	out, err := run("npm", append([]string{"install", "--prefix", dir, "--ignore-scripts",
		"--no-audit", "--no-fund", "--prefer-offline"}, packages...)...)
	if err != nil {
		t.Skipf("npm can't fetch the tools: %v\n%s", err, out)
	}
	handler := newAPI(t)
	document, router := described(t, handler)
	text, err := os.ReadFile("../clients/agent.mts")
	require.NoError(t, err)
	_, want, found := strings.Cut(string(text), "\n// Output:\n")
	require.True(t, found)
	for name, text := range map[string][]byte{
		"openapi.json": document, "agent.mts": text,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	for _, args := range [][]string{
		{"redocly", "lint", "openapi.json"},
		{"openapi-typescript", "openapi.json", "-o", "heed.d.ts"},
		{"tsc", "--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck",
			"agent.mts"},
	} {
		out, err := run(filepath.Join("node_modules", ".bin", args[0]), args[1:]...)
		require.NoError(t, err, "%s: %s", args[0], out)
	}
	c := &checked{Handler: handler, t: t, router: router, calls: map[string]int{}}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	program := exec.CommandContext(t.Context(), "node", "agent.mjs")
	program.Dir = dir
	program.Env = append(os.Environ(), "HEED_URL="+server.URL, "HEED_TOKEN=the-token", "no_proxy=*")
	var failure bytes.Buffer
	program.Stderr = &failure
	out, err = program.Output()
	require.NoError(t, err, failure.String())
	assert.Equal(t, strings.ReplaceAll("\n"+want, "\n// ", "\n"), "\n"+string(out))
	assert.Equal(t, map[string]int{
		"/v1/prepare": 1, "/v1/tool_result": 3, "/v1/answered": 1, "/v1/hear": 1, "/v1/answer": 1,
	}, c.calls)
}
