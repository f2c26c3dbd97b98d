package web_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/web"
)

// byHeader takes the person from a header, as behind a proxy that has checked it.
func byHeader(r *http.Request) (string, error) {
	if name := r.Header.Get("X-Person"); name != "nobody" {
		return name, nil
	}
	return "ann", errors.New("the secret reason")
}

func handler(t *testing.T, change ...func(*web.Config)) *web.Handler {
	t.Helper()
	cfg := web.Config{Store: &memstore.Store{}, Identify: byHeader}
	for _, f := range change {
		f(&cfg)
	}
	h, err := web.New(cfg)
	require.NoError(t, err)
	return h
}

// An ask is a request as a person sends it.
type ask struct {
	method, path, person string
	form                 url.Values
	header               map[string]string
}

func (a ask) of(h http.Handler) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(context.Background(), a.method, a.path,
		strings.NewReader(a.form.Encode()))
	if a.form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r.Header.Set("X-Person", a.person)
	for name, value := range a.header {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestConfig(t *testing.T) {
	_, err := web.New(web.Config{Prefix: "heed/", AnswerTimeout: -1,
		Rate: 1.1e9})
	var fields []string
	for fault := range heed.ConfigErrors(err) {
		fields = append(fields, fault.Field)
	}
	assert.Equal(t, []string{"Store", "Identify", "Prefix", "AnswerTimeout", "Rate"}, fields)
	handler(t, func(c *web.Config) {
		c.AnswerTimeout, c.Rate = 1, 1e9
	})
	_, err = web.New(web.Config{Store: &memstore.Store{}, Identify: byHeader, Rate: -0.5})
	assert.Error(t, err)
	for _, prefix := range []string{"/", "/a/", "/a//b", "/a/../b", "/{a}", "/a?b", "a", "/a;b",
		"/é", "/a b"} {
		_, err := web.New(web.Config{Store: &memstore.Store{}, Identify: byHeader, Prefix: prefix})
		assert.Error(t, err, prefix)
	}
}

func TestNobody(t *testing.T) {
	h := handler(t)
	for _, person := range []string{"", "nobody", "bad\xff"} {
		for _, path := range []string{"/", "/v1/x", "/no/such"} {
			w := ask{"GET", path, person, nil, nil}.of(h)
			assert.Equal(t, http.StatusUnauthorized, w.Code, path)
			assert.NotContains(t, w.Body.String(), "secret")
			assert.NotContains(t, w.Body.String(), "Overview")
			assert.Equal(t, path == "/v1/x", strings.Contains(w.Body.String(), "Bearer"), path)
		}
	}
	for _, path := range []string{"/style.css", "/app.js", "/icon.svg"} {
		assert.Equal(t, http.StatusOK, ask{"GET", path, "nobody", nil, nil}.of(h).Code, path)
	}
}

// Assets are read by anybody, with GET and HEAD alone.
func TestAssets(t *testing.T) {
	h := handler(t)
	for method, want := range map[string]int{"GET": 200, "HEAD": 200, "POST": 401, "DELETE": 401} {
		w := ask{method, "/style.css", "nobody", nil, nil}.of(h)
		assert.Equal(t, want, w.Code, method)
	}
	for _, path := range []string{"/none.css", "/none", "/style.txt"} {
		assert.Equal(t, http.StatusNotFound, ask{"GET", path, "ann", nil, nil}.of(h).Code, path)
	}
}

// Load balancers need no person. A server is ready while its store answers, and alive in any case.
func TestProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &storetest.Failing{Store: &memstore.Store{}}
		hangs := make(chan struct{})
		slow := &hanging{Store: st, until: hangs}
		h := handler(t, func(c *web.Config) { c.Store, c.Prefix = slow, "/heed" })
		probe := func(path string) int {
			w := ask{"GET", "/heed" + path, "nobody", nil, nil}.of(h)
			assert.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
			return w.Code
		}
		assert.Equal(t, []int{200, 200}, []int{probe("/healthz"), probe("/readyz")})
		st.SetAway(true)
		assert.Equal(t, []int{200, 503}, []int{probe("/healthz"), probe("/readyz")})
		st.SetAway(false)
		assert.Equal(t, 200, probe("/readyz"))
		slow.hangs.Store(true)
		began := time.Now()
		assert.Equal(t, []int{200, 503}, []int{probe("/healthz"), probe("/readyz")})
		assert.Equal(t, 2*time.Second, time.Since(began))
		began = time.Now()
		assert.Equal(t, 504, ask{"GET", "/heed/answer?id=e", "ann", nil, nil}.of(h).Code)
		assert.Equal(t, 10*time.Second, time.Since(began))
		assert.Equal(t, 401, ask{"POST", "/heed/readyz", "nobody", nil, nil}.of(h).Code)
		close(hangs)
	})
}

// A hanging store does not answer reads.
type hanging struct {
	store.Store
	until chan struct{}
	hangs atomic.Bool
}

func (s *hanging) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
	refs []store.Ref, finds ...store.Query) error {
	if s.hangs.Load() {
		select {
		case <-s.until:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.Store.Read(ctx, into, cells, refs, finds...)
}

func TestHeaders(t *testing.T) {
	h := handler(t)
	for _, path := range []string{"/", "/style.css", "/no", "/v1/no"} {
		header := ask{"GET", path, "ann", nil, nil}.of(h).Header()
		policy := header.Get("Content-Security-Policy")
		assert.True(t, strings.HasPrefix(policy, "default-src 'none';"), policy)
		assert.NotContains(t, policy, "unsafe")
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
			"Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
		} {
			assert.Equal(t, want, header.Get(name), name)
		}
		assert.Contains(t, header.Get("Permissions-Policy"), "camera=()")
		assert.NotEmpty(t, header.Get("Content-Type"))
		assert.Equal(t, path != "/style.css", header.Get("Cache-Control") == "no-store", path)
	}
}

func TestPaths(t *testing.T) {
	h := handler(t, func(c *web.Config) { c.Prefix = "/heed" })
	for path, want := range map[string]int{
		"/heed/": 200, "/heed": 303, "/heed/style.css": 200, "/": 404, "/heedx/": 404,
		"/heed/../heed/": 404, "/heed//": 404,
		"/heed/%2e%2e/etc": 404, "/heed/static/style.css": 404, "/heed/templates/frame.html": 404,
		"/heed/%00": 404, "/heed/a%2fb": 404, "/%68eed/": 404, "/hee%64/style.css": 404,
		"/heed/style.css/": 404, "//evil.example/%2e%2e": 404,
	} {
		w := ask{"GET", path, "ann", nil, nil}.of(h)
		assert.Equal(t, want, w.Code, path)
		switch want {
		case 303:
			assert.Equal(t, "/heed/", w.Header().Get("Location"))
		case 404:
			assert.Contains(t, w.Body.String(), "There is no such page", path)
		}
	}
	body := ask{"GET", "/heed/", "ann", nil, nil}.of(h).Body.String()
	assert.Contains(t, body, `href="/heed/style.css"`)
	style := ask{"GET", "/heed/style.css", "ann", nil, nil}.of(h).Header()
	assert.Equal(t, "public, max-age=600", style.Get("Cache-Control"))
}

func TestCrossOrigin(t *testing.T) {
	h := handler(t)
	for name, header := range map[string]map[string]string{
		"another site":   {"Sec-Fetch-Site": "cross-site"},
		"a sibling":      {"Sec-Fetch-Site": "same-site"},
		"another origin": {"Origin": "https://evil.example"},
		"no origin":      {"Origin": "null"},
	} {
		for _, path := range []string{"/", "/v1/x"} {
			w := ask{"POST", path, "ann", url.Values{}, header}.of(h)
			assert.Equal(t, http.StatusForbidden, w.Code, name)
			assert.Equal(t, "close", w.Header().Get("Connection"), "its body is not read")
		}
	}
}

// TestSlowBody sends a body that never ends, or is too long. The request ends all the same.
func TestSlowBody(t *testing.T) {
	h := handler(t, func(c *web.Config) { c.Bound(50*time.Millisecond, 100) })
	server := httptest.NewServer(h)
	defer server.Close()
	for begin, want := range map[string]int{"reason=": http.StatusRequestTimeout,
		strings.Repeat("a", 101): http.StatusRequestEntityTooLarge} {
		for _, path := range []string{"/v1/x", "/"} {
			body, write := io.Pipe()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, body)
			require.NoError(t, err)
			r.Header.Set("X-Person", "kim")
			go func() { _, _ = write.Write([]byte(begin)) }()
			answer, err := server.Client().Do(r)
			require.NoError(t, err)
			assert.Equal(t, want, answer.StatusCode)
			require.NoError(t, answer.Body.Close())
			require.NoError(t, write.Close())
		}
	}
}

// TestAStrangersBody is not waited for.
func TestAStrangersBody(t *testing.T) {
	server := httptest.NewServer(handler(t, func(c *web.Config) { c.Bound(time.Hour, 1<<20) }))
	defer server.Close()
	for path, want := range map[string]int{"/v1/select": http.StatusUnauthorized,
		"/": http.StatusUnauthorized, "/../x": http.StatusNotFound} {
		body, write := io.Pipe()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+path, body)
		require.NoError(t, err)
		go func() { _, _ = write.Write([]byte("reason=")) }()
		answer, err := server.Client().Do(r)
		require.NoError(t, err, path)
		assert.Equal(t, want, answer.StatusCode, path)
		require.NoError(t, answer.Body.Close())
		require.NoError(t, write.Close())
		cancel()
	}
}

// TestProgram keeps programs to the API: they see no page, and decide nothing.
func TestProgram(t *testing.T) {
	h := handler(t, func(c *web.Config) {
		c.Program = func(r *http.Request) bool { return r.Header.Get("Authorization") != "" }
	})
	token := map[string]string{"Authorization": "Bearer x"}
	for _, a := range []ask{
		{method: http.MethodGet, path: "/"},
		{method: http.MethodGet, path: "/none"},
		{method: http.MethodPost, path: "/proposal/approve",
			form: url.Values{"id": {"x"}, "hash": {"x"}, "reason": {"x"}}},
	} {
		a.person, a.header = "shop", token
		assert.Equal(t, http.StatusForbidden, a.of(h).Code, a.path)
	}
	assert.Equal(t, http.StatusOK, ask{method: http.MethodGet, path: "/v1/openapi.json",
		person: "shop", header: token}.of(h).Code)
	assert.Equal(t, http.StatusOK, ask{method: http.MethodGet, path: "/", person: "kim"}.of(h).Code)
}
