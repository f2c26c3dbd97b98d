package enginetest_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// answerEngines are the engines that the benchmarks of package loop run on. A nil place is memory.
var answerEngines = []struct {
	name  string
	place func(testing.TB) place
}{
	{"memory", nil},
	{"sqlite", func(t testing.TB) place { return sqliteFile(t, lites[0]) }},
	{"postgres", postgresSchema},
}

// says has the answer in each domain: the model's in "ops", and a heuristic's in "net".
var says = map[string]string{
	"ops": "Look at the logs of the server first, then free some space.",
	"net": "Restart the switch and wait for a minute.",
}

const (
	warmEvents   = 20 // answered and judged before the timer starts, so that statements are prepared
	answerPeople = 10 // few, because what is read of a cell grows with the number of its people
)

// answerLessons fit the events of the benchmarks. In the domain "ops" the model answers, because
// half of the reactions to its answers are complaints, so that no heuristic becomes trusted by
// agreement. The heuristic of the domain "net" is trusted.
func answerLessons() loop.Lessons {
	return loop.Lessons{Heuristics: []learning.Heuristic{
		{ID: "rotate", Domain: "ops", Action: "Rotate the logs of the server.", Initial: 0.2,
			Condition: "the disk of a server is full and its logs have grown"},
		{ID: "look", Domain: "ops", Action: "Look at the logs of the server, then free some space.",
			Condition: "the disk is full", Initial: 0.2},
		{ID: "grow", Action: "Make the volume larger.", Condition: "a disk of a database is full",
			Initial: 0.2},
		{ID: "switch", Domain: "net", Action: says["net"], Initial: 0.9,
			Condition: "the switch of rack does not answer and its link is down"},
	}}
}

// alikeLessons returns n heuristics whose conditions are like the events' text.
func alikeLessons(n int) (l loop.Lessons) {
	for i := range n {
		l.Heuristics = append(l.Heuristics, learning.Heuristic{
			ID: fmt.Sprint("alike-", i), Domain: "ops",
			Action:    fmt.Sprintf("Do step %d of the manual.", i),
			Condition: fmt.Sprintf("the disk of server %d is full and its logs have grown", i),
		})
	}
	return l
}

// answerEvent returns the nth event. Each event has a person and a session. Each fourth event
// continues the session before it.
func answerEvent(domain string, n int) loop.Event {
	of := n
	if n%4 == 3 {
		of--
	}
	text := "The disk of db-%d is full and its logs have grown"
	if domain == "net" {
		text = "The switch of rack %d does not answer and its link is down"
	}
	return loop.Event{
		ID: fmt.Sprintf("%s-event-%d", domain, n), Text: fmt.Sprintf(text, n), Domain: domain,
		Session: fmt.Sprint(domain, "-session-", of), Person: fmt.Sprint("person-", of%answerPeople),
	}
}

// An answering agent counts what its calls cost.
type answering struct {
	*loop.Agent
	calls      *storetest.Failing
	statements atomic.Int64
	at         place
	watch      *sql.DB // a second handle, which reads the figures; nil in memory
	n          int     // the events that were answered
	reactions  int
}

func newAnswering(b *testing.B, of func(testing.TB) place, lessons loop.Lessons) *answering {
	a := &answering{calls: &storetest.Failing{Store: new(memstore.Store)}}
	if of != nil {
		a.at = of(b)
		driver, handle := hookedAt(b, a.at)
		b.Cleanup(func() { _ = handle.Close() })
		driver.set(func(statement string) error {
			if statement != "COMMITTED" { // no statement: the driver reports what COMMIT did
				a.statements.Add(1)
			}
			return nil
		})
		st, err := sqlstore.Open(ctx, handle, a.at.dialect)
		require.NoError(b, err)
		a.calls.Store = store.Store(st)
		a.watch, err = a.at.open()
		require.NoError(b, err)
		b.Cleanup(func() { _ = a.watch.Close() })
	}
	instant := func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
		return decision.LLMResponse{Text: says["ops"], Model: "instant"}, nil
	}
	var err error
	a.Agent, err = loop.New(ctx, loop.Config{
		Store: a.calls, Model: decision.LLMFunc(instant), Arms: []loop.Arm{{ID: "a"}, {ID: "b"}},
		Lessons: lessons, Testing: loop.Testing{Seed: rand.NewPCG(1, 2)},
	})
	require.NoError(b, err)
	for range warmEvents {
		a.react(b, a.next(b, "ops"))
	}
	return a
}

// next answers the next event of a domain.
func (a *answering) next(b *testing.B, domain string) loop.Event {
	e := answerEvent(domain, a.n)
	a.n++
	answer, err := a.Answer(ctx, e)
	if want := says[domain]; err != nil || answer.Text != want {
		b.Fatalf("%s: %q, want %q: %v", e.ID, answer.Text, want, err)
	}
	return e
}

// react praises an answer, and finds fault with the next one.
func (a *answering) react(b *testing.B, e loop.Event) {
	value := float64(2*(a.reactions%2) - 1)
	a.reactions++
	require.NoError(b, a.React(ctx, e.ID, loop.Reaction{Person: e.Person, Value: value}))
}

// measure reports what each of b.N calls costs.
func (a *answering) measure(b *testing.B, do func(n int)) {
	runtime.GC()
	b.ReportAllocs()
	before := a.spent(b)
	b.ResetTimer()
	for n := range b.N {
		do(n)
	}
	b.StopTimer()
	for unit, after := range a.spent(b) {
		b.ReportMetric((after-before[unit])/float64(b.N), unit)
	}
}

// spent returns what the agent has cost until now, by unit.
func (a *answering) spent(b *testing.B) map[string]float64 {
	all := map[string]float64{"cpu-ms/op": cpuTime(b).Seconds() * 1000}
	for _, method := range []string{"Read", "Find", "Commit"} {
		all[strings.ToLower(method)+"s/op"] = float64(a.calls.Calls(method))
	}
	switch {
	case a.watch == nil:
		return all
	case a.at.dialect == sqlstore.SQLite:
		var pages, size, free float64
		require.NoError(b, a.watch.QueryRow("PRAGMA page_size").Scan(&size))
		require.NoError(b, a.watch.QueryRow("PRAGMA page_count").Scan(&pages))
		require.NoError(b, a.watch.QueryRow("PRAGMA freelist_count").Scan(&free))
		all["growth-B/op"] = size * (pages - free)
		if written, ok := figureOf("/proc/self/io", "wchar:"); ok {
			all["written-B/op"] = written
		}
	default:
		var written float64
		lsn := "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8"
		require.NoError(b, a.watch.QueryRow(lsn).Scan(&written))
		all["written-B/op"] = written
		if server, ok := a.serverTime(b); ok {
			all["server-cpu-ms/op"] = server
		}
	}
	all["statements/op"] = float64(a.statements.Load())
	return all
}

// serverTime returns how many milliseconds the server's processes for clients have run, if the
// server is on this machine.
func (a *answering) serverTime(b *testing.B) (total float64, ok bool) {
	rows, err := a.watch.Query(`SELECT pid FROM pg_stat_activity
		WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`)
	require.NoError(b, err)
	defer func() { require.NoError(b, rows.Close()) }()
	for rows.Next() {
		var pid int
		require.NoError(b, rows.Scan(&pid))
		ran, is := figureOf(fmt.Sprintf("/proc/%d/schedstat", pid), "")
		total, ok = total+ran/1e6, ok || is
	}
	require.NoError(b, rows.Err())
	return total, ok
}

// figureOf returns the number after a word in a file of Linux, and after "" the first number.
func figureOf(file, word string) (figure float64, ok bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	_, rest, _ := strings.Cut(string(text), word)
	_, err = fmt.Sscan(rest, &figure)
	return figure, err == nil
}

// onAnswering runs a benchmark on each engine.
func onAnswering(b *testing.B, lessons loop.Lessons, run func(*testing.B, *answering)) {
	for _, engine := range answerEngines {
		b.Run("store="+engine.name, func(b *testing.B) {
			run(b, newAnswering(b, engine.place, lessons))
		})
	}
}

// A judge does something with an answer.
type judge func(*testing.B, *answering, loop.Event)

// judging measures calls that judge answers. The answers are made before the timer starts.
func judging(domain string, do judge) func(*testing.B, *answering) {
	return func(b *testing.B, a *answering) {
		events := make([]loop.Event, b.N)
		for i := range events {
			events[i] = a.next(b, domain)
		}
		a.measure(b, func(n int) { do(b, a, events[n]) })
	}
}

func reacting(b *testing.B, a *answering, e loop.Event) { a.react(b, e) }

// BenchmarkAnswer measures an event that the model answers.
func BenchmarkAnswer(b *testing.B) {
	onAnswering(b, answerLessons(), func(b *testing.B, a *answering) {
		a.measure(b, func(int) { a.next(b, "ops") })
	})
}

// BenchmarkAnswerHeuristic measures an event that a heuristic answers.
func BenchmarkAnswerHeuristic(b *testing.B) {
	onAnswering(b, answerLessons(), func(b *testing.B, a *answering) {
		a.measure(b, func(int) { a.next(b, "net") })
	})
}

// BenchmarkReact measures a reaction to an answer of the model.
func BenchmarkReact(b *testing.B) {
	onAnswering(b, answerLessons(), judging("ops", reacting))
}

// BenchmarkReactHeuristic measures a reaction to an answer of a heuristic.
func BenchmarkReactHeuristic(b *testing.B) {
	onAnswering(b, answerLessons(), judging("net", reacting))
}

// BenchmarkReact100 measures a reaction if 100 heuristics are like the event, and if there is none.
func BenchmarkReact100(b *testing.B) {
	for _, n := range []int{0, 100} {
		b.Run(fmt.Sprint("lessons=", n), func(b *testing.B) {
			onAnswering(b, alikeLessons(n), judging("ops", reacting))
		})
	}
}

// BenchmarkUndo measures that a person takes an answer back.
func BenchmarkUndo(b *testing.B) {
	undo := func(b *testing.B, a *answering, e loop.Event) {
		require.NoError(b, a.Undo(ctx, e.ID, e.Person))
	}
	onAnswering(b, answerLessons(), judging("net", undo))
}

// BenchmarkOutcome measures what became of an answer.
func BenchmarkOutcome(b *testing.B) {
	worked := true
	outcome := func(b *testing.B, a *answering, e loop.Event) {
		require.NoError(b, a.Outcome(ctx, e.ID, loop.Outcome{Success: &worked, Source: "tickets"}))
	}
	onAnswering(b, answerLessons(), judging("ops", outcome))
}

// BenchmarkCorrect measures a reviewer's correction of a heuristic's answer.
func BenchmarkCorrect(b *testing.B) {
	correct := func(b *testing.B, a *answering, e loop.Event) {
		c := loop.Correction{Reviewer: e.Person, Text: "The summary is too long in " + e.ID}
		_, err := a.Correct(ctx, e.ID, c)
		require.NoError(b, err)
	}
	onAnswering(b, answerLessons(), judging("net", correct))
}

// BenchmarkEvent measures an event that the model answers and a person judges, with heuristics that
// fit the event and without any.
func BenchmarkEvent(b *testing.B) {
	for i, lessons := range []loop.Lessons{{}, answerLessons()} {
		b.Run("lessons="+[]string{"none", "some"}[i], func(b *testing.B) {
			onAnswering(b, lessons, func(b *testing.B, a *answering) {
				a.measure(b, func(int) { a.react(b, a.next(b, "ops")) })
			})
		})
	}
}
