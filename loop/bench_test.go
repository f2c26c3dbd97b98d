package loop_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
)

var words = []string{
	"disk", "server", "full", "logs", "memory", "leak", "queue", "stuck", "mail", "late", "build",
	"red", "cache", "cold", "certificate",
	"expired", "backup", "missing", "replica", "behind", "network", "slow", "login", "refused",
	"invoice", "wrong", "page", "empty",
}

func phrase(n int) string {
	var text string
	for i := range 9 {
		text += words[(n*(i+3)+i*i*7+n/(i+1))%len(words)] + " "
	}
	return fmt.Sprintf("%sof host-%d", text, n)
}

// A library is an agent that knows much: 1,000 heuristics, patterns and notes of one domain, and 20
// rules for each of 50 agents.
func library(tb testing.TB, cfg loop.Config) *loop.Agent {
	cfg.Name = "agent-07"
	cfg.Arms = []loop.Arm{{ID: "a"}, {ID: "b"}, {ID: "c", System: "Be brief."}}
	cfg.Tuning.Feedback.Gate = feedback.Gate{Pending: 200_000}
	a, err := loop.New(ctx, cfg)
	require.NoError(tb, err)
	var lessons loop.Lessons
	for i := range 1000 {
		lessons.Heuristics = append(lessons.Heuristics,
			learning.Heuristic{ID: fmt.Sprint("h", i), Domain: "d", Condition: phrase(i),
				Action: "Do number " + fmt.Sprint(i)})
		lessons.Notes = append(lessons.Notes, loop.Note{ID: fmt.Sprint("n", i), Domain: "d",
			Topic: phrase(i + 5000), Text: "Note number " + fmt.Sprint(i)})
		_, err := a.Patterns().Define(ctx, patterns.Pattern{ID: patterns.PatternID(fmt.Sprint("p", i)),
			Content: "Way number " + fmt.Sprint(i)})
		require.NoError(tb, err)
	}
	_, err = a.Teach(ctx, lessons)
	require.NoError(tb, err)
	for n := range 40 {
		o := patterns.Outcome{ID: fmt.Sprint("o", n), Task: fmt.Sprint("t", n), Description: phrase(n),
			Success: n%3 > 0, Duration: time.Minute}
		for i := range 100 {
			o.Patterns = append(o.Patterns, patterns.PatternID(fmt.Sprint("p", n%10*100+i)))
		}
		_, err := a.Patterns().Record(ctx, o)
		require.NoError(tb, err)
	}
	rules := a.Feedback().Rules()
	for agent := range 50 {
		for n := range 20 {
			p, err := rules.Propose(ctx, feedback.Submission{
				Draft: feedback.Draft{Text: fmt.Sprintf("Rule %d of agent %d: %s", n, agent,
					phrase(100*agent+n)), Agents: []string{fmt.Sprintf("agent-%02d", agent)}},
				Actor: "ann", Reason: "r",
			})
			require.NoError(tb, err)
			for _, actor := range []string{"bob", "cid"} {
				_, err := rules.Review(ctx, feedback.Review{
					Proposal: p.ID, Decision: feedback.Approved, Actor: actor, Reason: "r", Hash: p.Hash(),
					Override: overrides(p),
				})
				require.NoError(tb, err)
			}
		}
	}
	return a
}

func overrides(p feedback.Proposal) (ids []string) {
	for _, c := range p.Conflicts {
		ids = append(ids, c.ID)
	}
	return ids
}

// BenchmarkPrepare tells the median of the time until a plan is there.
func BenchmarkPrepare(b *testing.B) {
	a := library(b, loop.Config{})
	for _, task := range []string{"", "task"} {
		b.Run("task="+task, func(b *testing.B) {
			var took []time.Duration
			for i := range b.N {
				began := time.Now()
				p, err := a.Prepare(ctx, loop.Event{ID: fmt.Sprint("e", task, i, b.N),
					Text: phrase(i % 3000), Domain: "d", Task: task, Session: fmt.Sprint(i)})
				took = append(took, time.Since(began))
				require.NoError(b, err)
				require.Len(b, p.Rules, 20)
				require.NotEmpty(b, p.Candidates)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs-median/op")
		})
	}
}

// BenchmarkPeople measures the memory of a thousand people on one item.
func BenchmarkPeople(b *testing.B) {
	for range b.N {
		st, err := memstore.New(memstore.Config{Retention: store.Retention{HistoryPerCell: 1}})
		require.NoError(b, err)
		cfg := loop.Config{Store: st, Model: &mouth{says: "Yes."}, Arms: []loop.Arm{{ID: "a"}}}
		a, err := loop.New(ctx, cfg)
		require.NoError(b, err)
		addStatement := func(i int) {
			person := fmt.Sprint("person-", i)
			answer, err := a.Answer(ctx, loop.Event{Text: "Why?", Item: "i", Person: person})
			require.NoError(b, err)
			require.NoError(b, a.React(ctx, answer.ID, loop.Reaction{Person: person, Value: 1}))
		}
		addStatement(0)
		before, began := inUse(), time.Now()
		for i := range 1000 {
			addStatement(i)
		}
		took := time.Since(began)
		b.ReportMetric(float64(inUse()-before)/1000, "B/person")
		b.ReportMetric(float64(took.Microseconds())/1000, "µs/person")
		runtime.KeepAlive(a)
	}
}

func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
