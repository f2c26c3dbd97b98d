package strategy_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/fair"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// BenchmarkArms times a choice and an outcome by the number of arms, each with some evidence.
func BenchmarkArms(b *testing.B) {
	for _, n := range []int{2, 4, 32, 256} {
		var arms []strategy.Arm
		for i := range n {
			arms = append(arms, strategy.Arm{ID: strategy.ArmID(fmt.Sprint("arm", i))})
		}
		scale(b, fmt.Sprintf("arms=%d", n), strategy.Config{Arms: arms},
			func(i int) (strategy.ArmID, string) { return arms[i%n].ID, "" }, 4*n)
	}
}

// BenchmarkSources times both by the number of sources that an arm has evidence of.
func BenchmarkSources(b *testing.B) {
	for _, n := range []int{10, 1000, 4000, 100_000} {
		cfg := strategy.Config{Arms: plain("a")}
		scale(b, fmt.Sprintf("sources=%d", n), cfg,
			func(i int) (strategy.ArmID, string) { return "a", fmt.Sprint("source", i%n) }, n)
	}
}

// scale times a learner that has seen a number of outcomes, the i-th of this arm and this source.
func scale(b *testing.B, name string, cfg strategy.Config,
	outcome func(i int) (strategy.ArmID, string), outcomes int) {
	cfg.Store, cfg.Seed, cfg.Unrecorded = &memstore.Store{}, rand.NewPCG(1, 2), true
	l, err := strategy.New(ctx, cfg)
	require.NoError(b, err)
	q := strategy.Query{Item: "i"}
	made := make(map[strategy.ArmID]strategy.Choice)
	observe := func(i int) error {
		arm, source := outcome(i)
		c, ok := made[arm]
		if !ok {
			q := q
			q.Arms = []strategy.ArmID{arm}
			c = choose(b, l, q)
			made[arm] = c
		}
		_, err := l.Observe(ctx, strategy.Outcome{Choice: c, ID: fmt.Sprint(i), Value: float64(i%3 - 1),
			Confidence: 1, Source: source})
		return err
	}
	// as the learner would keep them, without reading what it has after each
	var parts []evidence.Part
	for n := range outcomes {
		arm, source := outcome(n)
		of := evidence.Observation{Source: source}
		if fair.Apart(cfg.Trust, parts, &of); len(parts) < fair.MostParts {
			parts = append(parts, evidence.Part{Source: of.Source})
		}
		cell := strategy.Choice{Item: q.Item, Arm: arm}.Cells()[0]
		cell.Kind = "strategy.arm"
		_, err := cfg.Store.Commit(ctx, store.Batch{
			Policies: map[string]evidence.Policy{cell.Kind: {ByOrigin: true}},
			Observations: []evidence.Observation{{ID: fmt.Sprint("before", n), Cell: cell,
				Source: of.Source, Reward: 0.5, Weight: 1, At: time.Now()}},
		})
		require.NoError(b, err)
	}
	n := 0
	b.Run("select/"+name, func(b *testing.B) {
		for b.Loop() {
			if _, err := l.Select(ctx, q); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("observe/"+name, func(b *testing.B) {
		for b.Loop() {
			if err := observe(n); err != nil {
				b.Fatal(err)
			}
			n++
		}
	})
}

// fill commits outcomes of a segment past the learner, one for each item and arm.
func fill(b testing.TB, st store.Store, category string, items int, arms ...strategy.ArmID) {
	var batch store.Batch
	for i := range items {
		for _, arm := range arms {
			o := evidence.Observation{Reward: float64(i % 2), Weight: 1, At: time.Now(),
				ID: fmt.Sprint(category, " ", i, " ", arm)}
			o.Cell = strategy.Choice{Category: category, Item: fmt.Sprint("i", i), Arm: arm}.Cells()[0]
			o.Cell.Kind = "strategy.arm"
			batch.Observations = append(batch.Observations, o)
		}
		if len(batch.Observations) >= 100 || i == items-1 {
			_, err := st.Commit(ctx, batch)
			require.NoError(b, err)
			batch.Observations = nil
		}
	}
}

// BenchmarkFirstSelect times the first choice in a segment of 100 items, by the number of cells in
// other segments.
func BenchmarkFirstSelect(b *testing.B) {
	for _, others := range []int{1000, 10_000, 100_000, 1_000_000} {
		st := newStore(b, time.Now)
		fill(b, st, "mine", 100, "a", "b")
		for n := range 10 {
			fill(b, st, fmt.Sprint("other", n), others/20, "a", "b")
		}
		runtime.GC() // of what fill left
		b.Run(fmt.Sprint("others=", others), func(b *testing.B) {
			for b.Loop() {
				l, err := strategy.New(ctx, strategy.Config{Store: st, Arms: plain("a", "b"),
					Unrecorded: true})
				require.NoError(b, err)
				choose(b, l, strategy.Query{Category: "mine", Item: "i1"})
			}
		})
	}
}

// BenchmarkRefresh reads again as many segments of one item each.
func BenchmarkRefresh(b *testing.B) {
	for _, segments := range []int{1000, 10_000} {
		st := newStore(b, time.Now)
		l, err := strategy.New(ctx, strategy.Config{Store: st, Arms: plain("a", "b"), Unrecorded: true})
		require.NoError(b, err)
		for n := range segments {
			fill(b, st, fmt.Sprint(n), 1, "a", "b")
			choose(b, l, strategy.Query{Category: fmt.Sprint(n), Item: "i0"})
		}
		runtime.GC() // of what fill left
		b.Run(fmt.Sprint("segments=", segments), func(b *testing.B) {
			for b.Loop() {
				require.NoError(b, l.Refresh(ctx))
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*segments), "µs/segment")
		})
	}
}

// BenchmarkFirstSelectOfMany times the first choice in a segment of as many items, and says how
// much memory that takes beside the store.
func BenchmarkFirstSelectOfMany(b *testing.B) {
	for _, items := range []int{100_000, 1_000_000} {
		st := newStore(b, time.Now)
		fill(b, st, "mine", items, "a", "b")
		heap := func() (m runtime.MemStats) {
			runtime.GC()
			runtime.ReadMemStats(&m)
			return m
		}
		b.Run(fmt.Sprint("items=", items), func(b *testing.B) {
			before := heap()
			var l *strategy.Learner
			for b.Loop() {
				var err error
				l, err = strategy.New(ctx, strategy.Config{Store: st, Arms: plain("a", "b"),
					Unrecorded: true})
				require.NoError(b, err)
				choose(b, l, strategy.Query{Category: "mine", Item: "i1"})
			}
			var after runtime.MemStats
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N)/1e6, "MB-allocated")
			b.ReportMetric((float64(heap().HeapAlloc)-float64(before.HeapAlloc))/1e6, "MB-kept")
			runtime.KeepAlive(l)
		})
	}
}

// BenchmarkModel makes the model of a segment of four arms, each with 2 to 21 outcomes of each
// item.
func BenchmarkModel(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		rng := rand.New(rand.NewPCG(1, 2))
		items := make([]strategy.Item, n)
		for i := range items {
			items[i].Arms = make([]evidence.Sums, 4)
			for arm := range items[i].Arms {
				mass := 2 + rng.IntN(20)
				reward := float64(rng.IntN(mass + 1))
				items[i].Arms[arm] = evidence.Sums{Mass: float64(mass), Squares: float64(mass),
					Reward: reward, RewardSquares: reward}
			}
		}
		even := evidence.Beta{Alpha: 1, Beta: 1}
		segment := strategy.Segment{Priors: []evidence.Beta{even, even, even, even}, LeastWeight: 0.1}
		b.Run(fmt.Sprint("items=", n), func(b *testing.B) {
			for b.Loop() {
				strategy.TwoLevel{}.Model(segment, items)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/item")
		})
	}
}

// BenchmarkObserveWhileRead observes outcomes while their segment is read again, and reports how
// long the longest took.
func BenchmarkObserveWhileRead(b *testing.B) {
	for _, items := range []int{1000, 100_000} {
		st := newStore(b, time.Now)
		fill(b, st, "mine", items, "a", "b")
		l, err := strategy.New(ctx, strategy.Config{Store: st, Arms: plain("a", "b"), Unrecorded: true})
		require.NoError(b, err)
		c := choose(b, l, strategy.Query{Category: "mine", Item: "i1"})
		n := 0
		// longest observes until it is told to stop.
		longest := func(stop <-chan struct{}) (worst time.Duration) {
			for {
				select {
				case <-stop:
					return worst
				default:
				}
				n++
				at := time.Now()
				_, err := l.Observe(ctx, strategy.Outcome{Choice: c, ID: fmt.Sprint(n), Value: 1,
					Confidence: 1})
				require.NoError(b, err)
				worst = max(worst, time.Since(at))
			}
		}
		runtime.GC() // of what fill left
		b.Run(fmt.Sprint("items=", items), func(b *testing.B) {
			var quiet, busy time.Duration
			for b.Loop() {
				for _, refresh := range []bool{false, true} {
					stop := make(chan struct{})
					go func() {
						defer close(stop)
						time.Sleep(100 * time.Millisecond)
						if refresh {
							assert.NoError(b, l.Refresh(ctx))
						}
					}()
					if refresh {
						busy = max(busy, longest(stop))
					} else {
						quiet = max(quiet, longest(stop))
					}
				}
			}
			b.ReportMetric(float64(quiet.Microseconds())/1000, "quiet-ms")
			b.ReportMetric(float64(busy.Microseconds())/1000, "worst-ms")
		})
	}
}
