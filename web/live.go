package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"

	"github.com/heedhq/heed/store"
)

// version names the state of the store. It changes with decisions, corrections and answers of any
// process.
func (h *Handler) version(ctx context.Context) (string, error) {
	return h.states.Of(ctx, struct{}{}, func() (string, error) {
		state, err := h.state(ctx)
		if err != nil {
			h.tell(ctx, "live", err)
		}
		return state, err
	})
}

const (
	window  = 50 // records of a kind that are compared, for processes whose clocks are behind
	answers = 10 // the same for answers, which are longer and come more often
)

// state reads the latest records of what changes when something happens.
func (h *Handler) state(ctx context.Context) (string, error) {
	latest := []store.Query{
		{Kind: h.cfg.Name + ".answer", Limit: answers}, {Kind: store.Audit.Name, Limit: window},
	}
	if h.cfg.Feedback != nil {
		for _, kind := range []string{"feedback.record", "feedback.proposal", "feedback.rule"} {
			latest = append(latest, store.Query{Kind: kind, Limit: window})
		}
	}
	var s store.Snapshot
	if err := h.cfg.Store.Read(ctx, &s, nil, nil, latest...); err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, found := range s.Found {
		for _, r := range found {
			_, _ = fmt.Fprintf(sum, "%q %d\n", r.ID, r.Revision)
		}
		_, _ = sum.Write([]byte{0})
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// live answers with the version of what pages show. An open page asks once in a second.
func (h *Handler) live(w http.ResponseWriter, r *http.Request) {
	version, err := h.version(r.Context())
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, version)
}
