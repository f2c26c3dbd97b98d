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

// programs are the programs of a page, each with what it prints.
var programs = regexp.MustCompile("(?s)```(bash|python)\n(.*?)```\n\n```text\n(.*?)```")

// interpreters run the programs. Module web/webtest runs the program in TypeScript.
var interpreters = map[string]struct{ command, file string }{
	"bash": {"bash", "program.sh"}, "python": {"python3", "program.py"},
}

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
	assert.Equal(t, retried.FindStringSubmatch(string(page))[1],
		strings.Join(slices.Compact(again), ", "))
	assert.NotContains(t, again, strconv.Itoa(sorts[view.MissingPart].Status))
}

// The programs of web/README.md print what stands below them.
func TestProgramsOfThePage(t *testing.T) {
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	found := programs.FindAllStringSubmatch(string(page), -1)
	require.Len(t, found, len(interpreters))
	for _, program := range found {
		language, text, want := program[1], program[2], program[3]
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			with := interpreters[language]
			command, err := exec.LookPath(with.command)
			if err != nil {
				t.Skip("there is no " + with.command)
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
			file := filepath.Join(t.TempDir(), with.file)
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			var out, errOut bytes.Buffer
			run := exec.CommandContext(t.Context(), command, file)
			run.Env = append(os.Environ(), "HEED_URL="+server.URL, "HEED_TOKEN=the-token", "no_proxy=*")
			run.Stdout, run.Stderr = &out, &errOut
			require.NoError(t, run.Run(), errOut.String())
			assert.Equal(t, want, out.String())
			assert.Empty(t, errOut.String())
		})
	}
}
