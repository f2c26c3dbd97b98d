package enginetest_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// long reports whether the tests run their long variants.
var long = os.Getenv("HEED_LONG") != ""

// skipRaced skips a test that has no goroutines to race, or leaves the work to other processes:
// with the race detector the drivers take ten times as long. CI runs this module with it and
// without.
func skipRaced(t *testing.T) {
	if raced {
		t.Skip("runs without the race detector")
	}
}

// rounds returns how many rounds a test is to make.
func rounds(short, all int) int {
	if long {
		return all
	}
	return short
}

// child starts this binary as another process.
func child(t testing.TB, name string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, "HEED_TEST_PROCESS="+name)...)
	cmd.Stderr = os.Stderr
	return cmd
}

// env is what a process needs to open a place.
func (p place) env() []string {
	return []string{"HEED_TEST_DRIVER=" + p.driver, "HEED_TEST_DSN=" + p.dsn,
		fmt.Sprintf("HEED_TEST_DIALECT=%d", p.dialect)}
}

func each() int { return rounds(25, 5000) }
