//go:build unix

package servertest

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// Temporary makes a directory for all temporary files that this process makes from now on. It is
// removed when the process ended, and by end.
func Temporary() (end func() error, err error) {
	dir, err := os.MkdirTemp("", "heed-test")
	if err != nil {
		return nil, err
	}
	// processes that this one started may still write
	end, err = AtEnd(`for i in 1 2 3 4 5; do rm -rf "$1" && exit; sleep 1; done; exit 1`, dir)
	return end, errors.Join(err, os.Chmod(dir, 0o777|os.ModeSticky), os.Setenv("TMPDIR", dir))
}

// AtEnd has a shell run a script when this process ended, however it ends. The function that it
// returns runs the script at once, and returns the script's error.
func AtEnd(script string, args ...string) (end func() error, err error) {
	return atEnd(nil, script, args...)
}

func atEnd(as *syscall.SysProcAttr, script string, args ...string) (end func() error, err error) {
	waits, held, err := os.Pipe() // the system closes held with this process
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, waits.Close()) }()
	cmd := exec.Command("sh", append([]string{"-c", "read -r _\n" + script, "sh"}, args...)...)
	cmd.Stdin, cmd.Dir = waits, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this process
	if as != nil {
		cmd.SysProcAttr.Credential = as.Credential
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, held.Close())
	}
	return func() error { return errors.Join(held.Close(), cmd.Wait()) }, nil
}

// unprivileged gives the server to another user.
func (s *Server) unprivileged() error {
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
