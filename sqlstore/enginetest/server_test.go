package enginetest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/servertest"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/web"
)

// Writers are goroutines that commit to one cell and repeat each commit until it is acknowledged.
type writers struct {
	t            *testing.T
	st           *sqlstore.Store
	stop         atomic.Bool
	wait         sync.WaitGroup
	acknowledged atomic.Int64
	failed       atomic.Int64
}

func write(t *testing.T, st *sqlstore.Store, n int) *writers {
	w := &writers{t: t, st: st}
	for k := range n {
		w.wait.Go(func() {
			for i := 0; !w.stop.Load(); i++ {
				if !w.until(fmt.Sprint("writer ", k, " ", i)) {
					return
				}
			}
		})
	}
	return w
}

// until repeats a commit until it is acknowledged. A commit that failed was not applied, unless its
// outcome is unknown.
func (w *writers) until(id string) bool {
	var refused []error
	unknown, over := false, time.Now().Add(time.Minute)
	for {
		b := onlyObserve(id)
		b.ID = "batch " + id
		receipts, err := w.st.Commit(ctx, b)
		if err == nil {
			w.acknowledged.Add(1)
			return assert.False(w.t, receipts[0].Duplicate && !unknown, "%s was applied: %v", id,
				refused)
		}
		w.failed.Add(1)
		refused = append(refused, err)
		unknown = unknown || errors.Is(err, heed.ErrOutcomeUnknown)
		if !assert.False(w.t, time.Now().After(over), "%v", err) {
			return false
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// end stops the writers, and checks that each commit counted once.
func (w *writers) end() {
	w.stop.Store(true)
	w.wait.Wait()
	var s store.Snapshot
	require.NoError(w.t, w.st.Read(ctx, &s, []evidence.Cell{arm}, nil))
	require.Len(w.t, s.Parts, 1)
	assert.Equal(w.t, w.acknowledged.Load(), int64(s.Parts[0].Tally.N()))
}

// more waits until the writers have had more commits acknowledged.
func (w *writers) more(n int64) {
	want := w.acknowledged.Load() + n
	require.Eventually(w.t, func() bool { return w.acknowledged.Load() >= want || w.t.Failed() },
		time.Minute, time.Millisecond)
}

// Connections that the server cuts cost no commit and count none twice.
func TestConnectionsAreCut(t *testing.T) {
	at := postgresSchema(t).with("application_name", "cut")
	st := at.store(t, sqlstore.Config{NoCache: true})
	w := write(t, st, 8)
	conn, err := pgx.Connect(ctx, cluster(t))
	require.NoError(t, err)
	cut := 0
	for range rounds(10, 100) {
		w.more(5)
		var n int
		require.NoError(t, conn.QueryRow(ctx, `SELECT count(pg_terminate_backend(pid))
			FROM pg_stat_activity WHERE application_name = 'cut'`).Scan(&n))
		cut += n
	}
	w.more(5)
	require.NoError(t, conn.Close(ctx))
	w.end()
	assert.Positive(t, cut)
}

// A server that crashed, or was replaced, leaves broken connections in the pool. The next read and
// the next commit go through on a new one, however many are broken.
func TestBrokenConnectionsAreReplaced(t *testing.T) {
	const many = 6 // more than database/sql tries by itself
	at := postgresSchema(t).with("application_name", "broken")
	handle := at.handle(t)
	st, err := sqlstore.Open(ctx, handle, at.dialect, sqlstore.Config{NoCache: true})
	require.NoError(t, err)
	require.NoError(t, st.Declare(ctx, store.Kind{Name: "note"}))
	conn, err := pgx.Connect(ctx, cluster(t))
	require.NoError(t, err)
	defer conn.Close(ctx) //nolint:errcheck // the test is over
	for _, c := range []struct {
		name string
		call func() error
	}{
		{"read", func() error {
			return st.Read(ctx, new(store.Snapshot), []evidence.Cell{arm}, nil)
		}},
		{"find", func() error {
			for _, err := range st.Find(ctx, store.Query{Kind: "note"}) {
				return err
			}
			return nil
		}},
		{"commit", func() error { return commits(onlyObserve("a"))(st) }},
		{"in steps, what was committed", func() error {
			return commits(store.Batch{Retract: []string{"a"}})(st)
		}},
		{"sweep", func() error { return st.Sweep(ctx, time.Now()) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			handle.SetMaxIdleConns(0) // which drops those that are still broken
			handle.SetMaxIdleConns(many)
			for range 2 { // pgx looks whether a connection lives unless it was taken again just before
				held := make([]*sql.Conn, many)
				for i := range held {
					held[i], err = handle.Conn(ctx)
					require.NoError(t, err)
				}
				for _, one := range held {
					require.NoError(t, one.Close())
				}
			}
			var cut int
			require.NoError(t, conn.QueryRow(ctx, `SELECT count(pg_terminate_backend(pid, 10000))
				FROM pg_stat_activity WHERE application_name = 'broken'`).Scan(&cut))
			require.GreaterOrEqual(t, cut, many, "one that was dropped may still be there")
			require.NoError(t, c.call())
		})
	}
}

// A commit that the server's statement_timeout or lock_timeout cuts is not applied, and the error
// does not leave that open. An agent returns heed.ErrUnavailable, and the call again counts once.
func TestTimeoutsOfTheServer(t *testing.T) {
	for setting, code := range map[string]string{
		"statement_timeout": "57014", "lock_timeout": "55P03",
	} {
		t.Run(setting, func(t *testing.T) {
			at := postgresSchema(t)
			at.store(t, sqlstore.Config{}) // on a busy machine, tables take longer than the limit
			st := at.with(setting, "300").store(t, sqlstore.Config{NoCache: true})
			free, err := at.open()
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, free.Close()) })
			hold := func() (release func()) {
				tx, err := free.Begin()
				require.NoError(t, err)
				_, err = tx.Exec("LOCK TABLE heed_tally, heed_record IN EXCLUSIVE MODE")
				require.NoError(t, err)
				return func() { require.NoError(t, tx.Rollback()) }
			}
			b := onlyObserve("once")
			release := hold()
			_, err = st.Commit(ctx, b)
			var cut *pgconn.PgError
			require.ErrorAs(t, err, &cut)
			assert.Equal(t, code, cut.Code)
			require.NotErrorIs(t, err, heed.ErrOutcomeUnknown)
			release()
			receipts, err := st.Commit(ctx, b)
			require.NoError(t, err)
			assert.Empty(t, receipts[0].Duplicates, "it was not applied before")

			w := write(t, st, 8)
			w.acknowledged.Add(1) // the one above
			for i := 0; i < rounds(3, 30) || i < 1000 && w.failed.Load() == 0; i++ {
				release := hold()
				// A call that was made with others is tried again by itself, for as long again.
				time.Sleep(700 * time.Millisecond)
				release()
				w.more(5)
			}
			w.end()
			assert.Positive(t, w.failed.Load())
			anAgentUnderATimeout(t, st, hold)
		})
	}
}

// A replica that is paused in a commit keeps its locks, and the others wait, until the server's
// limit for idle transactions ends it. Then the commit was not applied.
func TestAReplicaThatIsPaused(t *testing.T) {
	at := postgresSchema(t)
	other := at.store(t, sqlstore.Config{})
	driver, handle := hookedAt(t, at.with("idle_in_transaction_session_timeout", "100"))
	t.Cleanup(func() { require.NoError(t, handle.Close()) })
	paused, err := sqlstore.Open(ctx, handle, sqlstore.Postgres, sqlstore.Config{})
	require.NoError(t, err)
	var once sync.Once
	driver.set(func(statement string) error {
		if statement == "COMMIT" {
			once.Do(func() {
				_, err := other.Commit(ctx, onlyObserve("other"))
				assert.NoError(t, err)
			})
		}
		return nil
	})
	_, err = paused.Commit(ctx, onlyObserve("paused"))
	var cut *pgconn.PgError
	require.ErrorAs(t, err, &cut)
	assert.Equal(t, "25P03", cut.Code)
	require.NotErrorIs(t, err, heed.ErrOutcomeUnknown)
	receipts, err := paused.Commit(ctx, onlyObserve("paused"))
	require.NoError(t, err)
	assert.Empty(t, receipts[0].Duplicates, "it was not applied before")
}

// anAgentUnderATimeout has the store cut what an agent commits.
func anAgentUnderATimeout(t *testing.T, st store.Store, hold func() (release func())) {
	agent, err := loop.New(ctx, loop.Config{Store: st, Arms: []loop.Arm{{ID: "only"}},
		Model: decision.LLMFunc(
			func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
				return decision.LLMResponse{Text: "Yes."}, nil
			})})
	require.NoError(t, err)
	_, err = agent.Answer(ctx, loop.Event{ID: "kept", Text: "Is it so?"})
	require.NoError(t, err)
	release := hold()
	worked := true
	outcome := func() error { return agent.Outcome(ctx, "kept", loop.Outcome{Success: &worked}) }
	require.ErrorIs(t, outcome(), heed.ErrUnavailable)
	given, err := agent.Answer(ctx, loop.Event{ID: "late", Text: "And this?"})
	require.NoError(t, err)
	assert.Equal(t, "Yes.", given.Text)
	require.ErrorIs(t, given.Degraded.After, heed.ErrUnavailable)
	release()
	require.Eventually(t, func() bool { return outcome() == nil }, time.Minute, 10*time.Millisecond)
	require.NoError(t, outcome())
	_, err = agent.Answered(ctx, given.Plan, loop.Reply{})
	require.NoError(t, err)
	for d, err := range agent.Strategy().Distributions(ctx, strategy.Query{}) {
		require.NoError(t, err)
		assert.EqualValues(t, 1, d.Outcomes)
	}
}

// A server that is starting, or that can't be reached, does not have the host look at the dialect.
func TestAServerThatStarts(t *testing.T) {
	hooks, handle := hookedAt(t, postgresSchema(t))
	t.Cleanup(func() { require.NoError(t, handle.Close()) })
	hooks.set(func(string) error { return stateError("57P03") })
	_, err := sqlstore.Open(ctx, handle, sqlstore.Postgres)
	require.ErrorIs(t, err, stateError("57P03"))
	assert.NotContains(t, err.Error(), "dialect")
	nowhere := place{sqlstore.Postgres, "pgx", "host=127.0.0.1 port=1 sslmode=disable"}
	gone, err := nowhere.open()
	require.NoError(t, err)
	defer func() { require.NoError(t, gone.Close()) }()
	_, err = sqlstore.Open(ctx, gone, sqlstore.Postgres)
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "dialect")
}

// TestStandbyIsPromoted stops a server under load as if it had crashed, and promotes its
// synchronous standby. The same handle goes on there: nothing acknowledged is lost, and nothing
// counts twice. Before that, the standby serves reads, and refuses writes for certain.
func TestStandbyIsPromoted(t *testing.T) {
	skipRaced(t)
	primary, err := servertest.New("-c fsync=off")
	skipWithout(t, err)
	t.Cleanup(func() { _ = primary.Close() })
	at := place{sqlstore.Postgres, "pgx", primary.DSN()}
	handle := at.handle(t)
	st := open(t, handle, at.dialect)
	require.NoError(t, st.Declare(ctx, store.Kind{Name: "note"}))
	learner := learnerOn(t, st)
	choice, err := learner.Select(ctx, strategy.Query{Category: "of the primary"})
	require.NoError(t, err)
	_, err = learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: 1, Confidence: 1})
	require.NoError(t, err)
	standby, err := primary.Standby()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, standby.Close()) })
	for _, statement := range []string{
		"ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()",
	} {
		_, err := handle.ExecContext(ctx, statement)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		var n int
		err := handle.QueryRowContext(ctx,
			"SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'").Scan(&n)
		return err == nil && n == 1
	}, time.Minute, 10*time.Millisecond)

	dsn := fmt.Sprintf("host=127.0.0.1,127.0.0.1 port=%d,%d user=heed dbname=postgres "+
		"sslmode=disable target_session_attrs=read-write", primary.Port(), standby.Port())
	both := place{sqlstore.Postgres, "pgx", dsn}
	w := write(t, both.store(t, sqlstore.Config{NoCache: true}), 8)
	w.more(50)
	replica := place{sqlstore.Postgres, "pgx", standby.DSN()}.store(t,
		sqlstore.Config{Existing: true, NoCache: true})
	checkReplica(t, replica)
	require.NoError(t, primary.Stop("immediate"))
	require.NoError(t, standby.Promote())
	_, err = replica.Commit(ctx, onlyObserve("a replica that was promoted takes writes"))
	require.NoError(t, err)
	w.acknowledged.Add(1)
	w.more(50)
	w.end()
}

func learnerOn(t *testing.T, st store.Store) *strategy.Learner {
	learner, err := strategy.New(ctx, strategy.Config{Store: st,
		Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}}})
	require.NoError(t, err)
	return learner
}

// checkReplica reads from a standby, also by the pages, and writes to it.
func checkReplica(t *testing.T, replica *sqlstore.Store) {
	require.Eventually(t, func() bool {
		var s store.Snapshot
		err := replica.Read(ctx, &s, []evidence.Cell{arm}, nil)
		return assert.NoError(t, err) && len(s.Parts) == 1 && s.Parts[0].Tally.N() >= 50
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, replica.Declare(ctx, store.Kind{Name: "note"}), "as on the primary")
	pages, err := web.Over(&view.Source{Store: replica, Strategy: learnerOn(t, replica)},
		web.Config{Identify: func(*http.Request) (string, error) { return "ann", nil }})
	require.NoError(t, err)
	for _, path := range []string{"/", "/arms", "/answers", "/changes"} {
		got := httptest.NewRecorder()
		pages.ServeHTTP(got, httptest.NewRequest(http.MethodGet, path, nil))
		assert.Equal(t, http.StatusOK, got.Code, "%s: %s", path, got.Body)
		if path == "/arms" {
			assert.Contains(t, got.Body.String(), "of the primary")
		}
	}
	for what, err := range map[string]error{
		"commit":  commits(onlyObserve("on a replica"))(replica),
		"declare": replica.Declare(ctx, store.Kind{Name: "other"}),
		"sweep":   replica.Sweep(ctx, time.Now()),
	} {
		require.ErrorContains(t, err, "25006", what) // read_only_sql_transaction
		require.NotErrorIs(t, err, heed.ErrOutcomeUnknown, what)
	}
}
