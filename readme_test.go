package heed_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadmeProgramRuns runs the README's first program as it stands there.
func TestReadmeProgramRuns(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(readme), "## A first program\n\n```go\n")
	program, rest, closed := strings.Cut(rest, "```\n")
	_, rest, says := strings.Cut(rest, "It prints `")
	want, _, _ := strings.Cut(rest, "`")
	if !found || !closed || !says {
		t.Fatal("the README has no first program, or does not say what it prints")
	}
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := exec.Command("go", "run", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if got := strings.TrimSpace(string(output)); got != want {
		t.Errorf("it prints %s, and not %s", got, want)
	}
}
