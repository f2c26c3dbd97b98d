package main

import (
	"bytes"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/web"
)

// manyItems fills a store of SQLite with a learner of two arms and a segment of n items, each with
// a recorded choice and its outcome, and with half as many ways of working.
func manyItems(b *testing.B, n int) *view.Source {
	now := start
	clock := func() time.Time { return now }
	memory, err := memstore.New(memstore.Config{Now: clock})
	require.NoError(b, err)
	arms := []strategy.Arm{{ID: "small"}, {ID: "large"}}
	learner, err := strategy.New(ctx, strategy.Config{
		Store: memory, Now: clock, Seed: rand.NewPCG(1, 2), Arms: arms, Refresh: 1000 * time.Hour,
	})
	require.NoError(b, err)
	luck := rand.New(rand.NewPCG(3, 4))
	for i := range n {
		now = start.Add(time.Duration(i) * time.Second)
		arm := arms[i%2].ID
		q := strategy.Query{Category: "desk", Item: fmt.Sprintf("item-%06d", luck.IntN(1_000_000_000))}
		c, err := learner.Record(ctx, q, arm, 0.5)
		require.NoError(b, err)
		value := 2*luck.Float64() - 1
		_, err = learner.Observe(ctx, strategy.Outcome{Choice: c, Value: value, Confidence: 1})
		require.NoError(b, err)
	}
	recorder, err := patterns.New(ctx, patterns.Config{Store: memory, Now: clock})
	require.NoError(b, err)
	for i := range n / 2 {
		_, err := recorder.Record(ctx, patterns.Outcome{ID: fmt.Sprint("outcome ", i),
			Task: fmt.Sprint("task ", i), Strategy: patterns.PatternID(fmt.Sprint("way ", i)),
			Success: true, At: now})
		require.NoError(b, err)
	}
	file := filepath.Join(b.TempDir(), "many.db")
	handle, err := sql.Open("sqlite", "file:"+file+"?_pragma=synchronous(0)")
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, handle.Close()) })
	st, err := sqlstore.Open(ctx, handle, sqlstore.SQLite, sqlstore.Config{Now: clock, NoCache: true})
	require.NoError(b, err)
	var dump bytes.Buffer
	require.NoError(b, memory.Dump(ctx, &dump))
	require.NoError(b, st.Load(ctx, &dump))
	opened, err := strategy.Open(ctx, strategy.Config{Store: st, Now: clock})
	require.NoError(b, err)
	ways, err := patterns.Open(ctx, patterns.Config{Store: st, Now: clock})
	require.NoError(b, err)
	return &view.Source{Store: st, Strategy: opened, Patterns: ways, Now: clock}
}

// BenchmarkItems reads what the command and the pages show of 100,000 items.
func BenchmarkItems(b *testing.B) {
	v := manyItems(b, 100_000)
	pages, err := web.Over(v, web.Config{
		Now: v.Now, Identify: func(*http.Request) (string, error) { return "kim", nil },
	})
	require.NoError(b, err)
	get := func(path string) func() error {
		return func() error {
			w := httptest.NewRecorder()
			pages.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
			if w.Code != http.StatusOK {
				return fmt.Errorf("%s: %d", path, w.Code)
			}
			return nil
		}
	}
	var item string
	segment, err := v.Segment(ctx, strategy.Query{Category: "desk"}, 100)
	require.NoError(b, err)
	item = segment.Standings[0].Item
	for _, read := range []struct {
		name string
		do   func() error
	}{
		{"status", func() error { _, err := v.Status(ctx); return err }},
		{"segments", func() error { _, err := v.Segments(ctx, view.Page{}); return err }},
		{"segment", func() error {
			_, err := v.Segment(ctx, strategy.Query{Category: "desk"}, 100)
			return err
		}},
		{"item", func() error {
			_, err := v.Item(ctx, strategy.Query{Category: "desk", Item: item})
			return err
		}},
		{"ways page", get("/ways")},
		{"front page", get("/")},
		{"arms page", get("/arms")},
		{"segment page", get("/segment?category=desk")},
	} {
		b.Run(read.name, func(b *testing.B) {
			for b.Loop() {
				require.NoError(b, read.do())
			}
		})
	}
}
