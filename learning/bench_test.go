package learning_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// BenchmarkSignal times one more signal for a heuristic that has had many: it costs the same
// whatever the history.
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
	f.store.forgets = true
	for i := range history {
		f.apply(fmt.Sprint(i), "h", 1)
	}
	return f
}

// BenchmarkFireToSilence times a fire and its silence, beside others that are waited for.
func BenchmarkFireToSilence(b *testing.B) {
	for _, waiting := range []int{0, 1_000, 9_000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			late := func() time.Time { return start.Add(1e6 * time.Hour) }
			st,
				err := memstore.New(memstore.Config{Retention: store.Retention{NoHistory: true}, Now: late})
			require.NoError(b, err)
			m, err := learning.New(ctx, learning.Config{Store: st, Now: late})
			require.NoError(b, err)
			_, err = m.Put(ctx, learning.Heuristic{ID: "h"})
			require.NoError(b, err)
			for i := range waiting {
				require.NoError(b, m.Fire(ctx, learning.Fire{HeuristicID: "h",
					EventID: fmt.Sprint("waiting", i), At: start.Add(9e5 * time.Hour)}))
			}
			now, n := start, 0
			b.ReportAllocs()
			for b.Loop() {
				n++
				now = now.Add(time.Minute)
				if err := m.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: fmt.Sprint(n),
					At: now}); err != nil {
					b.Fatal(err)
				}
				if changes, err := m.Timeouts(ctx, now.Add(31*time.Second)); err != nil ||
					len(changes) != 1 {
					b.Fatal(changes, err)
				}
			}
		})
	}
}

// fill fires many answers of many heuristics, and all of them wait. Each has a session of its own,
// unless one is given.
func (f *fixture) fill(n int, session string) {
	f.Helper()
	for i := range n {
		id := fmt.Sprint("filled ", i%100)
		if i < 100 {
			if _, err := f.Standing(ctx, id); err != nil {
				f.put(learning.Heuristic{ID: id, Condition: "a filled bath"})
			}
		}
		fire := learning.Fire{HeuristicID: id, EventID: fmt.Sprint(session, i), Session: session,
			Stream: session, Person: session}
		if session == "" {
			fire.Session, fire.Stream, fire.Person = fmt.Sprint("session ", i), fmt.Sprint("source ", i),
				fmt.Sprint("person ", i)
		}
		require.NoError(f, f.Fire(ctx, fire))
	}
	f.store.commits = nil
}

// crowded makes a store that holds as many fires as a test likes.
func crowded(t testing.TB, cfg learning.Config) *fixture {
	cfg.Expectations = []learning.Expectation{{Trigger: "rain", Outcome: "window closed"},
		{Trigger: "filled", Outcome: "bath empty"}}
	limits := map[string]store.Limits{"learning.answer": {Most: 1_000_000}}
	f := newFixtureOver(t, memstore.Config{Retention: store.Retention{Limits: limits}}, cfg, "h")
	f.store.forgets = true
	return f
}

// BenchmarkEvent times an event that takes an answer of its session back, beside fires that wait
// elsewhere; an event in a session where a thousand answers are open; and one that ends a thousand
// answers at once.
func BenchmarkEvent(b *testing.B) {
	for _, waiting := range []int{10, 1_000, 100_000} {
		f := crowded(b, learning.Config{})
		f.fill(waiting, "")
		n := 0
		fire := func() {
			n++
			require.NoError(b, f.Fire(ctx, learning.Fire{HeuristicID: "h",
				EventID: fmt.Sprint("mine ", n), Session: "mine", Stream: "mine", Person: "ann"}))
		}
		b.Run(fmt.Sprintf("elsewhere=%d/undo", waiting), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				fire()
				b.StartTimer()
				if changes := f.event("mine", "undo"); len(changes) != 1 {
					b.Fatal(changes)
				}
			}
		})
		b.Run(fmt.Sprintf("elsewhere=%d/nothing", waiting), func(b *testing.B) {
			for b.Loop() {
				f.event("other", "hello")
			}
		})
	}
	for _, test := range []struct{ name, source, text string }{
		{"means nothing", "other", "hello"}, {"ignores one", "mine", "hello"},
	} {
		f := crowded(b, learning.Config{})
		f.fill(1_000, "mine")
		f.event("mine", "next")
		n := 0
		b.Run("session=1000/"+test.name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				n++
				require.NoError(b, f.Fire(ctx, learning.Fire{HeuristicID: "h",
					EventID: fmt.Sprint("mine ", n), Session: "mine", Stream: "mine"}))
				b.StartTimer()
				_, err := f.Hear(ctx, learning.Message{Session: "mine", Stream: test.source,
					Text: test.text})
				require.NoError(b, err)
			}
		})
	}
	for _, text := range []string{"hello", "undo"} {
		b.Run("session=1000/ends all: "+text, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				f := crowded(b, learning.Config{Strategy: undoAll.Strategy})
				f.fill(1_000, "mine")
				b.StartTimer()
				f.event("mine", text)
			}
		})
	}
}
