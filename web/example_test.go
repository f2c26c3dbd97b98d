package web_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/web"
)

// served mounts the pages and the API of an agent at /heed. The host's session says who asks; here
// a header does.
func served() *httptest.Server {
	agent, err := loop.New(context.Background(), loop.Config{
		Model: &llmtest.Model{Answers: llmtest.Say("Rotate its logs.")},
	})
	if err != nil {
		panic(err)
	}
	pages, err := web.New(web.Config{
		Agent: agent, Prefix: "/heed",
		Identify: func(r *http.Request) (string, error) {
			if who := r.Header.Get("X-User"); who != "" {
				return who, nil
			}
			return "", http.ErrNoCookie
		},
		Program: func(r *http.Request) bool { return r.Header.Get("X-User") == "shop" },
	})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/heed/", pages)
	return httptest.NewServer(mux)
}

// do makes a request as somebody, and returns its status and body.
func do(server *httptest.Server, who, method, path, body string) (int, string) {
	r, err := http.NewRequest(method, server.URL+path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("X-User", who)
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(response.Body)
	if err != nil {
		panic(err)
	}
	return response.StatusCode, string(text)
}

// A person sees pages. A program has the API only, and a request of an unknown sender is refused.
func ExampleNew() {
	server := served()
	defer server.Close()
	for _, who := range []string{"ann", "shop", ""} {
		status, page := do(server, who, "GET", "/heed/", "")
		fmt.Printf("%q %d %v\n", who, status, strings.Contains(page, "<html"))
	}
	// Output:
	// "ann" 200 true
	// "shop" 403 true
	// "" 401 true
}

// A program in any language asks for an answer, and reports what became of it.
func ExampleHandler() {
	server := served()
	defer server.Close()
	status, _ := do(server, "shop", "POST", "/heed/v1/answer",
		`{"id": "ticket-7", "text": "The disk is full.", "person": "ann"}`)
	fmt.Println(status)
	status, _ = do(server, "shop", "POST", "/heed/v1/react",
		`{"answer": "ticket-7", "person": "ann", "value": 1}`)
	fmt.Println(status)
	status, fault := do(server, "shop", "POST", "/heed/v1/react",
		`{"answer": "ticket-7", "person": "ann", "value": 5}`)
	fmt.Println(status, strings.Contains(fault, "value is 5, must be in [-1, 1]"))
	// Output:
	// 200
	// 204
	// 422 true
}

// Pages of many organisations: the host takes the organisation from the request.
func ExampleNew_tenants() {
	ctx := context.Background()
	agent, err := loop.New(ctx, loop.Config{
		Model: &llmtest.Model{Answers: llmtest.Say("Rotate its logs.")},
	})
	if err != nil {
		panic(err)
	}
	type site struct {
		tenant *loop.Agent
		pages  http.Handler
	}
	var sites sync.Map // by organisation
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		organisation := r.Header.Get("X-Org")
		tenant, err := agent.Tenant(r.Context(), organisation)
		if err != nil {
			http.Error(w, "bad organisation", http.StatusBadRequest)
			return
		}
		of, _ := sites.Load(organisation)
		known, ok := of.(site)
		if !ok || known.tenant != tenant { // an organisation that left and came back has another agent
			pages, err := web.New(web.Config{
				Agent:    tenant,
				Identify: func(r *http.Request) (string, error) { return r.Header.Get("X-User"), nil },
			})
			if err != nil {
				http.Error(w, "no pages", http.StatusInternalServerError)
				return
			}
			known = site{tenant, pages}
			sites.Store(organisation, known)
		}
		known.pages.ServeHTTP(w, r)
	}))
	defer server.Close()

	acme, err := agent.Tenant(ctx, "acme")
	if err == nil {
		_, err = acme.Answer(ctx, loop.Event{ID: "e1", Text: "The disk is full"})
	}
	if err != nil {
		panic(err)
	}
	for _, organisation := range []string{"acme", "bravo"} {
		r, err := http.NewRequest(http.MethodGet, server.URL+"/v1/explanation?answer=e1", nil)
		if err != nil {
			panic(err)
		}
		r.Header.Set("X-Org", organisation)
		r.Header.Set("X-User", "ann")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			panic(err)
		}
		response.Body.Close() //nolint:errcheck,gosec // nothing is read
		fmt.Println(organisation, response.StatusCode)
	}
	// Output:
	// acme 200
	// bravo 404
}
