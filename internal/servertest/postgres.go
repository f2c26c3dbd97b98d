package servertest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ErrNone means that PostgreSQL is not installed.
var ErrNone = errors.New("PostgreSQL is not installed: set HEED_POSTGRES_DSN, or install it")

// base is where directories of servers are. It is not the directory of [Temporary], which may be
// removed first.
var base = os.TempDir()

// A Server is a private cluster of PostgreSQL, run by binaries that are installed. PostgreSQL
// refuses to run as root, so root gives the cluster to the user "postgres".
type Server struct {
	bin, dir string
	options  string
	port     int
	attr     *syscall.SysProcAttr
	end      func() error
}

// New makes a cluster in a new directory and starts it with command line options of postgres. Close
// it after use. It also ends with this process.
func New(options string) (*Server, error) {
	s := &Server{options: options}
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb"); len(found) > 0 {
		s.bin = filepath.Dir(found[len(found)-1])
	} else if initdb, err := exec.LookPath("initdb"); err == nil {
		s.bin = filepath.Dir(initdb)
	} else {
		return nil, ErrNone
	}
	if err := s.place(); err != nil {
		return nil, err
	}
	err := s.run("initdb", "-D", s.data(), "-U", "heed", "-A", "trust", "-E", "UTF8", "--locale=C",
		"--no-sync")
	if err != nil {
		return nil, err
	}
	return s, s.Start()
}

// Standby makes a copy of the server that follows it, in a new directory, and starts it. Close it
// after use.
func (s *Server) Standby() (*Server, error) {
	copied := &Server{bin: s.bin, options: s.options}
	if err := copied.place(); err != nil {
		return nil, err
	}
	err := copied.run("pg_basebackup", "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-U", "heed",
		"-D", copied.data(), "-X", "stream", "-c", "fast", "-R", "--no-sync")
	if err != nil {
		return nil, err
	}
	return copied, copied.Start()
}

// Promote makes a standby a server that takes writes.
func (s *Server) Promote() error { return s.run("pg_ctl", "-D", s.data(), "-w", "promote") }

// Port is the port of the server at 127.0.0.1.
func (s *Server) Port() int { return s.port }

// place makes the directory of a server, and finds it a port.
func (s *Server) place() (err error) {
	if s.dir, err = os.MkdirTemp(base, "heed-postgres"); err != nil {
		return err
	}
	if os.Getuid() == 0 {
		if err := s.unprivileged(); err != nil {
			return err
		}
	}
	s.end, err = atEnd(s.attr, `"$1" -D "$2/data" -m immediate stop; rm -rf "$2"`,
		filepath.Join(s.bin, "pg_ctl"), s.dir)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.port = listener.Addr().(*net.TCPAddr).Port
	return listener.Close()
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// DSN is the data source name of the cluster's database.
func (s *Server) DSN() string {
	return fmt.Sprintf("host=127.0.0.1 port=%d user=heed dbname=postgres sslmode=disable", s.port)
}

func (s *Server) run(name string, args ...string) error {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir, cmd.SysProcAttr = s.dir, s.attr
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Start starts the server after a Stop.
func (s *Server) Start() error {
	options := fmt.Sprintf("-p %d -c listen_addresses=127.0.0.1 -c unix_socket_directories= "+
		"-c max_connections=500 %s", s.port, s.options)
	log := filepath.Join(s.dir, "log")
	return s.run("pg_ctl", "-D", s.data(), "-w", "-l", log, "-o", options, "start")
}

// Stop stops the server in a mode of pg_ctl: "fast", or "immediate", which is as a crash.
func (s *Server) Stop(mode string) error {
	return s.run("pg_ctl", "-D", s.data(), "-w", "-m", mode, "stop")
}

// Close stops the server and removes its files.
func (s *Server) Close() error { return s.end() }
