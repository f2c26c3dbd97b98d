package databases

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/heedhq/heed/lab/internal/card"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

const (
	writtenBar = "rows written into tables of another version"
	untypedBar = "calls without the typed error"
)

func versionsLine(engine string) card.Line {
	bars := []card.Bar{card.AtMost(writtenBar, 0), card.AtMost(untypedBar, 0)}
	run := func(careless bool) card.Attempt {
		return func(ctx context.Context, s card.Settings) (result card.Result, err error) {
			for range card.Pick(s, 5, 40) {
				one, err := at(ctx, engine, func(p place) (card.Result, error) { return upgraded(ctx, p, careless) })
				if err != nil {
					return result, err
				}
				result.Work += one.Work
				result.Faults++
				result.Notes = append(result.Notes, one.Notes...)
				if result.Values == nil {
					result.Values = make(map[string]float64)
				}
				for bar, value := range one.Values {
					result.Values[bar] += value
				}
			}
			return result, nil
		}
	}
	return card.Line{
		Name:    "Two versions, " + engine,
		Promise: "When a newer program has changed the tables, an older one stops with a typed error and writes nothing into them.",
		Attack: "While four callers commit, another program moves the tables to a version to come and adds a column. From then on no row may change, and every call " +
			"that writes, and every new opening, has to say that the program is too old.",
		Short: card.Form{Bars: bars, Work: 50, Faults: 5, Budget: 2 * time.Minute},
		Long:  card.Form{Bars: bars, Work: 400, Faults: 40, Budget: 20 * time.Minute},
		Run:   run(false), Controls: []card.Control{{Name: "newer tables that do not tell their version", Misses: []string{writtenBar, untypedBar}, Run: card.Brief(run(true))}},
	}
}

// A runner is a program that runs on beside a newer one.
type runner struct {
	*sqlstore.Store
	mu      sync.Mutex
	most    int // how many commits of a worker are enough, if none is refused; 0: no number is
	untyped int // calls that failed with something else than a SchemaError, or not at all
	result  card.Result
}

func (r *runner) said(what string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var old *sqlstore.SchemaError
	if !errors.As(err, &old) {
		r.untyped++
		r.result.Note("%s: %v", what, err)
	}
}

// commit commits outcomes until it is refused. It tells of each of the first ones.
func (r *runner) commit(ctx context.Context, worker int, begun chan<- struct{}) {
	for i := 0; ; i++ {
		if _, err := r.Commit(ctx, outcome(fmt.Sprint(worker, " ", i))); err != nil {
			r.said("a commit", err)
			return
		}
		if r.most > 0 && i == r.most {
			return
		}
		select {
		case begun <- struct{}{}:
		default:
		}
		r.mu.Lock()
		r.result.Work++
		r.mu.Unlock()
	}
}

// upgraded has a program commit while another one brings newer tables. Work counts the commits before that.
func upgraded(ctx context.Context, p place, careless bool) (result card.Result, err error) {
	st, handle, err := p.store(ctx, sqlstore.Config{NoCache: true})
	if err != nil {
		return result, err
	}
	defer handle.Close() //nolint:errcheck // it is removed
	if err := st.Declare(ctx, outcomeKind, store.Audit); err != nil {
		return result, err
	}
	r := &runner{Store: st}
	if careless {
		r.most = 100
	}
	var all sync.WaitGroup
	begun := make(chan struct{}, 100)
	for worker := range 4 {
		all.Go(func() { r.commit(ctx, worker, begun) })
	}
	for range 10 {
		select {
		case <-begun:
		case <-ctx.Done():
			return result, ctx.Err()
		}
	}
	before, err := newer(ctx, handle, p.Dialect, careless)
	if err != nil {
		return result, err
	}
	all.Wait()
	_, failure := sqlstore.Open(ctx, handle, p.Dialect)
	r.said("Open", failure)
	r.said("Declare", st.Declare(ctx, store.Kind{Name: "new"}))
	r.said("Sweep", st.Sweep(ctx, time.Time{}))
	_, failure = st.Commit(ctx, store.Batch{Forget: []string{"ann"}})
	r.said("Forget", failure)
	after, err := allRows(ctx, handle)
	if err != nil {
		return result, err
	}
	r.result.Values = map[string]float64{
		writtenBar: float64(len(without(after, before)) + len(without(before, after))), untypedBar: float64(r.untyped),
	}
	return r.result, nil
}

// newer brings the tables to a version to come, and returns what they hold then. It waits for those who write. If it is silent, it does not write
// down the version.
func newer(ctx context.Context, handle *sql.DB, dialect sqlstore.Dialect, silent bool) (rows []string, err error) {
	conn, err := handle.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // it goes back to the pool
	statements := []string{"PRAGMA busy_timeout = 10000", "BEGIN IMMEDIATE"}
	if dialect == sqlstore.Postgres {
		statements = []string{"BEGIN", "LOCK TABLE heed_store IN ACCESS EXCLUSIVE MODE"}
	}
	if !silent {
		statements = append(statements, "UPDATE heed_store SET version = 1000")
	}
	statements = append(statements, "ALTER TABLE heed_lost ADD COLUMN newer INTEGER NOT NULL DEFAULT 1")
	for _, statement := range statements {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return nil, fmt.Errorf("%s: %w", statement, err)
		}
	}
	time.Sleep(20 * time.Millisecond) // in which others come to wait
	rows, err = allRows(ctx, conn)
	_, failure := conn.ExecContext(ctx, "COMMIT")
	return rows, errors.Join(err, failure)
}

type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// tables are all of heed's that a program writes to.
var tables = []string{
	"heed_store", "heed_cell", "heed_tally", "heed_id", "heed_observation", "heed_lost", "heed_kind", "heed_record", "heed_key", "heed_inbox",
}

// allRows returns all rows of all tables, each with its table.
func allRows(ctx context.Context, q queryer) (all []string, err error) {
	for _, table := range tables {
		rows, err := rowsOf(ctx, q, "SELECT * FROM "+table)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			all = append(all, table+" "+row)
		}
	}
	slices.Sort(all)
	return all, nil
}
