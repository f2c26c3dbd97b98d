package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy/attribution"
	"github.com/heedhq/heed/stream"
)

func TestWithoutAStoreItSaysHowToGetOne(t *testing.T) {
	t.Parallel()
	r := call{}.run(t)
	assert.Zero(t, r.code)
	assert.Equal(t, 3, strings.Count(r.out, "\n"))
	assert.Contains(t, r.out, "serve --run")
	assert.Contains(t, r.out, "HEED_DB")
	assert.Equal(t, misuse, call{args: []string{"--json"}}.run(t).code,
		"a program gets no document of nothing")
}

// Every command of an overview can be run as it is printed.
func TestTheOverviewLeadsOn(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	sum := read[summary](t, at(db)...)
	for _, n := range slices.Concat(sum.Leading, sum.Waiting, sum.Wrong) {
		r := call{args: typed(strings.TrimPrefix(strings.ReplaceAll(n.Command, "'", `"`), "heed ")), env: []string{"HEED_DB=" + db}}.run(t)
		assert.Zero(t, r.code, "%s: %s", n.Command, r.err)
	}
	assert.NotContains(t, call{args: at(db), env: []string{"HEED_DB=" + db}}.run(t).out, "--db")
}

func TestTheOverviewTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	w := host(t, db)
	require.NoError(t, w.store.Declare(ctx, stream.Outbox))
	_, err := w.store.Commit(ctx, store.Batch{Records: []store.Record{stream.Event{ID: "e",
		Topic: attribution.DeadTopic, At: start}.Waiting()}})
	require.NoError(t, err)
	out := call{args: []string{"--db", db, "--now", "2026-02-01"}}.run(t).out
	for _, part := range []string{
		"1 dead letter waits in the outbox", "1 event waits in the outbox",
		"3 choices wait for an outcome",
		"no process has written here for 23 days: ",
	} {
		assert.Contains(t, out, part)
	}
}

func TestCommandsAreForAShell(t *testing.T) {
	t.Parallel()
	assert.Equal(t, `heed rules 'it'\''s; rm' ''`, commandOf("rules", "it's; rm", ""))
	assert.Empty(t, commandOf("rules", "\x1b[31m"))
	word := "a b's \"\\\\\"$(x)`y`!*~"
	line := strings.TrimPrefix(commandOf("printf", "%s", word), "heed ")
	out, err := exec.Command("bash", "-c", "LC_ALL=C.UTF-8; "+line).Output()
	require.NoError(t, err)
	assert.Equal(t, word, string(out))
}
