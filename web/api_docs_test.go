package web

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/loop"
)

// programs are the programs of a page, each with what it prints.
var programs = regexp.MustCompile("(?s)```(bash|python|ts)\n(.*?)```\n\n```text\n(.*?)```")

// interpreters run the programs. Node takes this TypeScript as it is, as it has no types in it but those that can be inferred.
var interpreters = map[string]struct{ command, file string }{
	"bash": {"bash", "program.sh"}, "python": {"python3", "program.py"}, "ts": {"node", "program.mjs"},
}

// The programs of docs/http.md print what stands below them.
func TestProgramsOfThePage(t *testing.T) {
	page, err := os.ReadFile("../docs/http.md")
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
