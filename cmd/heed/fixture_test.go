package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/servertest"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/injection"
)

var (
	ctx   = context.Background()
	start = time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
)

// asOf is the moment as at which tests read the fixture: a little after its last event.
const asOf = "2026-01-09T09:00:00Z"

// end is when a host goes on that a test opens the fixture with.
var end = time.Date(2026, 1, 9, 8, 0, 0, 0, time.UTC)

// long is whether tests run their long variants.
var long = os.Getenv("HEED_LONG") != ""

// command is the file of the command.
var command string

// asCommand is set in the environment of a test program that is to be the command.
const asCommand = "HEED_TEST_IS_COMMAND=1"

func TestMain(m *testing.M) {
	if slices.Contains(os.Environ(), asCommand) {
		main()
	}
	os.Exit(func() int {
		end, err := servertest.Temporary()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer end() //nolint:errcheck // a directory of the system's for temporary files
		command = filepath.Join(os.TempDir(), "heed")
		if err := makeCommand(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer cluster.stop()
		return m.Run()
	}())
}

// makeCommand has the test program be the command, or builds it if the race detector would make
// each call slow.
func makeCommand() error {
	if info, ok := debug.ReadBuildInfo(); ok &&
		!slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		return os.Symlink(self, command)
	}
	if out, err := exec.Command("go", "build", "-o", command, ".").CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// A world has what a week of an agent's work leaves in a store.
type world struct {
	t     testing.TB
	now   time.Time
	ids   uint64
	store store.Store
}

func (w *world) clock() time.Time { return w.now }

func (w *world) id() (id strategy.ChoiceID) {
	w.ids++
	binary.BigEndian.PutUint64(id[8:], w.ids)
	id[6], id[8] = 0x40, id[8]|0x80
	return id
}

// fill fills a database, always with the same. It does so by way of memory, as the race detector
// makes SQLite slow.
func fill(t testing.TB, handle *sql.DB, dialect sqlstore.Dialect) {
	w := &world{t: t, now: start}
	memory, err := memstore.New(memstore.Config{Now: w.clock})
	require.NoError(t, err)
	w.store = memory
	w.injections()
	w.models()
	w.heuristics()
	w.ways()
	w.reviews()
	w.answers()
	st, err := sqlstore.Open(ctx, handle, dialect, sqlstore.Config{Now: w.clock})
	require.NoError(t, err)
	var all bytes.Buffer
	require.NoError(t, memory.Dump(ctx, &all))
	require.NoError(t, st.Load(ctx, &all))
}

func newWorld(t testing.TB, handle *sql.DB, dialect sqlstore.Dialect, now time.Time) *world {
	w := &world{t: t, now: now}
	var err error
	w.store, err = sqlstore.Open(ctx, handle, dialect, sqlstore.Config{Now: w.clock})
	require.NoError(t, err)
	return w
}

// injections are a learner of ways to bring a learning into a session, whose items specialise by a
// copy.
func (w *world) injections() {
	learner, err := strategy.New(ctx, strategy.Config{
		Store: w.store, Now: w.clock, NewID: w.id, Seed: rand.NewPCG(1, 2),
		Arms: injection.Arms(strategy.Parameter{
			Name: "callback", Values: []string{"poll"}}),
		Pooling: strategy.Copy{Sessions: 12, MinConfidence: 0.6},
	})
	require.NoError(w.t, err)
	best := map[string]strategy.ArmID{"correction": injection.MainContext,
		"tool_usage": injection.Subagent}
	luck := rand.New(rand.NewPCG(3, 4))
	for round := range 30 {
		for n, at := range []struct{ item, category, context string }{
			{"prefer-tabs", "correction", "interactive"},
			{"say-please", "correction", "interactive"},
			{"explain-first", "correction", "code_review"},
			{"jq-not-python", "tool_usage", "interactive"},
		} {
			if round%(n+1) != 0 {
				continue
			}
			w.now = w.now.Add(73 * time.Minute)
			choice, err := learner.Select(ctx, strategy.Query{
				Session: fmt.Sprintf("session-%02d", round), Item: at.item, Category: at.category,
				Context: at.context,
			})
			require.NoError(w.t, err)
			if round == 28 {
				continue // its outcomes are still to come
			}
			value := -0.6
			if choice.Arm == best[at.category] {
				value = 0.8
			}
			_, err = learner.Observe(ctx, strategy.Outcome{
				Choice: choice, Value: value + 0.4*(luck.Float64()-0.5), Confidence: 0.8,
				Channel: "attribution",
			})
			require.NoError(w.t, err)
		}
	}
}

// models is a learner that chooses a model to ask, and keeps no records of its choices.
func (w *world) models() {
	learner, err := strategy.New(ctx, strategy.Config{
		Store: w.store, Unrecorded: true, Now: w.clock, NewID: w.id, Seed: rand.NewPCG(5, 6),
		Name: "models",
		Arms: []strategy.Arm{{ID: "small"}, {ID: "large"}},
	})
	require.NoError(w.t, err)
	for n := range 25 {
		w.now = w.now.Add(11 * time.Minute)
		choice, err := learner.Select(ctx, strategy.Query{Session: fmt.Sprint("question-", n),
			Item: "contracts", Category: "law"})
		require.NoError(w.t, err)
		value := -0.2
		if choice.Arm == "large" {
			value = 0.7
		}
		_, err = learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: value, Confidence: 1})
		require.NoError(w.t, err)
	}
}

// onFile calls a function with a file's handle.
func onFile(t testing.TB, file string, do func(handle *sql.DB)) {
	handle, err := sql.Open("sqlite", "file:"+file)
	require.NoError(t, err)
	do(handle)
	require.NoError(t, handle.Close())
}

// inStore calls a function with the store in a file of SQLite.
func inStore(t testing.TB, file string, do func(st *sqlstore.Store)) {
	onFile(t, file, func(handle *sql.DB) {
		st, err := sqlstore.Open(ctx, handle, sqlstore.SQLite)
		require.NoError(t, err)
		do(st)
	})
}

// fixture is the content of a file of SQLite that has the fixture, filled by the first test that
// asks.
var fixture struct {
	sync.Once
	bytes []byte
}

// sqliteFile returns a file of SQLite that has the fixture.
func sqliteFile(t testing.TB) string {
	file := filepath.Join(t.TempDir(), "agent.db")
	fixture.Do(func() {
		onFile(t, file, func(handle *sql.DB) { fill(t, handle, sqlstore.SQLite) })
		var err error
		fixture.bytes, err = os.ReadFile(file)
		require.NoError(t, err)
	})
	require.NoError(t, os.WriteFile(file, fixture.bytes, 0o600))
	return file
}

// agentFile returns a file of SQLite that the agent of the lab has filled.
func agentFile(t testing.TB) string {
	dir := t.TempDir()
	lab, file := filepath.Join(dir, "lab"), filepath.Join(dir, "agent.db")
	build := exec.Command("go", "build", "-o", lab, ".")
	build.Dir = "../../lab"
	build.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=") // also if this module is tested alone
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	out, err = exec.Command(lab, "agent", "-events", "600", "-db", file).CombinedOutput()
	require.NoError(t, err, string(out))
	return file
}

// hostile adds an item of this name to a file's store.
func hostile(t testing.TB, file, item string) {
	handle, err := sql.Open("sqlite", "file:"+file)
	require.NoError(t, err)
	defer handle.Close()
	w := &world{t: t, now: start}
	w.store, err = sqlstore.Open(ctx, handle, sqlstore.SQLite, sqlstore.Config{Now: w.clock})
	require.NoError(t, err)
	learner, err := strategy.New(ctx, strategy.Config{
		Store: w.store, Now: w.clock, Arms: []strategy.Arm{{ID: injection.Deferred}},
		Seed: rand.NewPCG(7, 8),
	})
	require.NoError(t, err)
	choice, err := learner.Select(ctx, strategy.Query{Session: "s", Item: item, Category: "hostile",
		Context: item})
	require.NoError(t, err)
	_, err = learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: 1, Confidence: 1})
	require.NoError(t, err)
}
