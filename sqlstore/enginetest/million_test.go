package enginetest_test

import (
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/ids"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// fillSegment writes one outcome of each of two arms for as many items, past the store.
func fillSegment(b *testing.B, handle *sql.DB, dialect sqlstore.Dialect, scope string, items int) {
	cells := `INSERT INTO heed_cell (cell, kind, scope, item, name, half_life, by_origin, restart, lot, checksum)
		SELECT value->>0, value->>1, value->>2, value->>3, value->>4, 0, 0, 0, CAST(value->>5 AS BIGINT), CAST(value->>7 AS BIGINT) FROM json_each($1)`
	tallies := `INSERT INTO heed_tally SELECT value->>0, '', '', 0, 1, 1, CAST(value->>6 AS BIGINT), CAST(value->>6 AS BIGINT),
		CAST(value->>6 AS BIGINT), 1 - CAST(value->>6 AS BIGINT), 0, 1, 1, 0, 0, 0, 0, 0,
		CAST(value->>8 AS BIGINT) FROM json_each($1)`
	if dialect == sqlstore.Postgres {
		cells, tallies = strings.ReplaceAll(cells, "json_each", "jsonb_array_elements"), strings.ReplaceAll(tallies, "json_each", "jsonb_array_elements")
	}
	var rows [][]any
	for i := range items {
		item := fmt.Sprint("i", i)
		lot := ids.Of(item)
		for k, arm := range []string{"a", "b"} {
			key := ids.Of("strategy.arm", scope, item, arm).String()
			rows = append(rows, []any{
				key, "strategy.arm", scope, item, arm, binary.BigEndian.Uint64(lot[:]) >> 1, (i + k) % 2,
				crcOf("strategy.arm", scope, item, arm), crcOf(key, "", ""),
			})
		}
		if len(rows) >= 20_000 || i == items-1 {
			text, err := json.Marshal(rows)
			require.NoError(b, err)
			for _, statement := range []string{cells, tallies} {
				_, err := handle.Exec(statement, string(text))
				require.NoError(b, err)
			}
			rows = rows[:0]
		}
	}
	_, err := handle.Exec("ANALYZE")
	require.NoError(b, err)
}

// crcOf is the CRC-32C of texts, each after its length, as checksums have it.
func crcOf(texts ...string) uint32 {
	var all []byte
	for _, text := range texts {
		all = append(binary.AppendUvarint(all, uint64(len(text))), text...)
	}
	return crc32.Checksum(all, crc32.MakeTable(crc32.Castagnoli))
}

// BenchmarkFirstSelectOfMany times the first choice in a segment of 100,000 items, of a million with HEED_LONG, and says how much memory that
// takes beside the store.
func BenchmarkFirstSelectOfMany(b *testing.B) {
	for _, backend := range backends {
		for _, items := range []int{100_000, 1_000_000}[:rounds(1, 2)] {
			b.Run(fmt.Sprintf("store=%s/items=%d", backend.name, items), func(b *testing.B) {
				at := backend.place(b)
				handle := at.pool(b)
				st, err := sqlstore.Open(ctx, handle, at.dialect)
				require.NoError(b, err)
				cfg, q := strategy.Config{Store: st, Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}}, Unrecorded: true}, strategy.Query{Category: "mine", Item: "new"}
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
