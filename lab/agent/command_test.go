package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/lab/internal/kit"
)

// The assistant learns only from things that a host would see. (The compiler holds the border as well, as the world imports the
// assistant's types.)
func TestTheAssistantKnowsNothingOfTheWorld(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(os.DirFS("assistant"), "*.go")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), "assistant/"+file, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range parsed.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			assert.NotContains(t, path, "heed/examples", file)
			assert.NotEqual(t, "os", path, file)
		}
	}
}

func TestCommandWritesAReport(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	steps := 0
	call := kit.NewCall("agent", &out, "-events", "400", "-seed", "3")
	call.Progress = func(done, of int) {
		assert.GreaterOrEqual(t, done, steps)
		assert.Equal(t, 4*400, of)
		steps = done
	}
	require.NoError(t, Run(context.Background(), call))
	assert.Equal(t, 4*400, steps)
	for _, text := range []string{
		"400 events", "no learning", "trust is known", "oracle", "answered by heuristics", "Model calls saved", "runbook-disk", "preference",
		"Split by layer", "Rules:", "approved by lead-ann and lead-bob", "Why: the last answer of a heuristic", "prior",
	} {
		assert.Contains(t, out.String(), text)
	}
}

func TestResult(t *testing.T) {
	t.Parallel()
	got, err := order{seed: 2026, events: 100}.run(context.Background(), silent)
	require.NoError(t, err)
	assert.Equal(t, 100, got.Events)
	require.Len(t, got.Ways, 4)
	assert.Equal(t, off, got.Ways[0].Way)
	assert.InDelta(t, 1, got.Ways[0].Whole.Calls, 1e-9)
	assert.Len(t, got.Ways[1].Tenths, 10)
}

func TestCommandAsksARealModel(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		assert.Equal(t, "Bearer sesame", r.Header.Get("Authorization"))
		var request struct{ Model string }
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&request))
		assert.Equal(t, "small", request.Model)
		fmt.Fprint(w, `{"model": "small-1", "choices": [{"message": {"role": "assistant", "content": "Rotate and compress the logs."}, "finish_reason": "stop"}],
			"usage": {"prompt_tokens": 100, "completion_tokens": 7}}`)
	}))
	t.Cleanup(server.Close)
	t.Setenv("OPENAI_BASE_URL", server.URL)
	t.Setenv("OPENAI_API_KEY", "sesame")
	var out bytes.Buffer
	require.NoError(t, Run(context.Background(), kit.NewCall("agent", &out, "-events", "20", "-model",
		"small")))
	assert.Positive(t, asked.Load())
	assert.Contains(t, out.String(), "learning")
	assert.NotContains(t, out.String(), "oracle  ")
	assert.NotContains(t, out.String(), "sesame")
}

func TestCommandFaults(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args  []string
		code  int
		fault string
	}{
		{[]string{"-help"}, 0, "help requested"},
		{[]string{"-nonsense"}, 2, "flag provided but not defined"},
		{[]string{"more"}, 2, `unexpected argument "more"`},
		{[]string{"-events", "19"}, 2, "-events 19 must be at least 20"},
		{[]string{"-model", "small"}, 1, "BaseURL"},
		{[]string{"-db", ":memory:"}, 2, "-db must name a file"},
		{[]string{"-db", filepath.Join(t.TempDir(), "none", "agent.db")}, 1, "unable to open database file"},
	} {
		err := Run(context.Background(), kit.NewCall("agent", io.Discard, test.args...))
		require.ErrorContains(t, err, test.fault, strings.Join(test.args, " "))
		assert.Equal(t, test.code, kit.ExitCode(err), "%v", test.args)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	assert.ErrorIs(t, Run(ctx, kit.NewCall("agent", io.Discard)), context.Canceled)
}
