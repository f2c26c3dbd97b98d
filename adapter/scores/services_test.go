package scores_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/adapter/scores"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
)

// A vendor plays a service: answer gives status and body, and calls are what came.
type vendor struct {
	*httptest.Server
	calls  []string
	answer func(r *http.Request, body string) (int, string)
}

func newVendor(t *testing.T) *vendor {
	t.Helper()
	v := &vendor{}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		v.calls = append(v.calls, r.Method+" "+r.URL.RequestURI())
		status, text := v.answer(r, string(body))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(v.Close)
	return v
}

func file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return string(text)
}

// fields returns the fields that faults name.
func fields(t *testing.T, faults []error) (names []string) {
	t.Helper()
	for _, err := range faults {
		var input *heed.InputError
		require.ErrorAs(t, err, &input)
		names = append(names, input.Field)
	}
	return names
}

func TestLangfuse(t *testing.T) {
	st := &memstore.Store{}
	agent := newAgent(t, st, "one", "two")
	v := newVendor(t)
	pages := map[string]string{"": file(t, "langfuse_1.json"), "cGFnZTI": file(t, "langfuse_2.json")}
	v.answer = func(r *http.Request, _ string) (int, string) {
		user, password, _ := r.BasicAuth()
		assert.Equal(t, "public secret", user+" "+password)
		return http.StatusOK, pages[r.URL.Query().Get("cursor")]
	}
	open := func() *scores.Langfuse {
		l, err := scores.NewLangfuse(scores.ServiceConfig{
			Taker: newTaker(t, agent), BaseURL: v.URL + "/", PublicKey: "public", Key: "secret",
			Since: start.Add(-time.Hour),
		})
		require.NoError(t, err)
		return l
	}

	second := pages["cGFnZTI"]
	pages["cGFnZTI"] = "{"
	_, err := open().Poll(t.Context())
	require.ErrorContains(t, err, "langfuse: GET /api/public/v3/scores")
	pages["cGFnZTI"] = second

	got, err := open().Poll(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"score-5.value", "score-6.value"}, fields(t, got.Faults))
	got.Faults = nil
	assert.Equal(t, scores.Polled{Learned: 1, Repeated: 3, Unknown: 1, Ignored: 1}, got,
		"the first page counted already")
	assert.InDelta(t, (1+2*0.5)/3, worth(t, agent, "one"), 1e-9)
	assert.InDelta(t, -1, worth(t, agent, "two"), 1e-9)
	require.Len(t, heard(t, agent), 1)
	assert.Equal(t, "user-123", heard(t, agent)[0].Reviewer)

	require.Error(t, open().Sweep(t.Context(), start), "the faults")
	assert.Equal(t, 3, outcomes(t, agent), "the correction is a complaint, too")
	const rest = "&limit=100"
	assert.Equal(t, []string{
		"GET /api/public/v3/scores?fields=details%2Csubject%2Cannotation&fromTimestamp=2026-06-15T11%3A00%3A00Z" + rest,
		"GET /api/public/v3/scores?cursor=cGFnZTI&fields=details%2Csubject%2Cannotation&fromTimestamp=2026-06-15T11%3A00%3A00Z" + rest,
	}, v.calls[:2])
	assert.Equal(t, v.calls[:2], v.calls[2:4], "a poll that failed is repeated")
	assert.Contains(t, v.calls[4], "fromTimestamp=2026-06-15T10%3A24%3A00Z",
		"an hour before the latest score")
}

func TestLangfuseSend(t *testing.T) {
	st := &memstore.Store{}
	agent := newAgent(t, st, "one")
	v := newVendor(t)
	var bodies []map[string]any
	v.answer = func(_ *http.Request, body string) (int, string) {
		var sent map[string]any
		assert.NoError(t, json.Unmarshal([]byte(body), &sent))
		bodies = append(bodies, sent)
		return http.StatusOK, `{"id":"x"}`
	}
	l, err := scores.NewLangfuse(scores.ServiceConfig{
		Taker: newTaker(t, agent), BaseURL: v.URL, PublicKey: "p", Key: "s",
	})
	require.NoError(t, err)
	send := func() {
		account, err := agent.Explain(t.Context(), "one")
		require.NoError(t, err)
		require.NoError(t, l.Send(t.Context(), account))
	}
	send()
	require.Empty(t, bodies, "nothing is known of the answer")
	for _, value := range []float64{0.5, -0.25} {
		require.NoError(t, agent.React(t.Context(), "one",
			loop.Reaction{Person: "ann", Value: value,
				At: start.Add(time.Duration(len(bodies)) * time.Second)}))
		send()
	}
	require.Len(t, bodies, 2)
	assert.Equal(t, bodies[0]["id"], bodies[1]["id"])
	delete(bodies[1], "id")
	assert.Equal(t, map[string]any{"traceId": "one", "name": "heed", "value": -0.25,
		"dataType": "NUMERIC", "comment": "heed: user_explicit"}, bodies[1])
}

func newLangSmith(t *testing.T, v *vendor) (*scores.LangSmith, *loop.Agent) {
	t.Helper()
	st := &memstore.Store{}
	agent := newAgent(t, st, "one", "two")
	l, err := scores.NewLangSmith(scores.ServiceConfig{
		Taker: newTaker(t, agent), BaseURL: v.URL, Key: "key",
	})
	require.NoError(t, err)
	return l, agent
}

func TestLangSmith(t *testing.T) {
	v := newVendor(t)
	v.answer = func(r *http.Request, _ string) (int, string) {
		assert.Equal(t, "key", r.Header.Get("X-Api-Key"))
		return http.StatusOK, file(t, "langsmith_feedback.json")
	}
	l, agent := newLangSmith(t, v)
	got, err := l.Poll(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"5c90c3cc-0d44-4b50-8888-8dd25736052a.value", "[3].key"},
		fields(t, got.Faults))
	got.Faults = nil
	assert.Equal(t, scores.Polled{Learned: 2}, got)
	assert.InDelta(t, 1, worth(t, agent, "one"), 1e-9)
	assert.InDelta(t, (-0.5-1)/2, worth(t, agent, "two"), 1e-9, "the correction is a complaint")
	require.Len(t, heard(t, agent), 1)
	assert.Equal(t, "It left out the server.", heard(t, agent)[0].Summary)
	assert.Equal(t, "Restart db-1.", heard(t, agent)[0].Comment)
	require.Error(t, l.Sweep(t.Context(), start), "the faults")
	assert.Equal(t, 3, outcomes(t, agent))
	assert.Equal(t, []string{
		"GET /api/v1/feedback?limit=100&min_created_at=2026-06-14T12%3A00%3A00Z&offset=0",
		"GET /api/v1/feedback?limit=100&min_created_at=2026-06-15T10%3A07%3A00Z&offset=0",
	}, v.calls)
}

func TestPagesOfLangSmith(t *testing.T) {
	v := newVendor(t)
	v.answer = func(r *http.Request, _ string) (int, string) {
		if r.URL.Query().Get("offset") == "100" {
			return http.StatusOK, `[{"id":"last","key":"helpful","run_id":"one","score":true,"created_at":"2026-06-15T11:00:00"}]`
		}
		return http.StatusOK, "[" + strings.TrimSuffix(strings.Repeat(`{"id":"x","key":"length","run_id":"one"},`, 100), ",") + "]"
	}
	l, agent := newLangSmith(t, v)
	got, err := l.Poll(t.Context())
	require.NoError(t, err)
	assert.Equal(t, scores.Polled{Learned: 1, Ignored: 100}, got)
	assert.InDelta(t, 1, worth(t, agent, "one"), 1e-9)
}

func TestLangSmithWebhook(t *testing.T) {
	const secret = "0123456789abcdef"
	v := newVendor(t)
	down := false
	v.answer = func(*http.Request, string) (int, string) {
		if down {
			return http.StatusBadGateway, ""
		}
		return http.StatusOK, file(t, "langsmith_feedback.json")
	}
	l, agent := newLangSmith(t, v)
	_, err := l.Handler("short")
	require.Error(t, err)
	handler, err := l.Handler(secret)
	require.NoError(t, err)
	hook := file(t, "langsmith_webhook.json")
	for _, tt := range []struct {
		name, method, target, bearer, body string
		down                               bool
		status                             int
		want                               string
	}{
		{"no secret", "POST", "/", "", hook, false, 401, "secret"},
		{"another secret", "POST", "/?secret=" + secret + "0", "", hook, false, 401, "secret"},
		{"a header goes first", "POST", "/?secret=" + secret, "no", hook, false, 401, "secret"},
		{"not a POST", "GET", "/?secret=" + secret, "", "", false, 405, "POST"},
		{"too long", "POST", "/", secret, strings.Repeat(" ", 4<<20+1), false, 413, "bytes"},
		{"no JSON", "POST", "/", secret, "{", false, 400, "body"},
		{"a wrong type", "POST", "/", secret, `{"runs": [{"id": 7}]}`, false, 400, "runs.id"},
		{"no id", "POST", "/", secret, `{"runs": [{"id": "a"}, {}]}`, false, 400, "runs[1].id"},
		{"too many", "POST", "/", secret, `{"runs": [` + strings.Repeat(`{"id": "a"},`, 1000) + `{"id": "b"}]}`, false, 400, "runs"},
		{"LangSmith is down", "POST", "/", secret, hook, true, 503, "again"},
		{"it counts", "POST", "/", secret, hook, false, 200, `"learned":2`},
		{"it comes again", "POST", "/?secret=" + secret, "", hook, false, 200, `"repeated":2`},
	} {
		v.calls, down = nil, tt.down
		r := httptest.NewRequest(tt.method, tt.target, strings.NewReader(tt.body))
		if tt.bearer != "" {
			r.Header.Set("Authorization", "Bearer "+tt.bearer)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		assert.Equal(t, tt.status, w.Code, tt.name)
		assert.Contains(t, w.Body.String(), tt.want, tt.name)
		if tt.status < 500 && tt.status != 200 {
			assert.Empty(t, v.calls, tt.name)
		}
	}
	assert.Equal(t, []string{"GET /api/v1/feedback?limit=100&offset=0&run=a+run+below+two&run=one"},
		v.calls)
	assert.Equal(t, 3, outcomes(t, agent))
}

func TestLangSmithSend(t *testing.T) {
	for name, tt := range map[string]struct {
		statuses []int
		want     string
	}{
		"the first time":              {[]int{404, 200}, "PATCH POST"},
		"again":                       {[]int{200}, "PATCH"},
		"two processes at once":       {[]int{404, 409, 200}, "PATCH POST PATCH"},
		"it fails":                    {[]int{500}, "PATCH error"},
		"the key is no longer good":   {[]int{401}, "PATCH error"},
		"it fails the second time":    {[]int{404, 500}, "PATCH POST error"},
		"a redirect is not followed ": {[]int{307}, "PATCH error"},
	} {
		v := newVendor(t)
		var bodies []string
		v.answer = func(_ *http.Request, body string) (int, string) {
			bodies = append(bodies, body)
			return tt.statuses[len(bodies)-1], ""
		}
		l, agent := newLangSmith(t, v)
		require.NoError(t, agent.React(t.Context(), "one", loop.Reaction{Person: "ann", Value: 1}))
		account, err := agent.Explain(t.Context(), "one")
		require.NoError(t, err)
		err = l.Send(t.Context(), account)
		var methods []string
		for _, call := range v.calls {
			method, _, _ := strings.Cut(call, " ")
			methods = append(methods, method)
		}
		if err != nil {
			methods = append(methods, "error")
		}
		assert.Equal(t, tt.want, strings.Join(methods, " "), name)
		if len(bodies) > 1 {
			id := strings.TrimPrefix(v.calls[0], "PATCH /api/v1/feedback/")
			assert.JSONEq(t, fmt.Sprintf(
				`{"id":%q,"run_id":"one","key":"heed","score":1,"comment":"heed: user_explicit","feedback_source":{"type":"api"}}`, id), bodies[1], name)
		}
	}
}

// TestEarlyScore has a score from before its answer count in no mean.
func TestEarlyScore(t *testing.T) {
	st := &memstore.Store{}
	agent := newAgent(t, st, "trace-1")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, `{"data":[
 {"id":"s1","name":"helpful","value":0,"dataType":"NUMERIC","timestamp":"2026-06-15T09:30:00Z","updatedAt":"2026-06-15T09:30:00Z","subject":{"kind":"trace","id":"trace-1"}},
 {"id":"s2","name":"helpful","value":1,"dataType":"NUMERIC","timestamp":"2026-06-15T11:30:00Z","updatedAt":"2026-06-15T11:30:00Z","subject":{"kind":"trace","id":"trace-1"}}],"meta":{"limit":100}}`)
	}))
	defer server.Close()
	langfuse, err := scores.NewLangfuse(scores.ServiceConfig{
		Taker: newTaker(t, agent), BaseURL: server.URL, PublicKey: "p", Key: "s",
	})
	require.NoError(t, err)
	polled, err := langfuse.Poll(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1, polled.Learned)
	assert.Len(t, polled.Faults, 1)
	assert.InDelta(t, 1, worth(t, agent, "trace-1"), 1e-9)
}
