package memstore_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/decisiontest"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
)

func TestTracesKeepTheContract(t *testing.T) {
	decisiontest.RunTraces(t, func(now func() time.Time) (decision.TraceStore, error) {
		return memstore.NewTraces(memstore.TracesConfig{Now: now})
	})
}

func newTraces(t testing.TB, cfg memstore.TracesConfig) *memstore.Traces {
	t.Helper()
	store, err := memstore.NewTraces(cfg)
	require.NoError(t, err)
	return store
}

func putTrace(t testing.TB, store *memstore.Traces, id, text string) {
	t.Helper()
	require.NoError(t, store.Put(ctx, decision.Trace{ResponseID: id, Text: text, At: start}))
}

func TestTracesConfig(t *testing.T) {
	_, err := memstore.NewTraces(memstore.TracesConfig{TTL: -1, MaxTraces: -1, MaxBytes: -1, MaxVerdicts: -1})
	var fields []string
	for fault := range heed.ConfigErrors(err) {
		fields = append(fields, fault.Field)
	}
	assert.Equal(t, []string{"TTL", "MaxTraces", "MaxBytes", "MaxVerdicts"}, fields)
}

func TestTracesAge(t *testing.T) {
	now := start
	store := newTraces(t, memstore.TracesConfig{Now: func() time.Time { return now }, TTL: 300 * time.Second})
	for i := range 100 {
		putTrace(t, store, fmt.Sprint("r", i), "")
	}
	for _, tt := range []struct {
		age  time.Duration
		kept bool
	}{
		{299500 * time.Millisecond, true}, {300 * time.Second, true}, {-time.Hour, true}, {300*time.Second + 1, false}, {0, false},
	} {
		now = start.Add(tt.age)
		_, err := store.Get(ctx, "r0")
		_, _, err2 := store.React(ctx, "r0", decision.Verdict{})
		if tt.kept {
			assert.NoError(t, err, tt.age)
			assert.NoError(t, err2, tt.age)
		} else {
			assert.ErrorIs(t, err, heed.ErrNotFound, tt.age)
			assert.ErrorIs(t, err2, heed.ErrNotFound, tt.age)
			assert.ErrorIs(t, store.Delete(ctx, "r0"), heed.ErrNotFound, tt.age)
		}
	}
	assert.Zero(t, store.Len(), "what is past its time takes no memory when it was noticed")
}

func TestTracesAgeWhenTheClockGoesBack(t *testing.T) {
	now := start.Add(time.Hour)
	store := newTraces(t, memstore.TracesConfig{Now: func() time.Time { return now }, TTL: time.Minute})
	putTrace(t, store, "ahead", "")
	now = start
	putTrace(t, store, "r", "")
	now = start.Add(time.Minute + 1)
	_, err := store.Get(ctx, "r")
	assert.ErrorIs(t, err, heed.ErrNotFound, "it is past its time, also behind one that is not")
	putTrace(t, store, "r", "")
	_, err = store.Get(ctx, "ahead")
	assert.NoError(t, err)
	assert.Equal(t, 2, store.Len())
}

func TestTracesAreDroppedWhenOthersCome(t *testing.T) {
	now := start
	store := newTraces(t, memstore.TracesConfig{Now: func() time.Time { return now }, TTL: time.Minute})
	for i := range 101 {
		putTrace(t, store, fmt.Sprint("r", i), "")
	}
	now = now.Add(time.Minute + 1)
	putTrace(t, store, "new", "")
	assert.Equal(t, 1, store.Len())
	now = now.Add(time.Minute + 1)
	assert.Equal(t, 1, store.Len())
	require.NoError(t, store.Sweep(ctx))
	assert.Zero(t, store.Len())
	require.NoError(t, new(memstore.Traces).Sweep(ctx))
}

func TestTracesAreBounded(t *testing.T) {
	store := newTraces(t, memstore.TracesConfig{MaxTraces: 3})
	for i := range 10 {
		putTrace(t, store, fmt.Sprint("r", i), "")
	}
	assert.Equal(t, 3, store.Len())
	for i := range 10 {
		_, err := store.Get(ctx, fmt.Sprint("r", i))
		assert.Equal(t, i >= 7, err == nil, "the oldest go")
	}

	store = newTraces(t, memstore.TracesConfig{MaxBytes: 10_000})
	for i := range 10 {
		putTrace(t, store, fmt.Sprint("r", i), strings.Repeat("x", 2000))
	}
	assert.Equal(t, 3, store.Len())
	err := store.Put(ctx, decision.Trace{ResponseID: "large", Text: strings.Repeat("x", 10_000)})
	assert.ErrorIs(t, err, evidence.ErrFull)
	assert.Equal(t, 3, store.Len(), "what has no room at all drives nothing out")
}

func TestVerdictsAreBounded(t *testing.T) {
	store := newTraces(t, memstore.TracesConfig{MaxVerdicts: 2})
	putTrace(t, store, "r", "")
	say := func(person string) error {
		_, _, err := store.React(ctx, "r", decision.Verdict{Person: person, Value: 1})
		return err
	}
	assert.NoError(t, say("Ann"))
	assert.NoError(t, say("Bob"))
	assert.ErrorIs(t, say("Eve"), evidence.ErrFull)
	assert.NoError(t, say("Ann"))

	store = newTraces(t, memstore.TracesConfig{MaxBytes: 5000})
	putTrace(t, store, "old", "")
	putTrace(t, store, "r", "")
	n := 0
	for say(fmt.Sprint(n)) == nil {
		n++
	}
	assert.InDelta(t, 11, n, 2, "verdicts take room, of which the oldest trace gave its own")
	assert.Equal(t, 1, store.Len())
}

func TestTracesAreCopied(t *testing.T) {
	store := &memstore.Traces{}
	want := decision.Trace{ResponseID: "r", Text: "text", At: start}
	require.NoError(t, store.Put(ctx, want))
	want.Text = "changed"
	got, err := store.Get(ctx, "r")
	require.NoError(t, err)
	assert.Equal(t, "text", got.Text)
}

// However many traces come, they take no more memory than those that are kept.
func TestTracesStayWithinTheirMemory(t *testing.T) {
	store := newTraces(t, memstore.TracesConfig{MaxTraces: 5000})
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	var first float64
	for i := range 50_000 {
		putTrace(t, store, fmt.Sprint("r", i), "the oven is on")
		if i == 15_000 {
			first = heap()
		}
	}
	assert.InEpsilon(t, first, heap(), 0.1)
	assert.Equal(t, 5000, store.Len())
}

// Against a dumb oracle: a list of all that came.
func TestTracesOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most, ttl = 4, 10
		now := start
		store, err := memstore.NewTraces(memstore.TracesConfig{Now: func() time.Time { return now }, MaxTraces: most, TTL: ttl * time.Second})
		require.NoError(t, err)
		type entry struct {
			id       string
			came     time.Time
			verdicts []decision.Verdict
		}
		var all []entry
		find := func(id string) *entry {
			for i := range all {
				if all[i].id == id {
					return &all[i]
				}
			}
			return nil
		}
		id := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"})
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) {
				for len(all) > 0 && now.Sub(all[0].came) > ttl*time.Second {
					all = all[1:]
				}
			},
			"wait": func(t *rapid.T) { now = now.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "seconds")) * time.Second) },
			"put": func(t *rapid.T) {
				id := id.Draw(t, "id")
				err := store.Put(ctx, decision.Trace{ResponseID: id})
				if find(id) != nil {
					require.ErrorIs(t, err, heed.ErrConflict)
					return
				}
				require.NoError(t, err)
				all = append(all, entry{id: id, came: now})
				all = all[max(len(all)-most, 0):]
			},
			"get": func(t *rapid.T) {
				id := id.Draw(t, "id")
				_, err := store.Get(ctx, id)
				require.Equal(t, find(id) != nil, err == nil)
			},
			"delete": func(t *rapid.T) {
				id := id.Draw(t, "id")
				require.Equal(t, find(id) != nil, store.Delete(ctx, id) == nil)
				for i := range all {
					if all[i].id == id {
						all = append(all[:i:i], all[i+1:]...)
						break
					}
				}
			},
			"react": func(t *rapid.T) {
				id := id.Draw(t, "id")
				v := decision.Verdict{
					Person: rapid.SampledFrom([]string{"Ann", "Bob"}).Draw(t, "person"), Value: float64(rapid.IntRange(-1, 1).Draw(t, "value")),
					At: start.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "at")) * time.Second),
				}
				_, got, err := store.React(ctx, id, v)
				e := find(id)
				if e == nil {
					require.ErrorIs(t, err, heed.ErrNotFound)
					return
				}
				require.NoError(t, err)
				var mine []decision.Verdict // those that held, one after the other
				for _, other := range append(e.verdicts, v) {
					if other.Person == v.Person && (len(mine) == 0 || !other.At.Before(mine[len(mine)-1].At) && other != mine[len(mine)-1]) {
						mine = append(mine, other)
					}
				}
				e.verdicts = append(e.verdicts, v)
				want := decision.Standing{Now: mine[len(mine)-1]}
				if len(mine) > 1 {
					want.Before = mine[len(mine)-2]
				}
				require.Equal(t, want, got)
			},
		})
	})
}

func TestTracesConcurrently(t *testing.T) {
	store := newTraces(t, memstore.TracesConfig{MaxTraces: 50})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for range 2000 {
				id := fmt.Sprint(rng.IntN(100))
				_ = store.Put(ctx, decision.Trace{ResponseID: id})
				_, _ = store.Get(ctx, id)
				_, _, _ = store.React(ctx, id, decision.Verdict{Person: id, Value: math.Round(rng.Float64())})
				if rng.IntN(4) == 0 {
					_ = store.Delete(ctx, id)
				}
				_ = store.Sweep(ctx)
			}
		})
	}
	all.Wait()
	assert.LessOrEqual(t, store.Len(), 50)
}
