package enginetest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// fillOf adds observations and records of a person, 500 to a commit.
func fillOf(t testing.TB, st store.Store, person string, n int) {
	require.NoError(t, st.Declare(ctx, store.Kind{Name: "n", Caused: []string{"of"}}))
	policies := map[string]evidence.Policy{"k": {ByOrigin: true}}
	for i := 0; i < n; i += 500 {
		b := store.Batch{Policies: policies}
		for k := i; k < i+500; k++ {
			c := evidence.Cell{Kind: "k", Scope: "s", Item: fmt.Sprint(k % (n / 20))}
			b.Observations = append(b.Observations, evidence.Observation{
				ID: fmt.Sprint(len(person), " ", k), Cell: c, Reward: 1, Weight: 1, At: time.Now(),
				Source: person,
			})
			b.Records = append(b.Records, store.Record{
				Ref: store.Ref{Kind: "n", ID: fmt.Sprint(len(person), " ", k)}, At: time.Now(),
				Keys: []string{store.PersonKey(person), fmt.Sprint("task=", k)},
				Body: store.Of(map[string]string{"of": person}),
			})
		}
		_, err := st.Commit(ctx, b)
		require.NoError(t, err)
	}
}

// A keysCounter counts the rows that each commit changes in SQLite.
type keysCounter struct {
	store.Store
	handle  *sql.DB // of one connection
	most    int
	commits int
}

func (s *keysCounter) changes() (n int) {
	if err := s.handle.QueryRow("SELECT total_changes()").Scan(&n); err != nil {
		panic(err)
	}
	return n
}

func (s *keysCounter) Commit(
	ctx context.Context, batches ...store.Batch,
) ([]store.Receipt, error) {
	before := s.changes()
	receipts, err := s.Store.Commit(ctx, batches...)
	s.most = max(s.most, s.changes()-before)
	s.commits++
	return receipts, err
}

// Each commit changes few rows: an answer, a reaction and an outcome at most 30, and three for each
// heuristic that is compared; and a job at most 500, whatever it changes as a whole.
func TestKeysOfCommits(t *testing.T) {
	skipRaced(t)
	at := sqliteFile(t, lites[0])
	handle := at.handle(t)
	handle.SetMaxOpenConns(1)
	st, err := sqlstore.Open(ctx, handle, at.dialect)
	require.NoError(t, err)
	counted := &keysCounter{Store: st, handle: handle}
	a, err := openKilled(counted, time.Now())
	require.NoError(t, err)
	require.NoError(t, prepareKilled(a))
	const heuristics = 3
	failure := loop.Outcome{Source: "ci", Success: new(bool)}
	measure := func(what string, most int, do func() error) {
		counted.most, counted.commits = 0, 0
		require.NoError(t, do(), what)
		assert.LessOrEqual(t, counted.most, most, what)
		t.Logf("%s: %d commits, at most %d rows", what, counted.commits, counted.most)
	}
	small := 30 + 3*heuristics
	measure("Answer", small, func() error {
		return answerOnce(a, "new", "The mail is late", "s", "Look at the logs.")
	})
	measure("React", small, func() error {
		return a.React(ctx, "m", loop.Reaction{Person: "cid", Value: -1})
	})
	measure("Outcome", small, func() error { return a.Outcome(ctx, "m", failure) })
	measure("Outcome of a heuristic", small, func() error { return a.Outcome(ctx, "h", failure) })

	fillOf(t, st, person, 10_000)
	measure("Forget", 500, func() error {
		return store.Run(ctx, counted, store.Job{Forget: []string{person}})
	})
	assert.Zero(t, at.traces(t, person))
	fillOf(t, st, "somebody", 2000)
	measure("Reset", 500, func() error {
		return store.Run(ctx, counted, store.Job{Reset: []store.Selection{{Kind: "k", Scope: "s"}}})
	})
}

// jobs are what processes are killed in.
func jobOf(name string) store.Job {
	if name == "forget" {
		return store.Job{Forget: []string{person}}
	}
	return store.Job{Expunge: []string{person}}
}

func init() {
	processes["be killed in a job"] = func() int {
		return exitCode(jobHooked(placeOfProcess(), os.Getenv("HEED_TEST_NAME"),
			killAfter(int(number("HEED_TEST_KILL")))))
	}
}

// jobHooked runs a job, or a sweep, as a process does. hook is called before each statement.
func jobHooked(at place, name string, hook func(statement string)) error {
	h, st, handle, err := at.hookedStore()
	if err != nil {
		return err
	}
	defer func() { _ = handle.Close() }()
	h.set(func(statement string) error { hook(statement); return nil })
	if name == "sweep" {
		return st.Sweep(ctx, time.Time{})
	}
	return store.Run(ctx, st, jobOf(name))
}

// A process is killed while it forgets or expunges a person, and another one in the sweep that goes
// on. After the sweep of a third one nothing names the person, and no job is left.
func TestForgetIsKilled(t *testing.T) {
	skipRaced(t)
	records := 500
	if long {
		records = 5000
	}
	onTwo(t, func(t *testing.T, at place) {
		st, jobs := at.store(t, sqlstore.Config{}), store.Query{Kind: "heed.job"}
		for _, name := range []string{"expunge", "forget"} {
			for _, n := range []int{45, 70} {
				fillOf(t, st, person, records)
				killed := 0
				for _, call := range []string{name, "sweep"} {
					cmd := child(t, "be killed in a job", append(at.env(), "HEED_TEST_NAME="+call,
						fmt.Sprint("HEED_TEST_KILL=", n))...)
					var exit *exec.ExitError
					if errors.As(cmd.Run(), &exit) {
						require.Equal(t, -1, exit.ExitCode(), "a signal ends it")
						killed++
					}
					begun, err := gather(st.Find(ctx, jobs))
					require.NoError(t, err)
					t.Logf("%s, statement %d: killed in %s, %d jobs", name, n, call, len(begun))
					require.True(t, call == "sweep" || len(begun) == 1, "it is killed in the middle")
				}
				assert.Positive(t, killed, name)
				require.NoError(t, st.Sweep(ctx, time.Time{}))
				left, err := gather(st.Find(ctx, jobs))
				require.NoError(t, err)
				assert.Empty(t, left)
				cells, err := gather(st.List(ctx, store.CellQuery{Naming: person}))
				require.NoError(t, err)
				assert.Empty(t, cells)
				if name == "forget" {
					everything := strings.ToLower(strings.Join(lines(t, st), "\n"))
					assert.NotContains(t, everything, strings.ToLower(person))
				}
				if name == "forget" && at.dialect != sqlstore.Postgres {
					assert.Zero(t, at.traces(t, person))
				}
				wipe(t, at.handle(t))
			}
		}
	})
}

// A person is forgotten in records that are as large as a store takes.
func TestForgetInLargeRecords(t *testing.T) {
	skipRaced(t)
	for _, b := range calm {
		at := b.place(t)
		st, err := sqlstore.Open(ctx, at.handle(t), at.dialect)
		require.NoError(t, err)
		require.NoError(t, st.Declare(ctx, store.Kind{Name: "signed", Decided: []string{"by"}}))
		for _, text := range []string{
			`{"by":["a"` + strings.Repeat(`,"a"`, 99) + `],"text":"` +
				strings.Repeat("x", store.MaxBody-512) + `"}`,
			`{"by":"a","text":"` + strings.Repeat("<", store.MaxBody-128) + `"}`,
		} {
			_, err := st.Commit(ctx, store.Batch{Records: []store.Record{{
				Ref: store.Ref{Kind: "signed", ID: text[:9]}, At: time.Now(),
				Keys: []string{store.PersonKey("a")}, Body: store.Raw([]byte(text)),
			}}})
			require.NoError(t, err)
		}
		require.NoError(t, store.Run(ctx, st, store.Job{Forget: []string{"a"}}))
		all, err := gather(st.Find(ctx, store.Query{Kind: "signed"}))
		require.NoError(t, err)
		require.Len(t, all, 2)
		for _, r := range all {
			text, err := r.Body.JSON()
			require.NoError(t, err)
			assert.NotContains(t, string(text[:min(len(text), 64)]), `"a"`)
			assert.Empty(t, slices.DeleteFunc(r.Keys, func(key string) bool {
				return key != store.PersonKey("a")
			}))
		}
	}
}
