package patterns_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// A recorder that has made many plans makes the next one as one that has just begun, whatever it or
// another process has done in between.
func TestPlansAreOfNow(t *testing.T) {
	both(t, func(t *testing.T, cfg patterns.Config) {
		rng := rand.New(rand.NewPCG(7, 7))
		w := newWorld(t, cfg)
		cfg.Store, cfg.Now = w.store, w.clock.Now
		second := newWorld(t, cfg)
		second.next = w.next
		id := func() patterns.PatternID {
			return patterns.PatternID(fmt.Sprint("p",
				rng.IntN(150)))
		}
		by := patterns.By{Actor: "ann", Reason: "r"}
		for i := range 300 {
			other := second
			if rng.IntN(2) == 0 {
				other = w
			}
			switch n := rng.IntN(20); {
			case n < 6:
				o := bad(id(), id(), id())
				if rng.IntN(3) > 0 {
					o = good(id(), id())
				}
				o.Task, o.Source = fmt.Sprint("t", rng.IntN(40)), fmt.Sprint("s", rng.IntN(3))
				o.Description = fmt.Sprint("move part ", i%7, " of the page ", i%5)
				other.record(o)
			case n < 10:
				class := []string{patterns.Helpful, patterns.Harmful}[rng.IntN(2)]
				other.feed(patterns.Rating{Pattern: id(), Class: class}, float64(rng.IntN(100)))
			case n < 12:
				_, _ = other.Define(ctx, patterns.Pattern{ID: id(), Content: fmt.Sprint("way ", i),
					Anti: n == 10})
			case n == 12:
				_, _ = other.Promote(ctx, id(), by)
			case n == 13:
				_, _ = other.Deprecate(ctx, id(), by)
			case n == 14:
				_, _ = other.Reset(ctx, patterns.Reset{Pattern: id(), By: by})
			case n == 15, n == 16: // past all recorders
				job := store.Job{Expunge: []string{fmt.Sprint("s", rng.IntN(3))}}
				require.NoError(t, store.Run(ctx, w.store, job))
			case n == 17:
				job := store.Job{Forget: []string{fmt.Sprint("s", rng.IntN(3))}}
				require.NoError(t, store.Run(ctx, w.store, job))
			default:
				w.clock.Advance(time.Duration(rng.IntN(40)) * day / 2)
			}
			if i%3 > 0 {
				continue
			}
			fresh, err := patterns.New(ctx, cfg)
			require.NoError(t, err)
			want, err := fresh.Plan(ctx, "move part 3 of the page")
			require.NoError(t, err)
			got, err := w.Plan(ctx, "move part 3 of the page")
			require.NoError(t, err)
			require.Equal(t, want, got, "after step %d", i)
		}
	})
}

// Several recorders work at the same time. Each one's next plan is that of a new recorder.
func TestPlansOfManyAreOfNow(t *testing.T) {
	both(t, func(t *testing.T, cfg patterns.Config) {
		w := newWorld(t, cfg)
		cfg.Store, cfg.Now = w.store, w.clock.Now
		second := newWorld(t, cfg)
		second.next = w.next
		for round := range 10 {
			var wait sync.WaitGroup
			for n, r := range []*patterns.Recorder{w.Recorder, w.Recorder, second.Recorder,
				second.Recorder} {
				wait.Go(func() {
					for i := range 6 {
						o := good(patterns.PatternID(fmt.Sprint("p", (n*3+i*round)%9)))
						o.ID, o.Task = fmt.Sprint("o", round, "-", n, "-", i), fmt.Sprint("t", n, i)
						_, err := r.Record(ctx, o)
						assert.NoError(t, err)
						if i%2 == n%2 {
							_, err = r.Plan(ctx, o.Description)
							assert.NoError(t, err)
						}
					}
				})
			}
			wait.Wait()
			fresh, err := patterns.New(ctx, cfg)
			require.NoError(t, err)
			want, err := fresh.Plan(ctx, "")
			require.NoError(t, err)
			for _, r := range []*world{w, second} {
				got, err := r.Plan(ctx, "")
				require.NoError(t, err)
				require.Equal(t, want, got, "after round %d", round)
			}
			require.NotEmpty(t, want.Patterns)
		}
	})
}

// TestAPlanIsOneRead, if nothing has changed.
func TestAPlanIsOneRead(t *testing.T) {
	counted := &storetest.Failing{Store: newStore(t, nil)}
	w := newWorld(t, patterns.Config{Store: counted})
	w.feedPattern("p", patterns.Helpful, 5, 0)
	plan := func() int {
		before := counted.Calls()
		_, err := w.Plan(ctx, "task")
		require.NoError(t, err)
		return counted.Calls() - before
	}
	require.Equal(t, 4, plan())
	require.Equal(t, 1, plan())
	w.feedPattern("p", patterns.Helpful, 1, 0)
	require.Equal(t, 3, plan(), "no task has changed, and one pattern")
	require.Equal(t, 1, plan())
	w.record(good("p", "q"))
	require.Equal(t, 4, plan(), "two patterns and one task")
	require.Equal(t, 1, plan())
	cfg := patterns.Config{Store: counted, Now: w.clock.Now}
	other := newWorld(t, cfg)
	other.next = w.next
	other.feedPattern("p", patterns.Harmful, 1, 0)
	require.Equal(t, 3, plan(), "somebody else has changed any of them")
	require.Equal(t, 1, plan())
}

// many is a recorder with 10,000 patterns and 2,000 tasks.
func many(t testing.TB) *world {
	w := newWorld(t, patterns.Config{})
	for i := range 10_000 {
		_, err := w.Define(ctx, patterns.Pattern{ID: patterns.PatternID(fmt.Sprint("p", i)),
			Content: fmt.Sprint("Way number ", i)})
		require.NoError(t, err)
	}
	for i := range 2_000 {
		o := good()
		if i%3 == 0 {
			o = bad()
		}
		o.Description = fmt.Sprint("move part ", i%70, " of the page ", i%50, " in release ", i)
		for n := range 20 {
			o.Patterns = append(o.Patterns, patterns.PatternID(fmt.Sprint("p", (i*7+n*500)%10_000)))
		}
		w.record(o)
	}
	return w
}

func BenchmarkPlan(b *testing.B) {
	w := many(b)
	for name, change := range map[string]func(i int){
		"same": func(int) {},
		"changed": func(i int) { // by one outcome before each plan
			w.record(good(patterns.PatternID(fmt.Sprint("p", i%10_000))))
		},
	} {
		b.Run(name, func(b *testing.B) {
			for i := range b.N {
				b.StopTimer()
				change(i)
				b.StartTimer()
				_, err := w.Plan(context.Background(),
					fmt.Sprint("move part ", i%70, " of the page ", i%50))
				require.NoError(b, err)
			}
		})
	}
}
