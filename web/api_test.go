package web

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy"
)

// A world is an agent behind its API.
type world struct {
	t       *testing.T
	store   *memstore.Store
	agent   *loop.Agent
	handler *Handler
	doc     document
	name    string // of the model

	asked atomic.Int64 // calls of the model
	// nil: it says "Rotate its logs."
	model func(context.Context, decision.LLMRequest) (string, error)
}

func (w *world) Generate(ctx context.Context, r decision.LLMRequest) (decision.LLMResponse, error) {
	w.asked.Add(1)
	if w.model == nil {
		return decision.LLMResponse{Text: "Rotate its logs.", Model: w.name}, nil
	}
	text, err := w.model(ctx, r)
	return decision.LLMResponse{Text: text}, err
}

// Stream gives the answer in two pieces.
func (w *world) Stream(ctx context.Context, r decision.LLMRequest,
	piece func(string)) (decision.LLMResponse, error) {
	got, err := w.Generate(ctx, r)
	half := len(got.Text) / 2
	piece(got.Text[:half])
	piece(got.Text[half:])
	return got, err
}

func newWorld(t *testing.T, change ...func(*loop.Config, *Config)) *world {
	t.Helper()
	w := &world{t: t, store: &memstore.Store{}, doc: documented(t), name: "scripted"}
	agent := loop.Config{
		Store: w.store, Model: w, Arms: []loop.Arm{{ID: "brief", System: "Answer in one sentence."},
			{ID: "long"}},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{{ID: "greet",
			Condition: "somebody says hello", Action: "Hello!"}}},
	}
	cfg := Config{Store: w.store, Identify: func(r *http.Request) (string,
		error) {
		return r.Header.Get("X-Person"), nil
	}}
	for _, f := range change {
		f(&agent, &cfg)
	}
	var err error
	w.agent, err = loop.New(t.Context(), agent)
	require.NoError(t, err)
	cfg.Agent = w.agent
	w.handler, err = New(cfg)
	require.NoError(t, err)
	return w
}

// An answer is what the API has answered.
type reception struct {
	status int
	body   string
	header http.Header
}

func (a reception) field(t *testing.T, name string) (value any) {
	t.Helper()
	var fields map[string]any
	require.NoError(t, json.Unmarshal([]byte(a.body), &fields), a.body)
	return fields[name]
}

func (a reception) text(t *testing.T, name string) string {
	t.Helper()
	text, ok := a.field(t, name).(string)
	require.True(t, ok, "%s in %s", name, a.body)
	return text
}

// sort returns the sort of a problem, or "".
func (a reception) sort() string {
	var p trouble
	if a.header.Get("Content-Type") != "application/problem+json" ||
		json.Unmarshal([]byte(a.body), &p) != nil || p.Status != a.status {
		return ""
	}
	return strings.TrimPrefix(p.Type, problemsAt)
}

// send sends a request. The document has the status of each answer.
func (w *world) send(r *http.Request) reception {
	w.t.Helper()
	if r.Header.Get("X-Person") == "" {
		r.Header.Set("X-Person", "shop")
	}
	path, _, _ := strings.Cut(r.URL.Path, "?")
	got := httptest.NewRecorder()
	w.handler.ServeHTTP(got, r)
	if op, ok := w.doc.Paths[path][strings.ToLower(r.Method)]; ok {
		assert.Contains(w.t, op.Responses, fmt.Sprint(got.Code), "%s %s: %s", r.Method, path, got.Body)
	}
	return reception{got.Code, got.Body.String(), got.Header()}
}

func (w *world) post(path, body string, headers ...string) reception {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return w.send(r)
}

func (w *world) get(path string) reception {
	w.t.Helper()
	return w.send(httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, path, nil))
}

// must is a call that has to succeed.
func (w *world) must(status int, a reception) reception {
	w.t.Helper()
	require.Equal(w.t, status, a.status, a.body)
	return a
}

// A choice is observed where it was made, and not by another tenant or without a tenant.
func TestAChoiceBelongsToATenant(t *testing.T) {
	w := newWorld(t)
	var handlers [3]*Handler
	var choices [3]string
	for i, name := range []string{"", "acme", "umbrella"} {
		agent, err := w.agent.Tenant(t.Context(), name)
		require.NoError(t, err)
		handlers[i], err = New(Config{Agent: agent, Identify: func(*http.Request) (string, error) {
			return "shop", nil
		}})
		require.NoError(t, err)
		w.handler = handlers[i]
		choices[i] = w.must(200, w.post("/v1/select", `{}`)).text(t, "choice")
	}
	for i, choice := range choices {
		for at, h := range handlers {
			w.handler = h
			status := 200
			if i != at {
				status = 422
			}
			w.must(status, w.post("/v1/observe",
				fmt.Sprintf(`{"choice":%q,"value":1,"confidence":1}`, choice)))
		}
	}
}

// A program in another language chooses an arm, says how it turned out, and finds that in the
// segment.
func TestSelectAndObserve(t *testing.T) {
	w := newWorld(t)
	chosen := w.must(200, w.post("/v1/select", `{"item":"ann","category":"mail","arms":["long"]}`))
	assert.Equal(t, "long", chosen.text(t, "arm"))
	assert.Equal(t, "application/json", chosen.header.Get("Content-Type"))
	body := fmt.Sprintf(`{"choice":%q,"value":1,"confidence":1,"source":"ann","latency_ms":1.5}`,
		chosen.text(t, "choice"))
	assert.Equal(t, "applied", w.must(200, w.post("/v1/observe", body)).text(t, "disposition"))
	assert.Equal(t, "duplicate", w.must(200, w.post("/v1/observe", body)).text(t, "disposition"))
	segments := w.must(200, w.get("/v1/segments"))
	assert.Contains(t, segments.body, `"category":"mail","context":"","leading":"long"`)
	for record, err := range w.agent.Strategy().History(t.Context(), choicesOf("ann")) {
		require.NoError(t, err)
		assert.Equal(t, 1500*time.Microsecond, record.Result.Latency)
	}
}

// The list of segments has each outcome at once, and none of a segment that was reset.
func TestSegmentsAreUpToDate(t *testing.T) {
	w := newWorld(t)
	for _, want := range []string{`"outcomes":1,"updated"`, `"outcomes":2,"updated"`} {
		c := w.must(200, w.post("/v1/select", `{"category":"mail"}`)).text(t, "choice")
		w.must(200, w.post("/v1/observe", fmt.Sprintf(`{"choice":%q,"value":1,"confidence":1}`, c)))
		assert.Contains(t, w.must(200, w.get("/v1/segments")).body, want)
	}
	require.NoError(t, w.agent.Strategy().Reset(t.Context(),
		strategy.Reset{Category: "mail", Actor: "kim", Reason: "r"}))
	assert.JSONEq(t, `{"items":[]}`, w.must(200, w.get("/v1/segments")).body)
}

// An answer and all that is said of it are in its explanation.
func TestAnswerAndFate(t *testing.T) {
	w := newWorld(t)
	answer := w.must(200,
		w.post("/v1/answer",
			`{"id":"e1","text":"The disk of db-1 is full.","session":"s1","person":"ann"}`))
	assert.Equal(t, []any{"e1", "Rotate its logs.", "llm", "scripted"}, []any{
		answer.text(t, "id"), answer.text(t, "text"), answer.text(t, "path"), answer.text(t, "model"),
	})
	w.must(204, w.post("/v1/react", `{"answer":"e1","person":"ann","value":1}`))
	explained := w.must(200, w.get("/v1/explanation?answer=e1"))
	assert.InDelta(t, 1, explained.field(t, "worth"), 0)
	w.must(204, w.post("/v1/outcome",
		`{"answer":"e1","success":false,"errors":2,"duration_ms":300,"source":"ci"}`))
	w.must(204, w.post("/v1/undo", `{"answer":"e1","person":"ann"}`))
	explained = w.must(200, w.get("/v1/explanation?answer=e1"))
	assert.InDelta(t, -1, explained.field(t, "worth"), 0)
	corrected := w.must(200, w.post("/v1/correct",
		`{"answer":"e1","text":"Name the server in the first line."}`, "X-Person", "kim"))
	f, err := w.agent.Feedback().Feedback(t.Context(), corrected.text(t, "id"))
	require.NoError(t, err)
	assert.Equal(t, "kim", f.Reviewer, "who is identified, and nobody else")
}

// A source is an instrument only if the configuration names it, whoever sends its name. An
// instrument neither reacts nor undoes.
func TestInstrumentsAreNamedByTheHost(t *testing.T) {
	for _, instruments := range [][]string{nil, {"ci"}} {
		w := newWorld(t, func(c *loop.Config, _ *Config) { c.Instruments = instruments })
		w.must(200, w.post("/v1/answer", `{"id":"e1","text":"The disk is full.","person":"ann"}`))
		w.must(204, w.post("/v1/outcome", `{"answer":"e1","reward":1,"source":"ci"}`))
		account, err := w.agent.Explain(t.Context(), "e1")
		require.NoError(t, err)
		require.Len(t, account.Statements, 1)
		want, status := "person", 204
		if instruments != nil {
			want, status = "instrument", 422
		}
		assert.EqualValues(t, want, account.Statements[0].Kind)
		for path, body := range map[string]string{
			"/v1/react": `{"answer":"e1","value":1,"person":"ci"}`,
			"/v1/undo":  `{"answer":"e1","person":"ci"}`,
		} {
			assert.Equal(t, status, w.post(path, body).status, path)
		}
	}
}

// A framework asks its own model between two calls. The second one may be sent again, and to
// another server.
func TestPrepareAndAnswered(t *testing.T) {
	w := newWorld(t)
	plan := w.must(200, w.post("/v1/prepare", `{"id":"e1","text":"The disk of db-1 is full."}`))
	assert.Equal(t, false, plan.field(t, "ready"))
	assert.Contains(t, plan.text(t, "prompt"), "The disk of db-1 is full.")
	said := `{"id":"e1","text":"<think>hm</think>Rotate its logs.","input_tokens":7,"latency_ms":20}`
	for range 2 {
		assert.Equal(t, "Rotate its logs.", w.must(200, w.post("/v1/answered", said)).text(t, "text"))
	}
	assert.Zero(t, w.asked.Load())
	another := w.post("/v1/answered", said, "X-Person", "another")
	assert.Equal(t, view.Unknown, another.sort(), "a plan is of who prepared it")
	assert.Equal(t, true, w.must(200, w.post("/v1/prepare",
		`{"id":"e1","text":"The disk of db-1 is full."}`)).field(t, "ready"))

	w.must(200, w.post("/v1/prepare", `{"id":"e2","text":"The disk of db-2 is full."}`))
	for path, body := range map[string]string{"/v1/prepare": `{"id":"e3","text":"t"}`,
		"/v1/answered": `{"id":"e3","text":"u"}`, "/v1/answer": `{"text":"v"}`} {
		if path == "/v1/answered" {
			w.must(200, w.post("/v1/prepare", `{"id":"e3","text":"t"}`))
		}
		arm, ok := w.must(200, w.post(path, body)).field(t, "arm").(map[string]any)
		assert.True(t, ok && arm["id"] != "", "%s has an arm like the others", path)
	}
	assert.Contains(t, w.post("/v1/react", `{"answer":"e9","value":1}`).body,
		"No answer of this id is known")
	assert.Contains(t, w.post("/v1/react", `{"answer":"e1","value":"1"}`).body,
		"value must be a number that fits into 64 bits, without quotes.")
	other := newWorld(t, func(c *loop.Config, cfg *Config) { c.Store, cfg.Store = w.store, w.store })
	none := w.must(200, other.post("/v1/answered", `{"id":"e2","error":"the model is down"}`))
	assert.Equal(t, "llm_error", none.text(t, "reason"))
}

// Lists have pages that neither repeat nor lose an item, also if the item at which a page ended has
// gone.
func TestPages(t *testing.T) {
	w := newWorld(t)
	var lessons loop.Lessons
	for i := range 7 {
		lessons.Heuristics = append(lessons.Heuristics,
			learning.Heuristic{ID: fmt.Sprint("h", i), Domain: "d", Condition: "c", Action: "a"})
		for range 1 + i/6 {
			c := w.must(200, w.post("/v1/select", fmt.Sprintf(`{"category":"c%d"}`, i))).text(t, "choice")
			w.must(200, w.post("/v1/observe", fmt.Sprintf(`{"choice":%q,"value":1,"confidence":1}`, c)))
		}
	}
	first := w.must(200, w.get("/")).body
	assert.Equal(t, []string{"category=c6", "category=c0", "category=c1"},
		regexp.MustCompile(`category=c\d`).FindAllString(first, -1), "most outcomes first")
	assert.Contains(t, first, "All 7 segments")
	_, err := w.agent.Teach(t.Context(), lessons)
	require.NoError(t, err)
	ids := func(path, name string, between func(last string)) (all []string) {
		for after := ""; ; {
			got := w.must(200, w.get(path+"limit=3&after="+after))
			for _, item := range got.field(t, "items").([]any) {
				all = append(all, item.(map[string]any)[name].(string))
			}
			next, more := got.field(t, "next").(string)
			if !more {
				return all
			}
			between(all[len(all)-1])
			after = next
		}
	}
	all := ids("/v1/heuristics?domain=d&", "id",
		func(last string) { require.NoError(t, w.agent.Learning().Delete(t.Context(), last)) })
	assert.Equal(t, []string{"h0", "h1", "h2", "h3", "h4", "h5", "h6"}, all)
	all = ids("/v1/segments?", "category", func(string) {})
	assert.Equal(t, []string{"c0", "c1", "c2", "c3", "c4", "c5", "c6"}, all)
	for _, path := range []string{"/v1/rules?status=ACTIVE", "/v1/warnings"} {
		assert.JSONEq(t, `{"items":[]}`, w.must(200, w.get(path)).body, path)
	}
	for _, query := range []string{"limit=0x", "limit=-1", "limit=201", "after=%ff", "after=!",
		"after=%2B0", "after=%2B0.c1", "after=-1.c1", "after=1",
		"limit=1&limit=2", "what=1"} {
		sort := w.get("/v1/segments?" + query).sort()
		assert.Contains(t, []string{view.BadField, view.Malformed}, sort, query)
	}
}

// A faulty request gets a problem that names the fault, and nothing is kept.
func TestBadRequests(t *testing.T) {
	w := newWorld(t)
	w.must(200, w.post("/v1/answer", `{"id":"e1","text":"t"}`))
	for _, tt := range []struct{ path, body, sort, field string }{
		{"/v1/answer", ``, view.Malformed, ""},
		{"/v1/answer", `{`, view.Malformed, ""},
		{"/v1/answer", `{"text":"t"} {}`, view.Malformed, ""},
		{"/v1/answer", "{\"text\":\"\xff\"}", view.Malformed, ""},
		{"/v1/answer", `{"text":"t",}`, view.Malformed, ""},
		{"/v1/answer", `null`, view.BadField, ""},
		{"/v1/answer", `[]`, view.BadField, ""},
		{"/v1/answer", strings.Repeat("[", 20_000), view.BadField, ""},
		{"/v1/answer", `{"text":` + strings.Repeat("[", 20_000), view.Malformed, ""},
		{"/v1/answer", `{"history":` + strings.Repeat(`[{"role":`, 20_000), view.Malformed, ""},
		{"/v1/answer", `{}`, view.BadField, "text"},
		{"/v1/answer", `{"Text":"t"}`, view.BadField, "Text"},
		{"/v1/answer", `{"text":"t","text":"u"}`, view.BadField, "text"},
		{"/v1/answer", `{"text":"t","actor":"kim"}`, view.BadField, "actor"},
		{"/v1/answer", `{"text":"t","` + strings.Repeat("x", 1000) + `":1}`, view.BadField,
			strings.Repeat("x", 100) + "…"},
		{"/v1/answer", `{"text":1}`, view.BadField, "text"},
		{"/v1/answer", `{"text":null}`, view.BadField, "text"},
		{"/v1/answer", `{"text":""}`, view.BadField, "text"},
		{"/v1/prepare", `{"text":" "}`, view.BadField, "text"},
		{"/v1/answer", `{"text":"t","at":"yesterday"}`, view.BadField, "at"},
		{"/v1/answer", `{"text":"t","at":"9999-01-01T00:00:00Z"}`, view.BadField, "at"},
		{"/v1/answer", `{"text":"t","history":[{"role":"user","text":""},{"role":"user","text":"","x":1}]}`,
			view.BadField, "history[1].x"},
		{"/v1/answer", `{"text":"t","history":[{"role":"user","text":"a","text":"b"}]}`, view.BadField,
			"history[0].text"},
		{"/v1/prepare", `{"text":"t","history":[{"role":"user","Text":"a"}]}`, view.BadField,
			"history[0].Text"},
		{"/v1/answer", `{"text":"t","history":[{"role":"user"}]}`, view.BadField, "history[0].text"},
		{"/v1/answer", `{"text":"t","history":[{"role":"user","text":null}]}`, view.BadField,
			"history[0].text"},
		{"/v1/answer", `{"text":"t","history":[null]}`, view.BadField, "history[0]"},
		{"/v1/answer", `{"text":"t","history":["a"]}`, view.BadField, "history[0]"},
		{"/v1/answer", `{"text":"t","history":null}`, view.BadField, "history"},
		{"/v1/correct", `{"answer":"e1","text":"t","tags":["a",null]}`, view.BadField, "tags[1]"},
		{"/v1/answer", `{"text":"t","id":"\u0000"}`, view.BadField, "id"},
		{"/v1/answer", `{"text":"t","id":"` + strings.Repeat("x", 2000) + `"}`, view.BadField, "id"},
		{"/v1/react", `{"answer":"e1","value":"NaN"}`, view.BadField, "value"},
		{"/v1/react", `{"answer":"e1","value":NaN}`, view.Malformed, ""},
		{"/v1/react", `{"answer":"e1","value":1e999}`, view.BadField, "value"},
		{"/v1/react", `{"answer":"e1","value":2}`, view.BadField, "value"},
		{"/v1/react", `{"answer":"e1","value":1,"weight":-1}`, view.BadField, "weight"},
		{"/v1/react", `{"answer":"e1","value":1,"target":"all"}`, view.BadField, "target"},
		{"/v1/react", `{"answer":"","value":1}`, view.BadField, "answer"},
		{"/v1/react", `{"answer":"../e1","value":1}`, view.Unknown, ""},
		{"/v1/react", `{"answer":"e1"}`, view.BadField, "value"},
		{"/v1/undo", `{"answer":"\u0000","person":"ann"}`, view.Unknown, ""},
		{"/v1/outcome", `{"answer":"e1"}`, view.BadField, "success"},
		{"/v1/outcome", `{"answer":"e1","success":"yes"}`, view.BadField, "success"},
		{"/v1/outcome", `{"answer":"e1","success":true,"errors":1.5}`, view.BadField, "errors"},
		{"/v1/outcome", `{"answer":"e1","success":true,"errors":99999999999999999999}`, view.BadField,
			"errors"},
		{"/v1/outcome", `{"answer":"e1","success":true,"duration_ms":-1}`, view.BadField,
			"duration_ms"},
		{"/v1/outcome", `{"answer":"e1","success":true,"duration_ms":1e13}`, view.BadField,
			"duration_ms"},
		{"/v1/outcome", `{"answer":"e1","reward":1.1}`, view.BadField, "reward"},
		{"/v1/outcome", `{"answer":"e1","success":true,"cost":1e300}`, view.BadField, "cost"},
		{"/v1/outcome", `{"answer":"e1","success":true,"ways":"tests"}`, view.BadField, "ways"},
		{"/v1/correct", `{"answer":"e1","text":"t","reviewer":"kim"}`, view.BadField, "reviewer"},
		{"/v1/correct", `{"answer":"e1","text":"` + strings.Repeat("x", 501) + `"}`, view.BadField,
			"text"},
		{"/v1/correct", `{"answer":"e1","text":"t","severity":"awful"}`, view.BadField, "severity"},
		{"/v1/correct", `{"answer":"e1","text":"t","decision":"MAYBE"}`, view.BadField, "decision"},
		{"/v1/select", `{"arms":["none"]}`, view.BadField, "arms"},
		{"/v1/select", `{"arms":[1]}`, view.BadField, "arms[0]"},
		{"/v1/observe", `{"choice":"x","value":1,"confidence":1}`, view.BadField, "choice"},
		{"/v1/observe", `{"choice":"bnVsbAo","value":1,"confidence":1}`, view.BadField, "choice"},
		{"/v1/observe", `{"choice":"e30K","value":1,"confidence":1}`, view.BadField, "choice"},
		{"/v1/observe", `{"value":1,"confidence":1}`, view.BadField, "choice"},
		{"/v1/answered", `{"id":"e9","text":"t"}`, view.Unknown, ""},
		{"/v1/answered", `{"id":"e9"}`, view.BadField, "text"},
		{"/v1/answered", `{"id":"e9","text":"t","input_tokens":-1}`, view.BadField, "input_tokens"},
		{"/v1/nothing", `{}`, noCall, ""},
	} {
		got := w.post(tt.path, tt.body)
		name := tt.path + " " + tt.body[:min(len(tt.body), 100)]
		if assert.Equal(t, tt.sort, got.sort(), "%s: %s", name, got.body) && tt.field != "" {
			assert.Equal(t, tt.field, got.text(t, "field"), name)
		}
	}
	explained := w.must(200, w.get("/v1/explanation?answer=e1"))
	assert.Equal(t, false, explained.field(t, "known"), "nothing of it was kept")
}

// A request that is no call at all is refused before anything is read.
func TestBadEnvelopes(t *testing.T) {
	w := newWorld(t)
	of := func(method, path, body string, headers ...string) reception {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		for i := 0; i < len(headers); i += 2 {
			r.Header.Add(headers[i], headers[i+1])
		}
		return w.send(r)
	}
	const kind, jsonType = "Content-Type", "application/json"
	for name, tt := range map[string]struct {
		got  reception
		sort string
	}{
		"no content type": {of("POST", "/v1/undo", `{"answer":"e"}`), notJSONType},
		"a form": {of("POST", "/v1/undo", `answer=e`, kind,
			"application/x-www-form-urlencoded"), notJSONType},
		"a charset is fine": {of("POST", "/v1/undo", `{"answer":"e"}`, kind,
			"application/json; charset=utf-8"), view.Unknown},
		"a charset that is none": {of("POST", "/v1/undo", `{"answer":"e"}`, kind,
			"application/json; charset"), notJSONType},
		"another method": {of("PUT", "/v1/undo", `{"answer":"e"}`, kind, jsonType), badMethod},
		"GET of a call":  {of("GET", "/v1/undo", ""), badMethod},
		"POST to a list": {of("POST", "/v1/rules", `{}`, kind, jsonType), badMethod},
		"a query beside a body": {of("POST", "/v1/undo?answer=e", `{"answer":"e"}`, kind, jsonType),
			view.Malformed},
		"too large": {of("POST", "/v1/undo", `{"answer":"`+strings.Repeat("x", 1<<20), kind,
			jsonType), tooLarge},
		"another site": {of("POST", "/v1/undo", `{"answer":"e"}`, kind, jsonType,
			"Sec-Fetch-Site", "cross-site"), otherSite},
		"nobody": {w.send(&http.Request{Method: "GET", URL: mustURL(t, "/v1/rules"),
			Header: http.Header{"X-Person": {"\x00"}}}), unidentified},
		"no body at all": {w.send(&http.Request{Method: "GET", URL: mustURL(t, "/v1/rules?limit=-1"),
			Header: http.Header{}}), view.BadField},
		"no answer in the query": {of("GET", "/v1/explanation", ""), view.BadField},
		"a bad query":            {of("GET", "/v1/explanation?answer=%zz", ""), view.Malformed},
		"a hostile id": {of("GET", "/v1/explanation?answer=%00%2f..%2f%22%3Cscript%3E", ""),
			view.Unknown},
		"a path with dots":     {of("GET", "/v1/../v1/rules", ""), noCall},
		"a call of no version": {of("GET", "/v1/", ""), noCall},
	} {
		assert.Equal(t, tt.sort, tt.got.sort(), "%s: %d %s", name, tt.got.status, tt.got.body)
		if name == "too large" || name == "another site" {
			assert.Equal(t, "close", tt.got.header.Get("Connection"), name)
		}
	}
	assert.Equal(t, "POST", of("PUT", "/v1/undo", "").header.Get("Allow"))
	assert.Equal(t, http.StatusOK, of("HEAD", "/v1/rules", "").status)
	document := w.must(200, w.get("/v1/openapi.json"))
	assert.JSONEq(t, string(view.OpenAPI), document.body)
	assert.Equal(t, "application/json", document.header.Get("Content-Type"))
}

// A handler without a part says so, and a server's failure tells the client nothing of it.
func TestMissingPartsAndFailures(t *testing.T) {
	alone := &world{t: t, doc: documented(t)}
	var err error
	alone.handler, err = New(Config{Store: &memstore.Store{},
		Identify: func(*http.Request) (string, error) { return "shop", nil }})
	require.NoError(t, err)
	for path, body := range map[string]string{
		"/v1/select": `{}`, "/v1/observe": `{"choice":"x","value":1,"confidence":1}`,
		"/v1/answer":  `{"text":"t"}`,
		"/v1/prepare": `{"text":"t"}`, "/v1/answered": `{"id":"e"}`,
		"/v1/react": `{"answer":"e","value":1}`, "/v1/undo": `{"answer":"e"}`,
		"/v1/outcome": `{"answer":"e"}`, "/v1/correct": `{"answer":"e"}`,
	} {
		assert.Equal(t, view.MissingPart, alone.post(path, body).sort(), path)
	}
	for _, path := range []string{"/v1/segments", "/v1/heuristics", "/v1/rules", "/v1/warnings"} {
		assert.Equal(t, view.MissingPart, alone.get(path).sort(), path)
	}
	assert.Equal(t, view.Unknown, alone.get("/v1/explanation?answer=e").sort())
	assert.Contains(t, alone.post("/v1/select", `{}`).body, "--lessons FILE",
		"the next step is named")

	silent := newWorld(t, func(c *loop.Config, _ *Config) { c.Model = nil })
	assert.Equal(t, view.MissingPart, silent.post("/v1/answer", `{"text":"t"}`).sort(),
		"no model is configured")
	broken := newWorld(t)
	broken.model = func(context.Context, decision.LLMRequest) (string, error) {
		return "",
			errors.New("the secret reason")
	}
	got := broken.post("/v1/answer", `{"text":"t"}`)
	assert.Equal(t, view.ModelFailed, got.sort())
	assert.NotContains(t, got.body, "secret")
}

// The observer has why the server failed. A fault of the client is none of the server's.
func TestTheObserverHasTheCause(t *testing.T) {
	st := &storetest.Failing{Store: &memstore.Store{}}
	var failed []string
	w := newWorld(t, func(c *loop.Config, cfg *Config) {
		c.Store, cfg.Store = st, st
		cfg.Observer = func(_ context.Context, n heed.Notice) {
			if n, ok := n.(heed.Failed); ok {
				failed = append(failed, n.What)
				assert.ErrorIs(t, n.Err, storetest.ErrFailed)
			}
		}
	})
	assert.Equal(t, view.Unknown, w.get("/v1/explanation?answer=e").sort())
	assert.Equal(t, http.StatusNotFound, w.get("/answer?id=e").status)
	st.SetAway(true)
	assert.Equal(t, view.Failure, w.get("/v1/explanation?answer=e").sort())
	assert.Equal(t, http.StatusInternalServerError, w.get("/answer?id=e").status)
	assert.Equal(t, []string{"GET /v1/explanation", "Answer"}, failed)
}

// An answer comes in pieces if the client asks for that, and then as a whole.
func TestStream(t *testing.T) {
	w := newWorld(t)
	got := w.must(200, w.post("/v1/answer", `{"id":"e1","text":"t"}`, "Accept", "text/event-stream"))
	events := eventsOf(got.body)
	require.Len(t, events, 3, got.body)
	assert.Equal(t, []string{"piece", "piece", "answer"},
		[]string{events[0][0], events[1][0], events[2][0]})
	assert.JSONEq(t, `{"text":"Rotate i","restart":false}`, events[0][1])
	assert.Contains(t, events[2][1], `"text":"Rotate its logs."`)
	assert.Equal(t, "text/event-stream", got.header.Get("Content-Type"))
	assert.Equal(t, "no", got.header.Get("X-Accel-Buffering"))

	w.model = func(context.Context, decision.LLMRequest) (string, error) {
		return "half an answer", errors.New("it broke off")
	}
	events = eventsOf(w.post("/v1/answer", `{"text":"t"}`, "Accept", "text/event-stream").body)
	assert.Equal(t, "problem", events[len(events)-1][0])
	assert.Contains(t, events[len(events)-1][1], view.ModelFailed)
	assert.Equal(t, view.BadField, w.post("/v1/answer", `{}`, "Accept", "text/event-stream").sort(),
		"nothing has begun")

	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/answer",
		strings.NewReader(`{"id":"e1","text":"t"}`))
	r.Header = http.Header{"X-Person": {"shop"}, "Content-Type": {"application/json"},
		"Accept": {"text/event-stream"}}
	slow := &slowReader{ResponseRecorder: httptest.NewRecorder()}
	w.handler.ServeHTTP(slow, r)
	require.Len(t, slow.until, 1)
	assert.WithinDuration(t, time.Now().Add(time.Minute), slow.until[0], 10*time.Second)
}

// A slowReader notes until when a client that does not read is waited for.
type slowReader struct {
	*httptest.ResponseRecorder
	until []time.Time
}

func (w *slowReader) SetWriteDeadline(until time.Time) error {
	w.until = append(w.until, until)
	return nil
}

func eventsOf(body string) (events [][2]string) {
	var event string
	for lines := bufio.NewScanner(strings.NewReader(body)); lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			event = name
		} else if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			events = append(events, [2]string{event, data})
		}
	}
	return events
}

// A call that comes again, to another process after a crash for example, has the same result.
func TestCallsThatComeAgain(t *testing.T) {
	w := newWorld(t)
	other := newWorld(t, func(c *loop.Config, cfg *Config) { c.Store, cfg.Store = w.store, w.store })
	other.model = func(context.Context, decision.LLMRequest) (string, error) {
		return "Another.", nil
	}
	choice := w.must(200, w.post("/v1/select", `{"item":"i","session":"s"}`)).text(t, "choice")
	for path, body := range map[string]string{
		"/v1/answer":  `{"id":"e","text":"The disk of db-1 is full.","person":"ann"}`,
		"/v1/observe": fmt.Sprintf(`{"choice":%q,"value":1,"confidence":1}`, choice),
	} {
		w.must(200, w.post(path, body))
		other.must(200, other.post(path, body))
	}
	again := other.must(200, other.post("/v1/answer", `{"id":"e","text":"The disk of db-1 is full."}`))
	assert.Equal(t, "Rotate its logs.", again.text(t, "text"))
	assert.Equal(t, "scripted", again.text(t, "model"))
	for path, body := range map[string]string{
		"/v1/react":   `{"answer":"e","person":"ann","value":1}`,
		"/v1/outcome": `{"answer":"e","success":true,"source":"bob"}`,
		"/v1/correct": `{"answer":"e","text":"Name the server in the first line."}`,
	} {
		for _, one := range []*world{w, other, w} {
			assert.Less(t, one.post(path, body).status, 300, path)
		}
	}
	account, err := w.agent.Explain(t.Context(), "e")
	require.NoError(t, err)
	assert.Len(t, account.Statements, 3, "%+v", account.Statements)
	corrections, _, err := w.agent.Feedback().List(t.Context(), feedback.Listing{Limit: 10})
	require.NoError(t, err)
	assert.Len(t, corrections, 1)
}

// The same event has the same answer, field by field: from a heuristic, from the model after an
// undo, with notes, a warning, and a part that was left out.
func TestARepeatedAnswerIsTheSame(t *testing.T) {
	w := newWorld(t, func(c *loop.Config, _ *Config) {
		c.Arms[1].ForNotes = true
		lessons := c.Lessons
		lessons.Heuristics[0].Initial = 0.9
		lessons.Notes = []loop.Note{{ID: "logs", Text: "The logs of a full disk are in /var/log."}}
		c.Lessons = lessons
	})
	_, err := w.agent.Patterns().Define(t.Context(),
		patterns.Pattern{ID: "fast", Content: "Delete all.", Anti: true, Reason: "it was a copy"})
	require.NoError(t, err)
	for i, body := range []string{
		`"text":"somebody says hello","session":"s"`,
		`"text":"The logs of the disk of db-1 fill it.","session":"s","task":"t"`,
		`"text":"undo that","session":"s"`,
		`"text":"` + strings.Repeat("The logs of a full disk. ", 1400) + `"`,
	} {
		body = fmt.Sprintf(`{"id":"e%d",%s}`, i, body)
		first := w.must(200, w.post("/v1/answer", body))
		assert.JSONEq(t, first.body, w.must(200, w.post("/v1/answer", body)).body)
	}
}

// A failure that is reported after the answer of the same event is ignored: the answer stays.
func TestAFailureAfterTheAnswerIsIgnored(t *testing.T) {
	w := newWorld(t)
	w.must(200, w.post("/v1/prepare", `{"id":"e","text":"The disk of db-1 is full."}`))
	said := w.must(200, w.post("/v1/answered", `{"id":"e","text":"Rotate its logs."}`))
	late := w.must(200, w.post("/v1/answered", `{"id":"e","failure":"unusable"}`))
	assert.JSONEq(t, said.body, late.body)
	assert.JSONEq(t, `{"items":[]}`, w.must(200, w.get("/v1/segments")).body, "no failure of the arm")
}

// A failure that can't be kept is to be sent again, and the arm is blamed then.
func TestAFailureDuringAnOutage(t *testing.T) {
	st := &storetest.Failing{Store: &memstore.Store{}}
	w := newWorld(t, func(c *loop.Config, cfg *Config) { c.Store, cfg.Store = st, st })
	w.must(200, w.post("/v1/prepare", `{"id":"e","text":"The disk of db-1 is full."}`))
	for _, want := range []string{"store_unavailable", "llm_error"} {
		st.SetAway(want == "store_unavailable")
		got := w.must(200, w.post("/v1/answered", `{"id":"e","failure":"unusable"}`))
		assert.Equal(t, want, got.text(t, "reason"))
	}
	assert.NotEqual(t, `{"items":[]}`, w.must(200, w.get("/v1/segments")).body)
}

// A correction whose id names another one can't succeed later either, and the problem says why.
func TestAnIDNamesOneCorrection(t *testing.T) {
	w := newWorld(t)
	w.must(200, w.post("/v1/answer", `{"id":"e","text":"The disk of db-1 is full."}`))
	w.must(200, w.post("/v1/correct", `{"answer":"e","id":"c","text":"Name the server."}`))
	got := w.must(422, w.post("/v1/correct", `{"answer":"e","id":"c","text":"Be brief."}`))
	assert.Equal(t, "id", got.text(t, "field"))
	assert.NotContains(t, got.body, "again")
}

// A program that knows the session alone finds the answer. An answer that must be the model's is no
// heuristic's.
func TestFindAndAskModel(t *testing.T) {
	w := newWorld(t, func(c *loop.Config, _ *Config) {
		lessons := c.Lessons
		lessons.Heuristics[0].Initial = 0.9
	})
	w.must(200, w.post("/v1/answer", `{"id":"e1","text":"somebody says hello","session":"ticket 7"}`))
	assert.EqualValues(t, 0, w.asked.Load())
	w.must(200, w.post("/v1/answer",
		`{"id":"e2","text":"somebody says hello","session":"ticket 7","ask_model":true}`))
	assert.EqualValues(t, 1, w.asked.Load())
	assert.Equal(t, "e2", w.must(200, w.get("/v1/find?session=ticket+7")).text(t, "id"))
	assert.Equal(t, view.Unknown, w.get("/v1/find?session=another").sort())
	assert.Equal(t, view.BadField, w.get("/v1/find").sort())
	arm, ok := w.must(200, w.get("/v1/explanation?answer=e2")).field(t, "arm").(map[string]any)
	require.True(t, ok, "an object")
	assert.NotEmpty(t, arm["id"])

	id := w.must(200, w.post("/v1/prepare", `{"text":"t"}`)).text(t, "id")
	w.must(200, w.post("/v1/answered", fmt.Sprintf(`{"id":%q,"text":"The beg","cut":true}`, id)))
	p, err := w.agent.Answer(t.Context(), loop.Event{ID: id, Text: "t"})
	require.NoError(t, err)
	assert.True(t, p.Result.Cut)
}

// Each person has a rate of their own. A caller above it is told how long to wait.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(_ *loop.Config, cfg *Config) { cfg.Rate = 2 })
		for range 2 {
			w.must(200, w.get("/v1/rules"))
		}
		got := w.get("/v1/rules")
		assert.Equal(t, tooMany, got.sort())
		assert.Equal(t, "1", got.header.Get("Retry-After"))
		assert.Empty(t, got.header.Get("Connection"), "it can be used again")
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/rules", nil)
		r.Header.Set("X-Person", "another")
		w.must(200, w.send(r))
		time.Sleep(time.Second)
		for range 2 {
			w.must(200, w.get("/v1/rules"))
		}
		assert.Equal(t, tooMany, w.get("/v1/rules").sort())
		assert.InDelta(t, 500, newWorld(t).handler.calls.perSecond, 0, "the default")
	})
}

// The limiter keeps the people of the latest second only. What comes evenly is never refused, and a
// burst around the end of a second is no second burst.
func TestRateIsBounded(t *testing.T) {
	now := time.Unix(1e9, 0)
	r := rate{perSecond: 2, now: func() time.Time { return now }, until: map[string]time.Time{}}
	assert.Zero(t, r.take("0"))
	assert.Zero(t, r.take("0"))
	now = now.Add(300 * time.Millisecond)
	assert.Equal(t, 200*time.Millisecond, r.take("0"))
	now = now.Add(200 * time.Millisecond)
	assert.Zero(t, r.take("0"))
	assert.Equal(t, 500*time.Millisecond, r.take("0"))
	for range 20 {
		now = now.Add(500 * time.Millisecond)
		assert.Zero(t, r.take("0"))
	}
	for i := range 10 * leastTidied {
		now = now.Add(time.Millisecond)
		assert.Zero(t, r.take(fmt.Sprint("guest ", i)))
		assert.LessOrEqual(t, len(r.until), 2*leastTidied)
	}
	now = now.Add(-time.Hour) // a clock that was set back
	assert.Zero(t, r.take("0"))

	seldom := rate{perSecond: 0.25, now: r.now, until: map[string]time.Time{}}
	assert.Zero(t, seldom.take("0"))
	assert.Equal(t, 4*time.Second, seldom.take("0"))
	now = now.Add(4 * time.Second)
	assert.Zero(t, seldom.take("0"))
}

// Somebody who reads pages with all their files is never refused, also where programs may send only
// one call a second. Who floods the pages is, and others are not.
func TestRateOfPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(_ *loop.Config, cfg *Config) { cfg.Rate = 1 })
		page := func(path, person string) int {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			r.Header.Set("X-Person", person)
			return w.send(r).status
		}
		for range leastPages {
			require.Equal(t, http.StatusOK, page("/", "ann"))
			for range 10 {
				require.Equal(t, http.StatusOK, page("/style.css", "ann"))
				require.Equal(t, http.StatusOK, page("/healthz", ""))
			}
		}
		got := w.get("/v1/rules") // of shop, which is another person
		w.must(http.StatusOK, got)
		assert.Equal(t, http.StatusTooManyRequests, page("/rules", "ann"))
		assert.Equal(t, http.StatusOK, page("/", "bob"))
		time.Sleep(50 * time.Millisecond)
		assert.Equal(t, http.StatusOK, page("/", "ann"))
		assert.Equal(t, http.StatusTooManyRequests, page("/", "ann"))
	})
}

// A model that takes too long is a problem, and a client that goes away ends the call and frees its
// key.
func TestTimeAndCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(_ *loop.Config, cfg *Config) { cfg.AnswerTimeout = time.Second })
		w.model = func(ctx context.Context, _ decision.LLMRequest) (string,
			error) {
			<-ctx.Done()
			return "", ctx.Err()
		}
		began := time.Now()
		assert.Equal(t, view.OutOfTime, w.post("/v1/answer", `{"text":"t"}`).sort())
		assert.Equal(t, time.Second, time.Since(began))

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/answer",
			strings.NewReader(`{"text":"t"}`))
		r.Header.Set("Content-Type", "application/json")
		w.send(r)
		w.model = nil
		w.must(200, w.post("/v1/answer", `{"text":"t"}`))
	})
}

// A model may take longer than a body may.
func TestAnAnswerTakesLongerThanItsBody(t *testing.T) {
	w := newWorld(t, func(_ *loop.Config, cfg *Config) { cfg.Bound(200*time.Millisecond, 1000) })
	w.model = func(ctx context.Context, _ decision.LLMRequest) (string, error) {
		select {
		case <-time.After(300 * time.Millisecond):
		case <-ctx.Done():
		}
		return "Rotate its logs.", ctx.Err()
	}
	server := httptest.NewServer(w.handler)
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/v1/answer",
		strings.NewReader(`{"text":"t"}`))
	require.NoError(t, err)
	r.Header = http.Header{"X-Person": {"shop"}, "Content-Type": {"application/json"}}
	got, err := server.Client().Do(r)
	require.NoError(t, err)
	require.NoError(t, got.Body.Close())
	assert.Equal(t, http.StatusOK, got.StatusCode)
}

// A program asks the rules before it calls a tool, and reports what a tool gave: the next prompt of
// the task has the error.
func TestToolsAreCheckedAndReported(t *testing.T) {
	w := newWorld(t)
	rules := w.agent.Feedback().Rules()
	p, err := rules.Propose(t.Context(), feedback.Submission{
		Draft: feedback.Draft{
			Text: "Delete nothing", AllAgents: true, Check: feedback.Check{Tool: "*", Forbid: "rm -r"},
		}, Actor: "kim", Reason: "it bills",
	})
	require.NoError(t, err)
	for _, lead := range []string{"ann", "bob"} {
		_, err = rules.Review(t.Context(), feedback.Review{
			Proposal: p.ID, Decision: feedback.Approved, Actor: lead, Reason: "x", Hash: p.Hash(),
		})
		require.NoError(t, err)
	}
	const event = `{"id":"e1","text":"The disk is full.","task":"disk"}`
	w.must(200, w.post("/v1/prepare", event))
	tool := func(rest string) string {
		return w.must(200, w.post("/v1/tool_result", `{"answer":"e1","name":"sh",`+rest+`}`)).body
	}
	assert.Contains(t, tool(`"input":"rm -r /","before":true`), "Delete nothing")
	assert.JSONEq(t, `{"violations":[]}`, tool(`"input":"df","before":true`))
	tool(`"input":"df","error":"exit status 3"`)
	again := w.must(200, w.post("/v1/prepare", strings.Replace(event, "e1", "e2", 1)))
	assert.Contains(t, again.text(t, "system")+again.text(t, "prompt"), "exit status 3")
}

// A later message without an answer takes an answer back, once.
func TestHear(t *testing.T) {
	w := newWorld(t)
	w.must(200, w.post("/v1/answer",
		`{"id":"e1","text":"The disk is full.","session":"s","person":"ann"}`))
	hear := func(text string, headers ...string) string {
		body := fmt.Sprintf(`{"id":%q,"text":%q,"session":"s","person":"ann"}`, text, text)
		return w.must(200, w.post("/v1/hear", body, headers...)).body
	}
	const none = `{"changes":[]}`
	assert.JSONEq(t, none, hear("The disk of db-2 is full as well."))
	assert.Contains(t, hear("Undo that."),
		`"answer":"e1","signal":"negative","channel":"implicit_undo"`)
	assert.JSONEq(t, none, hear("Undo that."))
	assert.Equal(t, view.BadField, w.post("/v1/hear", `{"session":"s"}`).sort())
}

// TestAPISaysWhoIsMissing for an approval, as the page does.
func TestAPISaysWhoIsMissing(t *testing.T) {
	w := newWorld(t)
	made := w.must(200, w.post("/v1/propose", `{"text":"Name the owner","reason":"seen often"}`))
	const missing = "0 of 2; 2 more people must approve, other than shop (wrote it)"
	assert.Contains(t, made.body, `"missing":"`+missing+`"`)
	waits := w.must(200, w.get("/v1/rules?status=pending"))
	assert.Contains(t, waits.body, `"missing":"`+missing+`"`)
	assert.NotContains(t, w.must(200, w.get("/v1/rules?status=active")).body, "Name the owner")
}

// Where no model could be asked, the problem says in how many seconds to try again.
func TestNoModelSaysWhenToTryAgain(t *testing.T) {
	for want, err := range map[string]error{
		"30": errors.Join(&llm.Error{Failure: llm.RateLimited, RetryAfter: 30 * time.Second},
			loop.ErrNoModel),
		"1": fmt.Errorf("answer: %w", decision.ErrBusy),
	} {
		w := httptest.NewRecorder()
		write(w, view.FaultOf(err, reflect.TypeFor[view.Event]()))
		assert.Equal(t, http.StatusBadGateway, w.Code)
		assert.Equal(t, want, w.Header().Get("Retry-After"))
	}
}
