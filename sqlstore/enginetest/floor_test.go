package enginetest_test

import (
	"database/sql"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/sqlstore"
)

// The rows of a choice that is not recorded and its outcome: an id, a cell, a tally and an
// observation.
var floorRows = []string{
	`INSERT INTO heed_id (id, recorded, traced) VALUES ($1, CAST($2 AS BIGINT), 1)`,
	`INSERT INTO heed_cell (cell, kind, scope, item, name, half_life, by_origin, restart, lot)
		VALUES ($1, 'arm', 's', $2, 'a', 0, 0, 0, CAST($3 AS BIGINT))
		ON CONFLICT DO NOTHING`,
	`INSERT INTO heed_tally (cell, channel, source, landmark, mass, squares, reward, reward_squares, n_positive, n_negative, n_neutral,
			last_positive, last_negative, last_neutral,
			lost_positive, lost_negative, lost_neutral, lost_source)
		VALUES ($1, '', '', 0, 0.8, 0.64, 0.6, 0.45, 1, 0, 0, CAST($2 AS BIGINT), 0, 0, 0, 0, 0, 0)
		ON CONFLICT (cell, channel, source) DO UPDATE SET mass = heed_tally.mass + excluded.mass, squares = heed_tally.squares + excluded.squares,
			reward = heed_tally.reward + excluded.reward, reward_squares = heed_tally.reward_squares + excluded.reward_squares,
			n_positive = heed_tally.n_positive + 1, last_positive = excluded.last_positive`,
	`INSERT INTO heed_observation (cell, id, happened, recorded, source, observation)
		VALUES ($1, $2, CAST($3 AS BIGINT), CAST($3 AS BIGINT), '', $4)`,
}

// writingRows returns what a program by hand does that writes these rows in one transaction, and
// nothing else: SQLite takes prepared statements, PostgreSQL one statement.
func writingRows(b *testing.B, at place) func() error {
	handle := at.pool(b)
	_, err := sqlstore.Open(ctx, handle, at.dialect)
	require.NoError(b, err)
	handle.SetMaxOpenConns(1)
	var n atomic.Int64
	// the benchmark may run again in one database, and the ids have to be new
	n.Store(time.Now().UnixNano())
	next := func() [][]any {
		n := n.Add(1)
		name := func(of string, n int64) string { return text.HashOf(of, fmt.Sprint(n)).String() }
		now, arm, id := time.Now().UnixMicro(), name("arm", n%3000), name("id", n)
		text := fmt.Sprintf(`{"id":"share-true:%036d:","session":"%020d","reward":0.75,"weight":0.8}`, n, n)
		return [][]any{
			{id, now}, {arm, fmt.Sprint("item", n%1000), n}, {arm, now}, {arm, id, now, text},
		}
	}
	if at.dialect == sqlstore.Postgres {
		whole, first := "WITH ", 0
		for i, row := range floorRows {
			row = regexp.MustCompile(`\$\d+`).ReplaceAllStringFunc(row, func(name string) string {
				k, _ := strconv.Atoi(name[1:])
				return fmt.Sprint("$", k+first)
			})
			first += len(next()[i])
			if i < len(floorRows)-1 {
				row = fmt.Sprintf("w%d AS (%s)%s ", i, row, strings.Repeat(",", min(1, len(floorRows)-2-i)))
			}
			whole += row
		}
		insert, err := handle.Prepare(whole)
		require.NoError(b, err)
		return func() error {
			var args []any
			for _, row := range next() {
				args = append(args, row...)
			}
			_, err := insert.Exec(args...)
			return err
		}
	}
	_, err = handle.Exec("PRAGMA synchronous = FULL")
	require.NoError(b, err)
	var statements []*sql.Stmt
	for _, text := range append(append([]string{"BEGIN IMMEDIATE"}, floorRows...), "COMMIT") {
		statement, err := handle.Prepare(text)
		require.NoError(b, err)
		statements = append(statements, statement)
	}
	return func() error {
		args := append(append([][]any{nil}, next()...), nil)
		for i, statement := range statements {
			if _, err := statement.Exec(args[i]...); err != nil {
				return err
			}
		}
		return nil
	}
}

// BenchmarkFloor sets these rows beside a plain insertion, as BenchmarkShare does with a choice and
// its outcome: no store that writes them for one caller has a greater share.
func BenchmarkFloor(b *testing.B) {
	for _, backend := range backends {
		b.Run("store="+backend.name, func(b *testing.B) {
			at := backend.place(b)
			if at.dialect == sqlstore.Postgres {
				at.dsn = durablePostgres(b)
			}
			plain, rows := inserting(b, at), writingRows(b, at)
			var rates [2]float64
			for range b.N {
				for range 4 {
					for i, do := range []func() error{plain, rows} {
						rates[i] += rate(b, 1, 500*time.Millisecond, do)
					}
				}
			}
			b.ReportMetric(rates[0]/float64(4*b.N), "raw/s")
			b.ReportMetric(rates[1]/float64(4*b.N), "written/s")
			b.ReportMetric(100*rates[1]/rates[0], "%share")
			b.ReportMetric(0, "ns/op")
		})
	}
}
