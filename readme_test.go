package heed_test

import (
	"os"
	"strings"
	"testing"
)

// TestReadmeShowsTheExample holds the README to the example that the tests of package strategy run.
func TestReadmeShowsTheExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(readme), "## Twenty lines\n\n```go\n")
	snippet, _, closed := strings.Cut(rest, "```\n")
	if !found || !closed {
		t.Fatal("the README has no twenty lines of Go")
	}
	source, err := os.ReadFile("strategy/example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(flat(string(source)), flat(snippet)) {
		t.Error("the README's twenty lines are not those of strategy/example_test.go")
	}
	_, output, _ := strings.Cut(string(source), "// Output: ")
	output, _, _ = strings.Cut(output, "\n")
	if !strings.Contains(string(readme), "It prints `"+output+"`") {
		t.Errorf("the README does not say that the example prints %s", output)
	}
}

// flat leaves out how lines are indented.
func flat(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.String()
}
