package main

import (
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cluster is PostgreSQL for the tests: that at HEED_POSTGRES_DSN, or a private one, started with
// the first test that asks.
var cluster postgres

type postgres struct {
	once     sync.Once
	bin, dir string
	port     int
	attr     *syscall.SysProcAttr
	err      error
}

var errNoPostgres = errors.New("PostgreSQL is not installed: set HEED_POSTGRES_DSN, or install it")

// dsn returns where it is. Without PostgreSQL the test is skipped, or fails if
// HEED_POSTGRES=require.
func (p *postgres) dsn(t testing.TB) string {
	if dsn := os.Getenv("HEED_POSTGRES_DSN"); dsn != "" {
		return dsn
	}
	p.once.Do(func() { p.err = p.start() })
	if errors.Is(p.err, errNoPostgres) && os.Getenv("HEED_POSTGRES") != "require" {
		t.Skip(p.err)
	}
	require.NoError(t, p.err)
	return fmt.Sprintf("postgres://heed@127.0.0.1:%d/postgres?sslmode=disable", p.port)
}

// database makes a database of its own on the server, and returns its DSN.
func (p *postgres) database(t *testing.T, name string) string {
	server, err := sql.Open("pgx", p.dsn(t))
	require.NoError(t, err)
	_, err = server.Exec("DROP DATABASE IF EXISTS " + name)
	require.NoError(t, err)
	_, err = server.Exec("CREATE DATABASE " + name)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := server.Exec(
			"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)
		assert.NoError(t, err)
		_, err = server.Exec("DROP DATABASE " + name)
		assert.NoError(t, err)
		assert.NoError(t, server.Close())
	})
	return inDatabase(t, p.dsn(t), name)
}

func inDatabase(t *testing.T, dsn, name string) string {
	address, err := url.Parse(dsn)
	require.NoError(t, err)
	address.Path = "/" + name
	return address.String()
}

func (p *postgres) start() error {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) > 0 {
		p.bin = filepath.Dir(found[len(found)-1])
	} else if initdb, err := exec.LookPath("initdb"); err == nil {
		p.bin = filepath.Dir(initdb)
	} else {
		return errNoPostgres
	}
	var err error
	if p.dir, err = os.MkdirTemp("", "heed-postgres"); err != nil {
		return err
	}
	if os.Getuid() == 0 {
		if err := p.unprivileged(); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	p.port = listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		return err
	}
	data := filepath.Join(p.dir, "data")
	if err := p.run("initdb", "-D", data, "-U", "heed", "-A", "trust", "-N", "-E", "UTF8",
		"--no-locale"); err != nil {
		return err
	}
	return p.run("pg_ctl", "-D", data, "-w", "-l", filepath.Join(p.dir, "log"), "-o",
		fmt.Sprintf("-c listen_addresses=127.0.0.1 -c port=%d -c fsync=off -c "+
			"unix_socket_directories=''", p.port), "start")
}

// unprivileged gives the directory to a user that is not root, as whom PostgreSQL refuses to run.
func (p *postgres) unprivileged() error {
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(account.Uid, 10, 32)
		if err != nil {
			return err
		}
		gid, err := strconv.ParseUint(account.Gid, 10, 32)
		if err != nil {
			return err
		}
		p.attr = asUser(uid, gid)
		return os.Chown(p.dir, int(uid), int(gid))
	}
	return errors.New("there is no user but root to run PostgreSQL as")
}

func (p *postgres) run(program string, args ...string) error {
	cmd := exec.Command(filepath.Join(p.bin, program), args...)
	cmd.SysProcAttr, cmd.Dir = p.attr, p.dir
	if err := cmd.Run(); err != nil { // no pipe, which the server would hold open
		return fmt.Errorf("%s: %w", program, err)
	}
	return nil
}

func (p *postgres) stop() {
	if p.dir == "" {
		return
	}
	if err := errors.Join(p.run("pg_ctl", "-D", filepath.Join(p.dir, "data"), "-m", "immediate",
		"stop"), os.RemoveAll(p.dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
