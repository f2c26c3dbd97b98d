//go:build !unix

package main

import "syscall"

// asUser is for systems whose users have no numbers, where nobody is root.
func asUser(_, _ uint64) *syscall.SysProcAttr { return nil }
