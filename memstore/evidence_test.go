package memstore_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/evidence/evidencetest"
	"github.com/heedhq/heed/memstore"
)

func TestEvidenceKeepsTheContract(t *testing.T) {
	evidencetest.Run(t, func(now func() time.Time) (evidence.Store, error) {
		return memstore.NewEvidence(memstore.EvidenceConfig{Now: now})
	})
}

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

func newEvidence(t testing.TB, cfg memstore.EvidenceConfig) *memstore.Evidence {
	store, err := memstore.NewEvidence(cfg)
	require.NoError(t, err)
	return store
}

func observe(id string, at time.Time) evidence.Observation {
	return evidence.Observation{ID: id, Cell: cell, Reward: 1, Weight: 1, At: at}
}

func commit(t testing.TB, store evidence.Store, b evidence.Batch) evidence.Receipt {
	receipt, err := store.Commit(ctx, b)
	require.NoError(t, err)
	return receipt
}

func add(t testing.TB, store evidence.Store, observations ...evidence.Observation) evidence.Receipt {
	return commit(t, store, evidence.Batch{Observations: observations})
}

func read(t testing.TB, store evidence.Store, c evidence.Cell) evidence.Tally {
	parts, err := store.Read(ctx, nil, c)
	require.NoError(t, err)
	if len(parts) == 0 {
		return evidence.Tally{}
	}
	require.Len(t, parts, 1)
	return parts[0].Tally
}

func history(t testing.TB, store interface {
	History(context.Context, evidence.Cell) iter.Seq2[evidence.Observation, error]
}, c evidence.Cell) (ids []string) {
	for o, err := range store.History(ctx, c) {
		require.NoError(t, err)
		ids = append(ids, o.ID)
	}
	return ids
}

func TestEvidenceZeroValue(t *testing.T) {
	var store memstore.Evidence
	assert.Empty(t, history(t, &store, cell))
	require.NoError(t, store.Sweep(ctx))
	add(t, &store, observe("1", time.Now()))
	assert.Equal(t, 1., read(t, &store, cell).Mass)
	cfg := store.Config()
	assert.Equal(t, 100, cfg.HistoryPerCell)
	assert.Equal(t, 30*24*time.Hour, cfg.HistoryFor)
	assert.Equal(t, 30*24*time.Hour, cfg.IDsFor)
	assert.Equal(t, 100_000, cfg.MaxEvents)
	assert.Equal(t, 100_000, cfg.MaxAudit)
}

func TestEvidenceConfigFaults(t *testing.T) {
	_, err := memstore.NewEvidence(memstore.EvidenceConfig{
		HistoryPerCell: -1, HistoryFor: 48 * time.Hour, IDsFor: time.Hour, MaxEvents: -1, MaxAudit: -1,
	})
	var fields []string
	for fault := range heed.ConfigErrors(err) {
		fields = append(fields, fault.Field)
	}
	assert.Equal(t, []string{"HistoryPerCell", "IDsFor", "MaxEvents", "MaxAudit"}, fields)
	_, err = memstore.NewEvidence(memstore.EvidenceConfig{HistoryFor: 90 * 24 * time.Hour})
	require.NoError(t, err, "ids are kept for as long as history unless they are said to be")
}

// TestEvidenceConcurrentSums lets 16 goroutines add 10,000 outcomes each, with weights whose sums are exact in any order.
func TestEvidenceConcurrentSums(t *testing.T) {
	store := newEvidence(t, memstore.EvidenceConfig{NoHistory: true})
	const callers, each = 16, 10_000
	other := cell
	other.Item = "other"
	var wait sync.WaitGroup
	for caller := range callers {
		wait.Go(func() {
			for i := range each {
				o := observe(fmt.Sprintf("%d-%d", caller, i), start)
				o.Weight, o.Reward = float64(1+i%64)/64, float64(i%65)/64
				o2 := o
				o2.Cell = other
				if _, err := store.Commit(ctx, evidence.Batch{Observations: []evidence.Observation{o, o2}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	var mass, reward float64
	for i := range each {
		mass += callers * float64(1+i%64) / 64
		reward += callers * float64(1+i%64) / 64 * float64(i%65) / 64
	}
	for _, c := range []evidence.Cell{cell, other} {
		got := read(t, store, c)
		assert.Equal(t, mass, got.Mass)
		assert.Equal(t, reward, got.Reward)
		assert.EqualValues(t, callers*each, got.N())
	}
}

func TestEvidenceForgetsHistoryByNumber(t *testing.T) {
	store := newEvidence(t, memstore.EvidenceConfig{HistoryPerCell: 3, Now: newClock().time})
	at := func(minute int) time.Time { return start.Add(time.Duration(minute-10) * time.Minute) }
	for _, minute := range []int{5, 1, 3, 4, 2} {
		add(t, store, observe(fmt.Sprint(minute), at(minute)))
	}
	assert.Equal(t, []string{"5", "4", "3"}, history(t, store, cell), "those that happened last are kept")
	for _, id := range []string{"1", "2"} {
		_, err := store.Commit(ctx, evidence.Batch{Retract: []string{"5", id}})
		assert.ErrorIs(t, err, evidence.ErrForgotten)
	}
	assert.EqualValues(t, 5, read(t, store, cell).N(), "nothing was retracted")
	commit(t, store, evidence.Batch{Retract: []string{"5", "4", "3"}})
	got := read(t, store, cell)
	assert.Equal(t, evidence.Count{N: 2, Last: evidence.InstantOf(at(2))}, got.Positive, "the last moment is that of what was forgotten")
	commit(t, store, evidence.Batch{Retract: []string{"5"}})
	for what, b := range map[string]evidence.Batch{
		"rebuild": {Rebuild: []evidence.Cell{cell}},
		"restart": {Restart: []evidence.Restart{{Cell: cell, At: at(2)}}},
	} {
		_, err := store.Commit(ctx, b)
		assert.ErrorIs(t, err, evidence.ErrForgotten, what)
	}
	commit(t, store, evidence.Batch{Restart: []evidence.Restart{{Cell: cell, At: at(9)}}})
	assert.Zero(t, read(t, store, cell).N(), "a restart behind all needs no history")
	add(t, store, observe("10", at(10)))
	commit(t, store, evidence.Batch{Rebuild: []evidence.Cell{cell}})
	assert.EqualValues(t, 1, read(t, store, cell).N())
}

func TestEvidenceForgetsHistoryByTime(t *testing.T) {
	clock := newClock()
	store := newEvidence(t, memstore.EvidenceConfig{HistoryFor: time.Hour, IDsFor: 24 * time.Hour, Now: clock.time})
	add(t, store, observe("1", clock.time()))
	clock.advance(40 * time.Minute)
	add(t, store, observe("2", clock.time()))
	clock.advance(30 * time.Minute)
	assert.Equal(t, []string{"2"}, history(t, store, cell))
	_, err := store.Commit(ctx, evidence.Batch{Retract: []string{"1"}})
	assert.ErrorIs(t, err, evidence.ErrForgotten)
	clock.advance(time.Hour)
	require.NoError(t, store.Sweep(ctx))
	assert.Empty(t, history(t, store, cell))
	assert.EqualValues(t, 2, read(t, store, cell).N(), "the sums outlive the history")
	assert.Equal(t, []string{"1"}, add(t, store, observe("1", start)).Duplicates, "and so do the ids")
}

// TestEvidenceKnowsIDsLongEnough delivers ids again all along the time for which they are promised to be known.
func TestEvidenceKnowsIDsLongEnough(t *testing.T) {
	clock := newClock()
	store := newEvidence(t, memstore.EvidenceConfig{HistoryFor: time.Hour, IDsFor: 2 * time.Hour, Now: clock.time})
	recorded := make(map[string]time.Time)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 5000 {
		clock.advance(time.Duration(rng.IntN(20)) * time.Second)
		id := fmt.Sprint(rng.IntN(i/2 + 1))
		before, known := recorded[id]
		receipt := add(t, store, observe(id, clock.time()))
		switch duplicate := len(receipt.Duplicates) > 0; {
		case known && clock.time().Sub(before) < 2*time.Hour:
			require.True(t, duplicate, "an id of %v ago is not known", clock.time().Sub(before))
		case !known, clock.time().Sub(before) > 4*time.Hour:
			require.False(t, duplicate)
			recorded[id] = clock.time()
		case !duplicate:
			recorded[id] = clock.time()
		}
	}
}

func TestEvidenceWithoutHistory(t *testing.T) {
	store := newEvidence(t, memstore.EvidenceConfig{NoHistory: true, Now: newClock().time})
	named := observe("named", start)
	named.Source = "ann"
	apart := named
	apart.ID, apart.Cell.Kind = "apart", "apart"
	policies := map[string]evidence.Policy{"apart": {ByOrigin: true}}
	commit(t, store, evidence.Batch{Policies: policies, Observations: []evidence.Observation{apart}})
	commit(t, store, evidence.Batch{Expunge: []string{"ann"}})
	assert.Zero(t, read(t, store, apart.Cell).N(), "a cell that keeps origins apart needs no history")
	add(t, store, named)
	assert.Empty(t, history(t, store, cell))
	for what, b := range map[string]evidence.Batch{
		"retract": {Retract: []string{"named"}}, "expunge": {Expunge: []string{"ann"}}, "rebuild": {Rebuild: []evidence.Cell{cell}},
	} {
		_, err := store.Commit(ctx, b)
		assert.ErrorIs(t, err, evidence.ErrForgotten, what)
	}
	_, err := store.Commit(ctx, evidence.Batch{Retract: []string{"never"}})
	assert.ErrorIs(t, err, heed.ErrNotFound)
	assert.EqualValues(t, 1, read(t, store, cell).N())
	restart := evidence.Batch{Restart: []evidence.Restart{{Cell: cell, At: start.Add(time.Second)}}}
	commit(t, store, restart)
	assert.Zero(t, read(t, store, cell).N())
	add(t, store, observe("after", start.Add(2*time.Second)))
	commit(t, store, restart) // no further than it was
	assert.EqualValues(t, 1, read(t, store, cell).N())
}

// TestEvidenceHoldsManyTexts fills one store with so many long names that each shard holds dozens of chunks of them.
func TestEvidenceHoldsManyTexts(t *testing.T) {
	store := newEvidence(t, memstore.EvidenceConfig{NoHistory: true, Now: newClock().time})
	const items = 260_000
	b := evidence.Batch{}
	for i := range items {
		o := observe(fmt.Sprint(i), start)
		o.Cell.Item = fmt.Sprintf("%01024d", i)
		if b.Observations = append(b.Observations, o); len(b.Observations) == 1000 {
			commit(t, store, b)
			b.Observations = b.Observations[:0]
		}
	}
	for _, i := range []int{0, items / 2, items - 1} {
		c := cell
		c.Item = fmt.Sprintf("%01024d", i)
		assert.EqualValues(t, 1, read(t, store, c).N())
	}
}

// TestEvidenceReusesOrigins expunges sources over and over: the names of one must not pass to another.
func TestEvidenceReusesOrigins(t *testing.T) {
	store := newEvidence(t, memstore.EvidenceConfig{HistoryPerCell: 2, Now: newClock().time})
	policies := map[string]evidence.Policy{"kind": {ByOrigin: true}}
	for round := range 20 {
		for i := range 5 {
			o := observe(fmt.Sprintf("%d-%d", round, i), start.Add(-time.Duration(i)*time.Minute))
			o.Source = []string{"stays", fmt.Sprint("goes", round)}[i%2]
			commit(t, store, evidence.Batch{Policies: policies, Observations: []evidence.Observation{o}})
		}
		commit(t, store, evidence.Batch{Expunge: []string{fmt.Sprint("goes", round)}})
		got := read(t, store, cell)
		assert.EqualValues(t, 3*(round+1), got.N())
		assert.Equal(t, evidence.InstantOf(start), got.Last())
	}
}

func TestEvidenceOutboxIsBounded(t *testing.T) {
	store := newEvidence(t, memstore.EvidenceConfig{MaxEvents: 2, MaxAudit: 3, Now: newClock().time})
	event := func(id string) evidence.Batch {
		return evidence.Batch{
			Observations: []evidence.Observation{observe(id, start)},
			Events:       []evidence.Event{{ID: id, Topic: "t", At: start}},
		}
	}
	commit(t, store, event("1"))
	commit(t, store, event("2"))
	_, err := store.Commit(ctx, event("3"))
	assert.ErrorIs(t, err, evidence.ErrFull)
	assert.EqualValues(t, 2, read(t, store, cell).N(), "what has no room changes nothing")
	redelivered := event("2")
	redelivered.Observations = nil
	commit(t, store, redelivered) // takes no room
	both := event("3")
	both.Sent = []string{"1"}
	commit(t, store, both)

	for i := range 10 {
		commit(t, store, evidence.Batch{Audit: []evidence.AuditEntry{{ID: fmt.Sprint(i), Action: "did", At: start}}})
	}
	var kept []string
	for entry, err := range store.Audit(ctx) {
		require.NoError(t, err)
		kept = append(kept, entry.ID)
	}
	assert.Equal(t, []string{"9", "8", "7"}, kept)
}

// TestEvidenceUnderFire lets goroutines do everything at once. The race detector watches; at the end what was only added
// must all be there.
func TestEvidenceUnderFire(t *testing.T) {
	store := newEvidence(t, memstore.EvidenceConfig{HistoryPerCell: 50, Now: newClock().time})
	policies := map[string]evidence.Policy{"kind": {HalfLife: time.Hour, ByOrigin: true}}
	const callers, rounds = 8, 200
	var wait sync.WaitGroup
	for caller := range callers {
		wait.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(caller), 1))
			for i := range rounds {
				steady := observe(fmt.Sprintf("steady-%d-%d", caller, i), start)
				steady.Cell = evidence.Cell{Kind: "steady", Item: fmt.Sprint(i % 3)}
				wild := observe(fmt.Sprintf("wild-%d-%d", caller, i), start)
				wild.Cell.Item, wild.Source = fmt.Sprint(rng.IntN(5)), fmt.Sprint("source", rng.IntN(3))
				b := evidence.Batch{Policies: policies, Observations: []evidence.Observation{steady, wild}}
				switch rng.IntN(8) {
				case 0:
					b.Reset = []evidence.Selection{{Kind: "kind", Scope: "scope", Item: fmt.Sprint(rng.IntN(5))}}
				case 1:
					b.Restart = []evidence.Restart{{Cell: wild.Cell, At: start}}
				case 2:
					b.Events = []evidence.Event{{ID: wild.ID, Topic: "t", At: start}}
					b.Audit = []evidence.AuditEntry{{ID: wild.ID, Action: "did", At: start}}
				}
				_, err := store.Commit(ctx, b)
				assert.NoError(t, err)
				switch rng.IntN(8) {
				case 0:
					_, err = store.Commit(ctx, evidence.Batch{Retract: []string{wild.ID}})
					if err != nil {
						assert.ErrorIs(t, err, evidence.ErrForgotten)
					}
				case 1:
					_, err = store.Commit(ctx, evidence.Batch{Expunge: []string{"source1"}})
					assert.NoError(t, err)
				case 2:
					for part, err := range store.List(ctx, "kind", "scope") {
						assert.NoError(t, err)
						assert.GreaterOrEqual(t, part.Tally.Mass, -1e-9)
					}
				case 3:
					for range store.History(ctx, wild.Cell) {
						break
					}
				case 4:
					assert.NoError(t, store.Sweep(ctx))
				}
			}
		})
	}
	wait.Wait()
	var n uint64
	for i := range 3 {
		n += read(t, store, evidence.Cell{Kind: "steady", Item: fmt.Sprint(i)}).N()
	}
	assert.EqualValues(t, callers*rounds, n)
}

// TestEvidenceMemory measures what a million items cost, each with one arm observed once, its id known and history off.
// The run is long, so that it needs HEED_LONG; without it a tenth of the items must do.
func TestEvidenceMemory(t *testing.T) {
	items := 100_000
	if os.Getenv("HEED_LONG") != "" {
		items = 1_000_000
	}
	store := newEvidence(t, memstore.EvidenceConfig{NoHistory: true})
	before := heap()
	for i := range items {
		o := observe(fmt.Sprintf("%08d-0000-4000-8000-000000000000", i), start)
		o.Cell.Item = fmt.Sprintf("%08d-aaaa-4aaa-8aaa-aaaaaaaaaaaa", i)
		add(t, store, o)
	}
	each := float64(heap()-before) / float64(items)
	began := time.Now()
	runtime.GC()
	t.Logf("%d items: %.0f bytes each, a full collection takes %v", items, each, time.Since(began))
	assert.Less(t, each, 250.)
	runtime.KeepAlive(store)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkEvidence(b *testing.B) {
	for _, noHistory := range []bool{true, false} {
		name := map[bool]string{true: "history=off", false: "history=on"}[noHistory]
		b.Run(name+"/commit", func(b *testing.B) {
			store := newEvidence(b, memstore.EvidenceConfig{NoHistory: noHistory})
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				o := observe(fmt.Sprint(i), start)
				o.Cell.Item = fmt.Sprint(i % 1000)
				i++
				if _, err := store.Commit(ctx, evidence.Batch{Observations: []evidence.Observation{o}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("read4", func(b *testing.B) {
		store := newEvidence(b, memstore.EvidenceConfig{NoHistory: true})
		cells := make([]evidence.Cell, 4)
		for i := range cells {
			cells[i] = evidence.Cell{Kind: "kind", Scope: "scope", Item: "item", Name: fmt.Sprint(i)}
			o := observe(fmt.Sprint(i), start)
			o.Cell = cells[i]
			add(b, store, o)
		}
		var parts []evidence.Part
		b.ReportAllocs()
		for b.Loop() {
			parts, _ = store.Read(ctx, parts[:0], cells...)
		}
		if len(parts) != 4 || math.IsNaN(parts[0].Tally.Mass) {
			b.Fatal(parts)
		}
	})
}
