package enginetest_test

import (
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// fillSegment writes one outcome of each of two arms for as many items, past the store.
func fillSegment(b *testing.B, handle *sql.DB, dialect sqlstore.Dialect, scope string, items int) {
	columns := "cell, channel, source, landmark, mass, squares, reward, reward_squares, " +
		"n_positive, n_negative, n_neutral, " +
		"last_positive, last_negative, last_neutral, " +
		"lost_positive, lost_negative, lost_neutral, lost_source"
	const cellColumns = "cell, kind, scope, item, name, half_life, by_origin, restart, lot"
	write := func(table, columns string, rows [][]any) {
		if dialect == sqlstore.Postgres {
			copyRows(b, handle, table, strings.Split(columns, ", "), rows)
			return
		}
		text, err := json.Marshal(rows)
		require.NoError(b, err)
		var values []string
		for i := range rows[0] {
			values = append(values, fmt.Sprint("value->>", i))
		}
		_, err = handle.Exec("INSERT INTO "+table+" ("+columns+") SELECT "+strings.Join(values,
			", ")+" FROM json_each($1)", string(text))
		require.NoError(b, err)
	}
	var cells, tallies [][]any
	for i := range items {
		item := fmt.Sprint("i", i)
		lot := text.HashOf(item)
		for k, arm := range []string{"a", "b"} {
			key, good := text.HashOf("strategy.arm", scope, item, arm).String(), int64((i+k)%2)
			cells = append(cells, []any{
				key, "strategy.arm", scope, item, arm, 0, 0, 0, int64(binary.BigEndian.Uint64(lot[:]) >> 1),
			})
			tallies = append(tallies, []any{
				key, "", "", 0, 1.0, 1.0, float64(good), float64(good), good, 1 - good, 0, 1, 1, 0, 0, 0,
				0, 0,
			})
		}
		if len(cells) >= 100_000 || i == items-1 {
			// in the order of the primary keys, which is quicker
			for _, rows := range [][][]any{cells, tallies} {
				slices.SortFunc(rows, func(a, b []any) int {
					return strings.Compare(fmt.Sprint(a[0]),
						fmt.Sprint(b[0]))
				})
			}
			write("heed_cell", cellColumns, cells)
			write("heed_tally", columns, tallies)
			cells, tallies = cells[:0], tallies[:0]
		}
	}
	_, err := handle.Exec("ANALYZE")
	require.NoError(b, err)
}

// copyRows writes rows into a table of PostgreSQL by COPY.
func copyRows(b *testing.B, handle *sql.DB, table string, columns []string, rows [][]any) {
	conn, err := handle.Conn(ctx)
	require.NoError(b, err)
	defer func() { require.NoError(b, conn.Close()) }()
	require.NoError(b, conn.Raw(func(driver any) error {
		_, err := driver.(*stdlib.Conn).Conn().CopyFrom(ctx, pgx.Identifier{table}, columns,
			pgx.CopyFromRows(rows))
		return err
	}))
}

// BenchmarkFirstSelectOfMany times the first choice in a segment of 100,000 items, of a million
// with HEED_LONG, and says how much memory that takes beside the store.
func BenchmarkFirstSelectOfMany(b *testing.B) {
	for _, backend := range backends {
		for _, items := range []int{100_000, 1_000_000}[:rounds(1, 2)] {
			b.Run(fmt.Sprintf("store=%s/items=%d", backend.name, items), func(b *testing.B) {
				at := backend.place(b)
				handle := at.pool(b)
				st, err := sqlstore.Open(ctx, handle, at.dialect)
				require.NoError(b, err)
				cfg, q := strategy.Config{Store: st, Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}},
					Unrecorded: true}, strategy.Query{Category: "mine", Item: "new"}
				l, err := strategy.New(ctx, cfg)
				require.NoError(b, err)
				made, err := l.Select(ctx, q)
				require.NoError(b, err)
				_, err = l.Observe(ctx, strategy.Outcome{Choice: made, Value: 1, Confidence: 1})
				require.NoError(b, err)
				scopes, err := gather(st.Scopes(ctx, "strategy.arm"))
				require.NoError(b, err)
				fillSegment(b, handle, at.dialect, scopes[0], items)
				l = nil
				var before, after, kept runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				var took, busy time.Duration
				for b.Loop() {
					l, err = strategy.New(ctx, cfg)
					require.NoError(b, err)
					began, before := time.Now(), cpuTime(b)
					_, err = l.Select(ctx, q)
					require.NoError(b, err)
					took, busy = took+time.Since(began), busy+cpuTime(b)-before
				}
				runtime.ReadMemStats(&after)
				runtime.GC()
				runtime.ReadMemStats(&kept)
				b.ReportMetric(float64(took.Microseconds())/float64(b.N)/1000, "ms/select")
				b.ReportMetric(float64(busy.Microseconds())/float64(b.N)/1000, "processor-ms/select")
				b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N)/1e6, "MB-allocated")
				b.ReportMetric((float64(kept.HeapAlloc)-float64(before.HeapAlloc))/1e6, "MB-kept")
				b.ReportMetric(0, "ns/op")
				runtime.KeepAlive([]any{l, store.Store(st)})
			})
		}
	}
}
