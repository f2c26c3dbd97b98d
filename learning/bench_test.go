package learning_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/memstore"
)

// BenchmarkSignal times one more signal for a heuristic that has had many: it costs the same whatever the history.
func BenchmarkSignal(b *testing.B) {
	for _, history := range []int{10, 1_000, 100_000} {
		b.Run(fmt.Sprintf("history=%d/apply", history), func(b *testing.B) {
			f, n := newFixtureWithHistory(b, history), history
			b.ReportAllocs()
			for b.Loop() {
				n++
				f.apply(fmt.Sprint(n), "h", 1)
			}
		})
		b.Run(fmt.Sprintf("history=%d/feedback", history), func(b *testing.B) {
			f, n := newFixtureWithHistory(b, history), history
			b.ReportAllocs()
			for b.Loop() {
				n++
				f.say(thumb("h", fmt.Sprint(n), n%2 == 0))
			}
		})
		b.Run(fmt.Sprintf("history=%d/replace", history), func(b *testing.B) {
			f, n := newFixtureWithHistory(b, history), history
			b.ReportAllocs()
			for b.Loop() {
				n++
				f.say(thumb("h", "e", n%2 == 0))
			}
		})
		b.Run(fmt.Sprintf("history=%d/confidence", history), func(b *testing.B) {
			f := newFixtureWithHistory(b, history)
			b.ReportAllocs()
			for b.Loop() {
				f.confidence("h")
			}
		})
	}
}

func newFixtureWithHistory(b *testing.B, history int) *fixture {
	f := newFixture(b, learning.Config{}, "h")
	f.evidence.forgets = true
	for i := range history {
		f.apply(fmt.Sprint(i), "h", 1)
	}
	return f
}

// BenchmarkFireToSilence times a fire and its silence, beside others that are waited for.
func BenchmarkFireToSilence(b *testing.B) {
	for _, waiting := range []int{0, 1_000, 9_000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			store, err := memstore.NewEvidence(memstore.EvidenceConfig{NoHistory: true, Now: func() time.Time { return start.Add(1e6 * time.Hour) }})
			require.NoError(b, err)
			var heuristics memstore.Heuristics
			_, err = heuristics.Put(ctx, learning.Heuristic{ID: "h"})
			require.NoError(b, err)
			m, err := learning.New(learning.Config{Heuristics: &heuristics, Evidence: store})
			require.NoError(b, err)
			for i := range waiting {
				require.NoError(b, m.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: fmt.Sprint("waiting", i), At: start.Add(9e5 * time.Hour)}))
			}
			now, n := start, 0
			b.ReportAllocs()
			for b.Loop() {
				n++
				now = now.Add(time.Minute)
				if err := m.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: fmt.Sprint(n), At: now}); err != nil {
					b.Fatal(err)
				}
				if changes, err := m.Sweep(ctx, now.Add(31*time.Second)); err != nil || len(changes) != 1 {
					b.Fatal(changes, err)
				}
			}
		})
	}
}

// BenchmarkEvent times an event that judges nothing, beside fires that it could have.
func BenchmarkEvent(b *testing.B) {
	for _, waiting := range []int{10, 1_000, 10_000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			f := newFixture(b, learning.Config{}, "h")
			f.evidence.forgets = true
			for i := range waiting {
				f.fire("h", fmt.Sprint(i), "s")
			}
			b.ReportAllocs()
			for b.Loop() {
				f.event("elsewhere", "hello")
			}
		})
	}
	b.Run("waiting=10000 for an outcome in a long text", func(b *testing.B) {
		f := newFixture(b, learning.Config{Patterns: []learning.Pattern{{Trigger: "rain", Outcome: "window closed"}}}, "h")
		for i := range 10_000 {
			require.NoError(b, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: fmt.Sprint(i), Condition: "rain"}))
		}
		text := strings.Repeat("window close ", 10_000)
		for b.Loop() {
			f.event("elsewhere", text)
		}
	})
}
