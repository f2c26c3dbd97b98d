//go:build unix

package main

import "syscall"

// asUser has a process run as another user.
func asUser(uid, gid uint64) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}
