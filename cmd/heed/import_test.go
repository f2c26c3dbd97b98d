package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/cmd/heed/internal/past"
	"github.com/heedhq/heed/loop"
)

// pastLogFile writes a log of 40 answers. Unless the log is sound, its last answer has a bad thumb.
func pastLogFile(t *testing.T, sound bool) string {
	var b strings.Builder
	b.WriteString("id,timestamp,question,answer,user_id,model,propensity,thumb\n")
	for i := range 40 {
		arm, thumb := "small", "down"
		if i%2 == 0 {
			arm, thumb = "large", "up"
		}
		if !sound && i == 39 {
			thumb = "perhaps"
		}
		fmt.Fprintf(&b, "e%d,2026-01-08T10:%02d:00Z,It is full,Rotate the %s logs,p%d,%s,0.5,%s\n",
			i, i, arm, i%7, arm, thumb)
	}
	file := filepath.Join(t.TempDir(), "log.csv")
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	return file
}

func imported(t *testing.T, args ...string) (r pastReport) {
	t.Helper()
	got := call{args: append([]string{"--json"}, args...)}.run(t)
	require.Zero(t, got.code, got.err)
	require.NoError(t, json.Unmarshal([]byte(got.out), &r), got.out)
	return r
}

// A log fills a new store, counts once, and is read with a mapping that was written down.
func TestALogIsImported(t *testing.T) {
	log, dir := pastLogFile(t, true), t.TempDir()
	db, lessons := filepath.Join(dir, "a.db"), filepath.Join(dir, "lessons.json")
	proposed := call{args: []string{"import", log, "--propose"}}.run(t)
	require.Zero(t, proposed.code, proposed.err)
	mapping := filepath.Join(dir, "map.json")
	require.NoError(t, os.WriteFile(mapping, []byte(proposed.out), 0o600))

	r := imported(t, "--db", db, "import", log, "--new", "--map", mapping, "--suggest", lessons,
		"--actor", "olive")
	assert.Equal(t, 40, r.Imported.Answers)
	assert.Equal(t, map[string]int{"large": 20, "small": 20}, r.Imported.Arms)
	assert.Equal(t, 7, r.People)
	assert.Equal(t, "2026-01-08 10:00:00 10:39:00", r.From.Format(time.DateTime)+
		r.Until.Format(" "+time.TimeOnly))
	assert.Equal(t, 1, r.Suggested)
	audit := call{args: []string{"--json", "--db", db, "store", "audit", "--kind", "import"}}.run(t)
	assert.Contains(t, audit.out, `"actor": "olive"`, audit.err)
	assert.Contains(t, audit.out, `"subject": "log.csv"`)
	taught, err := loop.ReadLessons(lessons)
	require.NoError(t, err)
	assert.Equal(t, "Rotate the large logs", taught.Heuristics[0].Action)

	r = imported(t, "--db", db, "import", log)
	assert.Equal(t, 40, r.Imported.Known)
	assert.Zero(t, r.Imported.Answers)
	shown := call{args: []string{"--db", db, "strategy"}}.run(t)
	assert.Contains(t, shown.out, "large")
	assert.Contains(t, call{args: []string{"--db", db, "import", log}}.run(t).out, "40 known")
	none := filepath.Join(dir, "none.csv")
	rows := []byte("question,answer,user_id\nIs it full?,Yes,ann\n")
	require.NoError(t, os.WriteFile(none, rows, 0o600))
	shown = call{args: []string{"--db", db, "import", none, "--suggest", none + ".json"}}.run(t)
	assert.Contains(t, shown.out, "No heuristic is suggested", shown.err)
	assert.NoFileExists(t, none+".json")
	listed := call{args: []string{"--json", "--db", db, "answers", "--limit", "50"}}.run(t)
	assert.Equal(t, 40, strings.Count(listed.out, "It is full"), listed.out+listed.err)
	one := call{args: []string{"--db", db, "answers", "e3"}}.run(t)
	assert.Contains(t, one.out, "Rotate the small logs", one.err)
}

// Rows at fault are named, and nothing is kept of the log unless they are skipped.
func TestALogWithARowAtFault(t *testing.T) {
	log, db := pastLogFile(t, false), filepath.Join(t.TempDir(), "a.db")
	got := call{args: []string{"--db", db, "import", log, "--new"}}.run(t)
	assert.Equal(t, failed, got.code)
	assert.Contains(t, got.err, `line 41, thumb: is "perhaps"`)
	assert.Contains(t, got.err, "1 of 40 rows")
	r := imported(t, "--db", db, "import", log, "--skip")
	assert.Equal(t, 39, r.Imported.Answers)
	assert.Equal(t, 1, r.Bad)
	got = call{args: []string{"--db", db, "import", log, "--skip"}}.run(t)
	assert.Contains(t, got.out, "39 rows without a fault, 1 at fault")
	mapping := filepath.Join(t.TempDir(), "map.json")
	require.NoError(t, os.WriteFile(mapping, []byte("{\n\"fields\": {,}\n}"), 0o600))
	got = call{args: []string{"--db", db, "import", log, "--map", mapping}}.run(t)
	assertFails(t, got, failed, mapping+": the mapping: line 2: invalid character")
	got = call{args: []string{"--db", db, "import", log, "--map", mapping + ".old"}}.run(t)
	assertFails(t, got, failed, "there is no file "+mapping+".old")
	got = call{args: []string{"--db", db, "import", log, "--skip", "--instruments",
		strings.Repeat("x", 2000)}}.run(t)
	assertFails(t, got, failed, "Instruments")
}

// A log without ids counts once, whichever mapping it is read with. A later mapping adds what the
// first one had no use for.
func TestALogWithoutIDsCountsOnce(t *testing.T) {
	dir := t.TempDir()
	log, db := filepath.Join(dir, "log.csv"), filepath.Join(dir, "a.db")
	require.NoError(t, os.WriteFile(log, []byte("at,question,answer,user,thumb,fixed,n\n"+
		"2026-01-08,It is full,Rotate the logs,ann,up,no,3\n"+
		"2026-01-08,It is full,Rotate the logs,ann,up,no,4\n"+
		"2026-01-09,Is it up?,Yes,bob,down,yes,3\n"), 0o600))
	r := imported(t, "--db", db, "import", log, "--new")
	assert.Equal(t, loop.Imported{Rows: 3, Answers: 3, Reactions: 3}, r.Imported)
	mapping := filepath.Join(dir, "map.json")
	require.NoError(t, os.WriteFile(mapping, []byte(`{"fields": {"at": "at", "text": "question",
		"answer": "answer", "person": "user", "value": "thumb", "outcome": "fixed",
		"source": "=ci"}}`), 0o600))
	r = imported(t, "--db", db, "import", log, "--map", mapping, "--instruments", "ci")
	assert.Equal(t, loop.Imported{Rows: 3, Outcomes: 3}, r.Imported)
	r = imported(t, "--db", db, "import", log)
	assert.Equal(t, loop.Imported{Rows: 3, Known: 3}, r.Imported)
	listed := call{args: []string{"--json", "--db", db, "answers"}}.run(t)
	assert.Equal(t, 3, strings.Count(listed.out, `"text"`), listed.out+listed.err)
}

// A log without times is imported, and the command says which time its rows get.
func TestALogWithoutTimes(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log.csv")
	require.NoError(t, os.WriteFile(log, []byte("id,question,answer,user,model,thumb\n"+
		"a,It is full,Rotate the logs,ann,small,up\n"), 0o600))
	got := call{args: []string{"--db", filepath.Join(dir, "a.db"), "import", log,
		"--new"}}.run(t)
	require.Zero(t, got.code, got.err)
	assert.Contains(t, got.out, "1 person. No row has a time, so all get the present one.")
}

// In a store in use, the host's arms and settings stay, and other arms are at fault.
func TestALogIntoAStoreInUse(t *testing.T) {
	log, db := pastLogFile(t, true), filepath.Join(t.TempDir(), "a.db")
	imported(t, "--db", db, "import", log, "--new")
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	other := filepath.Join(t.TempDir(), "other.csv")
	changed := strings.ReplaceAll(string(text), ",small,", ",tiny,")
	require.NoError(t, os.WriteFile(other, []byte(changed), 0o600))
	got := call{args: []string{"--db", db, "import", other}}.run(t)
	assert.Equal(t, failed, got.code)
	assert.Contains(t, got.err, `line 3, arm: is "tiny", and the agent's arms are large, small`)
	acme := []string{"--db", db, "import", log, "--tenant", "acme"}
	assertFails(t, call{args: acme}.run(t), failed, `there is no tenant "acme"`, "has no tenants")
	got = call{args: []string{"--db", db, "import", other, "--tenant", "acme", "--new"}}.run(t)
	assert.Contains(t, got.err, "the agent's arms are large, small", "as all tenants begin")
	assert.Equal(t, 40, imported(t, append(acme, "--new")...).Imported.Answers)
	r := imported(t, acme...)
	assert.Equal(t, 40, r.Imported.Known)
	assert.Equal(t, []string{db, "loop", "acme"}, []string{r.Store, r.Agent, r.Tenant})
	assert.Contains(t, call{args: acme}.run(t).out,
		"Imported into "+db+", for the agent loop of tenant acme.\n")
	assertFails(t, call{args: append(acme, "--agent", "lop")}.run(t), failed,
		`there is no agent "lop"`)
	got = call{args: []string{"--db", db, "store", "audit"}}.run(t)
	assert.NotContains(t, got.out, "settings")
}

// Standard input is read where it comes from a file. From a pipe, the command asks for a file.
func TestALogFromStandardInput(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "a.db")
	args := []string{"--db", db, "import", "-", "--new"}
	assertFails(t, call{args: args, input: "question,answer\n"}.run(t), failed,
		"/dev/stdin is no file that can be read twice: write the log to one first")
	log, err := os.Open(pastLogFile(t, true))
	require.NoError(t, err)
	defer log.Close()
	cmd := exec.Command(command, args...)
	cmd.Env, cmd.Stdin = environ(), log
	written, err := cmd.CombinedOutput()
	require.NoError(t, err, string(written))
	assert.Contains(t, string(written), "40 answers new: 40 thumbs")
	audit := call{args: []string{"--json", "--db", db, "store", "audit", "--kind", "import"}}.run(t)
	assert.Contains(t, audit.out, `"subject": "stdin"`)
}

// A pipe can't be read twice.
func TestALogFromAPipe(t *testing.T) {
	t.Parallel()
	in, out, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, out.Close())
	cmd := exec.Command(command, "--db", filepath.Join(t.TempDir(), "a.db"), "import", "--new",
		"/dev/fd/3")
	cmd.Env, cmd.ExtraFiles = environ(), []*os.File{in}
	written, err := cmd.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(written), "/dev/fd/3 is no file that can be read twice")
	got := call{args: []string{"--db", filepath.Join(t.TempDir(), "a.db"), "import"}}.run(t)
	assertFails(t, got, misuse, "<file>")
}

// An answer that somebody rejected is no suggestion, also if the praise comes later.
func TestARejectedAnswerIsNotSuggested(t *testing.T) {
	t.Parallel()
	log := "question,answer,user,thumb\nwhy?,so,ann,down\nwhy?,so,bob,up\nwhy?,so,kim,up\n"
	file := filepath.Join(t.TempDir(), "log.csv")
	require.NoError(t, os.WriteFile(file, []byte(log), 0o600))
	assert.Zero(t, imported(t, "--db", filepath.Join(t.TempDir(), "a.db"), "import", file,
		"--new").Suggested)
}

func TestAnImportIsCalledWrongly(t *testing.T) {
	got := call{args: []string{"--db", "a.db", "import", "none.csv"}}.run(t)
	assert.Equal(t, failed, got.code)
	assert.Contains(t, got.err, "there is no file none.csv")
	db := filepath.Join(t.TempDir(), "a.db")
	got = call{args: []string{"--db", db, "import", pastLogFile(t, true)}}.run(t)
	assertFails(t, got, failed, "there is no file "+db)
	assert.NoFileExists(t, db)
}

// A backtest needs no store, and returns the reason if it has no result.
func TestALogIsTested(t *testing.T) {
	log := pastLogFile(t, true)
	got := call{args: []string{"import", "--backtest", log}}.run(t)
	assert.Zero(t, got.code, got.err)
	assert.Contains(t, got.out, "there are 40 rows, and 100 are needed")
	var b strings.Builder
	b.WriteString("prompt,small,large\n")
	for i := range 120 {
		fmt.Fprintf(&b, "p%d,%v,%v\n", i, i%3 == 0, i%4 > 0)
	}
	log = filepath.Join(t.TempDir(), "all.csv")
	require.NoError(t, os.WriteFile(log, []byte(b.String()), 0o600))
	got = call{args: []string{"import", "--backtest", log}}.run(t)
	assert.Zero(t, got.code, got.err)
	assert.Contains(t, got.out, "Replay of 120 rows")
	assert.Contains(t, got.out, "heed less large")
	got = call{args: []string{"--db", filepath.Join(t.TempDir(), "a.db"), "import",
		log}}.run(t)
	assertFails(t, got, misuse, "--backtest shows what heed would have chosen")
}

// The answers in rows end where they are no longer wanted, and with an error that is of no row.
func TestAnswersInRows(t *testing.T) {
	broken := errors.New("broken")
	rows := func(yield func(past.Row, error) bool) {
		for _, err := range []error{nil, &past.Fault{At: "line 2"}, nil, broken, nil} {
			if !yield(past.Row{}, err) {
				return
			}
		}
	}
	var got []error
	for _, err := range answersIn(rows, 5) {
		got = append(got, err)
	}
	assert.Equal(t, []error{nil, nil, broken}, got)
	for range answersIn(rows, 5) {
		break
	}
}
