package main

import (
	"fmt"
	"io"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		words, want string
	}{
		{"str", "strategy"},
		{"strategy s", "status show"},
		{"strategy show --con", "--context"},
		{"strategy --learner ", ""},
		{"strategy --learner strategy sh", "show"},
		{"strategy --learner=strategy sh", "show"},
		{"strategy --nonsense=s", ""},
		{"strategy history x --stage ", "pending observed expired"},
		{"strategy history x --stage=p", "--stage=pending"},
		{"patterns --state p", "proven"},
		{"patterns show --state p", "proven"},
		{"patterns --rec", "--recorder"},
		{"confidence p", "pin"},
		{"confidence unpin --a", "--actor"},
		{"rules list --status re", "retired revoked rejected"},
		{"store forget ", ""},
		{"completion ", "bash zsh fish"},
		{"nonsense nonsense ",
			"overview strategy confidence patterns rules answers import " +
				"mcp serve doctor store completion"},
	} {
		r := call{args: append([]string{"__complete"}, strings.Split(test.words, " ")...),
			env: []string{"HEED_DB=/nowhere"}}.run(t)
		assert.Zero(t, r.code, r.err)
		assert.Equal(t, test.want, strings.Join(strings.Fields(r.out), " "), test.words)
	}
}

func TestTheShellsTakeTheirScripts(t *testing.T) {
	t.Parallel()
	for shell, try := range map[string]string{
		"bash": `source <("$0" completion bash); COMP_LINE="heed strategy --learner strategy dis"; COMP_POINT=${#COMP_LINE}; COMP_WORDS=($COMP_LINE); COMP_CWORD=4; _heed; echo "${COMPREPLY[@]}"`,
		"zsh":  `source <("$0" completion zsh) 2>/dev/null; print loaded`,
		"fish": `"$argv[1]" completion fish | source; complete -C "heed strategy --learner strategy dis"`,
	} {
		script := call{args: []string{"completion", shell}}.run(t)
		require.Zero(t, script.code)
		assert.Contains(t, script.out, "heed __complete", shell)
		path, err := osexec.LookPath(shell)
		if err != nil {
			continue // not installed
		}
		cmd := osexec.Command(path, "-c", try, command)
		cmd.Env = append(environ(), "PATH="+filepath.Dir(command)+":/usr/bin:/bin")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		if shell != "zsh" {
			assert.Contains(t, string(out), "distributions", shell)
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"correction", "code_pattern", "preference", "correction", "", "Solution", "law",
		"greet-by-name", "7d0c2b13-rule"}
	for text, want := range map[string][]string{
		"corection": {"correction"}, "cor": {"correction"}, "SOLUTION": {"Solution"},
		"prefernce":  {"preference"},
		"corerction": {"correction"},
		"lax":        {"law"}, "la": {"law"},
		"by-name": {"greet-by-name"}, "by": nil, // a part of so little says nothing
		"greet-by-name-": {"greet-by-name"}, "7d0c2b12-rule": {"7d0c2b13-rule"},
		"zzz": nil, "xy": nil, "cord": nil, "pattern": {"code_pattern"}, "nothing of the kind": nil,
	} {
		assert.Equal(t, want, nearest(text, names), text)
	}
	assert.Equal(t, []string{"split-by-feature", "split-by-file"},
		nearest("split-by-fe", []string{"split-by-file", "tests-first", "split-by-feature"}),
		"what it begins stands before what is like it")
}

func TestBar(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		i    interval
		want string
	}{
		{interval{0, 0.5, 1}, "├────●────┤"},
		{interval{0.25, 0.5, 0.75}, "···├─●──┤··"},
		{interval{0.5, 0.5, 0.5}, "·····●·····"},
		{interval{0.9, 1, 1}, "·········├●"},
		{interval{-1, 0.1, 2}, "├●────────┤"},
	} {
		assert.Equal(t, test.want, test.i.bar(11))
	}
	assert.Equal(t, "0    0.5    1", scale(13))
	for width := minBar; width <= maxBar; width++ {
		assert.Len(t, scale(width), width)
		assert.Len(t, []rune(interval{0.2, 0.3, 0.4}.bar(width)), width)
	}
}

// TestCompletionInBash types lines into bash, each with a tab at its end, and has it print of what
// words they then are.
func TestCompletionInBash(t *testing.T) {
	t.Parallel()
	bash, err := osexec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	db := sqliteFile(t)
	cmd := osexec.Command(bash, "--norc", "--noprofile", "-i")
	cmd.Env = append(environ("TERM=dumb", "INPUTRC=/dev/null"),
		"PATH="+filepath.Dir(command)+":/usr/bin:/bin")
	cmd.Dir = filepath.Dir(db)
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 500})
	require.NoError(t, err)
	defer screen.Close()
	tests := []struct{ line, words string }{
		{"heed --db=agent.db strate", "<--db=agent.db><strategy>"},
		{"heed --db=agent.db strategy --learner=strategy dis",
			"<--db=agent.db><strategy><--learner=strategy><distributions>"},
		{"heed --db agent.db strategy history x --stage=pend",
			"<--db><agent.db><strategy><history><x><--stage=pending>"},
		{"heed --db agent.db  strategy --learner  strategy history x --stage obs",
			"<--db><agent.db><strategy><--learner><strategy><history><x><--stage><observed>"},
		{"heed --db postgres://nobody@localhost:1/x strate",
			"<--db><postgres://nobody@localhost:1/x><strategy>"},
		{"heed --db=age", "<--db=agent.db>"}, // which bash knows itself
	}
	var typed strings.Builder
	typed.WriteString("source <(heed completion bash)\n")
	for _, test := range tests {
		fmt.Fprintf(&typed, "%s\t\x01printf '<%%s>' \n", test.line) // at the beginning of the line
	}
	_, err = screen.WriteString(typed.String() + "exit\n")
	require.NoError(t, err)
	watchdog := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer watchdog.Stop()
	out, _ := io.ReadAll(screen) // which ends with an error when the other side is closed
	require.NoError(t, cmd.Wait(), string(out))
	for _, test := range tests {
		assert.Contains(t, string(out), "<heed>"+test.words, test.line)
	}
}
