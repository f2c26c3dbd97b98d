// Package load measures how many choices with their outcomes one PostgreSQL records:
//
//	go run ./lab load [-long] [-each 1s] [-items 1000000]
//
// docs/scale.md has the figures.
package load

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/heedhq/heed/internal/servertest"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/lab/internal/card"
	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/strategy"
)

// A study measures how many choices with their outcomes one PostgreSQL records.
type study struct {
	each     time.Duration // of each measurement
	callers  []int
	segments []int
	items    int // of the large segment

	handle *sql.DB
	store  *sqlstore.Store
	learns *strategy.Learner
}

const (
	itemsOfSegment = 100
	connections    = 64 // that the callers share
	kept           = 30 * 24 * time.Hour
)

// figures are what a study has measured.
type figures struct {
	rates    map[[2]int]float64 // outcomes a second, by callers and segments
	hot      map[int]float64    // the same, by callers, all on one item
	large    float64            // the same, of 8 callers on the items of the large segment
	first    time.Duration      // the first choice there
	outcomes int                // that were counted before the sweep
	bytes    float64            // that an outcome grows the tables by
	item     float64            // bytes of the sums of an item of the large segment
	sweep    time.Duration      // to remove what an outcome leaves, when its time is over
	load     string
}

// Run runs the study on a private server, with fsync.
func Run(ctx context.Context, call *kit.Call) (err error) {
	defer kit.Catch(&err)
	var s study
	call.DurationVar(&s.each, "each", time.Second, "how long each figure is measured")
	items := call.Count("items", 10_000, 1_000_000, "items of the large segment")
	kit.Check(call.Parse())
	if s.items = *items; s.each <= 0 {
		return call.Usage("-each %s must be above 0", s.each)
	}
	server := kit.Must(servertest.New("-c shared_buffers=256MB -c max_wal_size=4GB"))
	defer func() { err = errors.Join(err, server.Close()) }()
	s.callers, s.segments = []int{1, 8, 64, 256}, []int{1, 10, 100}
	got, machine := s.measure(ctx, server.DSN()), card.ThisMachine(ctx)
	fmt.Fprintf(call.Out, "%s: %s, %d cores, load average before it %s; %s for each figure\n\n%s",
		call.Command(), machine.CPU, machine.Cores, got.load, s.each, s.report(got))
	return nil
}

func (s *study) measure(ctx context.Context, dsn string) (f figures) {
	s.handle = kit.Must(sql.Open("pgx", dsn))
	defer s.handle.Close() //nolint:errcheck // the server is removed
	s.handle.SetMaxOpenConns(connections)
	s.handle.SetMaxIdleConns(connections)
	s.store = kit.Must(sqlstore.Open(ctx, s.handle, sqlstore.Postgres))
	s.learns = s.learner(ctx)
	f.load = loadAverage()
	s.rates(ctx, &f)
	s.growth(ctx, &f)
	s.largeSegment(ctx, &f)
	return f
}

func (s *study) learner(ctx context.Context) *strategy.Learner {
	return kit.Must(strategy.New(ctx, strategy.Config{Store: s.store,
		Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}}}))
}

// rates measures callers that are spread over segments, and callers that are all on one item.
func (s *study) rates(ctx context.Context, f *figures) {
	f.rates, f.hot = make(map[[2]int]float64), make(map[int]float64)
	s.rate(ctx, 1, s.spread(1)) // which makes what every call needs
	for _, callers := range s.callers {
		for _, segments := range s.segments {
			f.rates[[2]int{callers, segments}] = s.rate(ctx, callers, s.spread(segments))
		}
		hot := strategy.Query{Category: "hot", Item: "hot"}
		f.hot[callers] = s.rate(ctx, callers, func() strategy.Query { return hot })
	}
}

// spread draws an item of some segments.
func (*study) spread(segments int) func() strategy.Query {
	return func() strategy.Query {
		return strategy.Query{
			Category: fmt.Sprint(segments, " ", rand.IntN(segments)),
			Item:     fmt.Sprint("item ", rand.IntN(itemsOfSegment)),
		}
	}
}

// rate lets callers choose and report the outcome, over and over, and returns how many a second.
func (s *study) rate(ctx context.Context, callers int, next func() strategy.Query) float64 {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var n atomic.Int64
	var wait sync.WaitGroup
	began := time.Now()
	for range callers {
		wait.Go(func() {
			for time.Since(began) < s.each && within.Err() == nil {
				if err := s.outcome(within, next()); err != nil {
					cancel(err)
					return
				}
				n.Add(1)
			}
		})
	}
	wait.Wait()
	took := time.Since(began)
	kit.Check(context.Cause(within))
	return float64(n.Load()) / took.Seconds()
}

// outcome makes a choice and records how it turned out.
func (s *study) outcome(ctx context.Context, q strategy.Query) error {
	choice, err := s.learns.Select(ctx, q)
	if err == nil {
		o := strategy.Outcome{Choice: choice, Value: 1, Confidence: 1}
		_, err = s.learns.Observe(ctx, o)
	}
	return err
}

// growth measures what the outcomes have left, and what it takes to remove it later.
func (s *study) growth(ctx context.Context, f *figures) {
	size := s.count(ctx, tableSizes)
	f.outcomes = s.count(ctx, `SELECT sum(n_positive + n_negative + n_neutral)
		FROM heed_tally t JOIN heed_cell c ON c.cell = t.cell WHERE c.kind = 'strategy.arm'`)
	f.bytes = float64(size) / float64(f.outcomes)
	later := func() time.Time { return time.Now().Add(kept + 24*time.Hour) }
	st := kit.Must(sqlstore.Open(ctx, s.handle, sqlstore.Postgres, sqlstore.Config{Now: later}))
	began := time.Now()
	kit.Check(st.Sweep(ctx, time.Time{}))
	f.sweep = time.Since(began) / time.Duration(f.outcomes)
	left := s.count(ctx, `SELECT (SELECT count(*) FROM heed_id)
		+ (SELECT count(*) FROM heed_observation) + (SELECT count(*) FROM heed_record
			WHERE kind = 'strategy.answer')`)
	if left > 0 {
		kit.Check(fmt.Errorf("a sweep left %d rows whose time was over", left))
	}
}

// tableSizes selects how large heed's tables are, in bytes, with their indexes.
const tableSizes = `SELECT sum(pg_total_relation_size(oid)) FROM pg_class
	WHERE relname LIKE 'heed\_%' AND relkind = 'r'`

func (s *study) count(ctx context.Context, query string) (n int) {
	kit.Check(s.handle.QueryRowContext(ctx, query).Scan(&n))
	return n
}

// largeSegment fills a segment with items of one outcome each, past the store, and uses it.
func (s *study) largeSegment(ctx context.Context, f *figures) {
	random := func() strategy.Query {
		return strategy.Query{Category: "large", Item: fmt.Sprint("item ", rand.IntN(s.items))}
	}
	kit.Check(s.outcome(ctx, strategy.Query{Category: "large", Item: "first"}))
	before := s.count(ctx, tableSizes)
	s.fill(ctx)
	f.item = float64(s.count(ctx, tableSizes)-before) / float64(s.items)
	s.learns = s.learner(ctx)
	began := time.Now()
	kit.Must(s.learns.Select(ctx, random()))
	f.first = time.Since(began)
	f.large = s.rate(ctx, 8, random)
}

// copyTallies gives each cell of a segment the sums of one of them.
const (
	tallyColumns = "channel, source, landmark, mass, squares, reward, reward_squares, " +
		"n_positive, n_negative, n_neutral, last_positive, last_negative, last_neutral, " +
		"lost_positive, lost_negative, lost_neutral, lost_source"
	copyTallies = "INSERT INTO heed_tally (cell, " + tallyColumns + ") SELECT c.cell, " +
		tallyColumns + " FROM heed_tally AS t JOIN heed_cell AS k USING (cell) JOIN heed_cell AS c " +
		"ON c.kind = k.kind AND c.scope = k.scope AND c.cell <> k.cell WHERE t.cell = $1"
)

// fill copies the one cell of the large segment, in which an outcome was, to all its items.
func (s *study) fill(ctx context.Context) {
	var key, kind, scope, name string
	var halfLife, byOrigin int64
	kit.Check(s.handle.QueryRowContext(ctx, `SELECT cell, kind, scope, name, half_life, by_origin
		FROM heed_cell WHERE kind = 'strategy.arm' AND item = 'first'`).Scan(&key, &kind, &scope, &name,
		&halfLife, &byOrigin))
	row := func(i int) ([]any, error) {
		item := fmt.Sprint("item ", i)
		lot, cell := text.HashOf(item), text.HashOf(kind, scope, item, name).String()
		return []any{cell, kind, scope, item, name, halfLife, byOrigin, int64(0),
			int64(binary.BigEndian.Uint64(lot[:]) >> 1)}, nil
	}
	conn := kit.Must(s.handle.Conn(ctx))
	defer conn.Close() //nolint:errcheck // it goes back to the pool
	columns := strings.Fields("cell kind scope item name half_life by_origin restart lot")
	kit.Check(conn.Raw(func(driver any) error {
		_, err := driver.(*stdlib.Conn).Conn().CopyFrom(ctx, pgx.Identifier{"heed_cell"}, columns,
			pgx.CopyFromSlice(s.items, row))
		return err
	}))
	kit.Must(conn.ExecContext(ctx, copyTallies, key))
	kit.Must(conn.ExecContext(ctx, "ANALYZE heed_cell, heed_tally"))
}

// loadAverage returns how many processes have run or waited in the last minute, if known.
func loadAverage() string {
	line, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(line), " ")
	return cmp.Or(first, "unknown")
}

// report writes the figures as docs/scale.md has them.
func (s *study) report(f figures) string {
	var b strings.Builder
	b.WriteString("| callers, segments |")
	for _, n := range s.segments {
		fmt.Fprintf(&b, " %d |", n)
	}
	b.WriteString(" one item |\n|---|" + strings.Repeat("---|", len(s.segments)+1) + "\n")
	for _, callers := range s.callers {
		fmt.Fprintf(&b, "| %d |", callers)
		for _, n := range s.segments {
			fmt.Fprintf(&b, " %.0f |", f.rates[[2]int{callers, n}])
		}
		fmt.Fprintf(&b, " %.0f |\n", f.hot[callers])
	}
	const million = 1e6
	fmt.Fprintf(&b, `
| | |
|---|---|
| first choice in a segment of %d items | %.0f ms |
| outcomes a second there, 8 callers | %.0f |
| tables, the sums of an item with one arm | %.0f bytes |
| tables, an outcome with its choice | %.0f bytes |
| sweep of what 1,000 outcomes left, after 31 days | %.0f ms |
| tables at a hundred million outcomes in 30 days | %.0f GB |
| sweeps of a hundred million outcomes | %.1f h |
`, s.items, float64(f.first.Microseconds())/1000, f.large, f.item, f.bytes, f.sweep.Seconds()*million,
		f.bytes*100*million/1e9, f.sweep.Hours()*100*million)
	return b.String()
}
