package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/sqlstore"
)

// tinyDisk returns a directory on a disk of a megabyte. It skips the test where nobody may make
// one.
func tinyDisk(t *testing.T) string {
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs",
		dir).CombinedOutput(); err != nil {
		t.Skipf("no right to mount a disk: %s", out)
	}
	t.Cleanup(func() { assert.NoError(t, exec.Command("umount", dir).Run()) })
	return dir
}

// fillBut writes a file that leaves some bytes of a disk of a megabyte.
func fillBut(t *testing.T, dir string, left int64) {
	file, err := os.Create(filepath.Join(dir, "fill"))
	require.NoError(t, err)
	for err == nil {
		_, err = file.Write(bytes.Repeat([]byte("x"), 4096))
	}
	require.ErrorContains(t, err, "no space left")
	info, err := file.Stat()
	require.NoError(t, err)
	require.NoError(t, file.Truncate(info.Size()-left))
	require.NoError(t, file.Close())
}

// On a full disk, a command names the file that has no room, and says how to go on. A backup or
// export that did not fit leaves no file.
func TestAFullDisk(t *testing.T) {
	for _, test := range []struct {
		args string
		left int64
		says string
	}{
		{"strategy status", 0, "the disk of STORE is full, or fails: see df -h DIR"},
		{"doctor", 0, "the disk of STORE is full, or fails: see df -h DIR"},
		{"strategy --agent strategy reset tool_usage --yes --reason x", 40960,
			"0 of 1 are forgotten, and then: the disk of STORE is full, so this was not written: " +
				"make room"},
		{"confidence pin greet-by-name --yes --reason x", 40960,
			"the disk of STORE is full, so this was not written: make room"},
		{"store forget ann --yes --reason x", 40960,
			"the disk of STORE is full, so this was not written: make room"},
		{"store backup DIR/backup.db", 40960,
			"DIR/backup.db was not written: its disk is full: see df -h DIR"},
		{"store export DIR/export.jsonl", 40960,
			"DIR/export.jsonl was not written: its disk is full: see df -h DIR"},
	} {
		t.Run(test.args, func(t *testing.T) {
			source := sqliteFile(t)
			dir := tinyDisk(t)
			db := filepath.Join(dir, "agent.db")
			whole, err := os.ReadFile(source)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(db, whole, 0o600))
			fillBut(t, dir, test.left)
			names := strings.NewReplacer("STORE", db, "DIR", dir)
			assertFails(t, call{args: append([]string{"--db", db},
				strings.Fields(names.Replace(test.args))...)}.run(t), failed, names.Replace(test.says))
			require.NoError(t, os.Remove(filepath.Join(dir, "fill")))
			rest, err := os.ReadDir(dir)
			require.NoError(t, err)
			for _, file := range rest {
				assert.True(t, strings.HasPrefix(file.Name(), "agent.db"), file.Name())
			}
			assert.Zero(t, call{args: at(db, "doctor", "--deep")}.run(t).code)
		})
	}
}

func TestAFullServer(t *testing.T) {
	t.Parallel()
	err := place{dialect: sqlstore.Postgres,
		dsn: "postgres://db.example/agent"}.explain(&pgconn.PgError{Code: "53100",
		Message: "could not extend file"})
	require.ErrorContains(t, err,
		`the disk of PostgreSQL database "agent" at db.example:5432 is full, so this was not written: `+
			`make room`)
}

// Standard output that has no room says nothing about the disk of the store.
func TestAFullOutput(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here")
	}
	defer full.Close()
	db := sqliteFile(t)
	for _, args := range [][]string{
		{"--db", db, "store", "export"}, nil,
		{"--db", db, "--agent", "strategy", "serve", "--listen", "127.0.0.1:0"},
	} {
		cmd := exec.Command(command, args...)
		var told bytes.Buffer
		cmd.Env, cmd.Stdout, cmd.Stderr = environ(), full, &told
		require.Error(t, cmd.Run(), args)
		assert.Regexp(t, "^heed: (sqlstore: dump: )?write /dev/stdout: no space left on device\n$",
			told.String())
	}
}
