package enginetest_test

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A server is a private cluster of PostgreSQL, of binaries that are installed. PostgreSQL refuses to run as root: the tests
// of a root give it to the user postgres or nobody.
type server struct {
	bin, dir string
	options  string
	port     int
	attr     *syscall.SysProcAttr
}

var (
	shared struct {
		once sync.Once
		*server
		err error
	}
	errNoPostgres = errors.New("PostgreSQL is not installed: set HEED_POSTGRES_DSN, or install it")
)

func TestMain(m *testing.M) {
	if process := os.Getenv("HEED_TEST_PROCESS"); process != "" {
		os.Exit(processes[process]())
	}
	flag.Parse()
	if os.Getenv("HEED_LONG") == "" && flag.Lookup("rapid.checks").Value.String() == "100" {
		_ = flag.Set("rapid.checks", "10")
	}
	code := m.Run()
	for _, do := range lastly {
		if err := do(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if shared.server != nil {
		if err := errors.Join(shared.server.stop("immediate"), os.RemoveAll(shared.server.dir)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// cluster returns where to find PostgreSQL: at HEED_POSTGRES_DSN, or in a cluster that is started with the first test that
// asks. Where there is none, the test is skipped, or fails if HEED_POSTGRES=require.
func cluster(t testing.TB) string {
	if dsn := os.Getenv("HEED_POSTGRES_DSN"); dsn != "" {
		return dsn
	}
	shared.once.Do(func() { shared.server, shared.err = newServer("-c fsync=off -c deadlock_timeout=50ms") }) // no test cuts its power, and a deadlock is found at once
	skipWithout(t, shared.err)
	return shared.server.dsn()
}

func skipWithout(t testing.TB, err error) {
	if errors.Is(err, errNoPostgres) && os.Getenv("HEED_POSTGRES") != "require" {
		t.Skip(err)
	}
	require.NoError(t, err)
}

func newServer(options string) (*server, error) {
	s := &server{options: options}
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb"); len(found) > 0 {
		s.bin = filepath.Dir(found[len(found)-1])
	} else if initdb, err := exec.LookPath("initdb"); err == nil {
		s.bin = filepath.Dir(initdb)
	} else {
		return nil, errNoPostgres
	}
	var err error
	if s.dir, err = os.MkdirTemp("", "heed-postgres"); err != nil {
		return nil, err
	}
	if os.Getuid() == 0 {
		if err := s.unprivileged(); err != nil {
			return nil, err
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.port = listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		return nil, err
	}
	if err := s.run("initdb", "-D", s.data(), "-U", "heed", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"); err != nil {
		return nil, err
	}
	return s, s.start()
}

func (s *server) unprivileged() error {
	who, err := user.Lookup("postgres")
	if err != nil {
		if who, err = user.Lookup("nobody"); err != nil {
			return err
		}
	}
	uid, err := strconv.ParseUint(who.Uid, 10, 32)
	if err != nil {
		return err
	}
	gid, err := strconv.ParseUint(who.Gid, 10, 32)
	if err != nil {
		return err
	}
	s.attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return errors.Join(os.Chmod(s.dir, 0o700), os.Chown(s.dir, int(uid), int(gid)))
}

func (s *server) data() string { return filepath.Join(s.dir, "data") }

func (s *server) dsn() string {
	return fmt.Sprintf("host=127.0.0.1 port=%d user=heed dbname=postgres sslmode=disable", s.port)
}

func (s *server) run(name string, args ...string) error {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir, cmd.SysProcAttr = s.dir, s.attr
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return nil
}

func (s *server) start() error {
	options := fmt.Sprintf("-p %d -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=200 %s",
		s.port, s.options)
	return s.run("pg_ctl", "-D", s.data(), "-w", "-l", filepath.Join(s.dir, "log"), "-o", options, "start")
}

func (s *server) stop(mode string) error {
	return s.run("pg_ctl", "-D", s.data(), "-w", "-m", mode, "stop")
}
