package enginetest_test

import (
	"context"
	"database/sql"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	record "github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// A waitingAnswer is how answers wait that a sweep has nothing to do for.
type waitingAnswer struct {
	name string
	// the answers are of the time between these ages
	youngest, oldest time.Duration
	change           func(f *record.Fire)
	silent           bool // their silence was counted
}

var waitingAnswers = []waitingAnswer{
	{"closed", time.Hour, 20 * 24 * time.Hour, func(f *record.Fire) { f.Closed = true }, true},
	{"late messages are possible", 6 * time.Minute, 14 * time.Minute, func(f *record.Fire) {
		f.Due = f.Undo.Add(evidence.MaxSkew)
	}, true},
	{"silence is not over for a day", time.Minute, 23 * time.Hour, func(f *record.Fire) {
		f.Silence = f.Shown.Add(24 * time.Hour)
		f.Due = f.Silence
	}, false},
}

// fillAnswers adds as many answers to a store, each with an observation of one of 100 arms' cells.
func fillAnswers(t testing.TB, st store.Store, w waitingAnswer, n int, now time.Time) {
	view := answers.View("loop.answer")
	row, err := view.Get(ctx, st, answers.ID("first"))
	require.NoError(t, err)
	var b store.Batch
	for i := range n {
		a := row.Value
		a.ID = fmt.Sprint("answer ", n, " ", i)
		a.At = now.Add(-w.oldest + (w.oldest-w.youngest)*time.Duration(i)/time.Duration(n))
		answers.OwnFires(&a)
		f := &a.Fires[0]
		f.Shown, f.Undo = a.At, a.At.Add(10*time.Minute)
		f.Ignore, f.Silence = a.At.Add(30*time.Second), a.At.Add(30*time.Second)
		w.change(f)
		if w.silent {
			answers.Say(&a, record.Statement{How: answers.Silence, By: a.Person, At: f.Silence})
		}
		b.Records = append(b.Records, view.Record(a, 0))
		b.Observations = append(b.Observations, evidence.Observation{
			ID: a.ID, Reward: 0.9, Weight: 1, Share: 0.3, At: a.At, Channel: "silence", Source: "ann",
			Cell: evidence.Cell{
				Kind: "strategy.arm", Scope: "d/", Item: fmt.Sprint(i % 100), Name: "only",
			},
		})
		if len(b.Records) == 500 || i == n-1 {
			_, err := st.Commit(ctx, b)
			require.NoError(t, err)
			b = store.Batch{}
		}
	}
}

// A sweep that has nothing to do reads as little with many answers as with few, however they wait.
// The long form has 100,000 answers, and logs what a sweep takes.
func TestASweepReadsWhatIsDue(t *testing.T) {
	skipRaced(t)
	for _, w := range waitingAnswers {
		t.Run(w.name, func(t *testing.T) {
			onTwo(t, func(t *testing.T, at place) { sweepsWaiting(t, at, w) })
		})
	}
}

func sweepsWaiting(t *testing.T, at place, w waitingAnswer) {
	hooks, handle := hookedAt(t, at)
	t.Cleanup(func() { require.NoError(t, handle.Close()) })
	st, err := sqlstore.Open(ctx, handle, at.dialect)
	require.NoError(t, err)
	now := time.Now()
	a, err := openKilled(st, now)
	require.NoError(t, err)
	require.NoError(t, answerOnce(a, "first", "Why?", "", "Look at the logs."))
	var least int64
	for _, n := range []int{rounds(200, 10_000), rounds(1000, 100_000)} {
		fillAnswers(t, st, w, n, now)
		_, err := handle.Exec("UPDATE heed_observation SET recorded = recorded - 3600000000")
		require.NoError(t, err) // so that no observation is new
		var rows int64
		for i := range 3 { // the first one has to do what is due each day
			var statements []string
			hooks.set(func(s string) error { statements = append(statements, s); return nil })
			hooks.rows.Store(0)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			require.NoError(t, a.Sweep(ctx, now))
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			hooks.set(nil)
			rows = hooks.rows.Load()
			t.Logf("%d answers, sweep %d: %d statements, %d rows, %v, %d kB", n, i+1, len(statements),
				rows,
				took.Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)>>10)
			if i == 2 && at.dialect == sqlstore.SQLite {
				noScans(t, handle, statements)
			}
		}
		if least == 0 {
			least = rows
		}
		assert.Less(t, rows, least+200, "the items of arms are read again once they change")
	}
}

// noScans checks that SQLite finds what statements are about by an index.
func noScans(t *testing.T, handle *sql.DB, statements []string) {
	slices.Sort(statements)
	for _, s := range slices.Compact(statements) {
		verb, _, _ := strings.Cut(strings.TrimSpace(s), " ")
		if !slices.Contains([]string{"SELECT", "DELETE", "UPDATE", "WITH"}, verb) {
			continue
		}
		args := make([]any, strings.Count(s, "?"))
		for strings.Contains(s, fmt.Sprint("$", len(args)+1)) {
			args = append(args, 0)
		}
		plan := explain(t, handle, sqlstore.SQLite, s, args...)
		for _, table := range tables {
			if table != "heed_kind" {
				assert.NotRegexp(t, "SCAN "+table+`( |$)`, plan, s)
			}
		}
	}
}

// A sweep looks at the cells that have got observations since the last one, and drops what is too
// much of their history. The first one looks at all cells.
func TestASweepKeepsHistoriesShort(t *testing.T) {
	onTwo(t, func(t *testing.T, at place) {
		st := at.store(t, sqlstore.Config{Retention: store.Retention{HistoryPerCell: 5}})
		add := func(item string, n int) {
			var b store.Batch
			for i := range n {
				o := observe(fmt.Sprint(item, " ", i), time.Now())
				o.Cell.Item = item
				b.Observations = append(b.Observations, o)
			}
			_, err := st.Commit(ctx, b)
			require.NoError(t, err)
		}
		kept := func(item string) int {
			cell := arm
			cell.Item = item
			all, err := gather(st.History(ctx, cell))
			require.NoError(t, err)
			return len(all)
		}
		for _, item := range []string{"a", "b", "c"} {
			add(item, 10)
			require.NoError(t, st.Sweep(ctx, time.Now()))
			assert.Equal(t, 5, kept(item))
		}
		require.NoError(t, at.store(t,
			sqlstore.Config{Retention: store.Retention{HistoryPerCell: 3}}).Sweep(ctx, time.Now()))
		for _, item := range []string{"a", "b", "c"} {
			assert.Equal(t, 3, kept(item), "the first sweep of a process looks at all cells")
		}
	})
}

// A job that is damaged keeps no record past its time, and the sweep returns its error.
func TestASweepPassesOverADamagedJob(t *testing.T) {
	now := time.Now()
	st := sqliteFile(t, lites[0]).store(t, sqlstore.Config{Now: func() time.Time { return now }})
	brief := store.Kind{Name: "brief", Limits: store.Limits{For: time.Hour}}
	require.NoError(t, st.Declare(ctx, brief, store.Kind{Name: "heed.job"}))
	_, err := st.Commit(ctx, store.Batch{Records: []store.Record{
		{Ref: store.Ref{Kind: "heed.job", ID: "1"}, At: now, Body: store.Raw([]byte(`[7]`))},
		{Ref: store.Ref{Kind: "brief", ID: "1"}, At: now, Body: store.Of(1)},
	}})
	require.NoError(t, err)
	now = now.Add(2 * time.Hour)
	require.ErrorIs(t, st.Sweep(ctx, time.Time{}), heed.ErrDamaged)
	left, err := gather(st.Find(ctx, store.Query{Kind: "brief"}))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// A job that fails each time, because a pseudonym makes a record too large, keeps no record past
// its time.
func TestASweepPassesOverAJobThatFails(t *testing.T) {
	if !long {
		t.Skip("long: HEED_LONG=1 runs it") // 4 MB of JSON are read many times
	}
	now := time.Now()
	st := sqliteFile(t, lites[0]).store(t, sqlstore.Config{Now: func() time.Time { return now }})
	large := store.Kind{Name: "large", Decided: []string{"by"}}
	brief := store.Kind{Name: "brief", Limits: store.Limits{For: time.Hour}}
	require.NoError(t, st.Declare(ctx, large, brief))
	body := `{"by":"a","text":"` + strings.Repeat("x", store.MaxBody-25) + `"}`
	_, err := st.Commit(ctx, store.Batch{Records: []store.Record{
		{Ref: store.Ref{Kind: "large", ID: "1"}, At: now, Keys: []string{store.PersonKey("a")},
			Body: store.Raw([]byte(body))},
		{Ref: store.Ref{Kind: "brief", ID: "1"}, At: now, Body: store.Of(1)},
	}})
	require.NoError(t, err)
	size := new(heed.SizeError)
	require.ErrorAs(t, store.Run(ctx, st, store.Job{Forget: []string{"a"}}), &size)
	now = now.Add(2 * time.Hour)
	require.ErrorAs(t, st.Sweep(ctx, time.Time{}), &size)
	left, err := gather(st.Find(ctx, store.Query{Kind: "brief"}))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// A sweep looks at a page of cells, and the next one at the next page, so that all unused cells go.
func TestSweepsRemoveUnusedCells(t *testing.T) {
	onTwo(t, func(t *testing.T, at place) {
		if at.dialect == sqlstore.SQLite {
			skipRaced(t) // PostgreSQL goes through the same code
		}
		st := at.store(t, sqlstore.Config{})
		var b store.Batch
		for i := range 4500 {
			o := observe(fmt.Sprint(i), time.Now())
			if o.Cell.Item = fmt.Sprint(i); i%2 == 0 {
				o.Source = "ann"
			}
			b.Observations = append(b.Observations, o)
		}
		b.Policies = map[string]evidence.Policy{arm.Kind: {ByOrigin: true}}
		_, err := st.Commit(ctx, b)
		require.NoError(t, err)
		err = store.Run(ctx, st, store.Job{Expunge: []string{"ann"}})
		require.NoError(t, err)
		handle := at.handle(t)
		cells := func() (n int) {
			require.NoError(t, handle.QueryRow("SELECT count(*) FROM heed_cell").Scan(&n))
			return n
		}
		require.Equal(t, 4500, cells())
		left := []int{cells()}
		for range 4 {
			require.NoError(t, st.Sweep(ctx, time.Now()))
			left = append(left, cells())
		}
		assert.Equal(t, 2250, left[3], "%v", left)
		assert.Greater(t, left[1], left[2], "%v", left)
		assert.Equal(t, 2250, left[4], "%v", left)
	})
}

// Sweeps at the same time do not wait for each other for good if the host's handle has only one
// connection.
func TestSweepsOfOneConnection(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		handle := at.handle(t)
		handle.SetMaxOpenConns(1)
		st, err := sqlstore.Open(ctx, handle, at.dialect)
		require.NoError(t, err)
		limited, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for i := 0; i < 20 && assert.NoError(t, st.Sweep(limited, time.Time{})); i++ {
				}
			})
		}
		all.Wait()
	})
}

// A damaged observation stays, and each sweep names it. All else leaves the histories in time.
func TestASweepPassesOverADamagedObservation(t *testing.T) {
	onTwo(t, func(t *testing.T, at place) {
		handle, now := at.handle(t), time.Now()
		st, err := sqlstore.Open(ctx, handle, at.dialect, sqlstore.Config{
			Now: func() time.Time { return now }, Retention: store.Retention{HistoryPerCell: 5},
		})
		require.NoError(t, err)
		items := []string{"a", "b", "c"}
		var b store.Batch
		for _, item := range items {
			for i := range 10 {
				o := observe(fmt.Sprint(item, " ", i), now.Add(time.Duration(i)*time.Second))
				o.Cell.Item = item
				b.Observations = append(b.Observations, o)
			}
		}
		_, err = st.Commit(ctx, b)
		require.NoError(t, err)
		damage(t, handle, `UPDATE heed_observation SET observation = '{"id":' WHERE observation LIKE '%"b 2"%'`)
		kept := func() (all []int) {
			for _, item := range items {
				var n int
				require.NoError(t, handle.QueryRow(`SELECT count(*) FROM heed_observation o
					JOIN heed_cell c ON c.cell = o.cell WHERE c.item = $1`, item).Scan(&n))
				all = append(all, n)
			}
			return all
		}
		for range 2 {
			err := st.Sweep(ctx, now)
			require.ErrorIs(t, err, heed.ErrDamaged)
			require.ErrorContains(t, err, "in the history of a cell")
			assert.Equal(t, []int{5, 6, 5}, kept())
		}
		now = now.Add(100 * 24 * time.Hour)
		require.ErrorIs(t, st.Sweep(ctx, now), heed.ErrDamaged)
		assert.Equal(t, []int{0, 1, 0}, kept())
		damaged := arm
		damaged.Item = "b"
		var s store.Snapshot
		require.NoError(t, st.Read(ctx, &s, []evidence.Cell{damaged}, nil))
		assert.EqualValues(t, 10, s.Parts[0].Tally.N(), "the sums count all")
	})
}
