package partition_test

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy/partition"
)

var (
	ctx   = context.Background()
	start = time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
)

func clock() time.Time { return start }

func newStore(t testing.TB) *memstore.Store {
	t.Helper()
	st, err := memstore.New(memstore.Config{Now: clock})
	require.NoError(t, err)
	return st
}

func newPartition(t testing.TB, cfg partition.Config) *partition.Partition {
	t.Helper()
	if cfg.Now == nil {
		cfg.Now = clock
	}
	if cfg.Store == nil {
		cfg.Store = newStore(t)
	}
	p, err := partition.New(ctx, cfg)
	require.NoError(t, err)
	return p
}

// topics returns vectors of eight numbers, near the axes that are given, in turn.
func topics(n int, seed uint64, axes ...int) (vectors [][]float32) {
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range n {
		v := make([]float32, 8)
		for j := range v {
			v[j] = float32(0.1 * rng.NormFloat64())
		}
		v[axes[i%len(axes)]]++
		vectors = append(vectors, v)
	}
	return vectors
}

func axis(i int) []float32 {
	v := make([]float32, 8)
	v[i] = 1
	return v
}

// of returns the item of an axis.
func of(t testing.TB, p *partition.Partition, i int) string {
	t.Helper()
	item, err := p.Of(axis(i))
	require.NoError(t, err)
	return item
}

// items returns the items of the axes.
func items(t testing.TB, p *partition.Partition, axes ...int) (all []string) {
	t.Helper()
	for _, i := range axes {
		all = append(all, of(t, p, i))
	}
	return all
}

// see shows a partition vectors, as a host does that asks for their items.
func see(t testing.TB, p *partition.Partition, vectors [][]float32) {
	t.Helper()
	for _, v := range vectors {
		_, err := p.Of(v)
		require.NoError(t, err)
	}
}

// learn shows a partition vectors, and has it learn from all that it saw.
func learn(t testing.TB, p *partition.Partition, vectors [][]float32) {
	t.Helper()
	see(t, p, vectors)
	require.NoError(t, p.Sweep(ctx, start))
}

// learnTexts does the same with texts.
func learnTexts(t testing.TB, p *partition.Partition, texts []string) {
	t.Helper()
	for _, text := range texts {
		_, _, err := p.Item(ctx, text)
		require.NoError(t, err)
	}
	require.NoError(t, p.Sweep(ctx, start))
}

// record returns the record of the cells of eight numbers in a store.
func record(t testing.TB, st store.Store) store.Record {
	t.Helper()
	var s store.Snapshot
	ref := store.Ref{Kind: "strategy.cells", ID: "partition:8"}
	require.NoError(t, st.Read(ctx, &s, nil, []store.Ref{ref}))
	return s.Records[0]
}

// text returns the body of that record.
func text(t testing.TB, st store.Store) string {
	t.Helper()
	body, err := store.Decode[json.RawMessage](record(t, st).Body)
	require.NoError(t, err)
	return string(body)
}

var nan = float32(math.NaN())
