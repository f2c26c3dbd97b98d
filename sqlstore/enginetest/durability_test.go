package enginetest_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/heedhq/heed/sqlstore"
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

// placeOfProcess is the place of [place.env].
func placeOfProcess() place {
	return place{
		dialect: sqlstore.Dialect(number("HEED_TEST_DIALECT")),
		driver:  os.Getenv("HEED_TEST_DRIVER"), dsn: os.Getenv("HEED_TEST_DSN"),
	}
}

// number returns a number of the environment that a test has given to a process.
func number(name string) int64 {
	n, err := strconv.ParseInt(os.Getenv(name), 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// exitCode prints the error of a process, and returns its exit code.
func exitCode(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func each() int { return rounds(25, 5000) }
