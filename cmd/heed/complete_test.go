package main

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The script has a shell complete commands and flags.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for shell, try := range map[string]string{
		"bash": "source /dev/stdin; complete -p heed",
		"fish": "source; complete -C 'heed distr'",
	} {
		script := call{args: []string{"completion", shell}}.run(t)
		require.Zero(t, script.code, script.err)
		assert.Contains(t, script.out, " distributions ")
		assert.Contains(t, script.out, " --context ")
		path, err := exec.LookPath(shell)
		if err != nil {
			continue // not installed
		}
		cmd := exec.Command(path, "-c", try)
		stdin, err := cmd.StdinPipe()
		require.NoError(t, err)
		go func() {
			_, _ = stdin.Write([]byte(script.out))
			_ = stdin.Close()
		}()
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		assert.Contains(t, string(out), "distributions")
	}
	assertFails(t, call{args: []string{"completion", "csh"}}.run(t), misuse, "bash")
}
