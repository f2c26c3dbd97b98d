package partition_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/partition"
)

func TestConfigFaults(t *testing.T) {
	for field, cfg := range map[string]partition.Config{
		"Name":     {Name: "a\x00b"},
		"Clusters": {Clusters: 10_001},
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
	assert.Equal(t, 2, n, "all faults at once")
}

// Five topics, and room for five cells. Each has one of its own.
func TestFitFindsTheTopics(t *testing.T) {
	p := newPartition(t, partition.Config{Clusters: 5})
	assert.Equal(t, []string{"", ""}, items(t, p, 0, 1), "before there are cells, all is one item")
	require.NoError(t, p.FitVectors(ctx, topics(500, 1, 0, 1, 2, 3, 4)))
	seen := make(map[string]bool)
	for _, item := range items(t, p, 0, 1, 2, 3, 4) {
		assert.Regexp(t, `^partition:[0-4]$`, item)
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
	made := func(seed uint64) string {
		p := newPartition(t, partition.Config{Clusters: 7, Seed: rand.NewPCG(seed, 0)})
		require.NoError(t, p.FitVectors(ctx, topics(100, 1, 0, 1, 2)))
		see(t, p, topics(100, 3, 0, 4, 5))
		require.NoError(t, p.Sweep(ctx, start))
		return text(t, p)
	}
	one, again := made(1), made(1)
	assert.Equal(t, one, again)
	assert.NotEqual(t, one, made(2))
	none := newPartition(t, partition.Config{})
	other := newPartition(t, partition.Config{})
	for _, p := range []*partition.Partition{none, other} {
		require.NoError(t, p.FitVectors(ctx, topics(100, 1, 0, 1, 2)))
	}
	assert.Equal(t, text(t, none), text(t, other), "without a seed too")
}

func TestFewAndEqualVectors(t *testing.T) {
	p := newPartition(t, partition.Config{Clusters: 100})
	assertField(t, "vectors", p.FitVectors(ctx, topics(9, 1, 0)))
	assert.Zero(t, p.Version())
	same := make([][]float32, 50)
	for i := range same {
		same[i] = axis(3)
	}
	require.NoError(t, p.FitVectors(ctx, same))
	assert.Equal(t, of(t, p, 3), of(t, p, 4), "vectors that are all alike are one cell")
	require.NoError(t, p.FitVectors(ctx, topics(20, 1, 0, 1, 2)))
	assert.LessOrEqual(t, distinct(items(t, p, 0, 1, 2, 3, 4, 5)), 2, "one cell for ten vectors")
}

func distinct(all []string) int {
	seen := make(map[string]bool)
	for _, s := range all {
		seen[s] = true
	}
	return len(seen)
}

// Three of four topics stay, and one is replaced. The items of the three keep their names and their
// evidence. The item of the fourth begins as one that was never seen.
func TestARefitKeepsWhatWasLearned(t *testing.T) {
	st := newStore(t)
	p := newPartition(t, partition.Config{Store: st, Clusters: 4})
	learner, err := strategy.New(ctx, strategy.Config{Store: st, Now: clock,
		Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}}, Seed: rand.NewPCG(1, 2)})
	require.NoError(t, err)
	require.NoError(t, p.FitVectors(ctx, topics(200, 1, 0, 1, 2, 3)))
	before := items(t, p, 0, 1, 2, 3)
	for i := range 80 {
		item := before[i%4]
		choice, err := learner.Record(ctx, strategy.Query{Item: item, Session: strconv.Itoa(i)}, "a", 1)
		require.NoError(t, err)
		_, err = learner.Observe(ctx, strategy.Outcome{Choice: choice,
			Value: []float64{1, -1, 1, -1}[i%4], Confidence: 1})
		require.NoError(t, err)
	}
	mean := func(item string) float64 {
		beliefs, err := learner.Beliefs(ctx, strategy.Query{Item: item})
		require.NoError(t, err)
		return beliefs[0].Mean()
	}
	was := []float64{mean(before[0]), mean(before[1]), mean(before[2])}

	// in another order, and 5 in place of 3
	require.NoError(t, p.FitVectors(ctx, topics(200, 2, 2, 5, 0, 1)))
	after := items(t, p, 0, 1, 2, 5)
	assert.Equal(t, before[:3], after[:3])
	assert.NotContains(t, before, after[3])
	for i, item := range after[:3] {
		assert.InDelta(t, was[i], mean(item), 1e-12)
	}
	assert.InDelta(t, mean("never seen"), mean(after[3]), 1e-12, "it begins with what all have shown")
	assert.Greater(t, was[0], mean(after[3]))
	assert.Less(t, was[1], mean(after[3]))
	assert.Equal(t, uint64(2), p.Version())
}

// Vectors of another length have nothing in common with those before.
func TestAnotherEmbedderHasOtherCells(t *testing.T) {
	p := newPartition(t, partition.Config{Clusters: 2})
	require.NoError(t, p.FitVectors(ctx, topics(50, 1, 0, 1)))
	before := items(t, p, 0, 1)
	_, err := p.Of([]float32{1, 0, 0})
	assertField(t, "vector", err)
	var other [][]float32
	for i := range 40 {
		v := []float32{0, 0, 0}
		v[i%2] = 1
		other = append(other, v)
	}
	require.NoError(t, p.FitVectors(ctx, other))
	for i := range 2 {
		item, err := p.Of(other[i])
		require.NoError(t, err)
		assert.NotContains(t, before, item)
	}
}

// Cells come one for ten vectors, and their items keep their names.
func TestSweepLearnsFromWhatComes(t *testing.T) {
	p := newPartition(t, partition.Config{Clusters: 6})
	see(t, p, topics(31, 1, 0, 1, 2))
	require.NoError(t, p.Sweep(ctx, start))
	assert.Zero(t, p.Version(), "fewer than 32 wait")
	see(t, p, topics(1, 2, 0))
	require.NoError(t, p.Sweep(ctx, start))
	assert.Equal(t, uint64(1), p.Version())
	first := items(t, p, 0, 1, 2)
	assert.Equal(t, 3, distinct(first))
	require.NoError(t, p.Sweep(ctx, start))
	assert.Equal(t, uint64(1), p.Version(), "nothing came")

	see(t, p, topics(60, 3, 0, 1, 2, 3, 4, 5))
	require.NoError(t, p.Sweep(ctx, start))
	all := items(t, p, 0, 1, 2, 3, 4, 5)
	assert.Equal(t, 6, distinct(all))
	assert.Equal(t, first, all[:3])
}

// A cell whose vectors move goes with them, and keeps its name.
func TestCellsFollow(t *testing.T) {
	p := newPartition(t, partition.Config{Clusters: 2})
	require.NoError(t, p.FitVectors(ctx, topics(40, 1, 0, 1)))
	name, other := of(t, p, 0), of(t, p, 1)
	for step := range 20 {
		var moved [][]float32
		for range 40 {
			v := axis(0)
			v[2] = float32(step) / 5
			moved = append(moved, v)
		}
		see(t, p, append(moved, topics(5, uint64(step), 1)...))
		require.NoError(t, p.Sweep(ctx, start))
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
	require.NoError(t, one.FitVectors(ctx, topics(60, 1, 0, 1, 2)))
	assert.Equal(t, text(t, one), text(t, newPartition(t, partition.Config{Store: st})))
	assert.Zero(t, two.Version())
	require.NoError(t, two.Sweep(ctx, start))
	assert.Equal(t, items(t, one, 0, 1, 2), items(t, two, 0, 1, 2))
	assert.Zero(t, newPartition(t, partition.Config{Store: st, Name: "other"}).Version())

	var dump bytes.Buffer
	require.NoError(t, st.Dump(ctx, &dump))
	copied := newStore(t)
	require.NoError(t, copied.Load(ctx, &dump))
	assert.Equal(t, text(t, one), text(t, newPartition(t, partition.Config{Store: copied})))
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
	for _, p := range all {
		require.NoError(t, p.Sweep(ctx, start))
		assert.Equal(t, uint64(3), p.Version())
		assert.Equal(t, text(t, all[0]), text(t, p))
	}
	assert.Contains(t, text(t, all[0]), `"seen":120`, "each vector counts once")
}

// TestAStoreThatFails changes nothing, and the vectors count when it works again.
func TestAStoreThatFails(t *testing.T) {
	storetest.FailEach(func(at int, after bool) bool {
		st := &storetest.Failing{Store: newStore(t)}
		p := newPartition(t, partition.Config{Store: st, Clusters: 3})
		require.NoError(t, p.FitVectors(ctx, topics(60, 1, 0, 1)))
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
		assert.GreaterOrEqual(t, p.Version(), uint64(2))
		assert.Equal(t, 3, distinct(items(t, p, 0, 1, 2)))
		assert.Equal(t, text(t, newPartition(t, partition.Config{Store: st})), text(t, p))
		return true
	})
}

func TestADamagedRecordIsAnError(t *testing.T) {
	st := newStore(t)
	p := newPartition(t, partition.Config{Store: st})
	var s store.Snapshot
	require.NoError(t, p.FitVectors(ctx, topics(20, 1, 0, 1)))
	ref := store.Ref{Kind: "strategy.partition", ID: "partition"}
	require.NoError(t, st.Read(ctx, &s, nil, []store.Ref{ref}))
	bad := store.Record{Ref: ref, Revision: s.Records[0].Revision, At: start, Body: store.Raw([]byte(`{"name":"partition","partition":{"format":1,"version":2}}`))}
	_, err := st.Commit(ctx, store.Batch{Records: []store.Record{bad}})
	require.NoError(t, err)
	before := text(t, p)
	require.ErrorIs(t, p.Sweep(ctx, start), heed.ErrDamaged)
	assert.Equal(t, before, text(t, p))
	_, err = partition.New(ctx, partition.Config{Store: st})
	assert.ErrorIs(t, err, heed.ErrDamaged)
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
		all := topics(20, 1, 0)
		all[7] = v
		assertField(t, "vectors[7]", p.FitVectors(ctx, all))
	}
	assertField(t, "vectors[1]", p.FitVectors(ctx, append([][]float32{{1}}, topics(20, 1, 0)...)))
	over, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, p.FitVectors(over, topics(20, 1, 0)), context.Canceled)
	require.ErrorIs(t, p.Sweep(over, start), context.Canceled)
	_, _, err := p.Item(over, "text")
	require.ErrorIs(t, err, context.Canceled)
	assert.Zero(t, p.Version())
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
		"another length": func(context.Context, []string) ([][]float32,
			error) {
			return [][]float32{{1, 2}}, nil
		},
		"a panic": func(context.Context, []string) ([][]float32,
			error) {
			panic("a bug of the host's")
		},
		"nothing in them": func(context.Context, []string) ([][]float32,
			error) {
			return [][]float32{{}}, nil
		},
	} {
		p := newPartition(t, partition.Config{Embed: embed})
		require.NoError(t, p.FitVectors(ctx, topics(20, 1, 0)), name)
		item, _, err := p.Item(ctx, "text")
		require.ErrorContains(t, err, "partition: ", name)
		assert.Empty(t, item)
		require.Error(t, p.Fit(ctx, []string{"text"}), name)
		assert.Equal(t, uint64(1), p.Version())
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
	p := newPartition(t, partition.Config{Store: newStore(t), Clusters: 4})
	require.NoError(t, p.FitVectors(ctx, topics(60, 1, 0, 1, 2)))
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
				if n%10 == 0 {
					assert.NoError(t, p.FitVectors(ctx, topics(40, uint64(n), 0, 1, 2, 3)))
				}
				assert.NotEmpty(t, text(t, p))
			}
		})
	}
	wait.Wait()
	assert.Positive(t, p.Version())
}

func assertField(t *testing.T, field string, err error) {
	t.Helper()
	var input *heed.InputError
	if assert.ErrorAs(t, err, &input) {
		assert.Equal(t, field, input.Field)
	}
}
