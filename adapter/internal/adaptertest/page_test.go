package adaptertest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFaultsOfPages(t *testing.T) {
	const (
		program = "```go\npackage main\n\nfunc main() {\n\tprintln(1)\n\tprintln(2)\n}\n```\n"
		wiring  = "<!-- wiring -->\n```go\nprintln(1)\nprintln(2)\n```\n"
	)
	long := strings.Repeat("println(1)\n", MostWiring+1)
	lines := strings.Repeat("\tprintln(1)\n", MostWiring+1)
	tooLong := "<!-- wiring -->\n```go\n" + long + "```\n```go\npackage main\n\nfunc main() {\n" +
		lines + "}\n```\n"
	for name, tt := range map[string]struct{ page, want string }{
		"all is well":    {wiring + program + "```go\nx := 2\n```\n```go\nprintln(2)\n```\n", ""},
		"not compiled":   {wiring + program + "```go\nx := 3\n```\n", "nothing compiles"},
		"a test alone":   {"```go\nx := 2\n```\n" + wiring, "nothing compiles"},
		"no wiring":      {program, "one block behind"},
		"two wirings":    {wiring + wiring + program, "one block behind"},
		"another wiring": {strings.Replace(wiring, "2", "3", 1) + program, "nothing compiles"},
		"a long wiring":  {tooLong, "too many lines"},
		"no gofmt":       {wiring + program + "```go\nx  := 1\n```\n", "is not as gofmt has it"},
	} {
		found := faults(blocks([]byte(tt.page)), "\nx := 2\n")
		if tt.want == "" {
			assert.Empty(t, found, name)
			continue
		}
		require.NotEmpty(t, found, name)
		assert.Contains(t, found[0], tt.want, name)
	}
}

func TestThePagesProgramsAreRun(t *testing.T) {
	all := blocks([]byte("```go\npackage main\n```\n\nIt prints:\n\n```text\nyes\n```\n" +
		"```go\nx := 1\n```\n"))
	require.Len(t, all, 2)
	assert.Equal(t, "yes\n", all[0].output)
	assert.Empty(t, all[1].output)
	const program = "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"yes\") }\n"
	run(t, block{code: program, output: "yes\n"})
}
