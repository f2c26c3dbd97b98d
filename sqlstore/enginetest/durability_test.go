package enginetest_test

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
)

// long reports whether the tests run their long variants.
var long = os.Getenv("HEED_LONG") != ""

// skipRaced skips a test that has no goroutines to race, or leaves the work to other processes: with the race detector the
// drivers take ten times as long. CI runs this module with it and without.
func skipRaced(t *testing.T) {
	if raced {
		t.Skip("runs without the race detector")
	}
}

// rounds returns how many rounds a test is to make.
func rounds(short, all int) int {
	if long {
		return all
	}
	return short
}

var arm = evidence.Cell{Kind: "arm", Scope: "s", Item: "i", Name: "n"}

// outcome is an outcome on one arm, in a batch with an audit entry and an outgoing event.
func outcome(id string) evidence.Batch {
	at := time.Now()
	return evidence.Batch{
		Observations: []evidence.Observation{{ID: id, Cell: arm, Reward: 1, Weight: 1, At: at}},
		Audit:        []evidence.AuditEntry{{ID: id, Action: "observed", At: at}},
		Events:       []evidence.Event{{ID: id, Topic: "t", At: at}},
	}
}

// requireKept checks that a store has each outcome that was acknowledged, that what came of each stands together, and returns
// how many acknowledged ones were lost.
func requireKept(t testing.TB, store *sqlstore.Evidence, acknowledged []string) (lost int) {
	count := func(seq func(func(string) bool)) map[string]bool {
		ids := make(map[string]bool)
		for id := range seq {
			require.False(t, ids[id], "%s is there twice", id)
			ids[id] = true
		}
		return ids
	}
	history := count(func(yield func(string) bool) {
		for o, err := range store.History(ctx, arm) {
			require.NoError(t, err)
			yield(o.ID)
		}
	})
	require.Equal(t, history, count(func(yield func(string) bool) {
		for e, err := range store.Audit(ctx) {
			require.NoError(t, err)
			yield(e.ID)
		}
	}))
	require.Equal(t, history, count(func(yield func(string) bool) {
		for e, err := range store.Outbox(ctx) {
			require.NoError(t, err)
			yield(e.ID)
		}
	}))
	parts, err := store.Read(ctx, nil, arm)
	require.NoError(t, err)
	var n uint64
	var mass float64
	for _, p := range parts {
		n, mass = n+p.Tally.N(), mass+p.Tally.Mass
	}
	require.EqualValues(t, len(history), n)
	require.EqualValues(t, len(history), mass)
	for _, id := range acknowledged {
		if !history[id] {
			lost++
		}
	}
	// What was counted does not count again.
	if lost == 0 && len(acknowledged) > 0 {
		receipt, err := store.Commit(ctx, outcome(acknowledged[len(acknowledged)-1]))
		require.NoError(t, err)
		require.Len(t, receipt.Duplicates, 1)
	}
	return lost
}

// TestPowerCut cuts the power in the middle of writing, over and over. With SQLite nothing acknowledged is lost and nothing
// is corrupt; the same test has to see that SQLiteRelaxed loses, or it would show nothing.
func TestPowerCut(t *testing.T) {
	skipRaced(t)
	base := newDisk(t, 4096)
	for _, dialect := range []sqlstore.Dialect{sqlstore.SQLite, sqlstore.SQLiteRelaxed} {
		t.Run(dialect.String(), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(dialect)))
			acked, lost := 0, 0
			for range rounds(40, 500) {
				d := base.snapshot(rng)
				d.cut = 60 + rng.IntN(500)
				acknowledged := writeUntilCut(t, d, dialect)
				acked += len(acknowledged)
				handle, done := d.torn().on(t)
				db, err := sqlstore.New(ctx, handle, dialect)
				require.NoError(t, err)
				var sound string
				require.NoError(t, handle.QueryRow("PRAGMA integrity_check").Scan(&sound))
				require.Equal(t, "ok", sound)
				lost += requireKept(t, newEvidence(t, db, sqlstore.EvidenceConfig{}), acknowledged)
				done()
			}
			t.Logf("of %d acknowledged outcomes %d were lost", acked, lost)
			require.Greater(t, acked, 100)
			if dialect == sqlstore.SQLite {
				assert.Zero(t, lost)
			} else {
				assert.Positive(t, lost, "this test does not see what is lost")
			}
		})
	}
}

func writeUntilCut(t testing.TB, d *disk, dialect sqlstore.Dialect) (acknowledged []string) {
	handle, done := d.on(t)
	defer done()
	db, err := sqlstore.New(ctx, handle, dialect)
	if err != nil {
		return nil // there was no power for as much as that
	}
	store := newEvidence(t, db, sqlstore.EvidenceConfig{})
	for i := 0; ; i++ {
		id := fmt.Sprint(i)
		if _, err := store.Commit(ctx, outcome(id)); err != nil {
			return acknowledged
		}
		acknowledged = append(acknowledged, id)
	}
}

// child starts this binary as another process.
func child(t testing.TB, name string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, "HEED_TEST_PROCESS="+name)...)
	cmd.Stderr = os.Stderr
	return cmd
}

func init() {
	processes["write"] = func() int { return inProcess(writeForEver) }
	processes["count"] = func() int { return inProcess(writeMany) }
}

// inProcess runs a function in a process that a test has started.
func inProcess(do func(*sqlstore.Evidence) error) int {
	err := func() error {
		n, err := strconv.Atoi(os.Getenv("HEED_TEST_DIALECT"))
		if err != nil {
			return err
		}
		handle, err := sql.Open(os.Getenv("HEED_TEST_DRIVER"), os.Getenv("HEED_TEST_DSN"))
		if err != nil {
			return err
		}
		defer func() { _ = handle.Close() }()
		if err := sqlstore.Migrate(ctx, handle, sqlstore.Dialect(n)); err != nil {
			return err
		}
		db, err := sqlstore.New(ctx, handle, sqlstore.Dialect(n))
		if err != nil {
			return err
		}
		store, err := sqlstore.NewEvidence(db, sqlstore.EvidenceConfig{})
		if err != nil {
			return err
		}
		return do(store)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// env is what a process needs to open a place.
func (p place) env() []string {
	return []string{"HEED_TEST_DRIVER=" + p.driver, "HEED_TEST_DSN=" + p.dsn, fmt.Sprintf("HEED_TEST_DIALECT=%d", p.dialect)}
}

func writeForEver(store *sqlstore.Evidence) error {
	for i := 0; ; i++ {
		id := fmt.Sprintf("%s-%d", os.Getenv("HEED_TEST_NAME"), i)
		if _, err := store.Commit(ctx, outcome(id)); err != nil {
			return err
		}
		fmt.Println(id)
	}
}

// TestKilled kills a writing process, over and over.
func TestKilled(t *testing.T) {
	skipRaced(t)
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			at := b.place(t)
			store := newEvidence(t, at.db(t), sqlstore.EvidenceConfig{})
			rng := rand.New(rand.NewPCG(3, 4))
			var acknowledged []string
			for round := range rounds(4, 200) {
				cmd := child(t, "write", append(at.env(), fmt.Sprint("HEED_TEST_NAME=", round))...)
				out, err := cmd.StdoutPipe()
				require.NoError(t, err)
				require.NoError(t, cmd.Start())
				lines := bufio.NewScanner(out)
				for lines.Scan() {
					if len(acknowledged) == 0 || !strings.HasPrefix(acknowledged[len(acknowledged)-1], fmt.Sprint(round, "-")) {
						time.AfterFunc(time.Duration(rng.IntN(40))*time.Millisecond, func() { _ = cmd.Process.Kill() })
					}
					acknowledged = append(acknowledged, lines.Text())
				}
				require.Error(t, cmd.Wait())
				if round%20 == 3 {
					require.Zero(t, requireKept(t, store, acknowledged))
				}
			}
			require.Zero(t, requireKept(t, store, acknowledged))
			t.Logf("%d outcomes were acknowledged", len(acknowledged))
			require.Greater(t, len(acknowledged), rounds(4, 200))
		})
	}
}

// TestPostgresStoppedHard stops a server under load as if it had crashed, over and over.
func TestPostgresStoppedHard(t *testing.T) {
	skipRaced(t)
	s, err := newServer("")
	skipWithout(t, err)
	defer func() { assert.NoError(t, errors.Join(s.stop("immediate"), os.RemoveAll(s.dir))) }()
	handle, err := sql.Open("pgx", s.dsn())
	require.NoError(t, err)
	defer func() { _ = handle.Close() }()
	require.NoError(t, sqlstore.Migrate(ctx, handle, sqlstore.Postgres))
	db, err := sqlstore.New(ctx, handle, sqlstore.Postgres)
	require.NoError(t, err)
	store := newEvidence(t, db, sqlstore.EvidenceConfig{NoCache: true})
	var acknowledged []string
	for cycle := range rounds(2, 10) {
		var wait sync.WaitGroup
		var mu sync.Mutex
		for worker := range 4 {
			wait.Go(func() {
				for i := 0; ; i++ {
					id := fmt.Sprintf("%d-%d-%d", cycle, worker, i)
					if _, err := store.Commit(ctx, outcome(id)); err != nil {
						return
					}
					mu.Lock()
					acknowledged = append(acknowledged, id)
					mu.Unlock()
				}
			})
		}
		require.Eventually(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(acknowledged) >= 50*(cycle+1)
		}, time.Minute, 10*time.Millisecond)
		require.NoError(t, s.stop("immediate"))
		wait.Wait()
		require.NoError(t, s.start())
		require.Eventually(t, func() bool { return handle.Ping() == nil }, 30*time.Second, 10*time.Millisecond)
		require.Zero(t, requireKept(t, store, acknowledged))
	}
	t.Logf("%d outcomes were acknowledged", len(acknowledged))
}

const writers = 8

func each() int { return rounds(25, 5000) }

// writeMany adds outcomes to one arm, whose weights add up exactly in any order.
func writeMany(store *sqlstore.Evidence) error {
	for i := range each() {
		b := outcome(fmt.Sprintf("%s-%d", os.Getenv("HEED_TEST_NAME"), i))
		b.Audit, b.Events = nil, nil
		b.Observations[0].Weight = float64(1+i%64) / 64
		if _, err := store.Commit(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// TestProcesses lets eight processes add to one arm at once.
func TestProcesses(t *testing.T) {
	skipRaced(t)
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			at := b.place(t)
			var wait sync.WaitGroup
			for i := range writers {
				cmd := child(t, "count", append(at.env(), fmt.Sprint("HEED_TEST_NAME=", i))...)
				wait.Go(func() { assert.NoError(t, cmd.Run()) })
			}
			wait.Wait()
			var mass float64
			for i := range each() {
				mass += writers * float64(1+i%64) / 64
			}
			parts, err := newEvidence(t, at.db(t), sqlstore.EvidenceConfig{}).Read(ctx, nil, arm)
			require.NoError(t, err)
			require.Len(t, parts, 1)
			assert.Equal(t, mass, parts[0].Tally.Mass)
			assert.EqualValues(t, writers*each(), parts[0].Tally.N())
		})
	}
}
