package scorecard

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/lab/internal/card"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

const (
	halfBar   = "calls half done"
	silentBar = "failures taken for success"
	stuckBar  = "stores that did not go on"
)

// A harm is how the disk fails in a call.
type harm int

const (
	once  harm = iota // one operation
	twice             // it, and one soon after it
	full              // all writes from it on, because the disk is full
	cut               // the power is cut: all operations fail, unsynced writes are torn
)

func faultsLine() card.Line {
	run := func(change func(episode) episode, only int) card.Attempt {
		return func(ctx context.Context, s card.Settings) (card.Result, error) {
			f := sweep{harms: card.Pick(s, []harm{once, cut}, []harm{once, twice, full, cut}),
				rng: s.Rand(0), sparse: !s.Long}
			all := storeEpisodes()
			if only > 0 {
				f.harms, all = []harm{once}, all[:only]
			}
			for _, e := range all {
				if err := f.episode(ctx, change(e)); err != nil {
					return f.result, fmt.Errorf("%s: %w", e.name, err)
				}
			}
			f.result.Values = map[string]float64{halfBar: float64(f.half), silentBar: float64(f.silent),
				stuckBar: float64(f.stuck)}
			return f.result, nil
		}
	}
	return card.Line{
		Name: "S4",
		Promise: "A call of a store may fail at any point. It then did all or nothing, says so, " +
			"and can be made again.",
		Attack: "Each operation on SQLite's file fails in turn, then the power is cut there. After " +
			"a failure the tables must be as " +
			"before the call or as after it, and the call made again must leave them as after it.",
		Bars:  card.None(halfBar, silentBar, stuckBar),
		Short: card.Form{Work: 400, Faults: 200, Budget: 6 * time.Minute},
		Long:  card.Form{Work: 1000, Faults: 500, Budget: 60 * time.Minute},
		Run:   run(func(e episode) episode { return e }, 0),
		Controls: []card.Control{
			{Name: "an error is swallowed", Misses: []string{silentBar}, Run: run(swallows, 2)},
			{Name: "two commits for one", Misses: []string{halfBar}, Run: run(halves, 2)},
			{Name: "an error is kept, and returned for ever", Misses: []string{stuckBar},
				Run: run(keeps, 2)},
		},
	}
}

// swallows is a call that drops its error.
func swallows(e episode) episode {
	do := e.call
	e.call = func(ctx context.Context, st store.Store) error { _ = do(ctx, st); return nil }
	return e
}

// halves is a call that commits a second time.
func halves(e episode) episode {
	do := e.call
	e.call = func(ctx context.Context, st store.Store) error {
		if err := do(ctx, st); err != nil {
			return err
		}
		_, err := st.Commit(ctx, seen("the other half"))
		return err
	}
	e.steps = false
	return e
}

// keeps is a call that returns its first error for ever.
func keeps(e episode) episode {
	do, failed := e.call, make(map[store.Store]error)
	e.call = func(ctx context.Context, st store.Store) error {
		if failed[st] == nil {
			failed[st] = do(ctx, st)
		}
		return failed[st]
	}
	return e
}

// A sweep has the disk fail at each operation of calls. Work counts calls, and faults those in
// which the disk failed.
type sweep struct {
	sparse bool // the power is cut at every third of them
	harms  []harm
	rng    *rand.Rand

	half, silent, stuck int
	noted               string
	result              card.Result
}

// episode tries all operations of one call.
func (f *sweep) episode(ctx context.Context, e episode) error {
	base, err := newDisk(ctx, 1024)
	if err != nil {
		return err
	}
	if e.before != nil {
		if _, err := f.at(ctx, base, e.before); err != nil {
			return fmt.Errorf("before: %w", err)
		}
	}
	before, err := f.at(ctx, base.snapshot(nil), nil)
	if err != nil {
		return err
	}
	after, err := f.at(ctx, base.snapshot(nil), e.call)
	if err != nil {
		return err
	}
	if before == after {
		return errors.New("the call changes nothing")
	}
	for _, h := range f.harms {
		step := 1
		if h == cut && f.sparse {
			step = 3
		}
		for n := 1; ; n += step {
			hit, err := f.try(ctx, base.snapshot(f.rng), &e, h, n, before, after)
			if err != nil {
				return fmt.Errorf("operation %d: %w", n, err)
			}
			if !hit {
				break
			}
		}
	}
	return nil
}

// at does something with the store of a disk and returns what the tables hold then.
func (f *sweep) at(ctx context.Context, d *disk, do call) (string, error) {
	st, handle, done, err := d.store(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	if do != nil {
		if err := do(ctx, st); err != nil {
			return "", err
		}
	}
	return contents(ctx, handle)
}

// try makes a call in which the disk fails from the n-th operation on, and reports whether the call
// came so far.
func (f *sweep) try(ctx context.Context, d *disk, e *episode, h harm, n int, before,
	after string) (hit bool, err error) {
	st, handle, done, err := d.store(ctx)
	if err != nil {
		return false, err
	}
	if err := d.arm(ctx, handle, h, n); err != nil {
		done()
		return false, err
	}
	failure := e.call(ctx, st)
	hit = d.disarm() >= n
	if f.result.Work++; hit {
		f.result.Faults++
	}
	if h == cut {
		done()
		if st, handle, done, err = d.torn().store(ctx); err != nil {
			f.stuck++
			f.result.Note("%s: power cut at operation %d: %v", e.name, n, err)
			return hit, nil
		}
	}
	defer func() { done() }()
	left, err := contents(ctx, handle)
	if err != nil {
		return hit, err
	}
	wrong := func(count *int, what string) {
		*count++
		if f.noted == e.name { // one of each call is enough
			return
		}
		f.noted = e.name
		f.result.Note("%s: harm %d at operation %d: %s: %v: %s", e.name, h, n, what, failure,
			difference(after, left))
	}
	switch {
	case failure == nil && left != after:
		wrong(&f.silent, "it is not done, and no error")
	case left != after && left != before && !e.steps:
		wrong(&f.half, "half of it is done")
	case left != after:
		if failure = e.call(ctx, st); failure != nil {
			wrong(&f.stuck, "the store does not go on")
		} else if left, err = contents(ctx, handle); err != nil || left != after {
			wrong(&f.stuck, "made again, it leaves something else")
		}
	}
	return hit, err
}

// arm has a disk fail from the n-th operation on, when the database forgot what it read.
func (d *disk) arm(ctx context.Context, handle *sql.DB, h harm, n int) error {
	if _, err := handle.ExecContext(ctx, "PRAGMA cache_size = 0; PRAGMA shrink_memory"); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops = 0
	switch h {
	case once:
		d.fail = map[int]bool{n: true}
	case twice:
		d.fail = map[int]bool{n: true, n + 1 + n%5: true}
	case full:
		d.full = n
	case cut:
		d.cut = n
	}
	return nil
}

// disarm returns how many operations there were. A disk without power stays so.
func (d *disk) disarm() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail, d.full = nil, 0
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
		Now: func() time.Time { return fixedNow }, NoCache: true, HistoryPerCell: 5,
	})
	if err != nil {
		done()
	}
	return st, handle, done, err
}

// contents returns what the tables of a store hold, except for numbers that only count the order of
// events, and for what is random.
func contents(ctx context.Context, handle *sql.DB) (string, error) {
	var all strings.Builder
	for _, query := range []string{
		`SELECT kind, id, at, keys, body FROM heed_record`, `SELECT at FROM heed_key`, `SELECT name FROM heed_kind`,
		`SELECT cell, kind, scope, item, name, half_life, by_origin, restart FROM heed_cell`,
		`SELECT cell, channel, source, landmark, mass, squares, reward, reward_squares, n_positive, n_negative, n_neutral,
			last_positive, last_negative, last_neutral, lost_positive, lost_negative, lost_neutral, lost_source FROM heed_tally`,
		`SELECT id, retracted FROM heed_id`, `SELECT cell, id, happened, source, observation FROM heed_observation`,
	} {
		rows, err := rowsOf(ctx, handle, query)
		if err != nil {
			return "", err
		}
		slices.Sort(rows)
		fmt.Fprintf(&all, "%s\n\t%s\n", query, strings.Join(rows, "\n\t"))
	}
	return random.ReplaceAllString(all.String(), "#"), nil
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

func readsLine() card.Line {
	run := func(careless bool) card.Attempt {
		return func(ctx context.Context, _ card.Settings) (card.Result,
			error) {
			return readFaults(ctx, careless)
		}
	}
	form := card.Form{Work: 500, Faults: 500, Budget: 4 * time.Minute}
	return card.Line{
		Name: "S4 reads", Promise: "A read gets all, or an error.", Bars: card.None(silentBar),
		Short: form, Long: form, Run: run(false),
		Attack:   "Each operation on SQLite's file fails in turn in each way to read a store.",
		Controls: []card.Control{{Name: "an error is swallowed", Run: run(true)}},
	}
}

// readFaults has each operation of each way to read fail.
func readFaults(ctx context.Context, careless bool) (result card.Result, err error) {
	d, err := newDisk(ctx, 512)
	if err != nil {
		return result, err
	}
	st, handle, done, err := d.store(ctx)
	if err != nil {
		return result, err
	}
	defer done()
	if err := declares(ctx, st); err != nil {
		return result, err
	}
	for i := range 120 {
		b := seen(fmt.Sprint(i))
		b.Records = []store.Record{note(fmt.Sprint(i), 0, fmt.Sprint("n=", i%7))}
		if _, err := st.Commit(ctx, b); err != nil {
			return result, err
		}
	}
	silent := 0
	for name, read := range readings() {
		all, err := read(ctx, st)
		if err != nil {
			return result, err
		}
		for n := 1; ; n++ {
			if err := d.arm(ctx, handle, once, n); err != nil {
				return result, err
			}
			got, failure := read(ctx, st)
			hit := d.disarm() >= n
			if careless {
				failure = nil
			}
			if failure == nil && !reflect.DeepEqual(all, got) {
				silent++
				result.Note("%s: operation %d failed, and it does not say so", name, n)
			}
			if result.Work++; !hit {
				if failure != nil {
					return result, fmt.Errorf("%s without a fault: %w", name, failure)
				}
				break
			}
			result.Faults++
		}
	}
	result.Values = map[string]float64{silentBar: float64(silent)}
	return result, nil
}
