package enginetest_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/servertest"
)

var (
	shared struct {
		once sync.Once
		*servertest.Server
		err error
	}
)

func TestMain(m *testing.M) {
	if process := os.Getenv("HEED_TEST_PROCESS"); process != "" {
		os.Exit(processes[process]())
	}
	flag.Parse()
	if os.Getenv("HEED_LONG") == "" && flag.Lookup("rapid.checks").Value.String() == "100" {
		_ = flag.Set("rapid.checks", "10")
	}
	end, err := servertest.Temporary()
	if err != nil {
		panic(err)
	}
	lastly = append(lastly, end)
	code := m.Run()
	slices.Reverse(lastly)
	for _, do := range lastly {
		if err := do(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if shared.Server != nil {
		if err := shared.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// cluster returns where to find PostgreSQL: at HEED_POSTGRES_DSN, or in a cluster that is started
// with the first test that asks. Where there is none, the test is skipped, or fails if
// HEED_POSTGRES=require.
func cluster(t testing.TB) string {
	if dsn := os.Getenv("HEED_POSTGRES_DSN"); dsn != "" {
		return dsn
	}
	// no test cuts its power, and a deadlock is found at once
	shared.once.Do(func() {
		shared.Server, shared.err = servertest.New(
			"-c fsync=off -c deadlock_timeout=50ms")
	})
	skipWithout(t, shared.err)
	return shared.DSN()
}

func skipWithout(t testing.TB, err error) {
	if errors.Is(err, servertest.ErrNone) && os.Getenv("HEED_POSTGRES") != "require" {
		t.Skip(err)
	}
	require.NoError(t, err)
}
