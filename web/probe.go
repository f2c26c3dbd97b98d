package web

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/heedhq/heed/store"
)

// The paths that a load balancer asks, which need no person.
const (
	livePath     = "/healthz" // 200 as long as the process serves
	readyPath    = "/readyz"  // 200 if the store answers in time, and else 503
	readyTimeout = 2 * time.Second
)

// probe answers a load balancer, and reports whether the request is one of it.
func (h *Handler) probe(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	status, text := http.StatusOK, "ok\n"
	switch r.URL.Path {
	case livePath:
	case readyPath:
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		var s store.Snapshot
		ref := store.Ref{Kind: store.Audit.Name, ID: "ready"}
		if err := h.cfg.Store.Read(ctx, &s, nil, []store.Ref{ref}); err != nil {
			status, text = http.StatusServiceUnavailable, "the store does not answer\n"
		}
	default:
		return false
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
	return true
}
