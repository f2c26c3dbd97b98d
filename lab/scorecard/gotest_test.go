package scorecard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestChangesFit finds each text that the lines change in heed's source once.
func TestChangesFit(t *testing.T) {
	root, err := sources()
	require.NoError(t, err)
	for _, changes := range heedTests.changes {
		for _, c := range changes {
			source, err := os.ReadFile(filepath.Join(root, c.file))
			if assert.NoError(t, err) {
				assert.Equal(t, 1, strings.Count(string(source), c.old), "%s: %q", c.file, c.old)
			}
		}
	}
}

func TestUnclear(t *testing.T) {
	for name, tt := range map[string]struct {
		verdict verdict
		want    bool
	}{
		"a test passes":         {verdict{output: []byte("--- PASS: TestA\nPASS\n")}, false},
		"a test fails":          {verdict{failed: true, output: []byte("--- FAIL: TestA (0.00s)\nFAIL\n")}, false},
		"a part of a test":      {verdict{failed: true, output: []byte("=== RUN   TestA/b\n    --- FAIL: TestA/b (0.00s)\n")}, false},
		"a panic":               {verdict{failed: true, output: []byte("=== RUN   TestA\npanic: seeded\n")}, false},
		"concurrent map writes": {verdict{failed: true, output: []byte("fatal error: concurrent map writes\n\ngoroutine 7")}, false},
		"out of time":           {verdict{failed: true, output: []byte("panic: test timed out after 1m0s\n--- FAIL: TestA")}, true},
		"killed":                {verdict{failed: true, output: []byte("=== RUN   TestA\n")}, true},
		"it speaks of panic":    {verdict{failed: true, output: []byte("no panic: \"fatal error: \"\n")}, true},
	} {
		assert.Equal(t, tt.want, tt.verdict.unclear(), name)
	}
}
