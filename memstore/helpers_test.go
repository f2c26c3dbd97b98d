package memstore_test

import (
	"bytes"
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

var (
	ctx   = context.Background()
	start = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	cell  = evidence.Cell{Kind: "kind", Scope: "scope", Item: "item", Name: "name"}
)

// clock is a clock that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: start} }

func (c *clock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func observe(id string, at time.Time) evidence.Observation {
	return evidence.Observation{ID: id, Cell: cell, Reward: 1, Weight: 1, At: at}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func history(t testing.TB, st *memstore.Store, c evidence.Cell) (ids []string) {
	for o, err := range st.History(ctx, c) {
		require.NoError(t, err)
		ids = append(ids, o.ID)
	}
	return ids
}

func run(t require.TestingT, st store.Store, job store.Job) {
	require.NoError(t, store.Run(ctx, st, job))
}

// expunging takes a source out of the one cell of most tests.
func expunging(source string) store.Batch {
	return store.Batch{Expunge: []store.SourceOf{{Cell: cell, Source: source}}}
}

// reload returns a store that was loaded from a dump of another.
func reload(t require.TestingT, st *memstore.Store, cfg memstore.Config) *memstore.Store {
	var file bytes.Buffer
	require.NoError(t, st.Dump(ctx, &file))
	loaded, err := memstore.New(cfg)
	require.NoError(t, err)
	require.NoError(t, loaded.Load(ctx, bytes.NewReader(file.Bytes())))
	return loaded
}
