package main

import (
	"database/sql"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy/attribution"
	"github.com/heedhq/heed/stream"
)

// assertFails checks that a call exits with a code, prints nothing, and says in one line what is
// wrong and what to do.
func assertFails(t *testing.T, r result, code int, says ...string) {
	t.Helper()
	assert.Equal(t, code, r.code, r.err)
	assert.Empty(t, r.out)
	assert.Equal(t, 1, strings.Count(r.err, "\n"), r.err)
	assert.True(t, strings.HasPrefix(r.err, "heed: "), r.err)
	for _, part := range says {
		assert.Contains(t, r.err, part)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	statement(t, db, // or the proposal is expired by the real clock
		`UPDATE heed_record SET body = replace(body, '"expires_at":"2026', '"expires_at":"2099')`)
	dir := t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("this is no database\n", 100)),
		0o600))
	foreign := filepath.Join(dir, "foreign.db")
	statement(t, foreign, "CREATE TABLE other (x)")
	empty := filepath.Join(dir, "empty.db")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	newer := sqliteFile(t)
	statement(t, newer, "UPDATE heed_store SET version = 99")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := listener.Addr().(*net.TCPAddr).Port
	require.NoError(t, listener.Close())
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	nobody := fmt.Sprintf("postgres://heed:secret@127.0.0.1:%d/agent", port)

	of := func(db string, args ...string) []string { return append([]string{"--db", db}, args...) }
	status, strategy := []string{"strategy", "status"}, []string{"strategy", "--agent", "strategy"}
	for _, test := range []struct {
		name string
		args []string
		code int
		says []string
	}{
		{"no store", status, misuse, []string{"--db", "HEED_DB"}},
		{"no such file", of(filepath.Join(dir, "nowhere.db"), status...), failed,
			[]string{"there is no file", "nowhere.db", "check --db"}},
		{"a directory", of(dir, status...), failed, []string{"can't be opened", "check --db"}},
		{"a text", of(text, status...), failed, []string{"is no database of SQLite"}},
		{"another's database", of(foreign, status...), failed, []string{"does not have heed's tables",
			"heed store migrate"}},
		{"an empty file", of(empty, status...), failed, []string{"empty.db is empty",
			"restore it from a copy"}},
		{"newer tables", of(newer, status...), failed, []string{"version 99", "use a newer heed"}},
		{"no server", of(nobody, status...), failed, []string{`database "agent"`, "check --db"}},
		{"a DSN that can't be read", of("postgres://u:secret@h ost/x", status...), failed,
			[]string{"check --db or HEED_DB: "}},
		{"an address that is taken", of(db, "serve", "--agent", "strategy", "--listen",
			taken.Addr().String()), failed, []string{"already in use", "choose another address"}},
		{"lessons that can't be read", of(db, "serve", "--run", "--agent", "strategy", "--listen",
			taken.Addr().String(), "--lessons", text), failed, []string{"lessons: ", "notes.txt"}},
		{"no such tenant", of(db, "answers", "--tenant", "acme"), failed,
			[]string{`there is no tenant "acme": `, "leave out --tenant"}},
		{"a server of no tenant", of(db, "serve", "--tenant", "acme"), failed,
			[]string{`there is no tenant "acme": `, ", or begin it with --new"}},
		{"a command of another name", of(db, "explain", "x"), misuse,
			[]string{"unexpected argument explain, commands are overview, strategy, ", "heed --help"}},
		{"no such command", of(db, "stratgy"), misuse, []string{`"strategy"`, "--help"}},
		{"no such flag", of(db, "strategy", "status", "--jsn"), misuse, []string{`"--json"`}},
		{"no argument", of(db, "strategy", "learning"), misuse,
			[]string{"<id>", "see heed strategy learning --help"}},
		{"an item is no category", of(db, append(strategy, "show", "prefer-tabs")...), failed,
			[]string{`no category "prefer-tabs"`, "heed strategy learning shows"}},
		{"which learner", of(db, "strategy", "distributions"), misuse,
			[]string{"--agent", "models, strategy"}},
		{"no such learner", of(db, "strategy", "--agent", "stratgy", "distributions"), failed,
			[]string{`there is no agent "stratgy"`, `"models", "patterns", "strategy"`}},
		{"no such category", of(db, append(strategy, "show", "corection")...), failed,
			[]string{"there is no category"}},
		{"nothing like it", of(db, append(strategy, "show", "zzz")...), failed,
			[]string{"heed strategy distributions lists them"}},
		{"no such context", of(db, append(strategy, "show", "correction", "--context",
			"interactiv")...), failed, []string{"there is no context"}},
		{"no such item", of(db, append(strategy, "learning", "prefer-tab")...), failed,
			[]string{`there is no item "prefer-tab"`, "heed strategy show lists"}},
		{"a limit of nothing", of(db, append(strategy, "history", "prefer-tabs", "--limit", "0")...),
			misuse, []string{"--limit"}},
		{"no such heuristic", of(db, "confidence", "greetby-name"), failed,
			[]string{"there is no heuristic"}},
		{"no such pattern", of(db, "patterns", "split-by-feture"), failed,
			[]string{"there is no pattern"}},
		{"no such module", of(db, "confidence", "--agent", "learing"), failed,
			[]string{`there is no agent "learing"`}},
		{"a learner is no module", of(db, "confidence", "--agent", "models"), failed,
			[]string{`agent.db has "learning": choose one with --agent`}},
		{"no such recorder", of(db, "patterns", "--agent", "pattern"), failed,
			[]string{`there is no agent "pattern"`}},
		{"a pin of no module", of(db, "confidence", "--agent", "models", "pin", "greet-by-name",
			"--yes", "--reason", "x"), failed, []string{`there is no agent with heuristics "models"`}},
		{"an overview of no agent", of(db, "--agent", "typo"), failed,
			[]string{`there is no agent "typo": `, `"coder"`, `"models", `}},
		{"a status of no agent", of(db, "strategy", "--agent", "typo"), failed,
			[]string{`there is no agent "typo": `}},
		{"rules of no agent", of(db, "rules", "list", "--agent", "typo"), failed,
			[]string{`there is no agent "typo": `}},
		{"pages of no agent", of(db, "serve", "--agent", "typo"), failed,
			[]string{`there is no agent "typo": `}},
		{"an export of an agent", of(db, "store", "export", "--agent", "models"), misuse,
			[]string{"heed store export is for all agents"}},
		{"an audit of an agent", of(db, "store", "audit", "--agent", "models"), misuse,
			[]string{"heed store audit is for all agents"}},
		{"a doctor of an agent", of(db, "--agent", "models", "doctor"), misuse,
			[]string{"heed doctor is for all agents"}},
		{"no such state", of(db, "patterns", "--state", "good"), misuse, []string{"--state"}},
		{"no such rule", of(db, "rules", "show", "7d0c2b12-rule"), failed,
			[]string{"there is no proposal"}},
		{"no such rule by itself", of(db, "rules", "7d0c"), misuse, []string{"unexpected argument"}},
		{"one argument too many", of(db, "rules", "show", "a", "b"), misuse,
			[]string{"unexpected argument b: see heed rules show --help"}},
		{"a retirement of a proposal", of(db, "rules", "retire", "7d0c2b11-rule", "--yes", "--reason",
			"x"), failed, []string{`there is no rule "7d0c2b11-rule"`, "heed rules list"}},
		{"no such status", of(db, "rules", "list", "--status", "new"), misuse,
			[]string{"--status must be one of active, approved, documented, expired, pending"}},
		{"no such outcome", of(db, "answers", "--outcome", "fine"), misuse,
			[]string{"--outcome must be one of good, bad, unknown"}},
		{"no such kind", of(db, "store", "audit", "--kind", "x"), misuse,
			[]string{"--kind must be one of arm"}},
		{"no such stage", of(db, append(strategy, "history", "x", "--stage", "x")...), misuse,
			[]string{"--stage must be one of pending, observed, expired"}},
		{"a bad name of who acts", of(db, "rules", "reject", "7d0c2b11-rule", "--yes", "--reason", "x",
			"--actor", " "), misuse, []string{"--actor can't be the name of a person"}},
		{"a mistyped command", of(db, "rules", "aprove", "x"), misuse,
			[]string{"unexpected argument aprove, commands are list, show, approve"}},
		{"another mistyped command", of(db, "confidence", "pinn", "x"), misuse,
			[]string{"commands are show, pin, unpin: see heed confidence --help"}},
		{"an almost right command", of(db, "strategy", "shw"), misuse, []string{`did you mean "show"?`}},
		{"until before since", of(db, "store", "audit", "--since", "2026-03-02", "--until",
			"2026-03-01"), misuse, []string{"--until must be later than since"}},
		{"a history of nothing", of(db, append(strategy, "history", "nope")...), failed,
			[]string{`there is no item "nope"`}},
		{"no such directory", of(filepath.Join(dir, "no", "a.db"), "store", "migrate"), failed,
			[]string{"can't be opened", "its directory"}},
		{"no terminal", of(db, append(strategy, "reset", "correction", "--reason", "x")...), misuse,
			[]string{"--yes", "This forgets 53 reports"}},
		{"no reason", of(db, append(strategy, "reset", "correction", "--yes")...), misuse,
			[]string{"--reason"}},
		{"no time of an answer", of(db, "answers", "--since", "yesterday"), misuse,
			[]string{"--since", "must be a day such as 2026-01-31", "or how long ago, such as 24h"}},
		{"no time ago", of(db, "answers", "--since", "-1h"), misuse, []string{"--since"}},
		{"no moment", of(db, "--now", "yesterday", "store", "audit"), misuse,
			[]string{"--now",
				"must be a day such as 2026-01-31"}},
		{"another day", at(db, append(strategy, "reset", "correction", "--yes", "--reason", "x")...),
			misuse, []string{"--now"}},
		{"unseen words", of(db, "rules", "approve", "7d0c2b11-rule", "--yes", "--reason", "x"), misuse,
			[]string{"--hash"}},
		{"other words", of(db, "rules", "approve", "7d0c2b11-rule", "--yes", "--reason", "x", "--hash",
			"00000000"), failed, []string{"heed rules show"}},
		{"an export in its place", of(db, "store", "export", text), failed,
			[]string{"is there already"}},
		{"a backup into nowhere", of(db, "store", "backup", filepath.Join(dir, "no", "copy.db")),
			failed, []string{"there is no directory", "make it first"}},
		{"an import of nothing", of(filepath.Join(dir, "new.db"), "store", "import",
			filepath.Join(dir, "no.jsonl")), failed, []string{"there is no file"}},
		{"an import of a text", of(filepath.Join(dir, "new.db"), "store", "import", text), failed,
			[]string{"not what heed store export writes"}},
		{"an import on top", of(db, "store", "import", text), failed, []string{"not empty"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := call{args: test.args}.run(t)
			assertFails(t, r, test.code, test.says...)
			assert.NotContains(t, r.err, "secret")
			assert.LessOrEqual(t, strings.Count(r.err, "connection refused"), 1)
		})
	}
}

// The help of a command lists no flag that it refuses.
func TestHelpListsNoFlagThatIsRefused(t *testing.T) {
	t.Parallel()
	for command, refused := range map[string][2]bool{
		"doctor": {true, true}, "store audit": {true, false}, "answers": {}, "": {},
	} {
		help := call{args: append(strings.Fields(command), "--help")}.run(t).out
		for i, flag := range []string{"--agent=NAME", "--tenant=NAME"} {
			assert.Equal(t, !refused[i], strings.Contains(help, flag), "%s: %s", command, flag)
		}
	}
}

// Where the user has no right to a file, the command names what is missing.
func TestRights(t *testing.T) {
	t.Parallel()
	denied := &os.PathError{Op: "open", Path: "log.csv", Err: os.ErrPermission}
	require.EqualError(t, permitted(denied, "read", "log.csv"),
		"you may not read log.csv: check its rights, or name another one")
	require.NoError(t, permitted(nil, "read", "log.csv"))
	require.Equal(t, os.ErrClosed, permitted(os.ErrClosed, "read", "log.csv"))
}

// statement runs a statement on a file.
func statement(t *testing.T, file, text string) {
	handle, err := sql.Open("sqlite", "file:"+file)
	require.NoError(t, err)
	defer handle.Close()
	_, err = handle.Exec(text)
	require.NoError(t, err)
}

func TestAStoreInUse(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	handle, err := sql.Open("sqlite", "file:"+db)
	require.NoError(t, err)
	defer handle.Close()
	_, err = handle.Exec("BEGIN IMMEDIATE; DELETE FROM heed_lost")
	require.NoError(t, err)

	reads := call{args: at(db, "strategy", "status")}.run(t)
	assert.Zero(t, reads.code, reads.err)
	reset := []string{"--db", db, "strategy", "--agent", "strategy", "reset", "tool_usage", "--yes",
		"--reason", "x"}
	if long { // it waits for ten seconds
		assertFails(t, call{args: reset}.run(t), failed, "is in use by another process", "try again")
	}
	impatient, err := sql.Open("sqlite", "file:"+db)
	require.NoError(t, err)
	defer impatient.Close()
	_, err = impatient.Exec("DELETE FROM heed_lost")
	require.ErrorContains(t, place{file: db}.explain(err), "is in use by another process")
}

func TestDoctorFindsFaults(t *testing.T) {
	t.Parallel()
	for i, test := range []struct {
		name, statement string
		code            int
		says            string
	}{
		{"a row that is no observation", "UPDATE heed_observation SET observation = '{' WHERE seq = 1",
			failed, "can't be read: restore the store from a copy. The first: "},
		{"a weight that is none", `UPDATE heed_observation SET observation =
			replace(observation, '"weight":', '"weight":-') WHERE seq = 1`, failed,
			"can't be read: restore the store from a copy. The first: "},
		{"a hash that is none", "UPDATE heed_observation SET cell = 'x' WHERE seq = 1", failed,
			"fault: not everything can be read"},
		{"a count below 0", `UPDATE heed_tally SET n_positive = -1 WHERE cell =
			(SELECT cell FROM heed_cell WHERE kind = 'models.arm' AND name = 'large')`, failed,
			`can't be read: restore the store from a copy. The first: "sqlstore: damaged record: law/ / contracts / large: sql`},
		{"a record that is no JSON", "UPDATE heed_record SET body = '{' WHERE id = 'tests-first'",
			failed, "fault: 1 record of patterns.pattern can't be read: restore the store from a copy. " +
				`The first: "tests-first"`},
		{"a kind that can't be read", "UPDATE heed_kind SET kind = '{' WHERE name = 'decision.trace'",
			failed,
			`damaged record: how records of kind "decision.trace" are kept`},
		{"no such table", "DROP TABLE heed_record", failed, "fault: the table heed_record is missing"},
		{"no table of versions", "DROP TABLE heed_store", failed,
			"fault: the table heed_store is missing"},
		{"traces that no sweep took", "UPDATE heed_record SET at = 1 WHERE kind = 'decision.trace'",
			done, "of decision.trace longer than 1 day: does the host call Sweep"},
		{"a clock that is wrong", "UPDATE heed_tally SET last_positive = 1893456000000000 WHERE " +
			"cell = (SELECT cell FROM heed_cell WHERE kind = 'models.arm' AND name = 'large')", done,
			"warning: 1 tally lies in the future"},
		{"newer tables", "UPDATE heed_store SET version = 99", failed, "use a newer heed"},
		{"older tables", "UPDATE heed_store SET version = 2", failed,
			"made by an earlier layout, version 2,"},
		{"a relay that sleeps", `INSERT INTO heed_record (ref, kind, id, at, revision, keys, body)
			VALUES ('e', 'stream.outbox', 'e', 1, 1, 'null',
			'{"id":"e","topic":"t","at":"2026-01-01T00:00:00Z"}')`, done, "does a relay run?"},
	} {
		t.Run(test.name, func(t *testing.T) {
			db := sqliteFile(t)
			statement(t, db, test.statement)
			r := call{args: at(db, "doctor")}.run(t)
			assert.Equal(t, test.code, r.code, r.out+r.err)
			assert.Contains(t, r.out, test.says)
			if i > 0 && !long {
				return
			}
			inJSON := call{args: at(db, "--json", "doctor")}.run(t)
			assert.Equal(t, test.code, inJSON.code)
			assert.Contains(t, inJSON.out, `"level":`)
		})
	}
	db := sqliteFile(t)
	for _, look := range []string{"", "--deep"} {
		whole := call{args: at(db, strings.Fields("doctor "+look)...)}.run(t)
		assert.Contains(t, whole.out, "Nothing is wrong.")
	}
}

// Only damage is a fault of the store: other errors are returned.
func TestDoctorCannotRead(t *testing.T) {
	t.Parallel()
	s := &session{commands: &commands{DB: sqliteFile(t)}, ctx: ctx}
	var err error
	s.at, err = s.open(false)
	require.NoError(t, err)
	require.NoError(t, s.at.handle.Close())
	d := &diagnosis{}
	require.ErrorContains(t, d.rows(s), "closed")
	assert.Empty(t, d.Findings)
}

// Records that hold no JSON are all found, of every kind.
func TestDoctorReadsEveryRecord(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	var kinds []string
	onFile(t, db, func(handle *sql.DB) {
		rows, err := handle.Query("SELECT DISTINCT kind FROM heed_record " +
			"WHERE kind <> 'heed.version' ORDER BY kind")
		require.NoError(t, err)
		defer func() { require.NoError(t, rows.Close()) }()
		for rows.Next() {
			var kind string
			require.NoError(t, rows.Scan(&kind))
			kinds = append(kinds, kind)
		}
		require.NoError(t, rows.Err())
	})
	require.Greater(t, len(kinds), 10)
	told := regexp.MustCompile(`^\d+ records? of (\S+) can't be read: `)
	statement(t, db, "UPDATE heed_record SET body = 'x' WHERE kind <> 'heed.version'")
	found := readOf[diagnosis](t, failed, "--db", db, "doctor")
	assert.Empty(t, found.Kinds, "counts would not be of everything")
	var named []string
	for _, f := range found.Findings {
		if match := told.FindStringSubmatch(f.Text); match != nil {
			named = append(named, match[1])
		}
	}
	assert.Equal(t, kinds, slices.Compact(named))
}

// Damaged records and cells are counted by kind, and ten of each kind are named.
func TestDoctorNamesWhatIsDamaged(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	inStore(t, db, func(st *sqlstore.Store) {
		kind := store.Kind{Name: "host.note"}
		require.NoError(t, st.Declare(ctx, kind))
		for n := range 12 {
			id := fmt.Sprint(n)
			sum := evidence.Observation{ID: id, Weight: 1, At: start, Source: "ann",
				Cell: evidence.Cell{Kind: "host.sum", Scope: id, Item: "i", Name: "n"}}
			again := sum
			again.ID, again.Source = id+"b", "bob" // the cell counts once
			_, err := st.Commit(ctx, store.Batch{
				Records: []store.Record{{Ref: store.Ref{Kind: kind.Name, ID: id}, At: start,
					Body: store.Of(n)}},
				Observations: []evidence.Observation{sum, again},
				Policies:     map[string]evidence.Policy{"host.sum": {ByOrigin: true}},
			})
			require.NoError(t, err)
		}
	})
	statement(t, db, "UPDATE heed_observation SET observation = '{'; "+
		"UPDATE heed_record SET body = 'x' WHERE kind = 'host.note'")
	out := call{args: []string{"--db", db, "doctor"}}.run(t).out
	const remedy = " can't be read: restore the store from a copy. The first: "
	for _, line := range []string{
		"12 records of host.note" + remedy + `"11", "10", "9", "8", "7", "6", "5", "4", "3", "2", ` +
			"and 2 more",
		"12 cells of host.sum" + remedy + `"0 / i / n", "1 / i / n", "10 / i / n", `,
		" of models.arm" + remedy + `"law/ / contracts / `,
	} {
		assert.Contains(t, out, line)
	}
}

// A record that can't be read is called damaged, and not unknown.
func TestDamagedRecordsAreNamed(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	for _, body := range []string{"x", "[7]"} {
		statement(t, db,
			"UPDATE heed_record SET body = '"+body+"' WHERE id IN "+
				"('greet-by-name', 'tests-first', '7d0c2b13-rule')")
		for command, what := range map[string]string{
			"confidence greet-by-name":                      "heuristic greet-by-name",
			"confidence pin greet-by-name --yes --reason x": "heuristic greet-by-name",
			"patterns tests-first":                          "pattern tests-first",
			"rules show 7d0c2b13-rule":                      "proposal 7d0c2b13-rule",
			"rules reject 7d0c2b13-rule --yes --reason x":   "proposal 7d0c2b13-rule",
		} {
			r := call{args: append([]string{"--db", db}, strings.Fields(command)...)}.run(t)
			assert.Equal(t, failed, r.code, command)
			assert.Contains(t, r.err, "heed: the "+what+" is damaged: see heed doctor\n", command)
		}
	}
}

// A list that meets a record that can't be read lists the others, and names it.
func TestListsNameWhatCantBeRead(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	statement(t, db, "UPDATE heed_record SET body = 'x' WHERE id IN ('greet-by-name', "+
		"'tests-first', '7d0c2b13-rule')")
	for list, of := range map[string][2]string{
		"confidence": {"greet-by-name of learning.heuristic", "CONFIDENCE"},
		"patterns":   {"tests-first of patterns.pattern", "split-by-feature"},
		"rules list": {"7d0c2b13-rule of feedback.proposal", "7d0c2b11-rule"},
	} {
		all := call{args: at(db, strings.Fields(list)...)}.run(t)
		assert.Equal(t, failed, all.code)
		assert.Contains(t, all.out, of[1])
		assert.Contains(t, all.err, " left out: "+of[0])
		assert.Contains(t, all.err, ": damaged record: see heed doctor\n")
	}
}

// One damaged answer, or a trace of one, does not hide the sound ones.
func TestDamagedAnswersDoNotHideOthers(t *testing.T) {
	t.Parallel()
	db := explainable(t, "support")
	damaged := store.Ref{Kind: "support.answer", ID: answers.ID("light")}
	statement(t, db, "UPDATE heed_record SET body = 'x' WHERE id = '"+damaged.ID+"'")
	says := "1 record is left out: " + damaged.ID + " of support.answer: damaged record: " +
		"see heed doctor"

	list := call{args: []string{"--db", db, "answers"}}.run(t)
	assert.Equal(t, failed, list.code)
	assert.Contains(t, list.out, "heuristic rotate")
	assert.NotContains(t, list.out, "light")
	assert.Equal(t, "heed: "+says+"\n", list.err)

	r := call{args: []string{"--db", db}}.run(t)
	assert.Equal(t, done, r.code, r.err)
	for _, part := range []string{
		"Is support getting better?", "Waits for a person\nNothing waits.",
		"fault: " + says,
	} {
		assert.Contains(t, r.out, part)
	}
	assert.NotContains(t, r.out, "nothing was ever learned here", "what is damaged was")
	for _, command := range []string{"", "strategy status"} {
		inJSON := call{args: append([]string{"--db", db, "--json"}, strings.Fields(command)...)}.run(t)
		assert.Contains(t, inJSON.out, `"learner": "support.strategy"`)
		assert.NotContains(t, inJSON.out, `"latest"`, "no count is of all choices")
	}
	doctor := call{args: []string{"--db", db, "doctor"}}.run(t)
	assert.Contains(t, doctor.out, "fault: 1 record of support.answer can't be read: restore the "+
		`store from a copy. The first: "`+damaged.ID+`"`)

	statement(t, db, "DELETE FROM heed_record WHERE id = '"+damaged.ID+"'; "+
		"UPDATE heed_record SET body = 'x' WHERE kind = 'decision.trace'")
	list = call{args: []string{"--db", db, "answers"}}.run(t)
	assert.Contains(t, list.out, "Rotate its logs.")
	assert.Contains(t, list.err, "1 record is left out: ")
	assert.Contains(t, list.err, " of decision.trace")
	for _, prompt := range []string{"--prompt=false", "--prompt"} {
		one := call{args: []string{"--db", db, "answers", "disk", prompt}}.run(t)
		assert.Equal(t, failed, one.code)
		assert.Contains(t, one.out, "answer disk")
		one = call{args: []string{"--db", db, "--json", "answers", "disk", prompt}}.run(t)
		assert.Contains(t, one.out, `"damaged": [`)
		assert.Contains(t, one.err, "heed: 1 record is left out: ")
		assert.Contains(t, one.err, " of decision.trace: damaged record: see heed doctor")
	}
	statement(t, db, "DELETE FROM heed_record WHERE kind = 'support.answer'")
	assert.Equal(t, done, call{args: []string{"--db", db, "answers"}}.run(t).code)
}

func TestACorruptFile(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	file, err := os.OpenFile(db, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = file.WriteAt([]byte(strings.Repeat("x", 40_000)), 8192)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	r := call{args: at(db, "doctor")}.run(t)
	assert.Equal(t, failed, r.code)
	assert.Contains(t, r.out+r.err, "damaged")
	assert.NotContains(t, r.out+r.err, "run heed doctor")
}

// A damaged freeze, or event in the outbox, hides nothing of an overview.
func TestDamageHidesNoFreeze(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	w := host(t, db)
	require.NoError(t, w.store.Declare(ctx, stream.Outbox))
	for _, name := range []string{"a", "b", "c"} {
		require.NoError(t, w.store.Declare(ctx, answers.Freezes(name).Kind, store.Audit))
		_, err := answers.Freeze(ctx, w.store, name, answers.Frozen{Frozen: true, At: end},
			store.AuditEntry{Actor: "kim", Action: name + ".freeze", Reason: "x"})
		require.NoError(t, err)
		_, err = w.store.Commit(ctx, store.Batch{Records: []store.Record{stream.Event{ID: name,
			Topic: attribution.DeadTopic, At: start}.Waiting()}})
		require.NoError(t, err)
	}
	statement(t, db, "UPDATE heed_record SET body = 'x' WHERE kind = 'a.frozen' OR "+
		"rowid = (SELECT max(rowid) FROM heed_record WHERE kind = 'stream.outbox')")
	r := call{args: at(db)}.run(t)
	assert.Equal(t, done, r.code, r.err)
	for _, part := range []string{
		" of a.frozen: damaged record", " of stream.outbox: damaged record",
		"the agent b has not learned", "the agent c has not learned",
		"2 dead letters wait in the outbox", "CATEGORY", "Waits for a person\nID",
	} {
		assert.Contains(t, r.out, part)
	}
	assert.NotContains(t, r.out, "no process has written here")
	assert.Contains(t, call{args: at(db, "--json")}.run(t).out, `"unread": true`)
}

// The doctor names records whose JSON has another shape than lists read, also of a tenant. A record
// of a host's own may have any shape.
func TestDoctorNamesRecordsOfAWrongShape(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	w := host(t, db)
	own := store.Kind{Name: "host.note"}
	require.NoError(t, w.store.Declare(ctx, own))
	_, err := w.store.Commit(ctx, store.Batch{Records: []store.Record{{
		Ref: store.Ref{Kind: own.Name, ID: "own"}, At: end, Body: store.Of(7),
	}}})
	require.NoError(t, err)
	assert.Equal(t, done, call{args: at(db, "doctor")}.run(t).code)
	wrong := map[string]string{
		"learning.heuristic": `"x"`, "patterns.pattern": `{"id": 7}`, "feedback.proposal": `[7]`,
		"strategy.answer": `{"id": []}`, "decision.trace": `{"Text": {}}`, "heed.audit": `7`,
		"learning.heuristic@acme": `"x"`,
	}
	statement(t, db, "UPDATE heed_record SET kind = kind || '@acme' WHERE id = 'greet-by-name'")
	for kind, body := range wrong {
		statement(t, db, "UPDATE heed_record SET body = '"+body+"' WHERE seq = "+
			"(SELECT max(seq) FROM heed_record WHERE kind = '"+kind+"')")
	}
	r := call{args: at(db, "doctor")}.run(t)
	assert.Equal(t, failed, r.code)
	assert.Contains(t, r.err, plural(len(wrong), "fault", "faults"))
	for kind := range wrong {
		assert.Contains(t, r.out, "fault: 1 record of "+kind+" can't be read: restore the store "+
			"from a copy. The first: \"")
	}
	assert.Contains(t, r.out, `The first: "greet-by-name"`)
}
