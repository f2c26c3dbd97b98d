package web_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/web"
)

type parrot struct{ text string }

func (p parrot) Generate(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
	return decision.LLMResponse{Text: p.text, InputTokens: 100, OutputTokens: 10}, nil
}

// A world is an agent that has learned something, with the pages over it. Each text that people or
// models give comes from say.
type world struct {
	*testing.T
	agent *loop.Agent
	store *storetest.Failing
	h     *web.Handler
	now   time.Time
	cfg   web.Config
}

func newWorld(t *testing.T, events int, say func(what string) string) *world {
	t.Helper()
	w := &world{T: t, now: start}
	clock := func() time.Time { return w.now }
	kept, err := memstore.New(memstore.Config{Now: clock})
	require.NoError(t, err)
	st := &storetest.Failing{Store: kept}
	w.store = st
	w.agent, err = loop.New(t.Context(), loop.Config{
		Store: st, Name: "desk", Model: parrot{say("answer")},
		Testing: loop.Testing{Now: clock, Seed: rand.NewPCG(1, 2)},
		Lessons: loop.Lessons{
			Arms: []loop.Arm{{ID: say("small"), InputPrice: 1}, {ID: say("large"), InputPrice: 9}},
			Heuristics: []learning.Heuristic{{ID: say("rotate"), Domain: say("servers"),
				Condition: say("the disk is full"), Action: say("Rotate the logs.")}},
		},
	})
	require.NoError(t, err)
	_, err = w.agent.Patterns().Define(t.Context(),
		patterns.Pattern{ID: patterns.PatternID(say("tests-first")),
			Content: say("write the tests first"), Tags: []string{say("tests")}})
	require.NoError(t, err)
	for i := range events {
		w.now = w.now.Add(10 * time.Minute)
		e := loop.Event{
			ID: fmt.Sprint(say("event"), i), Text: say("the disk is full"), Domain: say("servers"),
			Item: say("ticket"), Context: say("night"), Person: say("ann"),
			Session: fmt.Sprint(say("session"), i), Task: fmt.Sprint(say("task"), i),
		}
		answer, err := w.agent.Answer(t.Context(), e)
		require.NoError(t, err)
		good := answer.Plan.Arm.ID == say("large")
		value := map[bool]float64{true: 1, false: -1}[good]
		require.NoError(t, w.agent.React(t.Context(), answer.ID,
			loop.Reaction{Person: say("ann"), Channel: say("thumb"), Value: value}))
		require.NoError(t, w.agent.Outcome(t.Context(), answer.ID,
			loop.Outcome{Success: &good, Ways: []patterns.PatternID{
				patterns.PatternID(say("tests-first"))}, Failure: say("failed")}))
		_, err = w.agent.Learning().Judge(t.Context(), learning.Judgement{
			HeuristicID: say("rotate"), EventID: fmt.Sprint("other", i), Person: say("ann"), Value: value,
			At: w.now,
		})
		require.NoError(t, err)
	}
	w.cfg = web.Config{Store: st, Agent: w.agent, Identify: byHeader, Now: clock}
	w.h, err = web.New(w.cfg)
	require.NoError(t, err)
	return w
}

func (w *world) get(path string, query ...string) string {
	w.Helper()
	answer := ask{method: "GET", path: address(path, query...), person: "kim"}.of(w.h)
	require.Equal(w, http.StatusOK, answer.Code, path+plain(answer.Body.String()))
	return answer.Body.String()
}

// menu returns the names of the menu's entries.
func (w *world) menu() string {
	_, after, _ := strings.Cut(w.get("/"), "<nav aria-label=\"Pages\">")
	menu, _, _ := strings.Cut(after, "</nav>")
	return strings.TrimSpace(plain(menu))
}

func same(text string) string { return text }

func TestLearned(t *testing.T) {
	w := newWorld(t, 60, same)
	source := &view.Source{Strategy: w.agent.Strategy()}
	d, err := source.Item(t.Context(), strategy.Query{
		Category: "servers", Context: "night", Item: "ticket", // the only one
	})
	require.NoError(t, err)
	require.Equal(t, strategy.ArmID("large"), d.Leading)
	segment := []string{"category", "servers", "context", "night"}
	for _, path := range []string{"/", "/arms", "/segment"} {
		page := plain(w.get(path, segment...))
		assert.Regexp(t, `large leads, \d+ % sure`, page, path)
		assert.Contains(t, page, fmt.Sprintf("large leads%.0f %%", 100*d.Arms[1].Mean), path)
	}
	page := w.get("/segment", segment...)
	assert.Contains(t, page, "<title>Segment: servers, night")
	assert.Contains(t, plain(page), fmt.Sprintf("large %.0f %% %.0f %% %.0f %%",
		100*d.Arms[1].Mean, 100*d.Arms[1].Low, 100*d.Arms[1].High))
	assert.Contains(t, plain(page), "98 % of the latest 53 answers were given by large. "+
		"53 of them have an outcome: 98 % success. For the only item, large leads")
	// sessions are counted under Copy alone
	assert.Contains(t, plain(page), fmt.Sprintf(
		"Item Leading Success From its own outcomes Reports ticket large %.0f %%", 100*d.Arms[1].Mean))
	page = w.get("/item", append(segment, "item", "ticket")...)
	assert.Contains(t, plain(page), "thumb 100 %")
	_, latest, _ := strings.Cut(page, `<h2 id="outcomes">`)
	assert.Equal(t, 50, strings.Count(latest, "<tr><td>"), "of 120")
	assert.Contains(t, plain(w.get("/heuristics", "q", "DISK logs")),
		"the disk is full → Rotate the logs.")
	assert.Contains(t, plain(w.get("/heuristics", "q", "nothing like it")),
		"There is no such heuristic")
	assert.Equal(t, "Overview Inbox Rules Arms Heuristics Ways Answers Changes", w.menu())
	heuristic := w.get("/heuristic", "id", "rotate")
	assert.Contains(t, plain(heuristic), "The newest observations")
	assert.Contains(t, plain(w.get("/ways")+w.get("/ways", "warned", "1")), "write the tests first")
	assert.Contains(t, plain(w.get("/way", "id", "tests-first")), "helpful")
	assert.Contains(t, plain(w.get("/answer", "id", "event59")),
		"the arm large was chosen for ticket")
	assert.Contains(t, plain(w.get("/answer", "id", "event59")), "Asked: the disk is full")
	page = plain(w.get("/answer", "id", "event59"))
	assert.Regexp(t, `thumb by ann .*: \+1\.00, counts 0\.50`, page)
	assert.Regexp(t, `outcome.* \+1\.00, counts 0\.50`, plain(w.get("/answer", "id", "event59")))
	assert.Contains(t, plain(heuristic), "Answers by itself")
	c, err := w.agent.Correct(t.Context(), "event59",
		loop.Correction{Reviewer: "lee", Text: "Name the server."})
	require.NoError(t, err)
	correction := w.get("/correction", "id", c.ID)
	assert.Contains(t, plain(correction), "Question the disk is full")
	assert.Contains(t, correction, `<a href="/answer?id=event59"`)
	_, err = w.agent.Feedback().Record(t.Context(), feedback.Feedback{
		ID: "c", Gate: "review", Agent: "another", Decision: feedback.ApprovedWithChanges,
		Reviewer: "lee", At: w.now, Summary: "Name the disk.", Task: "event59",
		OutputSHA: "a", ApprovedSHA: "b",
	})
	require.NoError(t, err)
	assert.NotContains(t, plain(w.get("/correction", "id", "c")), "Question",
		"the answer of another agent")
	answers := w.get("/answers")
	assert.Contains(t, plain(answers), "the disk is full")
	next := regexp.MustCompile(`href="(\?after=[^"]+)" rel="next"`).FindStringSubmatch(answers)
	require.Len(t, next, 2)
	older := ask{method: "GET", path: "/answers" + next[1], person: "kim"}.of(w.h).Body.String()
	assert.Contains(t, older, "id=event34")
	assert.NotContains(t, older, "id=event35")
	for path, want := range map[string]int{
		"/segment?context=none": 404, "/heuristic?id=none": 404, "/way?id=none": 404,
		"/answer?id=none": 404, "/answers?after=%00": 422,
		"/arms?after=x": 422, "/heuristics?after=x": 422, "/ways?after=x": 422,
	} {
		answer := ask{method: "GET", path: path, person: "kim"}.of(w.h)
		assert.Equal(t, want, answer.Code, path+plain(answer.Body.String()))
	}
	mistyped := ask{method: "GET", path: "/item?category=servers&context=night&item=tikcet",
		person: "kim"}.of(w.h)
	assert.Equal(t, http.StatusNotFound, mistyped.Code)
	assert.Contains(t, plain(mistyped.Body.String()), "Nothing of this name is known")
}

// TestWithout has a handler beside the host, with no agent, and one without any part.
func TestWithout(t *testing.T) {
	w := newWorld(t, 3, same)
	h, err := web.Over(&view.Source{Store: w.cfg.Store, Name: "desk"},
		web.Config{Identify: byHeader, Now: w.cfg.Now})
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, ask{method: "GET", path: "/answer?id=event1",
		person: "kim"}.of(h).Code)
	for path, form := range map[string]url.Values{
		"/answer/correct": {"id": {"event1"}, "text": {"Name the server."}},
		"/answer/undo":    {"id": {"event1"}},
	} {
		w := ask{method: "POST", path: path, person: "kim", form: form}.of(h)
		assert.Equal(t, http.StatusUnprocessableEntity, w.Code, path)
		assert.Contains(t, w.Body.String(), "does not run here", path)
	}
	for _, path := range []string{"/inbox", "/rules", "/arms", "/heuristics", "/ways"} {
		assert.GreaterOrEqual(t, ask{method: "GET", path: path, person: "kim"}.of(h).Code, 400, path)
	}
	assert.Equal(t, http.StatusNotFound, ask{method: "POST", path: "/proposal/approve", person: "kim",
		form: url.Values{"id": {"p1"}, "hash": {"00"}, "reason": {"Yes"}}}.of(h).Code)
	page := w.shown(h, "/")
	assert.NotContains(t, page, "Inbox")
	assert.NotContains(t, page, "What works best")
	assert.Contains(t, page, "What changed")
}

func (w *world) shown(h http.Handler, path string) string {
	got := ask{path: path, person: "ann"}.of(h)
	require.Equal(w, http.StatusOK, got.Code, path)
	return got.Body.String()
}
