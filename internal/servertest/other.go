//go:build !unix

package servertest

import "errors"

// ErrNone means that PostgreSQL can't be run here.
var ErrNone = errors.New("heed runs no PostgreSQL of its own on this system: set HEED_POSTGRES_DSN")

// A Server does not exist on this system.
type Server struct{}

// New returns ErrNone.
func New(string) (*Server, error) { return nil, ErrNone }

// Standby returns ErrNone.
func (*Server) Standby() (*Server, error) { return nil, ErrNone }

// Promote has no effect.
func (*Server) Promote() error { return nil }

// Port returns 0.
func (*Server) Port() int { return 0 }

// DSN returns "".
func (*Server) DSN() string { return "" }

// Start returns ErrNone.
func (*Server) Start() error { return ErrNone }

// Stop returns ErrNone.
func (*Server) Stop(string) error { return ErrNone }

// Close has no effect.
func (*Server) Close() error { return nil }

// Temporary has no effect.
func Temporary() (end func() error, err error) { return AtEnd("") }

// AtEnd has no effect.
func AtEnd(string, ...string) (end func() error, err error) {
	return func() error { return nil }, nil
}
