package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/heedhq/heed/internal/view"
)

// pieces sends an answer while it arrives, in server-sent events: "piece", and at the end "answer"
// or "problem". It is used by one goroutine at a time. nil drops them.
type pieces struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	ctx   context.Context //nolint:containedctx // of the request that it answers
	begun bool
}

// A piece is a part of an answer.
type piece struct {
	Text    string `json:"text"`
	Restart bool   `json:"restart"` // the answer begins with this piece, without those before
}

// piece sends a part of the answer. A client that does not read is cut off when the time of its
// request ends.
func (p *pieces) piece(_ context.Context, text string, restart bool) {
	p.send("piece", piece{text, restart})
}

// problem sends a problem, if the answer began. Else the caller does.
func (p *pieces) problem(why *view.Fault) bool {
	if p == nil || !p.begun {
		return false
	}
	p.send("problem", troubleOf(why))
	return true
}

func (p *pieces) send(event string, value any) {
	data, _ := json.Marshal(value) // texts and numbers, or JSON
	if !p.begun {
		p.begun = true
		deadline, _ := p.ctx.Deadline()
		_ = p.rc.SetWriteDeadline(deadline) // a writer without deadlines waits for its client
		p.w.Header().Set("Content-Type", "text/event-stream")
		p.w.Header().Set("X-Accel-Buffering", "no") // has nginx pass on each piece
	}
	_, _ = fmt.Fprintf(p.w, "event: %s\ndata: %s\n\n", event, data) // JSON has no line feed
	_ = p.rc.Flush()
}
