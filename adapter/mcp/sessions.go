package mcp

import (
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// mostSessions is how many sessions over HTTP a person may have.
const mostSessions = 100

// bounded bounds the sessions of each person. It is safe for concurrent use.
type bounded struct {
	server *sdk.Server
	next   http.Handler

	mu      sync.Mutex
	opening map[string]int             // requests that may open a session
	open    map[string]map[string]bool // the ids of each person's sessions
}

func (b *bounded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := auth.TokenInfoFromContext(r.Context())
	if token == nil || r.Header.Get("Mcp-Session-Id") != "" {
		b.next.ServeHTTP(w, r)
		return
	}
	person := token.UserID
	if !b.admits(person) {
		http.Error(w, "too many sessions: close some", http.StatusTooManyRequests)
		return
	}
	defer func() { b.opened(person, w.Header().Get("Mcp-Session-Id")) }()
	b.next.ServeHTTP(w, r)
}

// admits reports whether a person may open a session, and counts that.
func (b *bounded) admits(person string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.opening[person]+len(b.open[person]) >= mostSessions {
		live := make(map[string]bool)
		for session := range b.server.Sessions() {
			if id := session.ID(); b.open[person][id] {
				live[id] = true
			}
		}
		b.open[person] = live
	}
	if b.opening[person]+len(b.open[person]) >= mostSessions {
		return false
	}
	b.opening[person]++
	return true
}

// opened counts the session that a request opened, if it opened one.
func (b *bounded) opened(person, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.opening[person]--; b.opening[person] == 0 {
		delete(b.opening, person)
	}
	if id == "" {
		return
	}
	if b.open[person] == nil {
		b.open[person] = make(map[string]bool)
	}
	b.open[person][id] = true
}
