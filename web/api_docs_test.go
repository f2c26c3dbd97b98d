package web

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/loop"
)

// interpreters run the programs of web/clients. Module web/webtest runs the program in TypeScript.
var interpreters = map[string]string{"answer.sh": "bash", "choose.py": "python3"}

var (
	sections = regexp.MustCompile(`(?m)^### ([a-z-]+)\n\n(\d+)\. ((?:.+\n)+)`)
	retried  = regexp.MustCompile(`problem\.code not in \(([0-9, ]+)\)`)
)

// The Python program sends a request again after those problems of which the page says so, and
// after no other: what is not configured stays so.
func TestThePythonProgramTriesAgain(t *testing.T) {
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var again []string
	found := sections.FindAllStringSubmatch(string(page), -1)
	require.Len(t, found, len(sorts))
	for _, section := range found {
		name, status, text := section[1], section[2], section[3]
		assert.Equal(t, status, strconv.Itoa(sorts[name].Status), name)
		if strings.Contains(text, "again") {
			again = append(again, status)
		}
	}
	slices.Sort(again)
	program, err := os.ReadFile("clients/choose.py")
	require.NoError(t, err)
	assert.Equal(t, retried.FindStringSubmatch(string(program))[1],
		strings.Join(slices.Compact(again), ", "))
	assert.NotContains(t, again, strconv.Itoa(sorts[view.MissingPart].Status))
}

// Each program prints what its comment shows below "Output:".
func TestClients(t *testing.T) {
	for file, interpreter := range interpreters {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("clients", file)
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			_, want, found := strings.Cut(string(text), "\n# Output:\n")
			require.True(t, found)
			command, err := exec.LookPath(interpreter)
			if err != nil {
				t.Skip("there is no " + interpreter)
			}
			w := newWorld(t, func(c *loop.Config, cfg *Config) {
				c.Arms = []loop.Arm{{ID: "brief"}}
				cfg.Identify = func(r *http.Request) (string, error) {
					if r.Header.Get("Authorization") != "Bearer the-token" {
						return "", http.ErrNoCookie
					}
					return "shop", nil
				}
			})
			w.name = "llama3.2"
			server := httptest.NewServer(w.handler)
			t.Cleanup(server.Close)
			var out, errOut bytes.Buffer
			run := exec.CommandContext(t.Context(), command, file)
			run.Env = append(os.Environ(), "HEED_URL="+server.URL, "HEED_TOKEN=the-token", "no_proxy=*")
			run.Stdout, run.Stderr = &out, &errOut
			require.NoError(t, run.Run(), errOut.String())
			assert.Equal(t, strings.ReplaceAll("\n"+want, "\n# ", "\n"), "\n"+out.String())
			assert.Empty(t, errOut.String())
		})
	}
}
