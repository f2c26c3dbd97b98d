//go:build !unix

package servertest

import "syscall"

// Temporary has no effect.
func Temporary() (end func() error, err error) { return AtEnd("") }

// AtEnd has no effect.
func AtEnd(string, ...string) (end func() error, err error) {
	return func() error { return nil }, nil
}

// atEnd returns ErrNone, so no server is run that would stay behind.
func atEnd(*syscall.SysProcAttr, string, ...string) (end func() error, err error) {
	return nil, ErrNone
}

func (*Server) unprivileged() error { return nil }
