//go:build unix

package servertest_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/servertest"
)

const asTests = "HEED_TEST_KILLED"

func TestMain(m *testing.M) {
	if os.Getenv(asTests) == "" {
		os.Exit(m.Run())
	}
	if err := begin(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

// begin starts what a test run has, and prints its directory and its server's address.
func begin() error {
	if _, err := servertest.Temporary(); err != nil {
		return err
	}
	server, err := servertest.New("-c fsync=off")
	address := ""
	switch {
	case err == nil:
		address = fmt.Sprint("127.0.0.1:", server.Port())
	case !errors.Is(err, servertest.ErrNone):
		return err
	}
	dir, err := os.MkdirTemp("", "store")
	fmt.Println(dir + " " + address)
	return err
}

// TestKilled kills a test run, after which no server runs and no file is left.
func TestKilled(t *testing.T) {
	t.Parallel()
	tests := exec.Command(os.Args[0])
	place := t.TempDir()
	for dir := place; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o777)) // PostgreSQL is another user if this one is root
	}
	tests.Env = append(os.Environ(), asTests+"=1", "TMPDIR="+place)
	tests.Stderr = os.Stderr
	out, err := tests.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, tests.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	dir, address, _ := strings.Cut(strings.TrimSpace(line), " ")
	assert.DirExists(t, dir)
	serves := func() bool {
		connection, err := net.Dial("tcp", address)
		return err == nil && connection.Close() == nil
	}
	assert.Equal(t, address != "", serves())
	require.NoError(t, tests.Process.Kill())
	require.Error(t, tests.Wait())
	assert.Eventually(t, func() bool {
		left, err := os.ReadDir(place)
		return err == nil && len(left) == 0 && !serves()
	}, 30*time.Second, 50*time.Millisecond)
}

// TestAtEnd runs a script at once.
func TestAtEnd(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ended")
	end, err := servertest.AtEnd(`echo "$1" >"$2"`, "it's", file)
	require.NoError(t, err)
	assert.NoFileExists(t, file)
	require.NoError(t, end())
	assert.FileExists(t, file)
	end, err = servertest.AtEnd("exit 3")
	require.NoError(t, err)
	require.ErrorContains(t, end(), "exit status 3")
}
