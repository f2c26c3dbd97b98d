package main

import (
	"bufio"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/store"
)

// interrupted runs a command in a terminal, and types Ctrl-C once it has written a text.
func interrupted(t *testing.T, text string, args ...string) result {
	cmd, screen := call{args: args}.start(t, 150)
	var out strings.Builder
	typed := false
	for in := bufio.NewReader(screen); ; {
		b, err := in.ReadByte()
		if err != nil {
			break
		}
		out.WriteByte(b)
		if !typed && strings.HasSuffix(out.String(), text) {
			typed = true
			_, err = screen.WriteString("\x03")
			require.NoError(t, err)
		}
	}
	_ = cmd.Wait() // the code tells
	return result{out: out.String(), code: cmd.ProcessState.ExitCode()}
}

// An import that Ctrl-C has ended goes on where it was, and each row counts once.
func TestCtrlCEndsAnImport(t *testing.T) {
	t.Parallel()
	const rows = 12_000
	dir := t.TempDir()
	log, db := filepath.Join(dir, "log.csv"), filepath.Join(dir, "a.db")
	var b strings.Builder
	b.WriteString("id,question,answer,user_id,model,thumb\n")
	for i := range rows {
		fmt.Fprintf(&b, "e%d,It is full,Rotate the logs,p%d,%s,up\n", i, i%500, []string{"a", "b"}[i%2])
	}
	require.NoError(t, os.WriteFile(log, []byte(b.String()), 0o600))
	args := []string{"--db", db, "import", log, "--new"}
	r := interrupted(t, fmt.Sprint("of ", rows, " rows"), args...)
	assert.Equal(t, failed, r.code, r.out)
	var before int
	_, after, _ := strings.Cut(r.out, "interrupted after ")
	_, err := fmt.Sscanf(after, "%d of", &before)
	require.NoError(t, err, r.out)
	assert.Less(t, before, rows)
	done := imported(t, args...).Imported
	assert.Equal(t, before, done.Known)
	assert.Equal(t, rows-before, done.Answers)
	assert.Equal(t, rows, imported(t, args...).Imported.Known)
}

func TestWhoTheSystemSaysItIs(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	account, err := user.Current()
	require.NoError(t, err)
	for env, who := range map[string]string{"USER=": account.Username, "HEED_ACTOR=nils": "nils",
		"USER=olive": "olive"} {
		r := call{args: []string{"--db", db, "confidence", "pin", "greet-by-name", "--yes", "--reason",
			env}, env: []string{env}}.run(t)
		require.Zero(t, r.code, r.err)
		assert.Equal(t, who, read[[]store.AuditEntry](t, "--db", db, "store", "audit", "--limit",
			"1")[0].Actor)
	}
}
