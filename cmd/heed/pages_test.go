package main

import (
	"database/sql"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/web"
)

// rowsOf are past answers of some segments, each with a thumb of one of 500 people.
func rowsOf(n, segments int) iter.Seq2[loop.Past, error] {
	return func(yield func(loop.Past, error) bool) {
		for i := range n {
			person := fmt.Sprint("p", i%500)
			p := loop.Past{
				Event: loop.Event{
					ID: fmt.Sprint("e", i), Text: "The disk is full!", Person: person,
					Domain: fmt.Sprint("domain ", i%segments), At: start.Add(time.Duration(i) * time.Second),
				},
				Text: "Rotate the logs.", Arm: []string{"small", "large"}[i%2],
				Reactions: []loop.Reaction{{Person: person, Value: []float64{1, -1, 1}[i%3]}},
			}
			if !yield(p, nil) {
				return
			}
		}
	}
}

// BenchmarkPages reads the pages of an agent with 100,000 answers, 1,000 segments, 300 rules, 1,000
// heuristics and 100 tenants, in SQLite.
func BenchmarkPages(b *testing.B) {
	handle, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "p.db")+
		"?_pragma=synchronous(0)")
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, handle.Close()) })
	now := start.Add(48 * time.Hour)
	clock := func() time.Time { return now }
	st, err := sqlstore.Open(ctx, handle, sqlstore.SQLite, sqlstore.Config{Now: clock})
	require.NoError(b, err)
	cfg := loop.Config{
		Store: st, Arms: []loop.Arm{{ID: "small"}, {ID: "large"}},
		Testing: loop.Testing{Now: clock, Seed: rand.NewPCG(1, 2)},
		Tuning: loop.Tuning{Feedback: feedback.Config{Gate: feedback.Gate{
			Quorum: 1, Pending: 200_000,
		}}},
	}
	var lessons loop.Lessons
	for i := range 1000 {
		lessons.Heuristics = append(lessons.Heuristics, learning.Heuristic{
			ID: fmt.Sprint("h", i), Condition: fmt.Sprint("the disk of server ", i, " is full"),
			Action: "Rotate its logs.", Domain: fmt.Sprint("domain ", i),
		})
	}
	cfg.Lessons = lessons
	agent, err := loop.New(ctx, cfg)
	require.NoError(b, err)
	_, err = agent.Import(ctx, rowsOf(100_000, 1000), "", "")
	require.NoError(b, err)
	for i := range 100 {
		tenant, err := agent.Tenant(ctx, fmt.Sprint("tenant ", i))
		require.NoError(b, err)
		_, err = tenant.Import(ctx, rowsOf(100, 10), "", "")
		require.NoError(b, err)
	}
	rules, luck := agent.Feedback().Rules(), rand.New(rand.NewPCG(3, 4))
	text := func() (words string) { // a number or a word less would be a contradiction
		for range 6 {
			words += " "
			for range 6 {
				words += string(rune('a' + luck.IntN(26)))
			}
		}
		return words
	}
	for i := range 300 { // each is compared with all others
		p, err := rules.Propose(ctx, feedback.Submission{
			Draft: feedback.Draft{Text: "Write" + text(),
				Agents: []string{fmt.Sprint("agent ", i%50)}}, Actor: "ann", Reason: "why"})
		require.NoError(b, err)
		if i%10 > 0 { // the others wait
			_, err = rules.Review(ctx, feedback.Review{Proposal: p.ID, Decision: feedback.Approved,
				Hash: p.Hash(), Actor: "bob", Reason: "why"})
			require.NoError(b, err)
		}
	}
	for range 4 {
		require.NoError(b, agent.Sweep(ctx, time.Time{}))
	}
	pages, err := web.New(web.Config{Agent: agent, Now: clock,
		Identify: func(*http.Request) (string, error) { return "kim", nil }})
	require.NoError(b, err)
	for _, path := range []string{
		"/", "/inbox", "/rules", "/rules?after=24.", "/arms", "/segment?category=domain%201",
		"/heuristics", "/heuristic?id=h1", "/ways", "/answers", "/answers?sort=worst", "/answer?id=e1",
		"/answers?person=p1", "/changes", "/changes?kind=arm&domain=none", "/gain",
	} {
		b.Run(path, func(b *testing.B) {
			for b.Loop() {
				w := httptest.NewRecorder()
				pages.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
				require.Equal(b, http.StatusOK, w.Code, w.Body)
			}
		})
	}
}
