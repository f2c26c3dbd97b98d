package partition_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy/partition"
)

func TestConfigFaults(t *testing.T) {
	st := newStore(t)
	for field, cfg := range map[string]partition.Config{
		"Store":    {},
		"Name":     {Store: st, Name: "a\x00b"},
		"Clusters": {Store: st, Clusters: 10_001},
	} {
		_, err := partition.New(ctx, cfg)
		var fault *heed.ConfigError
		require.ErrorAs(t, err, &fault)
		assert.Equal(t, field, fault.Field)
	}
	_, err := partition.New(ctx, partition.Config{Name: string(make([]byte, 1000)), Clusters: -1})
	n := 0
	for range heed.ConfigErrors(err) {
		n++
	}
	assert.Equal(t, 3, n, "all faults at once")
	for more, ok := range map[int]bool{0: true, 1: false} {
		name := strings.Repeat("a", evidence.MaxText-32+more) // the rest is for a cell's number
		_, err := partition.New(ctx, partition.Config{Store: newStore(t), Name: name})
		assert.Equal(t, ok, err == nil)
	}
	for _, clusters := range []int{1, 10_000} {
		newPartition(t, partition.Config{Clusters: clusters})
	}
}

// Without a setting there are at most 30 cells; with a setting of one there is one.
func TestTheNumberOfCells(t *testing.T) {
	for clusters, want := range map[int]int{0: 30, 1: 1} {
		p := newPartition(t, partition.Config{Clusters: clusters})
		rng, vectors := rand.New(rand.NewPCG(1, 0)), [][]float32(nil)
		for range 320 {
			vectors = append(vectors, []float32{float32(rng.NormFloat64()), float32(rng.NormFloat64()),
				float32(rng.NormFloat64())})
		}
		learn(t, p, vectors)
		seen := make(map[string]bool)
		for _, v := range vectors {
			item, err := p.Of(v)
			require.NoError(t, err)
			seen[item] = true
		}
		assert.Len(t, seen, want)
	}
}

// The cells have the time of the sweep, or of the clock where the sweep has none.
func TestWhenCellsChanged(t *testing.T) {
	later := start.Add(time.Hour)
	for _, one := range []struct{ sweep, want time.Time }{{start, start}, {time.Time{}, later}} {
		st := newStore(t)
		p := newPartition(t, partition.Config{Store: st, Now: func() time.Time { return later }})
		see(t, p, topics(40, 1, 0))
		require.NoError(t, p.Sweep(ctx, one.sweep))
		assert.Contains(t, text(t, st), `"at":"`+one.want.Format(time.RFC3339)+`"`)
	}
	st := newStore(t)
	p, err := partition.New(ctx, partition.Config{Store: st})
	require.NoError(t, err)
	see(t, p, topics(40, 1, 0))
	require.NoError(t, p.Sweep(ctx, time.Time{}))
	assert.NotContains(t, text(t, st), `"at":"0001`, "it is the system's by default")
}

// A meeting is a store whose commit fails once, after something else has happened.
type meeting struct {
	*memstore.Store
	before func()
}

func (m *meeting) Commit(ctx context.Context, b ...store.Batch) ([]store.Receipt, error) {
	if do := m.before; do != nil {
		m.before = nil
		do()
		return nil, storetest.ErrFailed
	}
	return m.Store.Commit(ctx, b...)
}

// A thousand vectors wait for a sweep. After one that failed, its vectors are the first of them.
func TestAThousandVectorsAreKept(t *testing.T) {
	for _, one := range []struct{ before, during int }{{1002, 0}, {600, 600}, {1000, 10}} {
		st := &meeting{Store: newStore(t)}
		p := newPartition(t, partition.Config{Store: st, Clusters: 2})
		see(t, p, topics(one.before, 1, 0))
		if one.during > 0 {
			st.before = func() { see(t, p, topics(one.during, 2, 0)) }
			require.ErrorIs(t, p.Sweep(ctx, start), storetest.ErrFailed)
		}
		require.NoError(t, p.Sweep(ctx, start))
		assert.Contains(t, text(t, st.Store), `"seen":1000`)
	}
}

// Five topics, and room for five cells. Each has one of its own.
func TestSweepFindsTheTopics(t *testing.T) {
	p := newPartition(t, partition.Config{Clusters: 5})
	assert.Equal(t, []string{"", ""}, items(t, p, 0, 1), "before there are cells, all is one item")
	learn(t, p, topics(500, 1, 0, 1, 2, 3, 4))
	seen := make(map[string]bool)
	for _, item := range items(t, p, 0, 1, 2, 3, 4) {
		assert.Regexp(t, `^partition:8\.[0-4]$`, item)
		seen[item] = true
	}
	assert.Len(t, seen, 5)
	for i, v := range topics(500, 2, 0, 1, 2, 3, 4) {
		item, err := p.Of(v)
		require.NoError(t, err)
		assert.Equal(t, of(t, p, i%5), item)
	}
}

func TestTheSameSeedMakesTheSameCells(t *testing.T) {
	made := func(cfg partition.Config) string {
		cfg.Store = newStore(t)
		p := newPartition(t, cfg)
		learn(t, p, topics(100, 1, 0, 1, 2))
		learn(t, p, topics(100, 3, 0, 4, 5))
		return text(t, cfg.Store)
	}
	seeded := func(seed uint64) string {
		return made(partition.Config{Clusters: 7, Seed: rand.NewPCG(seed, 0)})
	}
	one, none := seeded(1), made(partition.Config{})
	assert.Equal(t, one, seeded(1))
	assert.NotEqual(t, one, seeded(2))
	assert.Equal(t, none, made(partition.Config{}), "without a seed too")
	assert.Equal(t, none, made(partition.Config{Seed: rand.NewPCG(0, 0)}), "which is always this one")
}

func TestFewAndEqualVectors(t *testing.T) {
	st := newStore(t)
	p := newPartition(t, partition.Config{Clusters: 100, Store: st})
	same := make([][]float32, 50)
	for i := range same {
		same[i] = axis(3)
	}
	learn(t, p, same)
	assert.NotEmpty(t, of(t, p, 3))
	assert.Equal(t, of(t, p, 3), of(t, p, 4), "vectors that are all alike are one cell")
	assert.Equal(t, 1, strings.Count(text(t, st), `"vector":`))
	few := newPartition(t, partition.Config{Clusters: 100})
	learn(t, few, topics(39, 1, 0, 1, 2, 3, 4, 5))
	assert.Equal(t, 3, distinct(items(t, few, 0, 1, 2, 3, 4, 5)), "one cell for ten vectors")
}

func distinct(all []string) int {
	seen := make(map[string]bool)
	for _, s := range all {
		seen[s] = true
	}
	return len(seen)
}

// Vectors of another length have other cells, and leave the cells before alone: a process with
// another embedder, during a deployment, changes no item.
func TestAnotherEmbedderHasOtherCells(t *testing.T) {
	st := newStore(t)
	p := newPartition(t, partition.Config{Store: st, Clusters: 2})
	learn(t, p, topics(50, 1, 0, 1))
	before := items(t, p, 0, 1)
	var other [][]float32
	for i := range 40 {
		v := []float32{0, 0, 0}
		v[i%2] = 1
		other = append(other, v)
	}
	item, err := p.Of(other[0])
	require.NoError(t, err)
	assert.Empty(t, item, "until there are enough")
	require.NoError(t, p.Sweep(ctx, start))

	learn(t, p, other)
	again := newPartition(t, partition.Config{Store: st})
	for _, p := range []*partition.Partition{p, again} {
		assert.Equal(t, before, items(t, p, 0, 1))
		var after []string
		for _, v := range other[:2] {
			item, err := p.Of(v)
			require.NoError(t, err)
			after = append(after, item)
		}
		slices.Sort(after)
		assert.Equal(t, []string{"partition:3.0", "partition:3.1"}, after)
	}
}

// If the record is lost, the names that this process has used are given to no other cell.
func TestALostRecord(t *testing.T) {
	st := newStore(t)
	p := newPartition(t, partition.Config{Store: st, Clusters: 2})
	learn(t, p, topics(50, 1, 0, 1))
	before, lost := items(t, p, 0, 1), record(t, st)
	_, err := st.Commit(ctx, store.Batch{Records: []store.Record{
		{Ref: lost.Ref, Revision: lost.Revision}}})
	require.NoError(t, err)
	learn(t, p, topics(50, 2, 2, 3))
	learn(t, p, topics(50, 3, 2, 3))
	for _, item := range items(t, newPartition(t, partition.Config{Store: st}), 2, 3) {
		assert.NotContains(t, before, item)
	}
}

// Cells come one for ten vectors, and their items keep their names.
func TestSweepLearnsFromWhatComes(t *testing.T) {
	st := newStore(t)
	p := newPartition(t, partition.Config{Store: st, Clusters: 6})
	learn(t, p, topics(31, 1, 0, 1, 2))
	assert.Zero(t, record(t, st).Revision, "fewer than 32 wait")
	learn(t, p, topics(1, 2, 0))
	first := items(t, p, 0, 1, 2)
	assert.Equal(t, 3, distinct(first))
	kept := record(t, st).Revision
	assert.NotZero(t, kept)
	require.NoError(t, p.Sweep(ctx, start))
	assert.Equal(t, kept, record(t, st).Revision, "nothing came")

	learn(t, p, topics(60, 3, 0, 1, 2, 3, 4, 5))
	all := items(t, p, 0, 1, 2, 3, 4, 5)
	assert.Equal(t, 6, distinct(all))
	assert.Equal(t, first, all[:3])
}

// A cell whose vectors move goes with them, and keeps its name.
func TestCellsFollow(t *testing.T) {
	p := newPartition(t, partition.Config{Clusters: 2})
	learn(t, p, topics(40, 1, 0, 1))
	name, other := of(t, p, 0), of(t, p, 1)
	for step := range 20 {
		var moved [][]float32
		for range 40 {
			v := axis(0)
			v[2] = float32(step) / 5
			moved = append(moved, v)
		}
		learn(t, p, append(moved, topics(5, uint64(step), 1)...))
	}
	assert.Equal(t, name, of(t, p, 2))
	assert.Equal(t, other, of(t, p, 1))
}

// After a restart they are the same, in a store that writes JSON, too. Another process has them
// after its next sweep.
func TestCellsAreKept(t *testing.T) {
	st := newStore(t)
	one := newPartition(t, partition.Config{Store: st, Clusters: 3})
	two := newPartition(t, partition.Config{Store: st, Clusters: 3})
	learn(t, one, topics(60, 1, 0, 1, 2))
	want := items(t, one, 0, 1, 2)
	assert.Equal(t, 3, distinct(want))
	assert.Equal(t, want, items(t, newPartition(t, partition.Config{Store: st}), 0, 1, 2))
	assert.Equal(t, []string{"", "", ""}, items(t, two, 0, 1, 2))
	require.NoError(t, two.Sweep(ctx, start))
	assert.Equal(t, want, items(t, two, 0, 1, 2))
	other := newPartition(t, partition.Config{Store: st, Name: "other"})
	assert.Empty(t, of(t, other, 0))

	var dump bytes.Buffer
	require.NoError(t, st.Dump(ctx, &dump))
	copied := newStore(t)
	require.NoError(t, copied.Load(ctx, &dump))
	assert.Equal(t, want, items(t, newPartition(t, partition.Config{Store: copied}), 0, 1, 2))
}

// Both learn from what each has seen, at the same time, and agree in the end.
func TestProcessesLearnTogether(t *testing.T) {
	st := newStore(t)
	var all []*partition.Partition
	for i := range 3 {
		p := newPartition(t, partition.Config{Store: st, Clusters: 6})
		see(t, p, topics(40, uint64(i), 2*i, 2*i+1))
		all = append(all, p)
	}
	var wait sync.WaitGroup
	for _, p := range all {
		wait.Go(func() { assert.NoError(t, p.Sweep(ctx, start)) })
	}
	wait.Wait()
	assert.Contains(t, text(t, st), `"seen":120`, "each vector counts once")
	want := items(t, newPartition(t, partition.Config{Store: st}), 0, 1, 2, 3, 4, 5)
	assert.NotContains(t, want, "")
	for _, p := range all {
		require.NoError(t, p.Sweep(ctx, start))
		assert.Equal(t, want, items(t, p, 0, 1, 2, 3, 4, 5))
	}
}

// TestAStoreThatFails changes nothing, and the vectors count when it works again.
func TestAStoreThatFails(t *testing.T) {
	storetest.FailEach(func(at int, after bool) bool {
		st := &storetest.Failing{Store: newStore(t)}
		p := newPartition(t, partition.Config{Store: st, Clusters: 4})
		learn(t, p, topics(39, 1, 0, 1))
		see(t, p, topics(40, 2, 0, 1, 2))
		st.Fail(at, after)
		err := p.Sweep(ctx, start)
		if !st.Failed() {
			require.NoError(t, err)
			return false
		}
		if err != nil || !after {
			require.ErrorIs(t, err, storetest.ErrFailed)
		}
		require.NoError(t, p.Sweep(ctx, start))
		want := items(t, p, 0, 1, 2)
		assert.Equal(t, 3, distinct(want))
		assert.Equal(t, want, items(t, newPartition(t, partition.Config{Store: st}), 0, 1, 2))
		return true
	})
}

// A partition is made only if the store answers each call.
func TestAPartitionNeedsItsStore(t *testing.T) {
	tried := 0
	storetest.FailEach(func(at int, after bool) bool {
		st := &storetest.Failing{Store: newStore(t)}
		st.Fail(at, after)
		_, err := partition.New(ctx, partition.Config{Store: st})
		if failed := st.Failed(); !failed {
			require.NoError(t, err)
			return false
		}
		tried++
		require.ErrorIs(t, err, storetest.ErrFailed, at)
		return true
	})
	assert.Positive(t, tried)
}

// Cells that can't be compared with a text are no cells. Those which a process has stay in use.
func TestADamagedRecordIsAnError(t *testing.T) {
	vector := func(numbers ...float32) map[string]any {
		b, err := binary.Append(nil, binary.LittleEndian, numbers)
		require.NoError(t, err)
		return map[string]any{"vector": b}
	}
	longer := append(vector(1, 0)["vector"].([]byte), 1)
	good, part := vector(0.6, 0.8), map[string]any{"vector": []byte{0, 0, 128, 63, 0}}
	for name, one := range map[string]struct {
		cells []any
		good  bool
	}{
		"as it is":           {[]any{good, vector(1, 0)}, true},
		"rounded":            {[]any{vector(0.6001, 0.8), good}, true},
		"rounded too much":   {[]any{vector(0.601, 0.8)}, false},
		"a longer vector":    {[]any{map[string]any{"vector": longer}}, false},
		"another length":     {[]any{good, vector(1, 0, 0)}, false},
		"no vector":          {[]any{good, vector()}, false},
		"no vectors":         {[]any{vector()}, false},
		"a part of a number": {[]any{part}, false},
		"not a unit vector":  {[]any{good, vector(1, 1)}, false},
		"not a number":       {[]any{good, vector(nan, 1)}, false},
	} {
		st := newStore(t)
		p := newPartition(t, partition.Config{Store: st, Clusters: 2})
		learn(t, p, topics(40, 1, 0, 1))
		before, r := items(t, p, 0, 1), record(t, st)
		body, err := json.Marshal(map[string]any{
			"name": "partition", "numbers": 2, "next": 9, "cells": one.cells})
		require.NoError(t, err)
		r.Body = store.Raw(body)
		_, err = st.Commit(ctx, store.Batch{Records: []store.Record{r}})
		require.NoError(t, err, name)
		_, err = partition.New(ctx, partition.Config{Store: st})
		if one.good {
			assert.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, heed.ErrDamaged, name)
		require.ErrorIs(t, p.Sweep(ctx, start), heed.ErrDamaged, name)
		assert.Equal(t, before, items(t, p, 0, 1), name)
	}
}

func TestVectorFaults(t *testing.T) {
	p := newPartition(t, partition.Config{})
	for name, v := range map[string][]float32{
		"none": nil, "zero": make([]float32, 8), "not a number": {nan, 1},
		"infinite": {float32(math.Inf(1))}, "long": make([]float32, 70_000),
	} {
		if name == "long" {
			v[0] = 1
		}
		_, err := p.Of(v)
		assertField(t, "vector", err)
	}
	see(t, p, topics(40, 1, 0))
	over, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, p.Sweep(over, start), context.Canceled)
	_, _, err := p.Item(over, "text")
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, of(t, p, 0))
}

// An ending is a context that has ended once it was asked a number of times. It counts how often it
// is asked after that.
type ending struct {
	context.Context
	left, late int
}

func (e *ending) Err() error {
	if e.left--; e.left >= 0 {
		return nil
	}
	e.late++
	return context.Canceled
}

// A sweep whose context ends while it learns ends between two rounds, and changes nothing.
func TestASweepEndsWithItsContext(t *testing.T) {
	for _, known := range []bool{false, true} {
		for n := 0; ; n++ {
			p := newPartition(t, partition.Config{Clusters: 5})
			if known {
				learn(t, p, topics(35, 1, 0, 1, 2))
			}
			before := of(t, p, 0)
			see(t, p, topics(120, 1, 0, 1, 2))
			over := &ending{ctx, n, 0}
			err := p.Sweep(over, start)
			if err == nil {
				assert.NotEmpty(t, of(t, p, 0))
				assert.Greater(t, n, 5)
				break
			}
			require.ErrorIs(t, err, context.Canceled)
			assert.Equal(t, 1, over.late, "it ends after %d questions", n)
			assert.Equal(t, before, of(t, p, 0))
		}
	}
}

func TestEmbedderFaults(t *testing.T) {
	broken := errors.New("broken")
	for name, embed := range map[string]heed.Embedder{
		"an error": func(context.Context, []string) ([][]float32, error) { return nil, broken },
		"none":     func(context.Context, []string) ([][]float32, error) { return nil, nil },
		"not a number": func(context.Context, []string) ([][]float32,
			error) {
			return [][]float32{{nan}}, nil
		},
		"a panic": func(context.Context, []string) ([][]float32,
			error) {
			panic("a bug of the host's")
		},
		"too many": func(context.Context, []string) ([][]float32, error) {
			return [][]float32{slices.Repeat([]float32{1}, 1<<16+1)}, nil
		},
		"nothing in them": func(context.Context, []string) ([][]float32,
			error) {
			return [][]float32{{}}, nil
		},
	} {
		p := newPartition(t, partition.Config{Embed: embed})
		learn(t, p, topics(40, 1, 0))
		item, _, err := p.Item(ctx, "text")
		require.ErrorContains(t, err, "partition: ", name)
		assert.Empty(t, item)
	}
	p := newPartition(t, partition.Config{Embed: func(context.Context, []string) ([][]float32,
		error) {
		return nil, broken
	}})
	_, _, err := p.Item(ctx, "text")
	assert.ErrorIs(t, err, broken)
}

// TestConcurrentUse runs all methods at once.
func TestConcurrentUse(t *testing.T) {
	p := newPartition(t, partition.Config{Clusters: 4})
	learn(t, p, topics(60, 1, 0, 1, 2))
	var wait sync.WaitGroup
	for i := range 4 {
		wait.Go(func() {
			for n := range 20 {
				for _, v := range topics(5, uint64(i*100+n), 0, 1, 2, 3) {
					item, err := p.Of(v)
					assert.NoError(t, err)
					assert.NotEmpty(t, item)
				}
				assert.NoError(t, p.Sweep(ctx, time.Time{}))
			}
		})
	}
	wait.Wait()
}

func assertField(t *testing.T, field string, err error) {
	t.Helper()
	var input *heed.InputError
	if assert.ErrorAs(t, err, &input) {
		assert.Equal(t, field, input.Field)
	}
}
