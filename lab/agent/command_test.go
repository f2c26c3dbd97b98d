package agent

import (
	"bytes"
	"context"
	"encoding/xml"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/lab/internal/kit"
)

// The assistant learns only from things that a host would see. (The compiler holds the border as
// well, as the world imports the assistant's types.)
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
			assert.NotContains(t, path, "heed/lab/agent/world", file)
			assert.NotEqual(t, "os", path, file)
		}
	}
}

func TestCommandWritesAReport(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	drawn := filepath.Join(t.TempDir(), "gain.svg")
	call := kit.NewCall("agent", &out, "-events", "200", "-seed", "3", "-picture", drawn)
	require.NoError(t, Run(context.Background(), call))
	for _, text := range []string{"200 events", "no learning", "oracle", "tokens"} {
		assert.Contains(t, out.String(), text)
	}
	svg, err := os.ReadFile(drawn)
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(string(svg), "<polyline"), "with and without learning")
	assert.NoError(t, xml.Unmarshal(svg, new(struct{})))
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
		{[]string{"-db", filepath.Join(t.TempDir(), "none", "agent.db")}, 1,
			"unable to open database file"},
	} {
		err := Run(context.Background(), kit.NewCall("agent", io.Discard, test.args...))
		require.ErrorContains(t, err, test.fault, strings.Join(test.args, " "))
		assert.Equal(t, test.code, kit.ExitCode(err), "%v", test.args)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	assert.ErrorIs(t, Run(ctx, kit.NewCall("agent", io.Discard)), context.Canceled)
}
