package main

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/stream"
)

// large makes a file so large that a copy takes a while.
func large(t *testing.T, db string, megabytes int) {
	statement(t, db, fmt.Sprintf(
		`CREATE TABLE host AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT zeroblob(1000000) AS b FROM n`, megabytes))
}

// A copy has whole commits, while others write, and is sound.
func TestBackupOfAStoreInUse(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	large(t, db, 4)
	w := host(t, db)
	require.NoError(t, w.store.Declare(ctx, stream.Outbox))
	event := func(side string, n int) store.Record {
		return stream.Event{ID: fmt.Sprint(side, n), Topic: side, At: time.Now()}.Waiting()
	}
	var end atomic.Bool
	written := make(chan int, 1)
	go func() {
		n := 0
		for !end.Load() {
			if _, err := w.store.Commit(ctx, store.Batch{Records: []store.Record{event("a", n),
				event("b", n)}}); err != nil {
				t.Error(err)
				break
			}
			n++
		}
		written <- n
	}()
	file := filepath.Join(t.TempDir(), "copy.db")
	r := call{args: []string{"--db", db, "store", "backup", file}}.run(t)
	end.Store(true)
	all := <-written
	require.Zero(t, r.code, r.err)
	assert.Contains(t, r.out, "Wrote "+file)
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	again := call{args: []string{"--db", db, "store", "backup", file}}.run(t)
	assert.Equal(t, failed, again.code)
	assert.Contains(t, again.err, "is there already")
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	doctor := call{args: []string{"--db", file, "doctor"}}.run(t)
	assert.Zero(t, doctor.code, doctor.out+doctor.err)
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(before, after), "to look at a copy does not change it")
	assert.Equal(t, []string{"copy.db"}, namesIn(t, filepath.Dir(file)))
	copied := map[string]int{}
	for e, err := range stream.Waiting(ctx, host(t, file).store) {
		require.NoError(t, err)
		copied[e.Topic]++
	}
	assert.Equal(t, copied["a"], copied["b"], "commits are whole")
	assert.Positive(t, all)
	assert.LessOrEqual(t, copied["a"], all)
	onFile(t, file, func(handle *sql.DB) {
		var blobs int
		require.NoError(t, handle.QueryRow(`SELECT count(*) FROM host`).Scan(&blobs))
		assert.Equal(t, 4, blobs, "the host's tables are copied, too")
	})
}

func namesIn(t *testing.T, dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A backup that is interrupted leaves nothing, and one that is killed leaves nothing that looks
// like a backup.
func TestABackupThatEndsEarly(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	large(t, db, 8)
	for _, sent := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		dir := t.TempDir()
		cmd := exec.Command(command, "--db", db, "store", "backup", filepath.Join(dir, "copy.db"))
		cmd.Env = environ()
		var said strings.Builder
		cmd.Stderr = &said
		require.NoError(t, cmd.Start())
		begun := func() bool {
			drafts, _ := filepath.Glob(filepath.Join(dir, ".heed-*", "draft"))
			for _, draft := range drafts {
				if info, err := os.Stat(draft); err == nil && info.Size() > 0 {
					return true
				}
			}
			return false
		}
		require.Eventually(t, begun, time.Minute, time.Millisecond)
		require.NoError(t, cmd.Process.Signal(sent))
		require.Error(t, cmd.Wait(), "it was not done yet")
		left := namesIn(t, dir)
		if sent == syscall.SIGINT {
			assert.Empty(t, left)
			assert.Equal(t, "heed: interrupted\n", said.String())
			continue
		}
		require.NotEmpty(t, left)
		for _, name := range left {
			assert.Regexp(t, `^\.heed-\d+$`, name)
		}
		small := []string{"--db", sqliteFile(t), "store", "backup", filepath.Join(dir, "copy.db")}
		require.Zero(t, call{args: small}.run(t).code)
		assert.Contains(t, namesIn(t, dir), "copy.db")
	}
}

func TestAnExportIsNotForTerminals(t *testing.T) {
	t.Parallel()
	r := call{args: []string{"--db", sqliteFile(t), "store", "export"}}.onTerminal(t, 80)
	assert.Equal(t, misuse, r.code)
	assert.NotContains(t, r.out, "{")
}
