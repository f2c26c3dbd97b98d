package web

import (
	"encoding/json"
	"net/http"
)

// api returns the handler of all below /v1/.
func (h *Handler) api() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, _ *http.Request) {
		problem(w, http.StatusNotFound, "There is no such call.")
	})
	return mux
}

// problem answers with problem details (RFC 9457).
func problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"title": http.StatusText(status), "status": status, "detail": detail})
}
