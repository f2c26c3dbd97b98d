package main

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/internal/servertest"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
)

// A server is a heed serve that runs.
type server struct {
	t        *testing.T
	greeting door
	process  *exec.Cmd
	failures bytes.Buffer
	client   *http.Client
}

// serving starts a command that serves, and waits until it says where.
func serving(t *testing.T, env []string, args ...string) *server {
	t.Helper()
	s := &server{t: t, process: exec.Command(command, append([]string{"--json"}, args...)...),
		client: &http.Client{Timeout: time.Minute}}
	s.process.Env, s.process.Stderr = environ(env...), &s.failures
	out, err := s.process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.process.Start())
	end, err := servertest.AtEnd(`kill -9 "$1"`, strconv.Itoa(s.process.Process.Pid))
	require.NoError(t, err)
	watchdog := time.AfterFunc(time.Minute, func() { _ = s.process.Process.Kill() })
	t.Cleanup(func() {
		watchdog.Stop()
		_ = end() // if a test has failed
		_ = s.process.Wait()
	})
	if err := json.NewDecoder(out).Decode(&s.greeting); err != nil {
		_ = s.process.Wait()
		require.NoError(t, err, s.failures.String())
	}
	return s
}

// end sends a signal, and wants the server to end well.
func (s *server) end(signal os.Signal) {
	s.t.Helper()
	require.NoError(s.t, s.process.Process.Signal(signal))
	require.NoError(s.t, s.process.Wait(), s.failures.String())
	assert.Empty(s.t, s.failures.String())
}

// call sends a request with a token, and returns the status and the body.
func (s *server) call(method, path, token, body string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.greeting.URL+path,
		strings.NewReader(body))
	require.NoError(s.t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	got, err := s.client.Do(r)
	require.NoError(s.t, err)
	text, err := io.ReadAll(got.Body)
	require.NoError(s.t, err)
	require.NoError(s.t, got.Body.Close())
	return got.StatusCode, string(text)
}

// browser returns a client that has opened the link of the first person.
func (s *server) browser() *server {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(s.t, err)
	b := &server{t: s.t, greeting: s.greeting, client: &http.Client{Jar: jar}}
	link := s.greeting.Entrants[0].Link
	status, _ := b.call(http.MethodGet, strings.TrimPrefix(link, s.greeting.URL),
		"", "")
	require.Equal(s.t, http.StatusOK, status, "the link leads to the first page")
	return b
}

// A server beside an application shows what is there to those who have its link or its token, and
// to nobody else. A signal ends it.
func TestServe(t *testing.T) {
	t.Parallel()
	s := serving(t, nil, "--db", sqliteFile(t), "serve", "--listen", "127.0.0.1:0", "--as", "kim,lee",
		"--agent", "strategy")
	require.Len(t, s.greeting.Entrants, 4)
	kim, lee := s.greeting.Entrants[1], s.greeting.Entrants[3]
	assert.NotEqual(t, kim.Token, lee.Token)
	for token, want := range map[string]int{
		"": http.StatusUnauthorized, "x": http.StatusUnauthorized,
		kim.Token + "x": http.StatusUnauthorized, kim.Token: http.StatusOK, lee.Token: http.StatusOK,
	} {
		status, _ := s.call(http.MethodGet, "/v1/segments", token, "")
		assert.Equal(t, want, status, "by %q", token)
		if want == http.StatusOK {
			want = http.StatusForbidden
		}
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			status, _ = s.call(method, "/proposal/approve", token, "")
			assert.Equal(t, want, status, "a page by %q", token)
		}
		status, _ = s.call(http.MethodGet, "/sign-in?token="+token, "", "")
		assert.Equal(t, http.StatusUnauthorized, status, "a program's token signs nobody in")
	}
	_, body := s.call(http.MethodGet, "/v1/segments", kim.Token, "")
	assert.Contains(t, body, `"category":"correction"`)
	status, _ := s.call(http.MethodPost, "/v1/answer", kim.Token, `{"text":"t"}`)
	assert.Equal(t, http.StatusServiceUnavailable, status)

	status, _ = s.call(http.MethodGet, "/sign-in?token=x", "", "")
	assert.Equal(t, http.StatusUnauthorized, status)
	_, secret, _ := strings.Cut(s.greeting.Entrants[0].Link, "token=")
	status, _ = s.call(http.MethodGet, "/v1/segments", secret, "")
	assert.Equal(t, http.StatusUnauthorized, status, "the secret of a link is no program's token")
	status, _ = s.browser().call(http.MethodGet, "/v1/segments", "", "")
	assert.Equal(t, http.StatusOK, status)
	s.end(syscall.SIGTERM)
}

// An application in another language has the agent run in the server, with its lessons and its
// model.
func TestServeRuns(t *testing.T) {
	t.Parallel()
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer the-key" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"model":"m","choices":[{"message":{"role":"assistant","content":"Rotate its logs."}}]}`)
	}))
	t.Cleanup(model.Close)
	dir := t.TempDir()
	lessons := filepath.Join(dir, "lessons.json")
	arm := `{"arms": [{"id": "brief", "system": "Answer in one sentence."}]}`
	require.NoError(t, os.WriteFile(lessons, []byte(arm), 0o600))
	args := []string{"--db", filepath.Join(dir, "new.db"), "serve", "--listen", "127.0.0.1:0",
		"--run", "--lessons", lessons}
	env := []string{"HEED_TOKENS=shop=a-token-of-the-shop", "HEED_LINKS=kim=the-secret-of-kim",
		"HEED_API_KEY=the-key", "OPENAI_API_KEY=another", "OPENAI_BASE_URL=http://127.0.0.1:1"}
	s := serving(t, env, append(args, "--model", model.URL)...)
	assert.Equal(t, []entrant{{Person: "shop", Given: "HEED_TOKENS"},
		{Person: "kim", Given: "HEED_LINKS"}}, s.greeting.Entrants,
		"lasting secrets are not printed")
	s.greeting.Entrants[0].Link = s.greeting.URL + "/sign-in?token=the-secret-of-kim"
	s.browser()
	const token = "a-token-of-the-shop"
	status, body := s.call(http.MethodPost, "/v1/answer", token, `{"id":"e1","text":"The disk is full."}`)
	assert.Equal(t, http.StatusOK, status, body)
	assert.Contains(t, body, `"text":"Rotate its logs."`)
	assert.Contains(t, body, `"arm":{"id":"brief"`)
	status, body = s.call(http.MethodPost, "/v1/react", token, `{"answer":"e1","value":1}`)
	assert.Equal(t, http.StatusNoContent, status, body)
	s.end(os.Interrupt)

	again := serving(t, env, args...) // without a model
	_, body = again.call(http.MethodGet, "/v1/explanation?answer=e1", token, "")
	assert.Contains(t, body, `"worth":1`)
	status, body = again.call(http.MethodPost, "/v1/answer", token, `{"text":"Another one."}`)
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Contains(t, body, "no model is configured")
	again.end(os.Interrupt)

	// Next to it the same is to be seen, and nothing is answered.
	for _, agent := range []string{"loop", "small"} {
		if agent == "small" {
			smallAgent(t, args[1])
		}
		beside := serving(t, env, "--db", args[1], "serve", "--listen", "127.0.0.1:0", "--agent", agent)
		status, _ = beside.call(http.MethodGet, "/v1/heuristics", token, "")
		assert.Equal(t, http.StatusOK, status, agent)
		status, _ = beside.call(http.MethodGet, "/v1/explanation?answer=e1", token, "")
		assert.Equal(t, agent == "loop", status == http.StatusOK, agent)
		status, _ = beside.call(http.MethodPost, "/v1/answer", token, `{"text":"t"}`)
		assert.Equal(t, http.StatusServiceUnavailable, status, agent)
		beside.end(os.Interrupt)
	}
}

// A store with one agent goes on with it. With several, the server says how to name one.
func TestServeTakesTheOnlyAgent(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "agent.db")
	support := func(name string) {
		onFile(t, db, func(handle *sql.DB) {
			agent, err := loop.New(t.Context(), loop.Config{DB: handle, Name: name})
			require.NoError(t, err)
			_, err = agent.Learning().Put(t.Context(),
				learning.Heuristic{ID: "of-" + name, Condition: "the disk", Action: "Rotate its logs."})
			require.NoError(t, err)
		})
	}
	env := []string{"HEED_TOKENS=shop=a-token-of-the-shop"}
	support("support")
	for _, args := range [][]string{{"--run"}, nil} {
		s := serving(t, env, append([]string{"--db", db, "serve", "--listen", "127.0.0.1:0"},
			args...)...)
		_, body := s.call(http.MethodGet, "/v1/heuristics", "a-token-of-the-shop", "")
		assert.Contains(t, body, "of-support", "%v", args)
		s.end(os.Interrupt)
	}
	require.NoError(t, startDesk(t, "", "--db", db, "mcp").Close())
	support("sales")
	for _, args := range [][]string{{"serve", "--run"}, {"serve"}, {"mcp"}} {
		r := call{args: append([]string{"--db", db}, args...)}.run(t)
		assert.Equal(t, misuse, r.code, r.err)
		assert.Contains(t, r.err, "has more than one agent: choose one with --agent: sales, support",
			"%v", args)
	}
	s := serving(t, env, "--db", db, "serve", "--listen", "127.0.0.1:0", "--agent", "sales")
	_, body := s.call(http.MethodGet, "/v1/heuristics", "a-token-of-the-shop", "")
	assert.Contains(t, body, "of-sales")
	assert.NotContains(t, body, "of-support")
	s.end(os.Interrupt)
}

// smallAgent puts another agent into a store, with an answer.
func smallAgent(t *testing.T, file string) {
	t.Helper()
	onFile(t, file, func(handle *sql.DB) {
		agent, err := loop.New(t.Context(), loop.Config{
			DB: handle, Name: "small",
			Model: decision.LLMFunc(func(context.Context, decision.LLMRequest) (decision.LLMResponse,
				error) {
				return decision.LLMResponse{Text: "Yes."}, nil
			}),
		})
		require.NoError(t, err)
		_, err = agent.Answer(t.Context(), loop.Event{ID: "s1", Text: "Is it so?"})
		require.NoError(t, err)
	})
}

// An address that others can reach, and flags that do not go together, are refused before anything
// is opened.
func TestServeRefuses(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "new.db")
	for wrong, want := range map[string]string{
		"--listen 0.0.0.0:0":                                          "other machines can reach",
		"--listen :0":                                                 "other machines can reach",
		"--listen 192.0.2.1:0":                                        "other machines can reach",
		"--listen nowhere":                                            "--listen must be as",
		"--model http://localhost":                                    "are for --run",
		"--run --model localhost":                                     "--model must be as",
		"--run --model-name m":                                        "are for --model",
		"--listen 127.0.0.1:0 --as=kim,,lee":                          "must name a person",
		"--listen 127.0.0.1:0 --tokens kim=short":                     "HEED_TOKENS must be as",
		"--listen 127.0.0.1:0 --links kim=short":                      "HEED_LINKS must be as",
		"--links kim=0123456789abcdef --tokens shop=0123456789abcdef": "the same token",
		"--tokens kim=0123456789abcdef,lee=0123456789abcdef":          "the same token",
		"--tokens kіm=0123456789abcdef":                               "nobody can decide by the name",
		"--url http://heed.example.org":                               "--url must be as",
		"--url https://heed.example.org/pages":                        "--url must be as",
		"--run --now 2026-01-01":                                      "--now is for looking",
		"--run --model http://h/v1 --api-key é":                       "--api-key must be printable",
		"--run --model http://h/v1 --api-key=\x7f":                    "--api-key must be printable",
		"--new":             "are for --run",
		"--system x":        "are for --run",
		"--run --api-key x": "are for --model",
	} {
		r := call{args: append([]string{"--db", db, "serve"}, strings.Fields(wrong)...)}.run(t)
		assert.Equal(t, misuse, r.code, "%s: %s", wrong, r.err)
		assert.Contains(t, r.err, want, wrong)
		assert.NoFileExists(t, db, wrong)
	}
	for _, l := range []listening{
		{As: []string{"zoe "}}, {As: []string{"a\x00"}}, {Links: "zoe =0123456789abcdef"},
		{Tokens: "kim=0123456789abcdef, lee=0123456789abcdeg"},
	} {
		assert.ErrorContains(t, new(door).admit(&l), "nobody can decide by the name", "%v", l)
	}
}

// The address that is printed is one that a browser on the machine can open, or the proxy's.
func TestWhereItServes(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]string{
		"127.0.0.1:0": "http://127.0.0.1:1234", "localhost:0": "http://localhost:1234",
		"[::1]:0": "http://[::1]:1234", ":0": "http://localhost:1234",
		"0.0.0.0:0": "http://localhost:1234", "[::]:0": "http://localhost:1234",
		"192.0.2.1:80": "http://192.0.2.1:1234",
	} {
		for url, want := range map[string]string{"": want, "https://h.example": "https://h.example"} {
			d, err := (&listening{Listen: listen, URL: url}).door(&net.TCPAddr{Port: 1234}, "a.db")
			require.NoError(t, err)
			assert.Equal(t, []any{want, "a.db", "heed-1234", url != ""},
				[]any{d.URL, d.Store, d.cookie, d.secure}, listen)
			require.Len(t, d.Entrants, 2, "whoever started it, and a program")
			assert.False(t, d.Entrants[0].program)
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	_, err = within([]string{"--db", sqliteFile(t), "serve", "--agent", "strategy", "--listen",
		taken.Addr().String()})
	require.ErrorContains(t, err, "address already in use")
	_, err = within([]string{"--db", sqliteFile(t), "serve", "--run", "--tenant", "acme", "--new",
		"--agent", "strategy", "--listen", taken.Addr().String()})
	require.ErrorContains(t, err, "address already in use", "the tenant is a new one")
}

// A program has its token in a header, and a person has a cookie. Neither is good as the other.
func TestIdentify(t *testing.T) {
	t.Parallel()
	const token, link = "0123456789abcdef", "fedcba9876543210"
	d := &door{cookie: "heed-1"}
	require.NoError(t, d.admit(&listening{Tokens: "shop=" + token, Links: "kim=" + link}))
	require.Len(t, d.Entrants, 2, "nobody else is let in")
	for _, test := range []struct{ header, cookie, who string }{
		{"Bearer " + token, "", "shop"}, {"bearer " + token, "", "shop"},
		{"Bearer " + token, link, "shop"}, {"", link, "kim"}, {"Basic " + token, "", ""},
		{token, "", ""}, {"Bearer", "", ""}, {"Bearer " + link, "", ""}, {"", token, ""},
		{"Bearer x", link, ""}, {"", "", ""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		if test.header != "" {
			r.Header.Set("Authorization", test.header)
		}
		if test.cookie != "" {
			r.AddCookie(&http.Cookie{Name: d.cookie, Value: test.cookie})
		}
		who, err := d.identify(r)
		assert.Equal(t, test.who, who, "%v", test)
		assert.Equal(t, test.who == "", err != nil, "%v", test)
	}
}

// A link signs in whoever opens it, and nobody whom another site sends there. Behind a proxy with
// HTTPS, browsers keep the cookie from HTTP.
func TestSignIn(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "https://heed.example.org"} {
		l := listening{Listen: "127.0.0.1:1", As: []string{"kim"}, URL: url}
		d, err := l.door(&net.TCPAddr{Port: 1}, "")
		require.NoError(t, err)
		link := d.Entrants[0].Link
		assert.True(t, strings.HasPrefix(link, cmp.Or(url, "http://127.0.0.1:1")+"/sign-in?token="),
			link)
		for site, want := range map[string]int{
			"": http.StatusSeeOther, "none": http.StatusSeeOther, "same-origin": http.StatusSeeOther,
			"same-site": http.StatusForbidden, "cross-site": http.StatusForbidden,
		} {
			r, w := httptest.NewRequestWithContext(t.Context(), http.MethodGet, link, nil),
				httptest.NewRecorder()
			r.Header.Set("Sec-Fetch-Site", site)
			d.signIn(w, r)
			assert.Equal(t, want, w.Code, site)
			cookies := w.Result().Cookies()
			assert.Equal(t, want == http.StatusSeeOther, len(cookies) == 1, site)
			for _, cookie := range cookies {
				assert.Equal(t, url != "", cookie.Secure)
			}
		}
	}
}

// The operator of a server hears of an outage of the store and of its end, because answers go on
// without it.
func TestAnOutageIsPrinted(t *testing.T) {
	stderr := os.Stderr
	read, write, err := os.Pipe()
	require.NoError(t, err)
	os.Stderr = write
	tellFailure(ctx, heed.Outage{Component: "shop", What: "store", Err: errors.New("no connection")})
	tellFailure(ctx, heed.Restored{Component: "shop", What: "store"})
	tellFailure(ctx, heed.Failed{Component: "shop", What: "model", Err: errors.New("no answer")})
	tellFailure(ctx, heed.Failed{Component: "shop", What: "model", Err: context.Canceled})
	os.Stderr = stderr
	require.NoError(t, write.Close())
	said, err := io.ReadAll(read)
	require.NoError(t, err)
	assert.Equal(t, "heed: shop: an outage begins: store: no connection\n"+
		"heed: shop: the outage is over: store\nheed: shop: model: no answer\n", string(said))
}
