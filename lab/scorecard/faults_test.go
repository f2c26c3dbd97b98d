package scorecard

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// long is whether the long forms of the tests run.
var long = os.Getenv("HEED_LONG") != ""

// A harm is how the disk fails in a call, from its n-th operation on.
type harm struct {
	name  string
	fault func(n int) func(op int, writes bool) error
	step  int // between two operations that are tried in the short form; 0: not tried there
}

// once has one operation fail.
var once = harm{"once", func(n int) func(int, bool) error {
	return func(op int, _ bool) error {
		if op == n {
			return sqlite3.IOERR
		}
		return nil
	}
}, 1}

var harms = []harm{
	once,
	{"it, and one soon after it", func(n int) func(int, bool) error {
		return func(op int, _ bool) error {
			if op == n || op == n+1+n%5 {
				return sqlite3.IOERR
			}
			return nil
		}
	}, 0},
	{"the disk is full", func(n int) func(int, bool) error {
		return func(op int, writes bool) error {
			if op >= n && writes {
				return sqlite3.FULL
			}
			return nil
		}
	}, 0},
	{cut, powerCut, 3},
}

// cut is the harm after which writes that were not synced are torn.
const cut = "the power is cut"

// A sweep has the disk fail at each operation of calls, and counts what goes wrong then.
type sweep struct {
	*testing.T
	rng                 *rand.Rand
	faults              int // calls in which the disk failed
	half, silent, stuck int
	notes               []string
}

// episode has the disk fail at operations of one call. In the short form, a longer stride leaves
// out more of them.
func (f *sweep) episode(e episode, stride int, harms ...harm) {
	base, err := newDisk(f.Context(), 1024)
	require.NoError(f, err)
	if e.before != nil {
		f.at(base, e.before)
	}
	before, after := f.at(base.snapshot(nil), nil), f.at(base.snapshot(nil), e.call)
	require.NotEqual(f, before, after, "%s changes nothing", e.name)
	for _, h := range harms {
		step := h.step * stride
		if long {
			step = 1
		}
		for n := 1; step > 0 && f.try(base.snapshot(f.rng), &e, h, n, before, after); n += step {
			f.faults++
		}
	}
}

// at does something with the store of a disk and returns what the tables hold then.
func (f *sweep) at(d *disk, do call) string {
	st, handle, done, err := d.store(f.Context())
	require.NoError(f, err)
	defer done()
	if do != nil {
		require.NoError(f, do(f.Context(), st))
	}
	return f.contents(handle)
}

// try makes a call in which the disk fails from the n-th operation on, and reports whether the call
// came so far.
func (f *sweep) try(d *disk, e *episode, h harm, n int, before, after string) (hit bool) {
	st, handle, done, err := d.store(f.Context())
	require.NoError(f, err)
	defer func() { done() }()
	d.arm(f.T, handle, h, n)
	failure := e.call(f.Context(), st)
	hit = d.disarm() >= n
	wrong := func(count *int, what string) {
		*count++
		f.notes = append(f.notes, fmt.Sprintf("%s: %s at operation %d: %s: %v", e.name, h.name, n, what,
			failure))
	}
	if h.name == cut {
		done()
		if st, handle, done, err = d.torn().store(f.Context()); err != nil {
			done = func() {}
			wrong(&f.stuck, err.Error())
			return hit
		}
	}
	left := f.contents(handle)
	switch {
	case failure == nil && left != after:
		wrong(&f.silent, "it is not done, and no error: "+difference(after, left))
	case left != after && left != before && !e.steps:
		wrong(&f.half, "half of it is done: "+difference(after, left))
	case left != after:
		if failure = e.call(f.Context(), st); failure != nil {
			wrong(&f.stuck, "the store does not go on")
		} else if left = f.contents(handle); left != after {
			wrong(&f.stuck, "made again, it leaves something else: "+difference(after, left))
		}
	}
	return hit
}

// arm has a disk fail from the n-th operation on, when the database forgot what it read.
func (d *disk) arm(t *testing.T, handle *sql.DB, h harm, n int) {
	_, err := handle.ExecContext(t.Context(), "PRAGMA cache_size = 0; PRAGMA shrink_memory")
	require.NoError(t, err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops, d.fault = 0, h.fault(n)
}

// disarm ends the faults, and returns how many operations there were.
func (d *disk) disarm() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = nil
	return d.ops
}

// store opens the store of the database of a disk, with a fixed clock.
func (d *disk) store(ctx context.Context) (st *sqlstore.Store, handle *sql.DB, done func(),
	err error) {
	handle, done, err = d.on()
	if err != nil {
		return nil, nil, nil, err
	}
	st, err = sqlstore.Open(ctx, handle, sqlstore.SQLite, sqlstore.Config{
		Now: func() time.Time { return fixedNow }, NoCache: true,
		Retention: store.Retention{HistoryPerCell: 5},
	})
	if err != nil {
		done()
	}
	return st, handle, done, err
}

// contents returns what the tables of a store hold, except for numbers that only count the order of
// events, and for what is random.
func (f *sweep) contents(handle *sql.DB) string {
	var all strings.Builder
	for _, query := range []string{
		`SELECT kind, id, at, keys, body FROM heed_record`, `SELECT at FROM heed_key`, `SELECT name FROM heed_kind`,
		`SELECT cell, kind, scope, item, name, half_life, by_origin, restart FROM heed_cell`,
		`SELECT cell, channel, source, landmark, mass, squares, reward, reward_squares, n_positive, n_negative, n_neutral,
			last_positive, last_negative, last_neutral, lost_positive, lost_negative, lost_neutral, lost_source FROM heed_tally`,
		`SELECT id, retracted FROM heed_id`, `SELECT cell, id, happened, source, observation FROM heed_observation`,
	} {
		rows, err := rowsOf(f.Context(), handle, query)
		require.NoError(f, err)
		slices.Sort(rows)
		fmt.Fprintf(&all, "%s\n\t%s\n", query, strings.Join(rows, "\n\t"))
	}
	return random.ReplaceAllString(all.String(), "#")
}

// random are pseudonyms of forgotten people, the key that makes them, and the ids of audit entries
// that have no better one.
var random = regexp.MustCompile(`forgotten-[0-9a-zA-Z_-]+|"secret":"[^"]*"|[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

func rowsOf(ctx context.Context, handle *sql.DB, query string) (all []string, err error) {
	rows, err := handle.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err has it
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		all = append(all, fmt.Sprint(values...))
	}
	return all, rows.Err()
}

// difference returns the first line that only one of two texts has.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			same := 0
			for same < min(len(w[i]), len(g[i])) && w[i][same] == g[i][same] {
				same++
			}
			from := max(0, same-80)
			return fmt.Sprintf("%.200s, not %.200s", g[i][min(from, len(g[i])):],
				w[i][min(from, len(w[i])):])
		}
	}
	return fmt.Sprintf("%d lines, not %d", len(g), len(w))
}

// gather returns all that a loop yields.
func gather[T any](seq iter.Seq2[T, error]) (all []T, err error) {
	for one, err := range seq {
		if err != nil {
			return all, err
		}
		all = append(all, one)
	}
	return all, nil
}

type reading func(context.Context, *sqlstore.Store) (any, error)

// readings are all ways to read. Each returns its results.
func readings() map[string]reading {
	ofArm := func(c ...evidence.Cell) reading {
		return func(ctx context.Context, st *sqlstore.Store) (any, error) {
			var s store.Snapshot
			err := st.Read(ctx, &s, c, []store.Ref{{Kind: "note", ID: "3"},
				{Kind: "note", ID: "none"}}[:2*(len(c)-1)])
			return s, err
		}
	}
	find := func(q store.Query) reading {
		return func(ctx context.Context, st *sqlstore.Store) (any,
			error) {
			return gather(st.Find(ctx, q))
		}
	}
	return map[string]reading{
		"Read": ofArm(cell, evidence.Cell{Kind: "none", Item: "i"}), "Read of a cell": ofArm(cell),
		"Find": find(store.Query{Kind: "note"}), "Find by a key": find(store.Query{Kind: "note",
			Keys: []string{"k"}, Oldest: true}),
		"Find by two keys": find(store.Query{Kind: "note", Keys: []string{"n=3", "k"}}),
		"List": func(ctx context.Context, st *sqlstore.Store) (any, error) {
			return gather(st.List(ctx, store.CellQuery{Kind: cell.Kind, Scope: cell.Scope}))
		},
		"Scopes": func(ctx context.Context, st *sqlstore.Store) (any,
			error) {
			return gather(st.Scopes(ctx, cell.Kind))
		},
		"Status": func(ctx context.Context, st *sqlstore.Store) (any, error) { return st.Status(ctx) },
		"History": func(ctx context.Context, st *sqlstore.Store) (any,
			error) {
			return gather(st.History(ctx, cell))
		},
		"Dump": func(ctx context.Context, st *sqlstore.Store) (any, error) {
			var out bytes.Buffer
			err := st.Dump(ctx, &out)
			return out.String(), err
		},
	}
}

// failAnywhere has each operation on SQLite's file fail in turn in some calls, and the power cut
// there. The tables are then as before the call or as after it, and the call made again leaves them
// as after it. The long form has all harms at all operations.
func failAnywhere(t *testing.T, stride int, among func(e episode) bool) {
	t.Parallel()
	f := sweep{T: t, rng: rand.New(rand.NewPCG(1, 4))}
	for _, e := range storeEpisodes() {
		if among(e) {
			f.episode(e, stride, harms...)
		}
	}
	assert.Equal(t, [3]int{}, [3]int{f.half, f.silent, f.stuck}, "%q", f.notes)
	assert.Greater(t, f.faults, 250)
}

func isCommit(e episode) bool { return strings.HasPrefix(e.name, "Store.Commit") }

func TestACommitFailsAnywhere(t *testing.T) { failAnywhere(t, 1, isCommit) }

func TestAJobFailsAnywhere(t *testing.T) {
	failAnywhere(t, 4, func(e episode) bool { return !isCommit(e) })
}

// Calls that are broken on purpose are found.
func TestBrokenCallsAreFound(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]struct {
		change func(call) call
		found  func(*sweep) int
	}{
		"drops its error": {func(do call) call {
			return func(ctx context.Context, st store.Store) error { _ = do(ctx, st); return nil }
		}, func(f *sweep) int { return f.silent }},
		"commits twice": {func(do call) call {
			return calls(do, commits(seen("the other half")))
		}, func(f *sweep) int { return f.half }},
		"returns its first error for ever": {func(do call) call {
			failed := make(map[store.Store]error)
			return func(ctx context.Context, st store.Store) error {
				if failed[st] == nil {
					failed[st] = do(ctx, st)
				}
				return failed[st]
			}
		}, func(f *sweep) int { return f.stuck }},
	} {
		t.Run(name, func(t *testing.T) {
			f := sweep{T: t}
			for _, e := range storeEpisodes()[:2] {
				e.call = broken.change(e.call)
				f.episode(e, 1, once)
			}
			assert.Positive(t, broken.found(&f))
		})
	}
}

// Each operation on SQLite's file fails in turn in each way to read a store: the read returns an
// error, or all.
func TestAReadFailsAnywhere(t *testing.T) {
	t.Parallel()
	d, err := newDisk(t.Context(), 512)
	require.NoError(t, err)
	st, handle, done, err := d.store(t.Context())
	require.NoError(t, err)
	defer done()
	require.NoError(t, declares(t.Context(), st))
	for i := range 120 {
		b := seen(fmt.Sprint(i))
		b.Records = []store.Record{note(fmt.Sprint(i), 0, fmt.Sprint("n=", i%7))}
		_, err := st.Commit(t.Context(), b)
		require.NoError(t, err)
	}
	failed, part := 0, 0
	for name, read := range readings() {
		all, err := read(t.Context(), st)
		require.NoError(t, err, name)
		for n := 1; ; n++ {
			d.arm(t, handle, once, n)
			got, failure := read(t.Context(), st)
			if d.disarm() < n {
				require.NoError(t, failure, name)
				break
			}
			whole := reflect.DeepEqual(all, got)
			require.True(t, failure != nil || whole, "%s: operation %d failed, and no error", name, n)
			if failed++; !whole {
				part++
			}
		}
	}
	assert.Greater(t, failed, 500)
	assert.Greater(t, part, 500, "a read that drops its error would be found")
}
