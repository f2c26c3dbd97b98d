package webtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/web"
)

// A world is an agent that has learned something.
type world struct {
	store *memstore.Store
	agent *loop.Agent
	now   atomic.Pointer[time.Time]

	corrections []string // addresses
}

// Generate implements [decision.LLM].
func (w *world) Generate(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
	return decision.LLMResponse{Text: "Look at the logs of the last hour, and undo what changed.",
		InputTokens: 300, OutputTokens: 40}, nil
}

func (w *world) clock() time.Time { return *w.now.Load() }

func (w *world) pass(d time.Duration) {
	now := w.clock().Add(d)
	w.now.Store(&now)
}

func newWorld(t *testing.T, lessons loop.Lessons, approaches ...patterns.Approach) *world {
	t.Helper()
	return worldOf(t, func(c *loop.Config) {
		c.Lessons, c.Tuning.Approaches = lessons, approaches
	})
}

func worldOf(t *testing.T, change func(*loop.Config)) *world {
	t.Helper()
	w := &world{}
	start := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	w.now.Store(&start)
	var err error
	w.store, err = memstore.New(memstore.Config{Now: w.clock})
	require.NoError(t, err)
	ids := 0
	cfg := loop.Config{
		Store: w.store, Name: "support", Model: w,
		Tuning: loop.Tuning{
			Feedback: feedback.Config{
				NewID: func() string { ids++; return fmt.Sprint("rule-", ids) },
				Gate:  feedback.Gate{Pending: 10_000},
			},
		},
		Testing: loop.Testing{Now: w.clock, Seed: rand.NewPCG(1, 2)},
	}
	change(&cfg)
	w.agent, err = loop.New(t.Context(), cfg)
	require.NoError(t, err)
	return w
}

// desk is a world as a support desk may have it after some weeks.
func desk(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, loop.Lessons{
		Arms: []loop.Arm{
			{ID: "brief", System: "Answer in one sentence.", InputPrice: 1, OutputPrice: 4},
			{ID: "steps", System: "Answer in numbered steps.", InputPrice: 1, OutputPrice: 4},
			{ID: "careful", System: "Say what could go wrong.", InputPrice: 3, OutputPrice: 12},
		},
		Heuristics: []learning.Heuristic{
			{ID: "rotate-logs", Domain: "servers", Condition: "The disk of a server is full.",
				Action: "Rotate its logs, then look for what fills it.", Initial: 0.72},
			{ID: "restart", Domain: "servers", Condition: "A service on a server does not answer.",
				Action: "Restart the service.", Initial: 0.78},
			{ID: "clear-cache", Domain: "servers", Condition: "The pages of a server are slow.",
				Action: "Clear the cache.", Initial: 0.72},
		},
	}, patterns.Approach{Name: "Feature flags", Phrases: []string{"feature flag*"}},
		patterns.Approach{Name: "Deploy on Friday", Phrases: []string{"on friday"}})
	dice := rand.New(rand.NewPCG(3, 4))
	for i := range 150 {
		w.pass(97 * time.Minute)
		w.request(t, i, dice)
	}
	w.reviews(t)
	require.NoError(t, w.agent.Sweep(t.Context(), time.Time{}))
	return w
}

// request is an answer, and what becomes of it.
func (w *world) request(t *testing.T, i int, dice *rand.Rand) {
	t.Helper()
	domain, text := "servers", []string{"The disk of db-1 is full.",
		"A service on web-2 does not answer.", "The pages of web-2 are slow.",
		"The certificate of mail-3 ends next week."}[i%4]
	good := map[string]float64{"brief": 0.85, "steps": 0.6, "careful": 0.35}
	if i%3 == 0 {
		domain, text = "billing", []string{"The invoice A-1020 has the wrong address.",
			"A payment for A-1177 is missing."}[i%2]
		good = map[string]float64{"brief": 0.4, "steps": 0.85, "careful": 0.6}
	}
	e := loop.Event{ID: fmt.Sprint("ticket-", i), Text: text, Domain: domain,
		Item:   []string{"db-1", "web-2", "mail-3"}[i%3],
		Person: []string{"ann", "bob", "cleo", "dan"}[i%4], Task: fmt.Sprint("task-", i)}
	answer, err := w.agent.Answer(t.Context(), e)
	require.NoError(t, err)
	value, p := -1.0, good[answer.Plan.Arm.ID]
	if answer.Result.CreditID != "" {
		p = map[string]float64{"rotate-logs": 0.95, "restart": 0.9 - float64(i)/150,
			"clear-cache": 0.25}[answer.Result.CreditID]
	}
	if dice.Float64() < p {
		value = 1
	}
	require.NoError(t, w.agent.React(t.Context(), answer.ID,
		loop.Reaction{Person: e.Person, Value: value}))
	way := []string{"Feature flags", "Deploy on Friday"}[i%2]
	success := dice.Float64() < []float64{0.9, 0.2}[i%2]
	require.NoError(t, w.agent.Outcome(t.Context(), answer.ID,
		loop.Outcome{Success: &success, Ways: []patterns.PatternID{patterns.IDOf(way)},
			Source: "pipeline"}))
}

// reviews has proposals that wait, one with an approval, an edited one, two that contradict each
// other, rules in use, and a correction to resolve.
func (w *world) reviews(t *testing.T) {
	t.Helper()
	ctx, rules := t.Context(), w.agent.Feedback().Rules()
	for i, text := range []string{
		"Name the server in the first line.", "Always name the server in the first line.",
		"Name the server in the first line of the answer.",
		"Never promise a date to a customer.", "Never promise a date to any customer.",
		"Do not promise customers a date.", "Promise a date to each customer.",
		"Give every time with its time zone.", "Give each time with its time zone.",
		"Give all times with the time zone.",
	} {
		w.pass(7 * time.Minute)
		_, err := w.agent.Correct(ctx, fmt.Sprint("ticket-", 149-i),
			loop.Correction{Reviewer: []string{"lee", "mia", "noor"}[i%3], Text: text})
		require.NoError(t, err)
	}
	_, _, err := w.agent.Feedback().Flush(ctx)
	require.NoError(t, err)
	propose := func(text, replaces string, approvers ...string) feedback.Proposal {
		p, err := rules.Propose(ctx, feedback.Submission{Draft: feedback.Draft{Text: text,
			Agents: []string{"support"}}, Replaces: replaces, Actor: "eve",
			Reason: "I see it every week"})
		require.NoError(t, err, text)
		for _, person := range approvers {
			p, err = rules.Review(ctx, feedback.Review{
				Proposal: p.ID, Decision: feedback.Approved, Hash: p.Hash(), Actor: person,
				Reason: "I saw it, too",
			})
			require.NoError(t, err)
		}
		return p
	}
	propose("Ask before you restart a service that customers use.", "", "lee", "mia")
	propose("Name the ticket in each commit.", "", "lee", "mia")
	propose("Never name the ticket in a commit.", "")
	long := propose("Write the answer so that it can be read by somebody who knows nothing of the "+
		"matter and has little time.", "")
	propose("Write for somebody who has little time.", long.ID, "kim")
}

// pages returns the addresses of the pages that show all kinds of things.
func (w *world) pages(t *testing.T) []string {
	t.Helper()
	ctx, rules := t.Context(), w.agent.Feedback().Rules()
	paths := []string{"/", "/inbox", "/rules", "/rules?q=nothing+like+this", "/changes", "/arms",
		"/heuristics", "/ways", "/ways?warned=1", "/answers", "/answer?id=none", "/none"}
	paths = append(paths, w.corrections...)
	all, _, err := rules.Proposals(ctx, feedback.ProposalQuery{}, 0)
	require.NoError(t, err)
	for _, p := range all {
		paths = append(paths, at("/proposal", "id", p.ID))
		if _, err := rules.Rule(ctx, p.ID); err == nil {
			paths = append(paths, at("/rule", "id", p.ID))
		}
		sources, err := rules.Sources(ctx, p.ID)
		require.NoError(t, err)
		for _, source := range sources {
			paths = append(paths, at("/correction", "id", source.ID))
		}
	}
	return paths
}

func at(path string, query ...string) string {
	values := make(url.Values)
	for i := 0; i+1 < len(query); i += 2 {
		values.Set(query[i], query[i+1])
	}
	return path + "?" + values.Encode()
}

// A site serves the pages of a world to people, who are signed in by a cookie.
type site struct {
	*testing.T
	world  *world
	url    string
	pages  *web.Handler
	server *httptest.Server
}

func serve(t *testing.T, w *world) *site {
	t.Helper()
	s := &site{T: t, world: w}
	var err error
	s.pages, err = web.New(web.Config{Store: s.world.store, Agent: s.world.agent,
		Now: s.world.clock, Identify: func(r *http.Request) (string, error) {
			cookie, err := r.Cookie("person")
			if err != nil {
				return "", err
			}
			return url.QueryUnescape(cookie.Value)
		}})
	require.NoError(s, err)
	mux := http.NewServeMux()
	mux.Handle("/", s.pages)
	// is the host's
	mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter,
		_ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("/as/{person}", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "person", Value: url.QueryEscape(r.PathValue("person")),
			Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
	s.server = httptest.NewServer(mux)
	t.Cleanup(s.server.Close)
	s.url = s.server.URL
	return s
}

// waiting returns the id of the pending proposal with a text, or of any for "".
func (w *world) waiting(t *testing.T, text string) string {
	t.Helper()
	all, _, err := w.agent.Feedback().Rules().Proposals(t.Context(),
		feedback.ProposalQuery{Status: feedback.StatePending}, 0)
	require.NoError(t, err)
	i := slices.IndexFunc(all, func(p feedback.Proposal) bool { return text == "" || p.Text == text })
	require.GreaterOrEqual(t, i, 0, "%s among %d", text, len(all))
	return all[i].ID
}
