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

// interrupted runs a command in a terminal, types an answer, and then Ctrl-C once it has written a
// text such as a question.
func interrupted(t *testing.T, question, answer string, args ...string) result {
	cmd, screen := call{args: args, input: answer}.start(t, 150)
	var out strings.Builder
	typed := false
	for in := bufio.NewReader(screen); ; {
		b, err := in.ReadByte()
		if err != nil {
			break
		}
		out.WriteByte(b)
		if !typed && strings.HasSuffix(out.String(), question) {
			typed = true
			_, err = screen.WriteString("\x03")
			require.NoError(t, err)
		}
	}
	_ = cmd.Wait() // the code tells
	return result{out: out.String(), code: cmd.ProcessState.ExitCode()}
}

func TestCtrlCEndsAQuestion(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	args := []string{"--db", db, "strategy", "--agent", "strategy", "reset", "correction"}
	for question, answer := range map[string]string{"Go on? [y/N] ": "", "Why? ": "y\n"} {
		r := interrupted(t, question, answer, args...)
		assert.Equal(t, failed, r.code, r.out)
		assert.Contains(t, r.out, "heed: interrupted: nothing was changed\r\n")
		assert.Equal(t, 60, outcomes(t, db))
	}
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
	r := interrupted(t, fmt.Sprint("of ", rows, " rows"), "", args...)
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

func TestTheEndOfTheInputIsNoYes(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	r := call{args: []string{"--db", db, "strategy", "--agent", "strategy", "reset", "correction"},
		input: "\x04"}.onTerminal(t, 150)
	assert.Equal(t, failed, r.code)
	assert.Contains(t, r.out, "\nheed: nothing was changed\n")
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
