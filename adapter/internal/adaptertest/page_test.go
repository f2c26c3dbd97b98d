package adaptertest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFaultsOfPages(t *testing.T) {
	const wiring = "<!-- wiring -->\n```go\nprintln(1)\nprintln(2)\n```\n"
	long := strings.Repeat("println(1)\n", MostWiring+1)
	for name, tt := range map[string]struct{ page, want string }{
		"all is well":    {wiring + "```go\nx := 2\n```\n```go\nprintln(2)\n```\n", ""},
		"not compiled":   {wiring + "```go\nx := 3\n```\n", "nothing compiles"},
		"no wiring":      {"```go\nx := 2\n```\n", "one block behind"},
		"two wirings":    {wiring + wiring, "one block behind"},
		"another wiring": {strings.Replace(wiring, "2", "3", 1), "nothing compiles"},
		"a long wiring":  {"<!-- wiring -->\n```go\n" + long + "```\n", "too many lines"},
		"no gofmt":       {wiring + "```go\nx  := 1\n```\n", "is not as gofmt has it"},
	} {
		found := faults(blocks([]byte(tt.page)), "\nx := 2\n"+long+"println(2)\n")
		if tt.want == "" {
			assert.Empty(t, found, name)
			continue
		}
		require.NotEmpty(t, found, name)
		assert.Contains(t, found[0], tt.want, name)
	}
}
